"""Tables fit the terminal, whatever is in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.cli.table import Column, columns_of, rendered, shortened

COLUMNS = (Column("id"), Column("n", right=True), Column("payload", cut=True))
cells = st.text(st.characters(), max_size=60)


def test_numbers_stand_at_the_right_and_no_line_ends_with_blanks():
    rows = [["a", 5, "x"], ["long id", 1000, ""]]

    assert list(rendered(COLUMNS, rows, None)) == [
        "id          n  payload",
        "a           5  x",
        "long id  1000",
    ]


def test_only_what_may_be_cut_is_cut():
    lines = list(rendered(COLUMNS, [["i" * 20, 1, "x" * 100]], 50))

    assert lines[1] == "i" * 20 + "  1  " + "x" * 24 + "…"


def test_several_columns_may_be_cut_the_last_one_first():
    columns = (Column("a", cut=True), Column("b", cut=True))
    lines = list(rendered(columns, [["x" * 40, "y" * 40]], 40))

    assert lines[1] == "x" * 25 + "…" + "  " + "y" * 11 + "…"


def test_wide_letters_take_two_columns():
    lines = list(
        rendered((Column("a"), Column("b")), [["世界", "x"], ["ab", "y"]], None)
    )

    assert lines == ["a     b", "世界  x", "ab    y"]


@given(st.lists(st.tuples(cells, cells), max_size=5), st.integers(30, 120))
def test_each_row_is_one_line_that_fits(rows, width):
    columns = (Column("first", cut=True), Column("second", cut=True))
    lines = list(rendered(columns, rows, width))

    assert len(lines) == len(rows) + 1
    for line in lines:
        assert columns_of(line) <= width
        assert "\n" not in line
        assert "\x1b" not in line


@given(cells, st.integers(1, 80))
def test_what_is_shortened_fits_and_begins_the_same(text, room):
    short = shortened(text, room)

    assert columns_of(short) <= room
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
