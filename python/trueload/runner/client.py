"""A subject that is a client: started, and spoken to over its stdin and stdout.

How: the supervisor starts it like a server, but with two pipes instead of an empty input and a log;
its stderr goes to the log. Every wait has a deadline and every line a maximum length. A client that
hangs, floods or dies therefore costs bounded time and leads to an error with the reason.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from trueload.deadline import looks
from trueload.protocol.client import shown
from trueload.runner.build import Build, in_use
from trueload.runner.cpus import Layout
from trueload.runner.environment import subject_environment
from trueload.runner.hosts import scratch_folder
from trueload.runner.process import Orders, Processes, Program, substitute
from trueload.runner.trials import STOP_GRACE_S
from trueload.subjects.manifest import Subject

LINE_BYTES_MAX = 64 * 1024
LOOK_S = 0.25  # between two checks of whether to stop
LOOK_AFTER_S = 0.02  # between two checks of whether any process is left
LEFT_S = 2.0  # from its end to the end of the processes that it started
END_S = 10.0  # from the end of its input to its own end; a busy machine needs part of it


class ClientError(Exception):
    """What a client did instead of what it was told to do; one line."""


@dataclass
class Client:
    """A running client. `ready_s` is how long it may take to answer its setup."""

    processes: Processes
    ready_s: float
    stopped: Callable[[], bool]
    _input: int
    _output: int
    _pending: bytes = b""

    def send(self, line: str) -> None:
        """Send it one line. Raises ``ClientError`` if it has ended, or said something unasked."""
        if select.select([self._output], [], [], 0)[0]:
            self._read()
        self._refuse_unasked()
        try:
            os.write(self._input, line.encode() + b"\n")
        except BrokenPipeError:
            raise ClientError(
                f"it closed its input and reads no more orders{self._how_ended()}"
            ) from None

    def receive(self, timeout_s: float) -> str:
        """Return its next line. Raises ``ClientError`` if none comes in time."""
        for left_s in looks(time.monotonic() + timeout_s):
            if b"\n" in self._pending:
                break
            if len(self._pending) > LINE_BYTES_MAX:
                raise ClientError(f"a line longer than {LINE_BYTES_MAX} bytes")
            if self.stopped():
                raise ClientError("interrupted")
            if select.select([self._output], [], [], min(left_s, LOOK_S))[0]:
                self._read()
        if b"\n" not in self._pending:
            output = f", but {self._said()}" if self._pending else ""
            raise ClientError(f"no answer within {timeout_s:g} s{output}")
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode("utf-8", errors="backslashreplace")

    def finish(self) -> int | None:
        """End its input and wait for its end; return its exit code, None for a signal. Raises
        ``ClientError`` if it goes on, leaves a process running, or still prints something."""
        self.close_input()
        deadline_s = time.monotonic() + END_S
        for left_s in looks(deadline_s):
            if self.stopped():
                break
            if select.select([self._output], [], [], min(left_s, LOOK_S))[0]:
                before = len(self._pending)
                if len(self._read_some()) == 0:
                    break
                if len(self._pending) > max(before, LINE_BYTES_MAX):
                    break
        self._refuse_unasked()
        if not self.processes.wait(deadline_s):
            raise ClientError(f"it goes on {END_S:g} s after its input ended")
        # Its helper processes may notice its end a moment later, as Erlang's erl_child_setup does.
        deadline_s = time.monotonic() + LEFT_S
        for left_s in looks(deadline_s):
            if not self.processes.pids():
                break
            time.sleep(min(left_s, LOOK_AFTER_S))
        else:
            raise ClientError("it has ended, but leaves processes running")
        return self.processes.exits[0].code if self.processes.exits else None

    def finish_well(self) -> None:
        """End its input, and check that it ends well. Raises ``ClientError``."""
        if self.finish() != 0:
            how = self.processes.exits[0] if self.processes.exits else "no exit code"
            raise ClientError(
                f"it must end with exit code 0 when its input is closed, but ended with {how}"
            )

    def _refuse_unasked(self) -> None:
        if self._pending:
            raise ClientError(f"it wrote to its output without being asked: {self._said()}")

    def _said(self) -> str:
        return shown(self._pending.decode("latin-1"))

    def close_input(self) -> None:
        """Close its input. Idempotent: calling it again does nothing."""
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def close(self) -> None:
        self.close_input()
        os.close(self._output)

    def _read(self) -> None:
        if not self._read_some():
            raise ClientError(f"it closed its output{self._how_ended()}")

    def _read_some(self) -> bytes:
        data = os.read(self._output, LINE_BYTES_MAX)
        self._pending += data
        return data

    def _how_ended(self) -> str:
        self.processes.wait(time.monotonic() + 1.0)
        ends = ", ".join(dict.fromkeys(str(end) for end in self.processes.exits))
        return f": it ended with {ends}" if ends else ""


@contextlib.contextmanager
def start_client(orders: Orders, ready_s: float, stopped: Callable[[], bool]) -> Iterator[Client]:
    """Start a program with pipes as its stdin and stdout; nothing of it is left afterwards. Raises
    ``StartError``."""
    (its_input, our_end), (our_output, its_output) = os.pipe(), os.pipe()
    processes = Processes(replace(orders, pipes=(its_input, its_output)))
    client = Client(processes, ready_s, stopped, our_end, our_output)
    try:
        try:
            processes.__enter__()
        finally:
            os.close(its_input)
            os.close(its_output)
        yield client
        client.close_input()
        processes.end(STOP_GRACE_S)
    finally:
        processes.end(0)
        client.close()


@contextlib.contextmanager
def running_client(
    subject: Subject,
    built: Build,
    layout: Layout,
    *,
    trueload_command: tuple[str, ...],
    stopped: Callable[[], bool] = lambda: False,
    files: int = 0,
) -> Iterator[Client]:
    """Start the client; nothing of it is left afterwards. Raises ``StartError``.

    ``files`` is its limit of open files, 0 for as many as possible.
    """
    manifest = subject.manifest
    values = {
        "cpus": str(len(layout.subject)),
        "cpu_list": ",".join(str(cpu) for cpu in layout.subject),
        "build": str(built.folder),
    }
    argv = tuple(substitute(manifest.run, values, trueload_command))
    with in_use(built), scratch_folder() as scratch:
        env = subject_environment({"HOME": str(scratch), "TMPDIR": str(scratch)})
        for name, value in manifest.env.items():
            env[name] = substitute([value], values, ())[0]
        orders = Orders(
            programs=(Program(argv, layout.subject),),
            cwd=built.folder,
            env=env,
            log=scratch / "log",
            files=files,
            supervisor_cpus=() if layout.shared else layout.engine,
        )
        with start_client(orders, manifest.ready_s, stopped) as client:
            yield client
