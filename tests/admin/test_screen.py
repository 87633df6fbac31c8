"""The pages as parts of an admin site: the index, the addresses, other sites."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.urls import NoReverseMatch, reverse

from django_nobroker.models import DeadJob, Queue

from .reading import read

ROOT = Path(__file__).resolve().parent.parent.parent
QUEUES = "/admin/django_nobroker/queue/"
DEAD = "/admin/django_nobroker/deadjob/"


@pytest.mark.parametrize(
    ("codenames", "entries"),
    [
        ((), []),
        (("requeue_job", "view_payload"), []),
        (("view_queue",), [QUEUES]),
        (("view_deadjob",), [DEAD]),
        (("view_queue", "view_deadjob"), [DEAD, QUEUES]),
    ],
)
def test_the_index_lists_what_the_user_may_see(engine, login, codenames, entries):
    page = read(login(*codenames).get("/admin/"))

    shown = [link for link in page.links if link in {QUEUES, DEAD}]
    assert list(dict.fromkeys(shown)) == entries
    assert ("Nobroker" in page.text) == bool(entries)
    assert page.all("a", **{"class": "addlink"}) == []
    assert page.all("a", **{"class": "changelink"}) == []


def test_the_index_of_the_app_is_there(engine, boss):
    page = read(boss.get("/admin/django_nobroker/"))

    assert {QUEUES, DEAD} <= set(page.links)


def test_strangers_are_sent_to_the_login(engine, client, django_user_model, db):
    assert client.get(QUEUES)["Location"].startswith("/admin/login/")

    client.force_login(django_user_model.objects.create_user("no-staff"))
    assert client.get(DEAD)["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("page", ["add", "delete", "history"])
def test_there_is_no_page_that_would_need_a_table(page):
    for model in ("queue", "deadjob"):
        with pytest.raises(NoReverseMatch):
            reverse(f"admin:django_nobroker_{model}_{page}", args=["a"])


def test_recent_actions_link_to_the_job(engine, boss):
    engine.put("a/b")
    boss.post(DEAD, {"action": "requeue", "_selected_action": "a/b", "confirm": "yes"})

    assert f"{DEAD}a_2Fb/" in read(boss.get("/admin/")).links
    assert LogEntry.objects.get().content_type == ContentType.objects.get_for_model(
        DeadJob
    )


def test_breadcrumbs_lead_back(engine, boss):
    engine.put("a")

    assert {"/admin/", "/admin/django_nobroker/"} <= set(read(boss.get(QUEUES)).links)
    assert DEAD in read(boss.get(f"{DEAD}a/")).links


@pytest.mark.parametrize("address", [QUEUES, DEAD, f"{DEAD}a/"])
def test_scripts_and_styles_come_from_files_only(engine, boss, address):
    engine.put("a")

    page = read(boss.get(address))

    page.assert_harmless()
    assert page.all("link", href="/static/django_nobroker/admin.css")


@pytest.mark.parametrize("name", ["admin.css", "selection.js"])
def test_the_files_are_found_by_staticfiles(name):
    from django.contrib.staticfiles import finders

    assert finders.find(f"django_nobroker/{name}")


# --- other sites -------------------------------------------------------------


@pytest.mark.urls("tests.admin.second_site")
def test_on_a_second_site_every_link_stays_there(engine, boss):
    engine.put("a", queue="emails")
    for address in ("queue/", "deadjob/", "deadjob/a/"):
        page = read(boss.get(f"/ops/django_nobroker/{address}"))

        assert [link for link in page.links if link.startswith("/admin/")] == []
        assert "/ops/django_nobroker/" in page.links
    form = {"action": "requeue", "_selected_action": "a", "confirm": "yes"}
    response = boss.post("/ops/django_nobroker/deadjob/", form)
    assert response["Location"] == "/ops/django_nobroker/deadjob/"


@pytest.mark.urls("tests.admin.second_site")
def test_a_site_may_have_the_queues_without_the_dead_letters(engine, boss):
    engine.put("a", queue="emails")

    page = read(boss.get("/figures/django_nobroker/queue/"))

    assert page.rows[1][0] == "emails"
    assert [link for link in page.links if "deadjob" in link] == []


def test_the_pages_are_on_a_site_that_replaces_the_default_one():
    """A project names its own site as ``default_site``; nothing else is needed."""
    script = (
        "import django; django.setup()\n"
        "from django.contrib import admin\n"
        "from django.core.management import call_command\n"
        "from django.test import Client\n"
        "from django.contrib.auth.models import User\n"
        "from tests.admin import fake_engine\n"
        "fake_engine.ENGINES['default'] = fake_engine.FakeEngine()\n"
        "call_command('migrate', verbosity=0)\n"
        "client = Client()\n"
        "client.force_login(User.objects.create_superuser('ann'))\n"
        "page = client.get('/admin/django_nobroker/queue/')\n"
        "index = client.get('/admin/').content.decode()\n"
        "print(type(admin.site._wrapped).__name__, page.status_code,\n"
        "      'Our own site' in page.content.decode(), 'Dead letters' in index)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.admin.own_site_settings"},
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("OwnSite 200 True True\n", "")


def test_the_default_site_has_the_pages_from_installed_apps_alone():
    assert {Queue, DeadJob} <= set(admin.site._registry)
