from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.admin.text import is_sendable, visible, visible_ends

any_text = st.text(st.characters())  # lone surrogates and controls included


@given(any_text, st.integers(1, 50))
def test_whatever_comes_in_can_be_sent_to_a_browser(text, limit):
    shown = visible(text, limit)

    shown.encode()
    assert all(
        letter.isprintable() or letter in "\t\n" or ord(letter) > 0x7F
        for letter in shown
    )
    assert "\0" not in shown


def test_ordinary_text_stays_as_it_is():
    text = "Grüße, 世界 👩\u200d💻\n\tשלום"  # noqa: RUF001 - it is Hebrew.

    assert visible(text) == text


def test_the_invisible_is_shown_as_its_code():
    assert visible("a\0b\x1bc\ud800d\u202ee\x85") == r"a\x00b\x1bc\ud800d\u202ee\x85"


def test_line_ends_of_windows_are_line_ends():
    assert visible("a\r\nb\rc") == "a\nb\\x0dc"


def test_long_text_is_cut_at_its_end():
    assert visible("abcdef", 6) == "abcdef"
    assert visible("abcdefg", 6) == "abcde…"


def test_a_long_traceback_keeps_both_of_its_ends():
    assert visible_ends("abc", 8) == "abc"
    assert visible_ends("ab" + "x" * 10 + "cdefgh", 8) == (
        "ab\n\n[10 characters are not shown]\n\ncdefgh"
    )


@given(any_text)
def test_what_is_sendable_is_brought_back_by_a_form_unchanged(text):
    if is_sendable(text):
        assert text.encode().decode() == text
        assert not {"\0", "\r", "\n"} & set(text)


def test_what_a_form_changes_is_not_sendable():
    for text in ("", "a\nb", "a\0", "\ud800", "x" * 1001):
        assert not is_sendable(text)
    for text in ("a", " a ", "<b>", "ü", "\u202e", "x" * 200):
        assert is_sendable(text)
