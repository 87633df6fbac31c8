from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.test import Client

from django_nobroker.admin import DeadJobAdmin
from django_nobroker.exceptions import QueueFull, StorageError
from django_nobroker.seam import State

from .fake_engine import BOOM, FakeEngine
from .reading import read

URL = "/admin/django_nobroker/deadjob/"
ALL = ("view_deadjob", "requeue_job", "discard_job", "view_payload")


def first_column(page):
    return [row[1] for row in page.rows[1:]]


def told(response):
    """Return the messages on the page that an action leads to."""
    assert response.redirect_chain, "the action did not lead anywhere"
    return [str(message) for message in response.context["messages"]]


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(DeadJobAdmin, "list_per_page", 3)


# --- the list ----------------------------------------------------------------


def test_dead_jobs_are_listed_newest_first_and_no_others(engine, boss):
    engine.put("old")
    engine.put("alive", state=State.READY)
    engine.put("new", queue="emails", attempts=3, max_attempts=4)

    page = read(boss.get(URL))

    assert page.rows == [
        ["", "Job", "Task", "Queue", "Attempts", "Died at", "Error"],
        [
            "",
            "new",
            "tests.admin.tasks.charge",
            "emails",
            "3/4",
            "2025-11-24 16:01:00",
            "ValueError: boom",
        ],
        [
            "",
            "old",
            "tests.admin.tasks.charge",
            "default",
            "5/5",
            "2025-11-24 16:01:00",
            "ValueError: boom",
        ],
    ]
    assert "2 dead letters" in page.text


def test_an_empty_list_says_so(engine, boss):
    page = read(boss.get(URL))

    assert "There are no dead letters." in page.text
    assert page.buttons == []


def test_a_filter_by_queue_and_task_narrows_the_list(engine, boss):
    engine.put("a", queue="emails", kind="mail.send")
    engine.put("b", queue="emails", kind="mail.archive")
    engine.put("c", queue="reports", kind="mail.send")

    assert first_column(read(boss.get(URL, {"queue": "emails"}))) == ["b", "a"]
    assert first_column(read(boss.get(URL, {"task": "mail.send"}))) == ["c", "a"]
    both = {"queue": "emails", "task": "mail.send"}
    assert first_column(read(boss.get(URL, both))) == ["a"]
    none = read(boss.get(URL, {"queue": "nowhere"}))
    assert "No dead letter matches this filter." in none.text


def test_pages_follow_keys_and_keep_the_filter(engine, boss, short_pages):
    for number in range(8):
        engine.put(f"job-{number}", queue="odd" if number % 2 else "even")
    seen, address = [], f"{URL}?queue=even"

    while address:
        page = read(boss.get(address))
        seen.append(first_column(page))
        older = page.all("a", rel="next")
        address = older[0]["href"] if older else ""

    assert seen == [["job-6", "job-4", "job-2"], ["job-0"]]


def test_a_page_asks_for_no_more_than_it_shows(engine, boss, short_pages):
    for number in range(50):
        engine.put(f"job-{number}")

    boss.get(URL)

    assert engine.calls == ["jobs limit=3"]


@pytest.mark.parametrize("key", ["x", "-1", "1e3", str(2**63), "9" * 5000, "٣", "\0"])
def test_a_key_that_is_none_shows_the_newest_and_says_so(engine, boss, key):
    engine.put("a")

    page = read(boss.get(URL, {"after": key}))

    assert first_column(page) == ["a"]
    assert "is no page of this list" in page.text


def test_the_end_of_the_list_leads_back_to_the_newest(engine, boss):
    engine.put("a")

    page = read(boss.get(URL, {"after": "0"}))

    assert "There are no older dead letters." in page.text
    assert page.all("a", rel="first")[0]["href"] == URL


def test_a_store_that_cannot_be_opened_is_told(configure, boss):
    configure(default=StorageError(5, "Input/output error"))

    assert "Input/output error" in read(boss.get(URL)).text
    assert "Input/output error" in read(boss.get(f"{URL}some-id/")).text


def test_without_a_store_the_page_says_what_to_configure(boss, settings):
    settings.TASKS = {}

    assert "LogBackend" in read(boss.get(URL)).text


