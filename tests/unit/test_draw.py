"""The live view as rich draws it: frequency, colours, width, and after a resize."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, ConsoleDimensions
from screen import Screen
from trueload.report import draw
from trueload.report.draw import ABOVE, STYLES, LiveView, Pace, frame, inside
from trueload.report.rows import Row, Size, Span, fit

WIDTHS = (40, 80, 120, 200)


class Terminal(io.StringIO):
    """A file that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def drawn(width: int, *, colour: bool = True) -> str:
    """Draw a row of every tone in a frame."""
    rows: list[Row] = [fit((Span(f"as {tone} ", tone),), width - 4) for tone in STYLES]
    rows.append(fit((Span("x" * 300),), width - 4))
    out = Terminal()
    Console(
        file=out,
        width=width,
        height=50,
        force_terminal=True,
        color_system="truecolor",
        no_color=not colour,
    ).print(frame(rows, "title " * 50, width))
    return out.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_frame_fills_the_width_and_no_line_is_longer(width: int) -> None:
    screen = Screen(width, 50)
    screen.feed(drawn(width).encode())
    assert {len(row) for row in screen.shown} == {width}
    assert screen.wrapped == 0


def test_wide_characters_do_not_make_a_line_longer_than_the_terminal() -> None:
    out = Terminal()
    console = Console(file=out, width=40, height=50, color_system=None)
    console.print(frame([fit((Span("試" * 40),), 36)], "験" * 40, 40))
    cells = [sum(2 if c in "試験" else 1 for c in line) for line in out.getvalue().split("\n")]
    assert max(cells) <= 40


def test_without_colours_the_same_words_are_drawn() -> None:
    coloured, plain = Screen(80, 50), Screen(80, 50)
    coloured.feed(drawn(80).encode())
    plain.feed(drawn(80, colour=False).encode())
    assert plain.rows == coloured.rows
    assert {"31", "32", "33", "34", "35", "36"} <= coloured.styles
    assert plain.styles <= {"0", "1", "2"}


@pytest.mark.parametrize(
    ("width", "height", "alone", "room"),
    [
        (100, 30, True, (96, 27)),
        (100, 30, False, (96, 27 - ABOVE)),
        (40, 10, False, (36, 7)),
        (3, 2, True, (1, 1)),
    ],
)
def test_the_room_in_the_frame_leaves_the_last_line_and_what_stands_above(
    width: int, height: int, alone: bool, room: tuple[int, int]
) -> None:
    assert inside(width, height, alone=alone) == room


@pytest.mark.parametrize(
    ("at_ms", "draws"),
    [
        ([0, 250, 500, 750, 1_000], 3),
        ([0, 240, 510, 740, 960], 3),
        (range(0, 2_000, 10), 4),
        (range(0, 20_000, 100), 40),
        ([0, 5_000, 5_010, 5_020], 2),
    ],
)
def test_it_is_drawn_twice_a_second_at_most(at_ms: list[int], draws: int) -> None:
    times = iter(at_ms)
    pace = Pace(lambda: next(times) / 1_000)
    assert abs(sum(pace.is_due() for _ in at_ms) - draws) <= (len(at_ms) > 10)


def test_a_resize_is_followed_and_at_the_end_nothing_is_left_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lines that a narrower terminal wrapped are erased, and nothing above them."""
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    console = Console(file=out, force_terminal=True, color_system="standard")
    monkeypatch.setattr(draw, "Console", lambda stderr: console)
    screen = Screen(80, 30)
    screen.feed(b"above\n")

    def seen() -> list[str]:
        screen.feed(out.getvalue().encode())
        out.seek(0)
        out.truncate()
        return screen.shown

    with LiveView("title", iter(range(100)).__next__) as view:
        for width, height in ((80, 30), (50, 30), (120, 40), (40, 30)):
            console.size = ConsoleDimensions(width, height)
            screen.resize(width, height)
            view.draw(lambda room: [fit((Span("text"),), room.width)] * 5)
            found = seen()
            assert found[0] == "above"
            assert [len(row) for row in found[1:]] == [width] * 7
    assert seen() == ["above"]
    assert screen.wrapped == 0


class Gone(Terminal):
    """A terminal that hangs up after this many writes."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise OSError(5, "it has hung up")
        return super().write(text)


@pytest.mark.parametrize("left", [0, 1, 2, 3])
def test_a_terminal_that_has_gone_ends_the_drawing_and_nothing_else(
    left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=Gone(left), force_terminal=True, width=80)
    monkeypatch.setattr(draw, "Console", lambda stderr: console)
    rooms: list[Size] = []

    def make(room: Size) -> list[Row]:
        rooms.append(room)
        return []

    with LiveView("title", iter(range(100)).__next__) as view:
        for _ in range(5):
            view.draw(make)
    assert len(rooms) <= left
