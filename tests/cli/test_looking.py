"""``stats``, ``list`` and ``show``."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from django_nobroker import BackoffPolicy, Job, MsgpackSerializer, Queue

FIELDS = [
    "id",
    "payload",
    "queue",
    "priority",
    "state",
    "attempts",
    "max_attempts",
    "available_at",
    "enqueued_at",
    "last_error",
]


@pytest.fixture
def emails(directory):
    with Queue(directory, "emails", backoff=BackoffPolicy(base=0)) as opened:
        yield opened


def test_stats_counts_each_queue(nobroker, queue, emails):
    queue.enqueue_many([1, 2])
    emails.enqueue(3)

    assert nobroker("stats").lines == [
        "queue    ready  delayed  leased  done  dead  total",
        "default      2        0       0     0     0      2",
        "emails       1        0       0     0     0      1",
    ]


def test_stats_as_json_has_the_names_of_queue_stats(nobroker, queue):
    queue.enqueue(1)
    queue.enqueue(1, delay=60)
    queue.lease_one()

    (found,) = nobroker("--json", "stats").objects
    assert found == {**asdict(queue.stats()), "queue": "default"}


def test_stats_of_a_queue_that_was_named_is_one_row_even_without_a_job(nobroker, queue):
    queue.enqueue(1)
    (found,) = nobroker("--json", "-q", "nowhere", "stats").objects

    assert (found["queue"], found["total"]) == ("nowhere", 0)


def test_stats_of_an_empty_store_shows_the_default_queue(nobroker, queue):
    assert nobroker("stats").lines[1].split() == ["default", *"000000"]


def test_a_job_as_json_has_the_fields_of_job(nobroker, queue):
    made = queue.enqueue({"to": "ada"}, priority=3, max_attempts=2, job_id="a")
    (found,) = nobroker("--json", "list").objects

    assert list(found) == FIELDS
    assert set(FIELDS) <= set(Job.__struct_fields__)
    assert {name: found[name] for name in FIELDS} == {
        name: getattr(made, name) for name in FIELDS
    }


@pytest.mark.parametrize(
    ("state", "payloads"),
    [
        (None, ["dead", "done", "leased", "ready", "later"]),
        ("ready", ["ready", "later"]),
        ("delayed", ["later"]),
        ("leased", ["leased"]),
        ("done", ["done"]),
        ("dead", ["dead"]),
        ("discarded", []),
    ],
)
def test_list_shows_jobs_of_a_state(nobroker, queue, state, payloads):
    queue.enqueue("dead")
    queue.fail(queue.lease_one())
    queue.enqueue("done")
    queue.ack(queue.lease_one())
    queue.enqueue("leased")
    queue.lease_one()
    queue.enqueue("ready")
    queue.enqueue("later", delay=60)
    chosen = () if state is None else ("--state", state)

    found = nobroker("--json", "list", *chosen).objects
    assert [one["payload"] for one in found] == payloads


def test_pages_follow_each_other_without_a_gap(nobroker, queue, emails):
    for number in range(4):
        queue.enqueue(2 * number)
        emails.enqueue(2 * number + 1)
    seen, after = [], ()
    for _ in range(3):
        page = nobroker("--json", "list", "--limit", "3", *after).objects
        seen += [one["payload"] for one in page]
        after = ("--after", page[-1]["id"])

    assert seen == list(range(8))
    told = nobroker("list", "--limit", "3")
    assert len(told.lines) == 4
    assert told.err == f"There are more: add --after {told.lines[-1].split()[0]}\n"
    assert nobroker("list", "--limit", "8").err == ""
    assert nobroker("list", *after).out == "No jobs.\n"
    assert nobroker("list", "--after", "nobody").code == 1


def test_list_reads_more_than_a_page_of_the_index(nobroker, queue):
    queue.enqueue_many(range(1100))
    found = nobroker("--json", "list", "--limit", "1050").objects

    assert [one["payload"] for one in found] == list(range(1050))


def test_no_job_can_send_anything_but_text_to_a_terminal(nobroker, queue):
    hostile = "\x1b]0;owned\x07\x9b31m\u202e\r\n\x00"
    queue.enqueue({hostile: hostile}, job_id="a")
    job = queue.lease_one()
    queue.fail(job, error=hostile)

    for arguments in (["list"], ["dlq"], ["show", "a"], ["inspect"]):
        for form in ([], ["--json"]):
            ran = nobroker(*form, *arguments)
            assert ran.code == 0
            controls = {c for c in ran.out if not c.isprintable()} - {"\n", "\u3000"}
            assert controls == set(), arguments
    assert nobroker("--json", "show", "a").objects[0]["payload"] == {hostile: hostile}


def test_show_tells_each_attempt(nobroker, emails):
    emails.enqueue({"to": "ada"}, job_id="a", max_attempts=2)
    emails.nack(emails.lease_one(), error="first")
    emails.nack(emails.lease_one(), error="second")

    ran = nobroker("show", "a")
    facts = dict(line.split(None, 1) for line in ran.lines if line and line[0] != " ")
    assert facts["state"] == "dead (attempts)"
    assert facts["payload"] == '{"to":"ada"}'
    assert facts["last"].split() == ["error", "second"]
    attempts = [line.split() for line in ran.lines if line.startswith("      ")]
    assert [(one[0], one[-2], one[-1]) for one in attempts] == [
        ("1", "failed", "first"),
        ("2", "failed", "second"),
    ]


def test_show_as_json_holds_the_job_and_its_history(nobroker, emails):
    emails.enqueue(1, job_id="a")
    emails.nack(emails.lease_one(), error="first")
    emails.ack(emails.lease_one())
    (found,) = nobroker("--json", "show", "a").objects

    assert list(found)[: len(FIELDS)] == FIELDS
    assert found["state"] == "done"
    assert [one["outcome"] for one in found["history"]] == ["failed", "done"]
    assert found["history"][0]["error"]["message"] == "first"
    assert found["finished_at"] >= found["started_at"] >= found["enqueued_at"]


def test_show_of_an_unknown_job_is_an_error(nobroker, queue):
    assert nobroker("show", "a").err == "nobroker: No job a is in the store.\n"
    ran = nobroker("-q", "emails", "show", "a")
    assert ran == (1, "", "nobroker: No job a is in the queue emails.\n")


def test_an_id_that_several_queues_have_must_be_told_apart(nobroker, queue, emails):
    queue.enqueue(1, job_id="a")
    emails.enqueue(2, job_id="a")

    ran = nobroker("show", "a")
    assert ran.code == 1
    assert ran.err.startswith("nobroker: Several queues have a job a (default, emails)")
    assert nobroker("-q", "emails", "--json", "show", "a").objects[0]["payload"] == 2


def test_payloads_of_another_serializer_are_shown_as_they_stand(nobroker, directory):
    with Queue(directory, serializer=MsgpackSerializer()) as queue:
        queue.enqueue(b"\x00bytes")
    (found,) = nobroker("--json", "list").objects

    assert found["payload"]["serializer"] == "msgpack"
    assert '"$bytes"' in nobroker("list").out


def test_a_payload_that_looks_like_one_of_them_is_shown_as_itself(nobroker, queue):
    queue.enqueue({"$bytes": "AAAA", "serializer": "x"})
    (found,) = nobroker("--json", "list").objects

    assert found["payload"] == {"$bytes": "AAAA", "serializer": "x"}
    assert "$json" not in nobroker("list").out