def test_each_store_has_its_own_list(configure, boss):
    alpha, beta = FakeEngine(), FakeEngine()
    alpha.put("in-alpha")
    beta.put("in-beta")
    configure(alpha=alpha, beta=beta)

    assert first_column(read(boss.get(URL))) == ["in-alpha"]
    page = read(boss.get(URL, {"backend": "beta"}))
    assert first_column(page) == ["in-beta"]
    assert f"{URL}in-beta/?backend=beta" in page.links
    assert f"{URL}?backend=alpha" in page.links
    assert boss.get(URL, {"backend": "gamma"}).status_code == 404


# --- one job -----------------------------------------------------------------


def test_a_dead_letter_is_shown_in_full(engine, boss):
    engine.put("a/b c", payload=b'{"args": [7], "kwargs": {"a": "x"}}', priority=3)

    page = read(boss.get(read(boss.get(URL)).links[-1]))

    assert "Dead letter a/b c" in page.text
    assert "All its attempts failed." in page.text
    assert "builtins.ValueError" in page.text
    assert "Traceback (most recent call last): ValueError: boom" in page.text
    assert 'order 7 a "x"' in page.text
    assert "Priority 3" in page.text
    assert "Attempt 1 failed 2025-11-24 16:00:59 · 1.0 s · host-1" in page.text
    assert len(page.all("details")) == 2
    assert page.all("details", open="") == []


@pytest.mark.parametrize("job_id", ["a_5Fb", "a_b", "x/y", ".", "..", "ü?#%2F", " "])
def test_the_list_links_to_each_job_whatever_its_id(engine, boss, job_id):
    engine.put(job_id, queue="this")
    engine.put("a_b" if job_id != "a_b" else "a_5Fb", queue="other")
    page = read(boss.get(URL, {"queue": "this"}))
    links = [link for link in page.links if link.startswith(URL) and link != URL]

    response = boss.get(links[-1])

    assert response.context["letter"].id == job_id


def test_an_id_can_be_typed_as_it_is(engine, boss):
    engine.put("user_40")

    assert "Dead letter user_40" in read(boss.get(f"{URL}user_40/")).text


def test_an_unknown_id_is_not_found(engine, boss):
    assert boss.get(f"{URL}nothing/").status_code == 404


@pytest.mark.parametrize("state", [State.READY, State.LEASED, State.DONE])
def test_of_a_job_that_is_not_dead_only_the_state_is_told(engine, boss, state):
    engine.put("a", state=state)

    response = boss.get(f"{URL}a/", follow=True)

    assert response.redirect_chain == [(URL, 302)]
    (message,) = told(response)
    assert message.startswith("Job “a” is not a dead letter: it is ")


def test_a_job_is_found_in_whichever_store_has_it(configure, boss):
    alpha, beta = FakeEngine(), FakeEngine()
    beta.put("in-beta")
    configure(alpha=alpha, beta=beta)

    assert boss.get(f"{URL}in-beta/").status_code == 200
    assert boss.get(f"{URL}in-beta/?backend=alpha").status_code == 404


# --- acting ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "becomes", "flag", "done"),
    [
        ("requeue", State.READY, CHANGE, "2 jobs were requeued."),
        ("discard", State.DISCARDED, DELETION, "2 jobs were discarded."),
    ],
)
def test_the_selected_jobs_are_acted_on_after_a_confirmation(
    engine, boss, action, becomes, flag, done
):
    for job_id in ("a", "b", "c"):
        engine.put(job_id)
    chosen = {"action": action, "_selected_action": ["a", "b"]}

    page = read(boss.post(URL, chosen))

    assert "2 jobs will be" in page.text
    assert [row[0] for row in page.rows[1:]] == ["a", "b"]
    assert engine.acted == []
    form = {
        name: [field["value"] for field in page.all("input", name=name)]
        for name in ("action", "_selected_action", "confirm")
    }
    assert form == {
        "action": [action],
        "_selected_action": ["a", "b"],
        "confirm": ["yes"],
    }

    response = boss.post(URL, form, follow=True)

    assert told(response) == [done]
    assert engine.acted == [(action, ["a", "b"], boss.user.username)]
    assert [engine.state(job_id) for job_id in "abc"] == [becomes, becomes, State.DEAD]
    entries = LogEntry.objects.order_by("object_id")
    assert [(e.object_id, e.action_flag, e.user_id) for e in entries] == [
        ("a", flag, boss.user.pk),
        ("b", flag, boss.user.pk),
    ]


