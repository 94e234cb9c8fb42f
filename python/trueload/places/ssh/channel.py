"""A program that a local process, such as ssh, has started on a host, as a channel.

How: the local process is like any engine, so its own channel does the work. Only the end is
reported differently, because the program, ssh or the connection may have ended. A program that is
killed is also killed on its host, in case it does not notice that its input has ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from trueload.errors import UserError
from trueload.places import ChannelClosedError, CutOffError, LineTooLongError, Sink
from trueload.places.local import LocalChannel
from trueload.places.ssh import refusals, scripts
from trueload.places.ssh.connection import Connection
from trueload.text import signal_text

KILL_S = 1.0
SSH_FAILED = 255  # exit code of ssh if ssh itself has failed


class RemoteChannel(LocalChannel):
    """A program on a host, by way of a local process that runs a script there. ``wait`` and
    ``log_tail`` of ``LocalChannel`` are those of the local process."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Start the program. Raises ``UserError``, ``OSError``."""
        super().__init__(argv)
        try:
            self._pid = self._receive_pid()
        except BaseException:
            super().kill()
            raise

    @property
    def pid(self) -> int:
        return self._pid

    def read_line(self, timeout_s: float) -> bytes | None:
        try:
            return super().read_line(timeout_s)
        except LineTooLongError:
            raise
        except ChannelClosedError as error:
            raise self._closed(error) from error

    def divert(self, sink: Sink) -> None:
        def hand_on(line: bytes | ChannelClosedError) -> None:
            if isinstance(line, ChannelClosedError) and not isinstance(line, LineTooLongError):
                line = self._closed(line)
            sink(line)

        super().divert(hand_on)

    @abstractmethod
    def _closed(self, error: ChannelClosedError) -> ChannelClosedError:
        """The error for a channel that has ended."""

    @abstractmethod
    def _not_started(self, *, has_ended: bool) -> UserError:
        """The error for a program that did not start in time, or whose local process has ended."""

    def _receive_pid(self) -> int:
        try:
            text = scripts.receive_mark(super().read_line, scripts.START_S, [])
        except ChannelClosedError as error:
            raise self._not_started(has_ended=True) from error
        if text is None or not text.isdigit():
            raise self._not_started(has_ended=False)
        return int(text)


class SshChannel(RemoteChannel):
    """A program on the host, connected through a local ssh."""

    def __init__(self, connection: Connection, kept_name: str, arguments: Sequence[str]) -> None:
        self._connection = connection
        self._kept_name = kept_name
        super().__init__(connection.argv(scripts.RUN, kept_name, *arguments))

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
        code, host = super().wait(KILL_S), self._connection.destination
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

    def _not_started(self, *, has_ended: bool) -> UserError:
        host = self._connection.destination
        if has_ended:
            otherwise = f"the engine's shell ended with {super().wait(KILL_S)}"
            return refusals.explain(host, self.log_tail(), otherwise)
        return UserError(
            f"{host} has not started the engine within {scripts.START_S:g} s", "is the host busy?"
        )
