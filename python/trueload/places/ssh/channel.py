"""A program on a host that ssh has started, as a channel.

How: the ssh here is a child process like any engine, so its channel does the work; what differs is
how the end is told: of the program, of ssh, or of the connection. A program that is killed is
killed on its host, too, in case it does not hear that its input has ended. Must not know what the
lines mean.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from trueload.errors import UserError
from trueload.places import ChannelClosedError, Sink
from trueload.places.local import LocalChannel
from trueload.places.ssh import refusals, scripts
from trueload.places.ssh.connection import NOISE_LINES_MAX, Connection

START_S = 10.0
KILL_S = 1.0
SSH_FAILED = 255  # what ssh ends with when it is ssh that has failed
SIGNALLED = 128  # what a shell adds to the signal that ended a program


class SshChannel:
    """A program that runs on the host."""

    def __init__(self, connection: Connection, kept_name: str, arguments: Sequence[str]) -> None:
        """Start it. Raises ``UserError``."""
        self._connection = connection
        self._kept_name = kept_name
        self._ssh = LocalChannel(connection.argv(scripts.RUN, kept_name, *arguments))
        try:
            self._pid = self._hear_pid()
        except BaseException:
            self._ssh.kill()
            raise

    @property
    def pid(self) -> int:
        """Process id on its host."""
        return self._pid

    def send(self, line: bytes, timeout_s: float) -> None:
        """Send one line, its newline included. Raises ``ChannelClosedError``."""
        try:
            self._ssh.send(line, timeout_s)
        except ChannelClosedError as error:
            raise self._closed(error) from error

    def read_line(self, timeout_s: float) -> bytes | None:
        """The next line; None when none came in time. Raises ``ChannelClosedError`` at the end."""
        try:
            return self._ssh.read_line(timeout_s)
        except ChannelClosedError as error:
            raise self._closed(error) from error

    def divert(self, sink: Sink) -> None:
        """Hand each line from now on to ``sink``, instead of keeping it for ``read_line``."""
        self._ssh.divert(
            lambda said: sink(self._closed(said) if isinstance(said, ChannelClosedError) else said)
        )

    def close_input(self) -> None:
        """Say that nothing more will be sent."""
        self._ssh.close_input()

    def wait(self, timeout_s: float) -> int | None:
        """The exit code (negative: the signal that ended it), None when it still runs, or nobody
        can know because the connection is lost."""
        code = self._ssh.wait(timeout_s)
        if code is None or code == SSH_FAILED or code < 0:
            return None
        return code if code <= SIGNALLED else SIGNALLED - code

    def kill(self) -> None:
        """End it, there and here."""
        running = self._ssh.wait(0) is None
        self._ssh.kill()
        if running and self._connection.lost() is None:
            pid = str(self._pid)
            self._connection.run(scripts.KILL, self._kept_name, pid, timeout_s=KILL_S)

    def log_tail(self) -> str:
        """The last of what it wrote to stderr."""
        return self._ssh.log_tail()

    def _closed(self, error: ChannelClosedError) -> ChannelClosedError:
        if self._ssh.wait(KILL_S) != SSH_FAILED:
            return error
        # What shares the connection may end a moment before it.
        why = self._connection.lost(KILL_S) or refusals.last_line(self.log_tail())
        host = self._connection.destination
        return ChannelClosedError(f"ssh has lost {host}{f': {why}' if why else ''}")

    def _hear_pid(self) -> int:
        deadline_s = time.monotonic() + START_S
        for _ in range(NOISE_LINES_MAX):
            try:
                line = self._ssh.read_line(max(0.0, deadline_s - time.monotonic()))
            except ChannelClosedError as error:
                raise self._not_started() from error
            if line is None:
                break
            word, _, pid = line.decode(errors="replace").partition(" ")
            if word == scripts.MARK and pid.isdigit():
                return int(pid)
        raise UserError(
            f"{self._connection.destination} has not started the engine within {START_S:g} s",
            "is the host busy?",
        )

    def _not_started(self) -> UserError:
        code = self._ssh.wait(KILL_S)
        return refusals.explain(
            self._connection.destination, self.log_tail(), f"the engine's shell ended with {code}"
        )
