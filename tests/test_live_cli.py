"""The live view on a real terminal: drawn only there; its key ends a run in an orderly way."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from client_world import add_client, clients_command, run_clients
from harness import Server, Trueload, engines_of
from samples import flat
from screen import Screen
from subject_world import World
from trueload.report.draw import WIDTH_MIN

OWN_SIZE = {"COLUMNS": "", "LINES": ""}
"""The size is the terminal's, and not what the harness says."""


@dataclass
class Terminal:
    """Both ends of a pseudo-terminal.

    ``seen`` holds the bytes that were drawn; a ``screen``, if there is one, renders them.
    """

    main: int
    side: int
    seen: bytes = b""
    screen: Screen | None = None

    def resize(self, width: int, height: int) -> None:
        """Set the size, which signals the process in the foreground."""
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        if self.screen is None:
            self.screen = Screen(width, height)
        else:
            self.screen.resize(width, height)

    def start(
        self,
        trueload: Trueload,
        *command: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.Popen[str]:
        """Start a command in the foreground of this terminal.

        Its stdin and stderr are the terminal; stdout stays a pipe.
        """
        return trueload.start(
            *command, env=env, cwd=cwd, stdin=self.side, stderr=self.side, terminal=True
        )

    def until(self, word: bytes) -> None:
        """Read until the word has been drawn."""
        while word not in self.seen:
            self._read()

    def until_shown(self, is_so: Callable[[list[str]], bool]) -> list[str]:
        """Read until the lines of the screen meet a condition."""
        assert self.screen is not None
        while not is_so(self.screen.shown):
            self._read()
        return self.screen.shown

    def until_line(self, pattern: str) -> list[str]:
        """Read until a line of the screen matches the pattern."""
        found = re.compile(pattern)
        return self.until_shown(lambda rows: any(map(found.search, rows)))

    def _read(self) -> None:
        data = os.read(self.main, 65_536)
        assert data, self.seen
        self._see(data)

    def _see(self, data: bytes) -> None:
        self.seen += data
        if self.screen is not None:
            self.screen.feed(data)

    def rest(self, process: subprocess.Popen[str]) -> str:
        """Read to the end; return the command's stdout."""
        os.close(self.side)
        self.side = -1
        with contextlib.suppress(OSError):
            while data := os.read(self.main, 65_536):
                self._see(data)
        out, _ = process.communicate(timeout=60)
        return str(out)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal(*pty.openpty())
    yield made
    for end in (made.main, made.side):
        if end >= 0:
            os.close(end)


def test_the_key_q_stops_and_saves_and_the_terminal_is_put_back(
    trueload: Trueload, server: Server, terminal: Terminal
) -> None:
    before = termios.tcgetattr(terminal.side)
    process = terminal.start(trueload, "http", server.url, "-d", "60s", "--warmup", "0", "-c", "2")
    terminal.until(b"% busy")
    os.write(terminal.main, b"xq")
    process.wait(timeout=60)
    assert termios.tcgetattr(terminal.side) == before
    out = terminal.rest(process)
    assert process.returncode == 130, out
    assert "saved" in out
    assert "q stops and saves" in terminal.seen.decode(errors="replace")
    assert '"partial":true' in trueload.run("runs", "show", "last", "--json").out.replace(" ", "")


def is_drawn(rows: list[str], width: int | None = None) -> bool:
    """Tell whether the whole view is on the screen, each line of it this wide."""
    whole = bool(rows) and rows[-1].endswith("╯") and any("last seconds ──" in row for row in rows)
    return whole and (width is None or {len(row) for row in rows} == {width})


@pytest.mark.parametrize(("width", "height"), [(40, 24), (200, 50)])
def test_the_view_fills_the_terminal_and_is_gone_at_the_end(
    trueload: Trueload, server: Server, terminal: Terminal, width: int, height: int
) -> None:
    terminal.resize(width, height)
    flags = ("-d", "60s", "--warmup", "0", "-c", "2")
    process = terminal.start(trueload, "http", server.url, *flags, env={**OWN_SIZE, "NO_COLOR": ""})
    rows = terminal.until_shown(is_drawn)
    assert {len(row) for row in rows} == {width}
    assert len(rows) < height
    assert any(re.search(r"generator .*\d% busy", row) for row in rows)
    assert any(re.search(r"server .*\d\.\d\d CPUs", row) for row in rows)
    os.write(terminal.main, b"q")
    out = terminal.rest(process)
    assert process.returncode == 130, out
    assert terminal.screen is not None
    assert not any(row.strip() for row in terminal.screen.rows), "it is gone"
    assert terminal.screen.wrapped == 0, "no line was too long"
    assert {"32", "36"} <= terminal.screen.styles, "it is in colour"


def test_the_view_follows_a_resize(trueload: Trueload, server: Server, terminal: Terminal) -> None:
    terminal.resize(120, 40)
    flags = ("-d", "60s", "--warmup", "0", "-c", "2")
    process = terminal.start(trueload, "http", server.url, *flags, env=OWN_SIZE)
    terminal.until_shown(is_drawn)
    for width, height in ((70, 40), (150, 40), (60, 24), (9, 24), (80, 24)):
        terminal.resize(width, height)
        if width < WIDTH_MIN:
            assert terminal.until_shown(lambda rows: not any(rows)) == []
            continue
        rows = terminal.until_shown(partial(is_drawn, width=width))
        assert sum(row.startswith("╭") for row in rows) == 1, "nothing is left of the old one"
    os.write(terminal.main, b"q")
    out = terminal.rest(process)
    assert process.returncode == 130, out
    assert terminal.screen is not None
    assert terminal.screen.shown == []


def test_no_color_gives_no_codes_of_colours(
    trueload: Trueload, server: Server, terminal: Terminal
) -> None:
    terminal.resize(100, 30)
    flags = ("-d", "60s", "--warmup", "0", "-c", "2")
    process = terminal.start(
        trueload, "http", server.url, *flags, env={**OWN_SIZE, "NO_COLOR": "1"}
    )
    terminal.until_shown(is_drawn)
    os.write(terminal.main, b"q")
    terminal.rest(process)
    assert terminal.screen is not None
    assert terminal.screen.styles <= {"0", "1", "2"}


def test_a_search_shows_what_it_tries_and_what_has_kept_to_the_limit(
    trueload: Trueload, server: Server, terminal: Terminal
) -> None:
    terminal.resize(100, 40)
    search = ("--limit", "p99<1s", "--rate", "50", "-c", "2", "-d", "600ms", "--warmup", "0")
    process = terminal.start(trueload, "http", server.url, *search, env=OWN_SIZE)
    rows = terminal.until_line(r"limit p99<1s .*kept 50 requests/s")
    assert any("step 2, bracket: 100 requests/s" in row for row in rows)
    assert any(re.match(r"bracket +50 requests/s", row) for row in rows), "the step before stays"
    os.write(terminal.main, b"q")
    out = terminal.rest(process)
    assert process.returncode == 130
    assert "stopped by you before a load was confirmed; the largest that kept p99<1s" in flat([out])
    shown = trueload.run("runs", "show", "last").out
    assert "stopped before a load was confirmed" in shown


def test_a_lost_host_is_named_above_the_view_where_it_stays(
    trueload: Trueload, server: Server, terminal: Terminal, tmp_path: Path
) -> None:
    terminal.resize(120, 40)
    flags = ("-d", "60s", "--warmup", "0", "-c", "2", "--allow-lost", "1")
    places = ("--place", "exec:env HOST=one", "--place", "exec:env HOST=two")
    env = {**OWN_SIZE, "TRUELOAD_CACHE": str(tmp_path / "cache")}
    process = terminal.start(trueload, "http", server.url, *flags, *places, env=env)
    terminal.until_shown(is_drawn)
    engines = engines_of(process.pid)
    assert len(engines) == 2
    engines[0].kill()
    terminal.until_line("host lost: exec:env HOST=")
    # Above it stands the warning that both hosts are this machine.
    rows = terminal.until_shown(lambda rows: is_drawn(rows) and "host lost" in rows[1])
    assert "seen at once" in "".join(rows), "all of it is in sight beside the view"
    os.write(terminal.main, b"q")
    terminal.rest(process)
    assert terminal.screen is not None
    told = "".join(terminal.screen.shown)
    assert "host lost: exec:env HOST=" in told
    assert told.endswith("seen at once"), "the view is gone"


def test_without_the_live_view_a_terminal_gets_no_control_codes(
    trueload: Trueload, server: Server, terminal: Terminal
) -> None:
    flags = ("--requests", "50", "-c", "2", "--no-live")
    process = terminal.start(trueload, "http", server.url, *flags)
    out = terminal.rest(process)
    assert process.returncode in (0, 4), (out, terminal.seen)  # 4 where much else is done
    assert b"\x1b" not in terminal.seen
    assert "50 ok" in out


def test_a_client_at_work_is_followed_by_what_its_server_sees(
    world: World, terminal: Terminal
) -> None:
    add_client(world, "gives-up")
    command = clients_command(world, "-d", "30s", "--repeat", "2")
    terminal.resize(100, 40)
    env = {**world.env, **OWN_SIZE}
    process = terminal.start(world.trueload, *command, env=env, cwd=world.folder)
    for pattern in (
        r"╭─ python/gives-up, 1 pool of 2, 4 at once, r1 ──",
        r"│ trial +░+ +1 of 2",
        r"│ window +[█▏▎▍▌▋▊▉░]+ +[\d,]+ of [\d,]+, about \d+ s left",
        r"throughput +\d+ answers/s",
        r"timeout\.total +\d+",
        r"connections +\d open of 2",
        r"client CPU .* \d\.\d\d CPUs .*server CPU .* \d\.\d\d CPUs",
        r" q stops and saves ─╯",
    ):
        terminal.until_line(pattern)
    os.write(terminal.main, b"q")
    process.wait(timeout=60)
    out = terminal.rest(process)
    shown = terminal.seen.decode(errors="replace")
    assert process.returncode == 130, (out, shown)
    assert "interrupted; go on with" in shown
    world.wait_until_nothing_is_left()


def test_in_a_pipe_there_is_nothing_of_a_clients_panel(world: World) -> None:
    add_client(world, "fine")
    ended = run_clients(world)
    assert ended.code in (0, 4), ended  # 4 on a machine with much else to do
    assert "\x1b" not in ended.err + ended.out
    assert "█" not in ended.err
    assert "q stops" not in ended.err
