"""This machine as a place: an engine is a child process.

How: the child has a process group of its own, so a Ctrl-C on the terminal reaches only the front,
which then ends the engine politely. One thread for all children (``reader``) puts its output into a
bounded queue, and keeps the tail of its stderr. No child can block the caller for longer than the
caller allows, or grow its memory.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from trueload.places import Channel, ChannelClosedError, Sink, reader, supervisor
from trueload.places.lines import Lines

LOG_BYTES_MAX = 64 * 2**10
LOG_S = 0.2  # to read the rest of a log; a grandchild may hold it open


class LocalPlace:
    """This machine."""

    name = "local"

    def open(self, argv: Sequence[str]) -> LocalChannel:
        """Start a child process. Raises ``OSError`` if it cannot be started."""
        return LocalChannel(argv)


class SupervisedPlace:
    """This machine, for an engine that survives pauses of the front's own threads (``supervisor``),
    but not the front's death."""

    name = "local"

    def open(self, argv: Sequence[str]) -> LocalChannel:
        """Start a process behind a supervisor. Raises ``OSError`` if that cannot be started."""
        if not sys.executable:  # we are embedded in another program
            return LocalChannel(argv)
        # -S: the supervisor needs no installed package, and starts in half the time.
        return LocalChannel([sys.executable, "-I", "-S", supervisor.__file__, *argv])


class LocalChannel(Channel):
    """A child process in its own process group."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            bufsize=0,
        )
        assert self._process.stdin is not None
        self._input = self._process.stdin
        self._input_lock = threading.Lock()
        os.set_blocking(self._input.fileno(), False)
        self._lines = Lines()
        self._log = bytearray()
        self._log_ended = threading.Event()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        reader.watch(reader.Pipe(self._process.stderr, self._add_log, self._log_ended.set))
        lines = self._lines
        reader.watch(reader.Pipe(self._process.stdout, lines.add, lines.end, lines.is_full))

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: bytes, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        with self._input_lock:
            if self._input.closed:
                raise ChannelClosedError("its input is closed")
            rest = memoryview(line)
            poll = select.poll()
            poll.register(self._input.fileno(), select.POLLOUT)
            while rest:
                left_ms = max(0, int((deadline - time.monotonic()) * 1000))
                if not poll.poll(left_ms):
                    raise ChannelClosedError(f"it has not read its input for {timeout_s:g} s")
                try:
                    rest = rest[os.write(self._input.fileno(), rest) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise ChannelClosedError("it has closed its input") from error

    def read_line(self, timeout_s: float) -> bytes | None:
        return self._lines.read(timeout_s)

    def divert(self, sink: Sink) -> None:
        self._lines.divert(sink)

    def close_input(self) -> None:
        with self._input_lock, contextlib.suppress(OSError):
            self._input.close()

    def wait(self, timeout_s: float) -> int | None:
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._log_ended.wait(LOG_S)  # the rest of its stderr is read then
        return code

    def kill(self) -> None:
        self._lines.stop()
        # Not after it was reaped: its group's number could be another's by then.
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self.close_input()

    def log_tail(self) -> str:
        return bytes(self._log).decode(errors="replace")

    def _add_log(self, chunk: bytes) -> bool:
        self._log += chunk
        del self._log[:-LOG_BYTES_MAX]
        return True
