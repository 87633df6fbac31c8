"""The pages over the real backend and the real log, jobs run as a worker would."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from django_nobroker import MsgpackSerializer, Queue
from django_nobroker.admin.stores import Store
from django_nobroker.compat import TaskResultStatus
from django_nobroker.testing import run_tasks

from . import failing_tasks
from .reading import read

QUEUES = "/admin/django_nobroker/queue/"
DEAD = "/admin/django_nobroker/deadjob/"


@pytest.fixture(autouse=True)
def log(settings, tmp_path, monkeypatch):
    """A store of this test's own, and a payment service that is down."""
    monkeypatch.setattr(failing_tasks, "mended", False)
    settings.TASKS = {
        "default": {
            "BACKEND": "django_nobroker.backends.LogBackend",
            "OPTIONS": {"TEST": {"DIRECTORY": tmp_path / "jobs"}},
        }
    }


def ids_on(page):
    return [row[1] for row in page.rows[1:]]


def test_a_store_without_jobs_is_no_fault(boss):
    assert "No queue holds a job yet." in read(boss.get(QUEUES)).text
    assert "There are no dead letters." in read(boss.get(DEAD)).text


def test_a_failed_job_is_seen_mended_requeued_and_done(boss, monkeypatch):
    result = failing_tasks.charge.enqueue("ann", api_key="sk_live_1")
    run_tasks()

    assert ["payments", "0", "0", "0", "0", "1", "-"] in read(boss.get(QUEUES)).rows
    assert ids_on(read(boss.get(DEAD))) == [result.id]
    page = read(boss.get(f"{DEAD}{result.id}/"))
    assert "ValueError" in page.text
    assert "card of <ann> declined" in page.text
    assert 'customer "ann" api_key ********' in page.text
    assert "sk_live_1" not in page.text
    assert "in charge" in page.text
    assert "Attempt 1 failed" in page.text

    monkeypatch.setattr(failing_tasks, "mended", True)
    form = {"action": "requeue", "_selected_action": result.id}
    assert "1 job will be run again" in read(boss.post(DEAD, form)).text
    done = read(boss.post(DEAD, {**form, "confirm": "yes"}, follow=True))
    assert "1 job was requeued." in done.text
    run_tasks()

    result.refresh()
    assert result.status is TaskResultStatus.SUCCESSFUL
    assert ids_on(read(boss.get(DEAD))) == []


def test_each_attempt_is_in_the_timeline(boss):
    result = failing_tasks.send.enqueue("ann@example.com")
    run_tasks()

    page = read(boss.get(f"{DEAD}{result.id}/"))

    assert "All its attempts failed." in page.text
    assert "Attempt 1 failed" in page.text
    assert "Attempt 2 failed" in page.text
    assert len(page.all("details")) == 3


def test_a_discarded_job_is_gone_and_never_run(boss, monkeypatch):
    result = failing_tasks.charge.enqueue("ann")
    run_tasks()
    monkeypatch.setattr(failing_tasks, "mended", True)
    form = {"action": "discard", "_selected_action": result.id, "confirm": "yes"}

    first = read(boss.post(DEAD, form, follow=True))
    second = read(boss.post(DEAD, form, follow=True))

    assert "1 job was discarded." in first.text
    assert "1 job was not discarded" in second.text
    assert "it is not dead, it is discarded" in second.text
    assert run_tasks() == []
    assert ids_on(read(boss.get(DEAD))) == []


def test_pages_hold_every_dead_letter_once_however_they_are_filtered(boss):
    failing_tasks.charge.enqueue_many([((number,), {}) for number in range(250)])
    failing_tasks.send.enqueue_many([((str(number),), {}) for number in range(20)])
    run_tasks()

    def walk(query):
        seen, address = [], f"{DEAD}{query}"
        while address:
            page = read(boss.get(address))
            seen.append(ids_on(page))
            older = page.all("a", rel="next")
            address = older[0]["href"] if older else ""
        return seen

    everything = walk("")
    assert [len(page) for page in everything] == [100, 100, 70]
    assert len({job_id for page in everything for job_id in page}) == 270
    assert [len(page) for page in walk("?queue=payments")] == [100, 100, 50]
    assert [len(page) for page in walk(f"?task={failing_tasks.__name__}.send")] == [20]
    assert [len(page) for page in walk("?queue=emails&task=no.such")] == [0]


def test_a_whole_page_is_requeued_at_once(boss):
    failing_tasks.charge.enqueue_many([((number,), {}) for number in range(120)])
    run_tasks()
    chosen = ids_on(read(boss.get(DEAD)))

    form = {"action": "requeue", "_selected_action": chosen}
    assert "100 jobs will be run again" in read(boss.post(DEAD, form)).text
    boss.post(DEAD, {**form, "confirm": "yes"})

    (counts,) = Store("default").engine.counts()
    assert (counts.ready, counts.dead) == (100, 20)


@pytest.mark.parametrize(
    "text", ["x" * 200, "x" * 3000, "ü" * 200, "\0", "\U0010ffff" * 200, " ", "a/../b"]
)
def test_ids_and_names_of_any_sort_are_looked_up_in_vain(boss, text):
    failing_tasks.charge.enqueue("ann")
    run_tasks()
    quoted = quote(text, safe="")

    assert boss.get(f"{DEAD}{quoted}/").status_code == 404
    for name in ("queue", "task"):
        assert ids_on(read(boss.get(f"{DEAD}?{name}={quoted}"))) == []
    form = {"action": "requeue", "_selected_action": text, "confirm": "yes"}
    assert "it is not in the store" in read(boss.post(DEAD, form, follow=True)).text


def test_payloads_that_are_no_tasks_are_dead_letters_that_can_be_looked_at(boss):
    """Somebody enqueued into the store of the project with a plain queue."""
    backend = failing_tasks.charge.get_backend()
    jobs = backend.configuration.options.directory
    with Queue(jobs, "default", serializer=MsgpackSerializer()) as queue:
        queue.enqueue({"token": b"hunter2"}, job_id="packed")
    with Queue(jobs, "default") as queue:
        queue.enqueue({"$bytes": "x", "to": "ann"}, job_id="lookalike")
    with Queue(jobs, "other", serializer=MsgpackSerializer()) as queue:
        queue.enqueue(b"hunter2", job_id="undecodable")
    with Queue(jobs, "other") as queue:
        assert queue.lease_one() is None
    result = failing_tasks.charge.enqueue("ann", api_key="sk_live_1")

    run_tasks()

    assert set(ids_on(read(boss.get(DEAD)))) == {
        result.id,
        "packed",
        "lookalike",
        "undecodable",
    }
    page = read(boss.get(f"{DEAD}packed/")).text
    assert "Its payload is not that of a task." in page
    assert "was written by the serializer msgpack of a plain queue." in page
    assert "aHVudGVyMg" not in page
    page = read(boss.get(f"{DEAD}undecodable/")).text
    assert "Its payload cannot be decoded." in page
    assert "written by the serializer msgpack, and this queue reads json" in page
    assert '"ann"' in read(boss.get(f"{DEAD}lookalike/")).text


def test_a_file_in_place_of_the_store_is_told(boss, tmp_path):
    (tmp_path / "jobs").write_text("not a store")

    for address in (QUEUES, DEAD, f"{DEAD}a/"):
        assert "This store cannot be read." in read(boss.get(address)).text
