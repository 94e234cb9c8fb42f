"""The live view on a real terminal: drawn there and nowhere else; its key ends a run politely."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import subprocess
import termios
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from client_world import add_client, clients_command, run_clients
from harness import Server, Trueload
from subject_world import World


@dataclass
class Terminal:
    """Both ends of a terminal that is a process's own; ``seen`` is what was drawn."""

    main: int
    side: int
    seen: bytes = b""

    def start(
        self,
        trueload: Trueload,
        *command: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.Popen[str]:
        """In front, with its errors and keys here; stdout stays a pipe."""

        def own() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        ends = {"stdin": self.side, "stderr": self.side}
        return trueload.start(*command, env=env, cwd=cwd, prepare=own, **ends)

    def until(self, word: bytes) -> None:
        """Reads until it has been drawn."""
        while word not in self.seen:
            data = os.read(self.main, 65_536)
            assert data, self.seen
            self.seen += data

    def rest(self, process: subprocess.Popen[str]) -> str:
        """Reads to the end; what went to stdout."""
        os.close(self.side)
        self.side = -1
        with contextlib.suppress(OSError):
            while data := os.read(self.main, 65_536):
                self.seen += data
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
    terminal.until(b"busiest thread")
    os.write(terminal.main, b"xq")
    process.wait(timeout=60)
    assert termios.tcgetattr(terminal.side) == before
    out = terminal.rest(process)
    assert process.returncode == 130, out
    assert "saved" in out
    assert "q stops and saves" in terminal.seen.decode(errors="replace")
    assert '"partial":true' in trueload.run("runs", "show", "last", "--json").out.replace(" ", "")


def test_the_key_q_ends_a_search_with_what_had_kept_its_limit(
    trueload: Trueload, server: Server, terminal: Terminal
) -> None:
    flags = ("--limit", "p99<10s", "--rate", "10", "-d", "1s", "--warmup", "0", "-c", "2")
    process = terminal.start(trueload, "http", server.url, *flags)
    terminal.until(b"kept")  # the first step has ended
    terminal.until(b"20 ")
    os.write(terminal.main, b"q")
    process.wait(timeout=60)
    out = terminal.rest(process)
    assert process.returncode == 130, out
    assert "stopped by you before a load was confirmed" in out
    shown = trueload.run("runs", "show", "last").out
    assert "stopped before a load was confirmed" in shown


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
    env = {**world.env, "COLUMNS": "100"}
    process = terminal.start(world.trueload, *command, env=env, cwd=world.folder)
    for word in (b"window ", b"answers/s", b" s left", b"timeout.total", b"open of 2,"):
        terminal.until(word)
    os.write(terminal.main, b"q")
    process.wait(timeout=60)
    out = terminal.rest(process)
    shown = terminal.seen.decode(errors="replace")
    assert process.returncode == 130, (out, shown)
    assert "[1/2] python/gives-up, 1 pool of 2, 4 at once, r1" in shown
    assert re.search(r"window +[█░]+ [\d,]+ of [\d,]+, about \d+ s left", shown)
    assert re.search(r"throughput .* [\d.,]+ answers/s", shown)
    assert re.search(r"failures +timeout\.total \d+", shown)
    assert "q stops and saves" in shown
    assert "interrupted; go on with" in shown
    world.wait_until_nothing_is_left()


def test_in_a_pipe_there_is_nothing_of_a_clients_panel(world: World) -> None:
    add_client(world, "fine")
    ended = run_clients(world)
    assert ended.code in (0, 4), ended  # 4 on a machine with much else to do
    assert "\x1b" not in ended.err + ended.out
    assert "█" not in ended.err
    assert "q stops" not in ended.err
