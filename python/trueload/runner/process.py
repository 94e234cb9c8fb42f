"""The runner's end of the supervisor: programs that are started, watched and surely ended.

How: one supervisor for what is started together (one program, or a prefork subject's many).
Leaving the context ends the whole tree, whatever happened inside; if this process is
killed instead, the supervisor sees its stdin end and does the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType

from trueload.deadline import looks
from trueload.machine.accounting import ProcessTree
from trueload.machine.open_files import open_files_limit
from trueload.machine.processes import descendants
from trueload.runner import sockets, supervisor
from trueload.runner.cgroup import Group, make_group

LOG_BYTES_MAX = 1024 * 1024
TAIL_BYTES = 4096
# For the supervisor itself, beyond the grace: it only waits for the kernel then.
KEEPER_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Program:
    """A command and the CPUs that it may use; empty for all that we may."""

    argv: tuple[str, ...]
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What to start. `files` is the open-file limit, 0 for as many as we may. `pipes` are
    descriptors for stdin and stdout of a program that is spoken to; else it has no input and a log.
    """

    programs: tuple[Program, ...]
    cwd: Path
    env: Mapping[str, str]
    log: Path
    files: int = 0
    supervisor_cpus: tuple[int, ...] = ()
    log_bytes_max: int = LOG_BYTES_MAX
    pipes: tuple[int, int] | None = None


@dataclass(frozen=True)
class Exit:
    """How a program that we started ended: a code, or the signal that killed it."""

    code: int | None
    signal: int | None

    @classmethod
    def of_status(cls, status: int) -> Exit:
        code = os.waitstatus_to_exitcode(status)
        return cls(code, None) if code >= 0 else cls(None, -code)

    def __str__(self) -> str:
        if self.signal is None:
            return f"exit code {self.code}"
        name = signal.Signals(self.signal).name if self.signal in _SIGNALS else "a signal"
        memory = ", perhaps out of memory" if self.signal == signal.SIGKILL else ""
        return f"signal {self.signal} ({name}{memory})"


_SIGNALS = {int(number) for number in signal.Signals}


@dataclass(frozen=True)
class SubjectState:
    """How a subject that has been started is: whether it lives, on how many sockets it listens on
    its port, and who else does."""

    alive: bool
    sockets: int
    taken_by: str | None