def test_one_job_is_acted_on_from_its_own_page(engine, boss):
    engine.put("a/b")
    engine.put("other")
    address = f"{URL}a_2Fb/"
    assert read(boss.get(address)).buttons == ["requeue", "discard"]

    page = read(boss.post(address, {"action": "requeue"}))
    assert "1 job will be run again" in page.text
    response = boss.post(address, {"action": "requeue", "confirm": "yes"}, follow=True)

    assert response.redirect_chain == [(URL, 302)]
    assert told(response) == ["1 job was requeued."]
    assert engine.acted == [("requeue", ["a/b"], boss.user.username)]
    assert LogEntry.objects.get().get_admin_url() == address


def test_doing_it_twice_changes_nothing_more(engine, boss):
    engine.put("a")
    form = {"action": "requeue", "_selected_action": "a", "confirm": "yes"}

    first = boss.post(URL, form, follow=True)
    second = boss.post(URL, form, follow=True)

    assert told(first) == ["1 job was requeued."]
    assert told(second) == [
        "1 job was not requeued: “a”: it is not dead, it is waiting"
    ]
    assert len(engine.acted) == 1
    assert LogEntry.objects.count() == 1


def test_a_stale_page_cannot_discard_a_job_that_waits_again(engine, boss):
    """The engine would: it discards ready jobs, too."""
    engine.put("a", state=State.READY)

    boss.post(URL, {"action": "discard", "_selected_action": "a", "confirm": "yes"})
    boss.post(f"{URL}a/", {"action": "discard", "confirm": "yes"})

    assert engine.state("a") is State.READY
    assert engine.acted == []


def test_partial_success_is_told_with_reasons(engine, boss):
    engine.put("good")
    engine.put("running", state=State.LEASED)
    engine.put("refused")
    engine.refused["refused"] = "the engine says no"
    chosen = ["good", "running", "gone", "refused", "good"]
    form = {"action": "requeue", "_selected_action": chosen}

    page = read(boss.post(URL, form))
    assert "2 jobs will be run again" in page.text
    assert "2 selected jobs are left as they are" in page.text
    response = boss.post(URL, {**form, "confirm": "yes"}, follow=True)

    success, warning = told(response)
    assert success == "1 job was requeued."
    assert warning == (
        "3 jobs were not requeued: “running”: it is not dead, it is running; "
        "“gone”: it is not in the store; “refused”: the engine says no"
    )
    assert [entry.object_id for entry in LogEntry.objects.all()] == ["good"]


def test_many_reasons_are_cut(engine, boss):
    chosen = [f"gone-{number}" for number in range(9)]
    form = {"action": "requeue", "_selected_action": chosen, "confirm": "yes"}

    (message,) = told(boss.post(URL, form, follow=True))

    assert message.startswith("9 jobs were not requeued: “gone-0”")
    assert message.endswith("; and 4 more")


def test_a_confirmation_of_nothing_has_no_button(engine, boss):
    page = read(boss.post(URL, {"action": "requeue", "_selected_action": "gone"}))

    assert "There is nothing left to do" in page.text
    assert page.all("input", name="confirm") == []


@pytest.mark.parametrize(
    "error", [QueueFull("emails is full"), StorageError(28, "full")]
)
def test_an_action_that_fails_changes_nothing_and_says_why(
    engine, boss, error, monkeypatch
):
    engine.put("a")

    def fail(job_ids, *, by):
        raise error

    monkeypatch.setattr(engine, "requeue", fail)
    form = {"action": "requeue", "_selected_action": "a", "confirm": "yes"}

    response = boss.post(URL, form, follow=True)

    assert told(response) == [f"Nothing was changed: {error}"]
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"_selected_action": "a"}, "No action selected."),
        ({"action": "explode", "_selected_action": "a"}, "No action selected."),
        ({"action": "requeue"}, "No jobs are selected. Nothing was changed."),
    ],
)
def test_an_incomplete_form_changes_nothing(engine, boss, form, message):
    engine.put("a")

    assert told(boss.post(URL, {**form, "confirm": "yes"}, follow=True)) == [message]
    assert engine.acted == []


