"""A program that ssh has started on a host, as a channel.

How: the local ssh is a process like any engine, so its own channel does the work. Only the end is
reported differently, because the program, ssh or the connection may have ended. A program that is
killed is also killed on its host, in case it does not notice that its input has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.errors import UserError
from trueload.places import ChannelClosedError, CutOffError, WrappedChannel
from trueload.places.local import LocalChannel
from trueload.places.ssh import refusals, scripts
from trueload.places.ssh.connection import Connection
from trueload.text import signal_text

KILL_S = 1.0
SSH_FAILED = 255  # exit code of ssh if ssh itself has failed


class SshChannel(WrappedChannel):
    """A program on the host, connected through a local ssh."""

    def __init__(self, connection: Connection, kept_name: str, arguments: Sequence[str]) -> None:
        """Start the program. Raises ``UserError``, ``OSError``."""
        self._connection = connection
        self._kept_name = kept_name
        super().__init__(LocalChannel(connection.argv(scripts.RUN, kept_name, *arguments)))
        try:
            self._pid = self._receive_pid()
        except BaseException:
            super().kill()
            raise

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def way(self) -> str | None:
        return self._connection.way

    def send(self, line: bytes, timeout_s: float) -> None:
        try:
            super().send(line, timeout_s)
        except ChannelClosedError as error:
            raise self._closed(error) from error

    def wait(self, timeout_s: float) -> int | None:
        """The exit code if it has ended; None also if the connection is lost."""
        code = super().wait(timeout_s)
        if code is None or code == SSH_FAILED or code < 0:
            return None
        return code if code <= scripts.SIGNALLED else scripts.SIGNALLED - code

    def kill(self) -> None:
        """Kill the program, there and here."""
        running = super().wait(0) is None
        super().kill()
        if running and self._connection.lost() is None:
            pid = str(self._pid)
            self._connection.run(scripts.KILL, self._kept_name, pid, timeout_s=KILL_S)

    def _closed(self, error: ChannelClosedError) -> ChannelClosedError:
        code, host = self._process.wait(KILL_S), self._connection.destination
        if code is None:
            why = f"ssh runs on, but: {error}"
        elif code < 0:
            why = f"ssh here was killed: {signal_text(-code)}"
        elif code != SSH_FAILED:
            return error
        else:
            # Commands that share the connection may end a moment before the connection does.
            why = self._connection.lost(KILL_S) or refusals.last_line(self.log_tail())
        return CutOffError(f"ssh has lost {host}{f': {why}' if why else ''}", why)

    def _receive_pid(self) -> int:
        host = self._connection.destination
        try:
            text = scripts.receive_mark(self._process.read_line, scripts.START_S, [])
        except ChannelClosedError as error:
            otherwise = f"the engine's shell ended with {super().wait(KILL_S)}"
            raise refusals.explain(host, self.log_tail(), otherwise) from error
        if text is None or not text.isdigit():
            raise UserError(
                f"{host} has not started the engine within {scripts.START_S:g} s",
                "is the host busy?",
            )
        return int(text)