class StartError(Exception):
    """A program could not be started at all; one line. `again` if that was no fault of its own, and
    may go better the next time."""

    def __init__(self, reason: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


@dataclass
class Processes:
    """Programs started together, with all that came of them. A context manager."""

    orders: Orders
    exits: list[Exit] = field(default_factory=list)
    started: tuple[int, ...] = ()
    _supervisor: subprocess.Popen[bytes] | None = None
    _group: Group | None = None
    _partial: bytes = b""
    _gone: bool = False

    def __enter__(self) -> Processes:
        self._group = make_group()
        try:
            self._start()
        except BaseException:
            self.end(0)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(0)

    @property
    def tree(self) -> ProcessTree:
        """For accounting: everything that was started, and nothing of ours."""
        return ProcessTree(self._group if self._group is not None else self.pids)

    def pids(self) -> set[int]:
        """The processes that are alive, wherever they have gone."""
        below = descendants(self._supervisor.pid) if self._supervisor is not None else set()
        return below | (self._group.pids() if self._group is not None else set())

    def alive(self) -> bool:
        """Whether any process is left, a daemonised one included."""
        self.poll(0)
        return not self._gone and (len(self.exits) < len(self.started) or bool(self.pids()))

    def look(self, host: str, port: int) -> SubjectState:
        """How they are, and who listens on their port."""
        if not self.alive():
            return SubjectState(False, 0, None)
        count = sockets.count_sockets(host, port)
        return SubjectState(
            True, count, sockets.taken_by(host, port, self.pids()) if count else None
        )

    def listens_on(self) -> list[str]:
        """Where they listen at all."""
        return sockets.listens_on(self.pids())

    def poll(self, timeout_s: float) -> None:
        """Waits for news from the supervisor, at most so long."""
        assert self._supervisor is not None
        assert self._supervisor.stdout is not None
        output = self._supervisor.stdout.fileno()
        if self._gone or not select.select([output], [], [], timeout_s)[0]:
            return
        data = os.read(output, 65536)
        if not data:
            self._gone = True
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._receive(json.loads(line))

    def terminate(self) -> None:
        """SIGTERM to the programs that were started, and to none that they have started."""
        self.poll(0)
        for pid in set(self.started) & self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)

    def wait(self, deadline_s: float) -> bool:
        """Until every program that we started has ended; False if the deadline came first."""
        for left_s in looks(deadline_s):
            if self._have_ended():
                break
            self.poll(min(left_s, 1.0))
        return self._have_ended()

    def _have_ended(self) -> bool:
        return self._gone or len(self.exits) >= len(self.started)

    def end(self, grace_s: float) -> None:
        """SIGTERM to the tree, SIGKILL after the grace, until nothing is left. Twice is once."""
        kept, self._supervisor = self._supervisor, None
        if kept is None:
            self._remove_group()
            return
        try:
            self._ask_to_end(kept, grace_s)
        finally:
            _close(kept)
            self._force(kept)
            self._remove_group()

    def log_tail(self) -> str:
        """The end of what the programs printed; bytes that are no text are escaped."""
        try:
            with self.orders.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                return file.read().decode("utf-8", errors="backslashreplace")
        except OSError:
            return ""

    def _start(self) -> None:
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            pass_fds=self.orders.pipes or (),
        )
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.write(self._line())
        self._supervisor.stdin.flush()
        for left_s in looks(time.monotonic() + KEEPER_PATIENCE_S):
            if self.started or self._gone:
                break
            self.poll(left_s)
        if not self.started:
            raise StartError("the supervisor of the subject's processes did not start")

    def _line(self) -> bytes:
        """The orders as the supervisor reads them."""
        _, hard = open_files_limit()
        files = self.orders.files or hard
        if hard != resource.RLIM_INFINITY and files > hard:
            raise StartError(f"it is to have {files} open files, and the hard limit is {hard}")
        orders = asdict(self.orders) | {
            "files": 0 if files == resource.RLIM_INFINITY else files,
            "cpus": sorted(os.sched_getaffinity(0)),
            "cgroup": self._group.path if self._group is not None else None,
        }
        return json.dumps(orders, default=str).encode() + b"\n"

    def _receive(self, line: dict[str, object]) -> None:
        if "error" in line:
            raise StartError(str(line["error"]))
        started = line.get("started")
        if isinstance(started, list):
            self.started = tuple(started)
        status = line.get("status")
        if isinstance(status, int):
            self.exits.append(Exit.of_status(status))
        if "gone" in line:
            self._gone = True

    def _ask_to_end(self, kept: subprocess.Popen[bytes], grace_s: float) -> None:
        if grace_s <= 0 or kept.stdin is None:
            return
        try:
            kept.stdin.write(f"stop {grace_s}\n".encode())
            kept.stdin.flush()
            kept.wait(grace_s + KEEPER_PATIENCE_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            return

    def _force(self, kept: subprocess.Popen[bytes]) -> None:
        """The supervisor ends by itself now that its stdin has; if it cannot, we do its work."""
        try:
            kept.wait(KEEPER_PATIENCE_S)
        except subprocess.TimeoutExpired:
            for pid in descendants(kept.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            kept.kill()
            kept.wait()

    def _remove_group(self) -> None:
        if self._group is not None:
            self._group.kill()
            self._group.remove()
            self._group = None


def _close(kept: subprocess.Popen[bytes]) -> None:
    for pipe in (kept.stdin, kept.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def substitute(
    argv: Sequence[str], values: Mapping[str, str], trueload: Sequence[str]
) -> list[str]:
    """The argument list with {host} and the like replaced; {trueload} alone becomes several."""
    out: list[str] = []
    for argument in argv:
        if argument == "{trueload}":
            out += trueload
            continue
        for name, value in values.items():
            argument = argument.replace(f"{{{name}}}", value)
        out.append(argument)
    return out
