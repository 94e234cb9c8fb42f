"""How far the copies of a program to all hosts have come, and a local process that is fed with one.

How: hosts are prepared in threads of their own. All of them feed their copies from the same bytes,
and count here what they have sent. Whoever waits for them shows that, and may call it off: then
every copy ends within ``LOOK_S``.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol, runtime_checkable

from trueload.errors import UserError
from trueload.places.host_facts import ScriptResult
from trueload.units import counted

LOOK_S = 0.2
CHUNK_BYTES = 64 * 2**10


class CalledOffError(Exception):
    """The user wants no hosts any more."""


class Copying:
    """The copies to several hosts; methods may be called by any thread."""

    def __init__(self, announce: Callable[[str], object] = lambda line: None) -> None:
        self.announce = announce
        self._lock = threading.Lock()
        self._hosts = 0
        self._total_bytes = 0
        self._sent_bytes = 0
        self._off = threading.Event()

    def begin(self, size_bytes: int) -> None:
        """Note that one more host needs a copy."""
        with self._lock:
            self._hosts += 1
            self._total_bytes += size_bytes

    def sent(self, size_bytes: int) -> None:
        """Note that a part of a copy was sent."""
        with self._lock:
            self._sent_bytes += size_bytes

    def line(self) -> str | None:
        """``copying to 60 hosts, 40 %``; None if nothing is being copied."""
        with self._lock:
            if self._sent_bytes >= self._total_bytes:
                return None
            percent = 100 * self._sent_bytes // self._total_bytes
            return f"copying to {counted(self._hosts, 'host')}, {percent} %"

    def call_off(self) -> None:
        self._off.set()

    def check(self) -> None:
        """Raise ``CalledOffError`` if it was called off."""
        if self._off.is_set():
            raise CalledOffError

    def wait(self, timeout_s: float) -> None:
        """Sleep. Raises ``CalledOffError`` at once if it is called off."""
        if self._off.wait(timeout_s):
            raise CalledOffError


@runtime_checkable
class Preparable(Protocol):
    """A place that must be reached, and given its program, before it can start it."""

    @property
    def name(self) -> str:
        """The name in the record."""
        ...

    def prepare(self, program: Path, copying: Copying | None = None) -> None:
        """Connect, and make sure that the program is there. Raises ``UserError``."""
        ...


def run_fed(
    argv: Sequence[str], data: bytes, copying: Copying, *, timeout_s: float, hint: str = ""
) -> ScriptResult:
    """Run a process to its end, with ``data`` as its input. Raises ``CalledOffError``, and
    ``UserError`` with the hint if it cannot be started."""
    deadline_s = time.monotonic() + timeout_s
    # Files, not pipes: nobody reads while it runs, and a full pipe would block it.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=out, stderr=err, process_group=0, bufsize=0
            )
        except OSError as error:
            raise UserError(f"{argv[0]} cannot be started: {error.strerror}", hint) from error
        try:
            code = _feed(process, data, copying, deadline_s)
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return ScriptResult(code, _text(out), _text(err))


def _feed(
    process: subprocess.Popen[bytes], data: bytes, copying: Copying, deadline_s: float
) -> int | None:
    """Write all of it, and wait for the end. Return the exit code; None if it took too long."""
    assert process.stdin is not None
    rest = memoryview(data)
    with process.stdin as stream:
        os.set_blocking(stream.fileno(), False)
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
        while rest and time.monotonic() < deadline_s:
            copying.check()
            if not poll.poll(LOOK_S * 1000):
                continue
            try:
                written = os.write(stream.fileno(), rest[:CHUNK_BYTES])
            except BlockingIOError:
                continue
            except BrokenPipeError:
                break  # its exit code and its words tell why
            rest = rest[written:]
            copying.sent(written)
    copying.sent(len(rest))  # nothing more comes of this copy
    while time.monotonic() < deadline_s:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_S)
        copying.check()
    return None


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")