def test_an_action_leads_back_to_where_it_came_from(engine, boss):
    engine.put("a", queue="e mails")
    form = {"action": "requeue", "_selected_action": "a"}
    address = f"{URL}?queue=e+mails&after=700&page=7&self=1"

    page = read(boss.post(address, form))
    response = boss.post(address, {**form, "confirm": "yes"})

    assert response["Location"] in page.links
    back = urlsplit(response["Location"])
    assert back.path == URL
    assert parse_qs(back.query) == {"queue": ["e mails"], "after": ["700"]}


@pytest.mark.parametrize("address", [URL, f"{URL}a/"])
def test_reading_an_address_never_acts(engine, boss, address):
    engine.put("a")
    query = {"action": "requeue", "_selected_action": "a", "confirm": "yes"}

    assert boss.get(address, query).status_code == 200
    assert boss.head(address, query).status_code == 200
    assert boss.put(address, query).status_code == 405
    assert boss.delete(address, query).status_code == 405
    assert engine.acted == []


@pytest.mark.parametrize("address", [URL, f"{URL}a/"])
def test_a_form_from_elsewhere_is_refused(engine, login, address):
    engine.put("a")
    client = login(superuser=True, client=Client(enforce_csrf_checks=True))
    form = {"action": "requeue", "_selected_action": "a", "confirm": "yes"}

    assert client.post(address, form).status_code == 403
    token = client.get(URL).context["csrf_token"]
    assert (
        client.post(address, {**form, "csrfmiddlewaretoken": token}).status_code == 302
    )
    assert [verb for verb, _, _ in engine.acted] == ["requeue"]


# --- permissions -------------------------------------------------------------


@pytest.mark.parametrize("address", [URL, f"{URL}a/"])
@pytest.mark.parametrize("codenames", [(), ("view_queue", *ALL[1:])])
def test_without_the_permission_there_is_no_page(engine, login, address, codenames):
    engine.put("a")
    client = login(*codenames)
    form = {"action": "requeue", "_selected_action": "a", "confirm": "yes"}

    assert client.get(address).status_code == 403
    assert client.post(address, form).status_code == 403
    assert engine.acted == []


@pytest.mark.parametrize("address", [URL, f"{URL}a/"])
@pytest.mark.parametrize("confirm", [{}, {"confirm": "yes"}])
def test_who_may_only_look_gets_no_button_and_cannot_act(
    engine, login, address, confirm
):
    engine.put("a")
    client = login("view_deadjob")

    page = read(client.get(address))
    assert page.buttons == []
    assert page.all("input", name="_selected_action") == []
    for action in ("requeue", "discard"):
        form = {"action": action, "_selected_action": "a", **confirm}
        assert client.post(address, form).status_code == 403
    assert engine.acted == []


def test_each_action_has_a_permission_of_its_own(engine, login):
    engine.put("a")
    client = login("view_deadjob", "requeue_job")

    assert read(client.get(URL)).buttons == ["requeue"]
    form = {"_selected_action": "a", "confirm": "yes"}
    assert client.post(URL, {**form, "action": "discard"}).status_code == 403
    assert client.post(URL, {**form, "action": "requeue"}).status_code == 302


def test_arguments_are_hidden_from_who_may_not_read_them(engine, login):
    engine.put("a", payload=b'{"args": ["an-argument"], "kwargs": {"key": "another"}}')

    page = read(login("view_deadjob").get(f"{URL}a/"))
    assert "Hidden: your account has no permission to view arguments." in page.text
    assert "an-argument" not in page.text
    assert "another" not in page.text

    page = read(login("view_deadjob", "view_payload").get(f"{URL}a/"))
    assert "an-argument" in page.text
    assert 'key "another"' in page.text


