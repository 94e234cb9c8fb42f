"""Stand-ins as places of the front: each is a connection to one of a few processes that play them.

How: as with children of this machine (`trueload.places.local`), one thread reads the lines of all.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setting import ROOT
from trueload.places import Channel, ChannelClosedError, Sink, reader
from trueload.places.lines import Lines

HOSTS_EACH = 100
END_S = 10.0


class StandInChannel(Channel):
    """The channel to one stand-in."""

    def __init__(self, path: Path, number: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._lines = Lines()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._socket.sendall(b"%d\n" % number)
        lines = self._lines
        reader.watch(reader.Pipe(self._socket, lines.add, lines.end, lines.is_full))

    @property
    def pid(self) -> int:
        """Return 0: a stand-in has no process of its own."""
        return 0

    def send(self, line: bytes, timeout_s: float) -> None:
        """Send one line."""
        try:
            with self._lock:
                self._socket.sendall(line)
        except OSError as error:
            raise ChannelClosedError("it has closed its input") from error

    def read_line(self, timeout_s: float) -> bytes | None:
        """Return the next line."""
        return self._lines.read(timeout_s)

    def divert(self, sink: Sink) -> None:
        """Send all further lines to ``sink``."""
        self._lines.divert(sink)

    def close_input(self) -> None:
        """Close its input, which ends the stand-in."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._over.set()

    def wait(self, timeout_s: float) -> int | None:
        """Return 0 once its input is closed, else None."""
        return 0 if self._over.is_set() else None

    def kill(self) -> None:
        """Close the connection."""
        self._lines.stop()
        self._over.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def log_tail(self) -> str:
        """Return an empty text: a stand-in writes no log."""
        return ""


@dataclass(frozen=True)
class StandInPlace:
    """A place where one stand-in can be started."""

    name: str
    path: Path
    number: int

    def open(self, argv: Sequence[str]) -> StandInChannel:
        """Start the stand-in, whatever `argv` says."""
        return StandInChannel(self.path, self.number)


class Stage:
    """The processes that play the hosts."""

    def __init__(self, folder: Path, recordings: Sequence[Path], count: int) -> None:
        self._folder = folder
        self._processes = [
            self._start(number, recordings) for number in range(-(-count // HOSTS_EACH))
        ]
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.readline()
        self.places = [
            StandInPlace(f"host{number}", self._path(number // HOSTS_EACH), number)
            for number in range(count)
        ]

    def end(self) -> list[dict[str, Any]]:
        """End the processes; return what each reports about its traffic."""
        return [json.loads(process.communicate(timeout=END_S)[0]) for process in self._processes]

    def kill(self) -> None:
        """Kill the processes that still run."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _path(self, number: int) -> Path:
        return self._folder / f"stand-ins-{number}"

    def _start(self, number: int, recordings: Sequence[Path]) -> subprocess.Popen[str]:
        command = [sys.executable, str(ROOT / "bench" / "standin.py")]
        command += [str(self._path(number)), *map(str, recordings)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def staged(folder: Path, recordings: Sequence[Path], count: int) -> Iterator[Stage]:
    """Create `count` hosts, ready to be started, and remove them when the block ends."""
    stage = Stage(folder, recordings, count)
    try:
        yield stage
    finally:
        stage.kill()
