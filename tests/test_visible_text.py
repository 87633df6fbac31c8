"""Nothing foreign reaches a terminal or a page as anything but text."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.visible_text import visible_json, visible_line, visible_lines

any_text = st.text(st.characters())  # lone surrogates and controls included
CONTROLS = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0))}


@given(any_text)
def test_a_line_is_one_line_that_a_terminal_cannot_obey(text):
    shown = visible_line(text)

    shown.encode()
    assert not CONTROLS & set(shown)
    assert len(shown.splitlines()) <= 1


@given(any_text)
def test_lines_keep_their_layout_and_nothing_else_that_is_invisible(text):
    shown = visible_lines(text)

    shown.encode()
    assert not (CONTROLS - {"\n", "\t"}) & set(shown)
    assert len(shown) >= len(text.replace("\r\n", "\n"))


@given(st.recursive(any_text | st.integers() | st.none(), st.lists))
def test_json_says_the_same_without_anything_invisible(value):
    shown = visible_json(json.dumps(value, ensure_ascii=False))

    shown.encode()
    assert json.loads(shown) == value
    assert not CONTROLS & set(shown)


def test_controls_are_spelt():
    assert visible_line("a\nb\tc\x1b[31m\x9b\u202e") == r"a\nb\tc\x1b[31m\x9b\u202e"
    assert visible_json('"\x9b\u202e\x7f"') == r'"\u009b\u202e\u007f"'