def test_secrets_among_the_arguments_are_masked_for_everyone(engine, boss, settings):
    engine.put("a", payload=b'{"args": [], "kwargs": {"password": "p1", "pin": "p2"}}')

    page = read(boss.get(f"{URL}a/"))
    assert "password ********" in page.text
    assert "p1" not in page.text
    assert "p2" in page.text

    settings.TASKS = {
        "default": {**settings.TASKS["default"], "OPTIONS": {"ADMIN_REDACT": ["pin"]}}
    }
    page = read(boss.get(f"{URL}a/"))
    assert "pin ********" in page.text


# --- foreign text ------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "nul\0 surrogate\ud800 override\u202e bell\x07",
    "{{ 7|add:7 }}{% now 'Y' %}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_is_only_text_on_every_page(engine, boss, text):
    import json

    error = type(BOOM)(type=f"x.{text}", message=text, traceback=text)
    engine.put(
        text,
        queue=text,
        kind=text,
        error=error,
        reason=text,
        payload=json.dumps({"args": [text], "kwargs": {text: {text: text}}}).encode(),
    )
    engine.put("plain", queue=text, error=error, reason=text)
    engine.put("of no task", kind=text)
    posted = text.replace("\ud800", "")  # no browser can send it
    form = {"action": "requeue", "_selected_action": ["plain", "of no task", posted]}

    pages = [
        boss.get(URL),
        boss.get(f"{URL}plain/"),
        boss.post(URL, form),
        boss.post(URL, {**form, "confirm": "yes"}, follow=True),
    ]

    shown = text if text.isprintable() else r"nul\x00 surrogate\ud800 override\u202e"
    for response in pages[:3]:
        page = read(response)
        page.assert_harmless()
        assert shown in page.text
    read(pages[3]).assert_harmless()


@pytest.mark.parametrize("text", [text for text in HOSTILE if "\0" not in text])
def test_foreign_text_is_only_text_on_the_page_of_its_job(engine, boss, text):
    engine.put(text, payload=f'{{"args": [], "kwargs": {{"{text[:1]}": 1}}}}'.encode())
    link = [link for link in read(boss.get(URL)).links if "/deadjob/" in link][-1]

    page = read(boss.get(link))

    page.assert_harmless()
    assert f"Dead letter {text}" in page.text


@pytest.mark.parametrize("text", [*HOSTILE[:3], "nul\0 override\u202e"])
@pytest.mark.parametrize("name", ["queue", "task", "after", "q", "backend"])
def test_foreign_text_in_an_address_is_only_text(engine, boss, name, text):
    engine.put("a")

    response = boss.get(URL, {name: text})

    if name == "backend":
        assert response.status_code == 404
    else:
        read(response).assert_harmless()


def test_an_id_that_no_form_can_carry_gets_no_button_and_no_link(engine, boss):
    engine.put("nul\0")
    engine.put("surrogate\ud800")

    page = read(boss.get(URL))

    assert first_column(page) == [r"surrogate\ud800", r"nul\x00"]
    assert page.all("input", name="_selected_action") == []


def test_long_values_are_cut(engine, boss):
    long = "x" * 20_000_000
    error = type(BOOM)(type=long, message=long, traceback=long)
    payload = b'{"args": ["%s"], "kwargs": {}}' % (b"x" * 8_000_000)
    engine.put("a", kind=long, queue=long, error=error, payload=payload)

    assert len(boss.get(URL).content) < 30_000
    assert len(boss.get(f"{URL}a/").content) < 200_000


@pytest.mark.parametrize(
    "payload", [b"", b"\xff\xfe", b"not json", b"[" * 100_000, b"9" * 10_000, b"\0"]
)
def test_a_payload_that_cannot_be_decoded_breaks_nothing(engine, boss, payload):
    engine.put("a", payload=payload)

    page = read(boss.get(f"{URL}a/"))

    assert "cannot be decoded" in page.text
    assert page.buttons == ["requeue", "discard"]


@pytest.mark.parametrize("seconds", [1e300, -1e300, float("inf"), float("nan"), None])
def test_times_that_no_calendar_holds_break_nothing(engine, boss, seconds):
    engine.put("a", enqueued_at=seconds or 0.0, finished_at=seconds)

    assert first_column(read(boss.get(URL))) == ["a"]
    assert "Died at -" in read(boss.get(f"{URL}a/")).text
