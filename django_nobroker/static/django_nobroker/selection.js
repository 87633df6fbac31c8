// The list of dead letters: one checkbox for the whole page, and how many are chosen.
// Everything works without this script; then each job is chosen by itself.
(function () {
    "use strict";
    const form = document.getElementById("nobroker-list");
    const all = document.getElementById("nobroker-all");
    if (!form || !all) {
        return;
    }
    const counter = form.querySelector("[data-nobroker-counter]");
    const boxes = Array.from(form.querySelectorAll("input[name=_selected_action]"));

    function show() {
        const count = boxes.filter((box) => box.checked).length;
        all.checked = count > 0 && count === boxes.length;
        all.indeterminate = count > 0 && count < boxes.length;
        const text = count === 1 ? counter.dataset.one : counter.dataset.many;
        counter.textContent = count ? text.replace("COUNT", String(count)) : "";
    }

    all.hidden = boxes.length === 0;
    all.addEventListener("change", () => {
        boxes.forEach((box) => {
            box.checked = all.checked;
        });
        show();
    });
    form.addEventListener("change", show);
    // A page that comes back from the browser's history brings its choices along.
    window.addEventListener("pageshow", show);
    show();
})();
