"""Rows of text, and parts put side by side, at all widths of terminals."""

from __future__ import annotations

import pytest
from trueload.report.layout import COLUMN_MIN, Band, Block, lay_out
from trueload.report.rows import (
    Row,
    Size,
    Span,
    bar,
    beside,
    cut,
    fit,
    flow,
    framed,
    gauge,
    moving_lines,
    row_text,
    row_width,
    rule,
)

ROW: Row = (Span("one "), Span("two", "bad"))


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (9, "one two  "),
        (7, "one two"),
        (6, "one t…"),
        (4, "one…"),
        (1, "…"),
        (0, ""),
    ],
)
def test_a_row_is_cut_or_filled_up_to_its_width(width: int, text: str) -> None:
    assert row_text(fit(ROW, width)) == text


@pytest.mark.parametrize(("width", "text"), [(3, "abc"), (2, "a…"), (1, "…"), (0, "")])
def test_a_text_that_is_cut_says_so(width: int, text: str) -> None:
    assert cut("abc", width) == text


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, ""), (0.5, "██"), (0.53, "██▏"), (1.0, "████"), (7.0, "████"), (-1.0, "")],
)
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn
    assert row_text(gauge(share, 4, "good")) == drawn.ljust(4, "░")


@pytest.mark.parametrize(
    ("values", "height", "lines"),
    [
        ([], 1, ["    "]),
        ([0.0, 0.0], 1, ["  ▁▁"]),
        ([None, 7.0], 1, ["   █"]),
        ([0.0, 1.0, 2.0, 4.0], 1, ["▁▂▄█"]),
        ([9.0, 0.0, 1.0, 2.0, 4.0], 1, ["▁▂▄█"]),
        ([1.0, 2.0, 3.0, 4.0], 2, ["  ▄█", "▄███"]),
    ],
)
def test_a_line_over_time_is_as_high_as_the_highest_value_that_is_shown(
    values: list[float | None], height: int, lines: list[str]
) -> None:
    assert moving_lines(values, 4, height) == lines


def test_two_columns_stand_side_by_side_however_long_each_is() -> None:
    found = beside([ROW], [ROW, ROW], (7, 4))
    assert [row_text(row) for row in found] == ["one two  one…", "         one…"]


def test_items_go_on_in_another_row_where_one_is_full() -> None:
    found = [row_text(row) for row in flow([ROW, ROW, ROW], 18)]
    assert found == ["one two   one two ", "one two           "]


@pytest.mark.parametrize("width", range(1, 60))
def test_a_frame_is_as_wide_as_it_is_to_be(width: int) -> None:
    rows = [fit(ROW, width)]
    drawn = framed(rows, "a rather long title", "q stops", width + 4)
    if width >= 4:
        assert {row_width(row) for row in drawn} == {width + 4}
    assert row_text(drawn[0])[0] == "╭"
    assert len(drawn) == 3


def part(title: str, rank: int, least: int, most: int = 0, step: int = 1) -> Block:
    """A part whose rows are its name, as many as it gets."""
    return Block(title, lambda size: [(Span(title),)] * size.height, rank, least, most, step)


BANDS: list[Band] = [
    (part("a", 0, 2), part("b", 1, 3)),
    (part("c", 3, 1, 5, 2),),
    (part("d", 2, 2, 3),),
]
WIDE = 2 * COLUMN_MIN + 2


@pytest.mark.parametrize(
    ("height", "rows"),
    [
        (1, []),
        (2, ["c", "c"]),
        (3, ["d", "d", "d"]),
        (4, ["ab", "ab", "ab", "ab"]),
        (7, ["ab", "ab", "ab", "ab", "d", "d", "d"]),
        (9, ["ab", "ab", "ab", "ab", "c", "c", "d", "d", "d"]),
        (10, ["ab", "ab", "ab", "ab", "c", "c", "d", "d", "d", "d"]),
        (99, ["ab", "ab", "ab", "ab", *"cccccc", *"dddd"]),
    ],
)
def test_what_there_is_no_room_for_is_left_out_by_rank_and_what_is_left_is_used(
    height: int, rows: list[str]
) -> None:
    found = [row_text(row) for row in lay_out(BANDS, Size(WIDE, height))]
    assert ["".join(c for c in row if c in "abcd") for row in found] == rows


def test_a_narrow_terminal_has_all_parts_below_each_other() -> None:
    found = [row_text(row) for row in lay_out(BANDS, Size(WIDE - 1, 99))]
    assert [row[0] for row in found] == [*"aaa", *"bbbb", *"cccccc", *"dddd"]


@pytest.mark.parametrize("width", [36, 76, 116, 196])
@pytest.mark.parametrize("height", range(1, 40))
def test_parts_never_take_more_than_there_is(width: int, height: int) -> None:
    found = lay_out(BANDS, Size(width, height))
    assert len(found) <= height
    assert {row_width(row) for row in found} <= {width}


def test_a_title_that_is_too_long_is_cut() -> None:
    assert row_text(rule("distribution", 8)) == "distr… ─"
