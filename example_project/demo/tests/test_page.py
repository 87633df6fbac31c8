"""Pages are read as a browser reads them."""

from __future__ import annotations

from unittest import TestCase

from demo.failure import DemoError
from demo.page import Page

FORM = """
<form method="post" enctype="multipart/form-data" action="/save/">
  <input type="hidden" name="token" value="a&amp;b">
  <input name="title" value="Dunes"><input type="file" name="image">
  <input type="checkbox" name="slowly">
  <input type="checkbox" name="public" checked><input type="radio" name="size" value="s">
  <input type="radio" name="size" value="m" checked>
  <textarea name="note">one
  two</textarea>
  <select name="album"><option value="1">A</option><option value="2" selected>B</option></select>
  <select name="year"><option value="25">2025</option><option value="26">2026</option></select>
  <button name="action" value="keep">Keep</button><button>Save</button>
</form>
"""
TABLES = """
<table><tr><th>Queue</th><th>Done</th></tr>
<tr><th>emails</th><td><a href="#">4</a></td></tr></table>
<table><tr><th>Job</th></tr><tr><td>  a
 b </td></tr></table>
"""


def page(text: str) -> Page:
    return Page("http://site.example/here/", text)


class FormTests(TestCase):
    def test_what_would_be_sent_is_what_nobody_touched(self) -> None:
        form = page(FORM).form("title")

        expected = [
            ("token", "a&b"),
            ("title", "Dunes"),
            ("public", "on"),
            ("size", "m"),
            ("note", "one two"),
            ("album", "2"),
            ("year", "25"),
        ]
        self.assertEqual(expected, form.values)
        self.assertEqual(
            ("/save/", "post", True), (form.action, form.method, form.is_multipart)
        )

    def test_a_form_is_found_by_its_controls_and_buttons(self) -> None:
        found = page('<form><input name="other"></form>' + FORM).form("image", "action")

        self.assertEqual([("action", "keep")], found.buttons)

    def test_a_missing_form_is_named_with_the_page(self) -> None:
        with self.assertRaisesRegex(
            DemoError, "site.example/here/ has no form with pay"
        ):
            page(FORM).form("pay")


class TableTests(TestCase):
    def test_a_table_is_found_by_a_heading(self) -> None:
        self.assertEqual([{"Queue": "emails", "Done": "4"}], page(TABLES).rows("Queue"))
        self.assertEqual([{"Job": "a b"}], page(TABLES).rows("Job"))

    def test_no_table_has_no_rows(self) -> None:
        self.assertEqual([], page(TABLES).rows("Worker"))
        self.assertEqual([], page("<table></table>").rows("Worker"))


class JobTests(TestCase):
    def test_the_status_of_a_job_is_read(self) -> None:
        text = '<p>Mail: <span class="job" data-job="j1" data-open> waiting </span></p>'

        self.assertEqual({"j1": "waiting"}, page(text).jobs)

    def test_the_new_job_is_the_one_that_is_not_known(self) -> None:
        two = '<span data-job="j1">a</span><span data-job="j2">b</span>'

        self.assertEqual("j2", page(two).new_job(["j1"]))

    def test_no_new_job_and_two_are_not_one(self) -> None:
        two = '<span data-job="j1">a</span><span data-job="j2">b</span>'
        for text in ("", two):
            with (
                self.subTest(text=text),
                self.assertRaisesRegex(DemoError, "instead of"),
            ):
                page(text).new_job([])
