// Keeps the status of open jobs up to date, and shows what a finished job made.
"use strict";

const EVERY = 1000; // milliseconds

function openJobs() {
  return [...document.querySelectorAll("[data-job][data-open]")];
}

function show(label, status) {
  if (label.textContent !== status.text) {
    label.textContent = status.text;
    label.className = `job ${status.word}`;
  }
  label.toggleAttribute("data-open", status.open);
}

// What else a finished job changed is on the page, so the page is asked for again
// and its live parts are exchanged; scroll position and focus elsewhere stay.
async function exchangeLiveParts() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) {
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (next && !part.contains(document.activeElement)) {
      part.replaceWith(next);
    }
  }
}

async function look() {
  const labels = openJobs();
  if (labels.length === 0) {
    return;
  }
  try {
    const ids = labels.map((label) => ["id", label.dataset.job]);
    const address = `${document.body.dataset.jobsUrl}?${new URLSearchParams(ids)}`;
    const answer = await fetch(address);
    if (answer.ok) {
      const statuses = await answer.json();
      for (const label of labels) {
        show(label, statuses[label.dataset.job]);
      }
      if (openJobs().length < labels.length) {
        await exchangeLiveParts();
      }
    }
  } catch {
    // The site is away for a moment; the next look may find it again.
  }
  setTimeout(look, EVERY);
}

setTimeout(look, EVERY);
