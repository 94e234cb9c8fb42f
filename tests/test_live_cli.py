"""The live view on a real terminal: drawn there and nowhere else; its key ends a run politely."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness import Server, Trueload


@dataclass
class Terminal:
    """Both ends of a terminal that is a process's own; ``seen`` is what was drawn."""

    main: int
    side: int
    seen: bytes = b""

    def start(self, trueload: Trueload, *command: str) -> subprocess.Popen[str]:
        """In front, with its errors and keys here; stdout stays a pipe."""

        def own() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        return trueload.start(*command, stdin=self.side, stderr=self.side, prepare=own)

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


def test_without_the_live_view_a_terminal_gets_no_control_codes(
    trueload: Trueload, server: Server, terminal: Terminal
) -> None:
    flags = ("--requests", "50", "-c", "2", "--no-live")
    process = terminal.start(trueload, "http", server.url, *flags)
    out = terminal.rest(process)
    assert process.returncode == 0, (out, terminal.seen)
    assert b"\x1b" not in terminal.seen
    assert "50 ok" in out
