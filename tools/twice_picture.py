"""Draws two terminals: wrk and trueload against a server that answers each request twice.

How: each command runs in a pseudo-terminal, as in a reader's own, and what it prints is drawn with
its colours. The picture loads nothing, and has a background of its own, for light and dark pages.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from tools.drawing import Picture
from tools.example_servers import TRUELOAD, double_server
from tools.live_picture import svg_format

COLUMNS = 62
WRK = ("wrk", "-t1", "-c1", "-d2s")
OURS = ("trueload", "http", "-c", "1", "-d", "2s")
# What other processes on this machine do to a run is not what the picture is about.
DISTURBED = ("hiccup", "noise", "steal", "cpu-speed")
TRIES = 3
GAP = 8
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True)
class Screen:
    """A command, and what its terminal shows after it ended."""

    title: str
    command: str
    printed: str
    exit_code: int

    def lines(self) -> list[Text]:
        """Return the lines of the terminal, wrapped at words."""
        printed = Text.from_ansi(self.printed.replace("\r", "").strip("\n"))
        shown = [
            Text.assemble(("$ ", "green"), (f"{self.command}; echo $?", "bold")),
            *printed.split("\n", allow_blank=True),
            Text(str(self.exit_code)),
        ]
        console = Console(width=COLUMNS)
        return [each for line in shown for each in _wrapped(line, console)]


def _wrapped(line: Text, console: Console) -> list[Text]:
    """Return a line in pieces of the terminal's width; those after the first are indented."""
    pieces = line.wrap(console, COLUMNS)
    return [*pieces] if len(pieces) < 2 else [pieces[0], *_indented(line, pieces[0], console)]


def _indented(line: Text, first: Text, console: Console) -> list[Text]:
    rest = line[len(first.plain.rstrip()) :]
    rest.plain = rest.plain.strip()
    pieces = rest.wrap(console, COLUMNS - 4)
    return [Text.assemble("    ", piece) for piece in pieces]


def recorded(words: tuple[str, ...]) -> tuple[str, int]:
    """Run a command in a pseudo-terminal; return what it prints to stdout, and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    process = subprocess.Popen(words, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    printed = b""
    while True:
        try:
            printed += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    return printed.decode(), process.wait()


def run_wrk() -> tuple[Screen, str]:
    """Run wrk; the title and the words say how many requests the server received."""
    with double_server() as server:
        printed, code = recorded((*WRK, server.url))
        time.sleep(0.5)  # the server counts a connection's requests once it is closed
        url, received = server.url, server.requests
    counted = re.search(r"(\d+) requests in", printed)
    assert counted is not None, printed
    title = f"wrk: the server received {received:,} requests"
    words = (
        f"wrk counts {int(counted[1]):,} requests where the server received {received:,}, and"
        f" exits with {code}; trueload says of the same server: invalid, unsolicited answers"
    )
    return Screen(title, " ".join((*WRK, url)), printed, code), words


def run_ours() -> Screen:
    """Run trueload, again if other processes disturbed it."""
    for _ in range(TRIES):
        with double_server() as server:
            printed, code = recorded((TRUELOAD, *OURS[1:], server.url))
            command = " ".join((*OURS, server.url))
        if not any(f"{name}:" in printed for name in DISTURBED):
            return Screen("trueload: the same server", command, printed, code)
    sys.exit(f"twice_picture: other processes disturbed each of {TRIES} runs")


def drawn(title: str, lines: list[Text], rows: int, name: str) -> str:
    """Return a terminal of so many rows as SVG."""
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, color_system="standard")
    for line in (*lines, *[Text()] * (rows - len(lines))):
        console.print(line, no_wrap=True, overflow="ignore", highlight=False)
    return console.export_svg(title=title, code_format=svg_format(), unique_id=name)


def beside(left: str, right: str) -> str:
    """Return two drawings of equal height side by side."""
    found = _SIZE.search(left)
    assert found is not None
    width, height = float(found[1]), float(found[2])
    whole = width * 2 + GAP
    placed = [
        each.replace("<svg ", f'<svg x="{at * (width + GAP):g}" width="{width:g}" ', 1)
        for at, each in enumerate((left, right))
    ]
    size = f'viewBox="0 0 {whole:g} {height:g}"'
    text = "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', *placed, "</svg>"])
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def picture() -> Picture:
    """Return the picture of both terminals."""
    wrk, words = run_wrk()
    ours = run_ours()
    lines = {"wrk": wrk.lines(), "ours": ours.lines()}
    rows = max(map(len, lines.values()))
    left, right = (
        drawn(screen.title, lines[name], rows, name)
        for name, screen in (("wrk", wrk), ("ours", ours))
    )
    return Picture(beside(left, right), f"{words}, exit code {ours.exit_code}")
