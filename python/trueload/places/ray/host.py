"""The actor on a host of a Ray cluster: it starts programs and moves their bytes.

How: Ray ships this module by value, so a host needs Ray and nothing of ours. A program is kept in
memory alone (``memfd``), which leaves no file behind, and runs as a child of the actor. When the
actor goes in any way, the child's input ends, and an engine ends with it. Every wait has a limit.
Must not import anything but the standard library and Ray, nor know what the bytes mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import platform
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

CHUNK_BYTES = 64 * 2**10  # an answer of up to 100 KB travels without Ray's object store
PIPE_BYTES = 2**20  # what a program can write before it has to wait for the front
LOG_BYTES_MAX = 64 * 2**10
NODE_DIED = "its Ray node (raylet) has died"
REPLY_S = 0.05  # for a program to answer what was written to it
LAST_WORDS_S = 1.0  # to send an answer before the actor ends itself
QUIET_S = 0.65  # longer than between two calls of a front that is there
REMEMBERED = 16  # processes whose output can still be read

Started = tuple[int, int, None] | tuple[None, None, str]
"""The number by which the actor knows a program, and its process id; or why it was not started."""
Answer = tuple[int, bytes, int, str | None, bool]
"""To an exchange: its turn, the program's output since the one before, how many bytes of input it
has taken, why it takes no more, and whether its output has ended."""


class Host:
    """The actor: programs by their SHA-256, processes by number."""

    def __init__(self) -> None:
        lift_niceness()
        # Ray's workers block SIGINT, and a program that inherits that would never receive it.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self._programs: dict[str, Program] = {}
        self._processes: dict[int, Process] = {}
        self._started = 0
        self._speaking: asyncio.TimerHandle | None = None
        self._parent = os.getppid()

    async def about(self) -> dict[str, Any]:
        """Facts that the front needs before it sends a program."""
        return {"machine": platform.machine(), "niceness": os.nice(0)}

    async def keep(self, sha256: str, program: bytes, loader: str | None) -> str | None:
        """Keep a program that needs a loader. Return why that failed, or None."""
        if loader is not None and not Path(loader).exists():
            return f"the C library of the program is missing: {loader}"
        if hashlib.sha256(program).hexdigest() != sha256:
            return "the program has been damaged on its way"
        try:
            self._programs[sha256] = Program(in_memory(program), program.startswith(b"#!"))
        except OSError as error:
            return f"the program cannot be kept in memory: {error.strerror}"
        return None

    async def start(self, sha256: str, argv: Sequence[str]) -> Started:
        """Start a program that has been kept."""
        try:
            process = Process(self._programs[sha256], argv)
        except OSError as error:
            return None, None, error.strerror or str(error)
        self._started += 1
        self._processes[self._started] = process
        self._forget()
        return self._started, process.pid, None

    async def exchange(self, number: int, data: bytes, is_last: bool, wait_s: float) -> Answer:
        """Write to its input, then read its output. Raises ``RuntimeError`` if the host is no
        longer part of the cluster."""
        await self._stay()
        self._expect_call()
        answer = await self._processes[number].exchange(data, is_last, wait_s)
        if answer[3] is not None or answer[4]:
            await self._stay()  # if the node has died, that is the reason, not the process
        return answer

    async def wait(self, number: int, wait_s: float) -> int | None:
        """The exit code; None if it still runs. Raises ``RuntimeError`` as ``exchange`` does."""
        await self._stay()
        return await asyncio.to_thread(self._processes[number].wait, wait_s)

    async def kill(self, number: int) -> None:
        """End it and everything it started."""
        await asyncio.to_thread(self._processes[number].kill)

    async def log(self, number: int) -> bytes:
        """The last part of what it wrote to stderr."""
        return self._processes[number].log()

    async def leave(self) -> None:
        """End all processes, and soon the actor itself, without help from others in the cluster."""
        for process in self._processes.values():
            process.kill()
        asyncio.get_running_loop().call_later(LAST_WORDS_S, os._exit, 1)

    async def _stay(self) -> None:
        """Leave if the Ray node has died; Ray itself lets an actor run for ten seconds or more
        then. Raises ``RuntimeError`` in that case."""
        if os.getppid() != self._parent:
            await self.leave()
            raise RuntimeError(NODE_DIED)

    def _expect_call(self) -> None:
        """Send something if no call comes soon. When its link breaks, a host forgets the address of
        its neighbour. It asks for that when it first sends something, and again only a second
        later: the sooner that was, the sooner its answers pass once the link is back."""
        if self._speaking is not None:
            self._speaking.cancel()
        self._speaking = asyncio.get_running_loop().call_later(QUIET_S, ask_head)

    def _forget(self) -> None:
        """Close processes that ended long ago: nobody asks for their output any more."""
        for number, process in list(self._processes.items())[:-REMEMBERED]:
            if process.wait(0.0) is not None:
                self._processes.pop(number).close()


class Program(NamedTuple):
    """A program that can be started: a descriptor of this process, and whether it is a script."""

    descriptor: int
    is_script: bool


class Process:
    """A child of the actor, in a process group of its own."""

    def __init__(self, program: Program, argv: Sequence[str]) -> None:
        executable = Path(f"/proc/{os.getpid()}/fd/{program.descriptor}")
        # Start it by a link, because the kernel names a process after the file that was started. A
        # script cannot: its interpreter opens it when the link has gone.
        with tempfile.TemporaryDirectory(prefix="trueload-") as folder:
            link = Path(folder, Path(argv[0]).name)
            link.symlink_to(executable)
            self._process = subprocess.Popen(
                argv,
                executable=executable if program.is_script else link,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
                bufsize=0,
                cwd="/",
                env=user_environment(os.environ),
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._input = self._process.stdin
        self._output = self._process.stdout.fileno()
        self._errors = self._process.stderr.fileno()
        for descriptor in (self._input.fileno(), self._output, self._errors):
            os.set_blocking(descriptor, False)
            # A host may allow less; then the program has to wait sooner.
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._log = bytearray()
        self._turn = 0
        self._exchanging = asyncio.Lock()
        self._ready = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._errors, self._read_errors)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def exchange(self, data: bytes, is_last: bool, wait_s: float) -> Answer:
        """Write as much of ``data`` as it takes, and read. What was there before does not end the
        wait for its reply; without data any output does, and the next exchange."""
        self._ready.set()
        async with self._exchanging:
            self._turn += 1
            deadline_s = self._loop.time() + wait_s
            output, ended = self._read(CHUNK_BYTES)
            taken, refused = self._write(data)
            while taken < len(data) and refused is None and not output and not ended:
                if not await self._until_ready(deadline_s, writing=True):
                    break
                output, ended = self._read(CHUNK_BYTES)
                more, refused = self._write(data[taken:])
                taken += more
            if is_last and taken == len(data):
                self.close_input()
            awaits_reply = bool(data) and taken == len(data)
            if awaits_reply:
                deadline_s = min(deadline_s, self._loop.time() + REPLY_S)
            is_full = ended or refused is not None or len(output) >= CHUNK_BYTES
            if (awaits_reply or not output) and not is_full:
                await self._until_ready(deadline_s, writing=False)
                reply, ended = self._read(CHUNK_BYTES - len(output))
                output += reply
            return self._turn, output, taken, refused, ended

    def _write(self, data: bytes) -> tuple[int, str | None]:
        """Return how many bytes it has taken, and why it takes no more."""
        if data and self._input.closed:
            return 0, "its input is closed"
        try:
            return os.write(self._input.fileno(), data) if data else 0, None
        except BlockingIOError:
            return 0, None
        except OSError:
            return 0, "it has closed its input"

    def _read(self, most: int) -> tuple[bytes, bool]:
        """Return the output that is there, and whether it has ended."""
        try:
            output = os.read(self._output, most)
        except BlockingIOError:
            return b"", False
        return output, not output

    async def _until_ready(self, deadline_s: float, *, writing: bool) -> bool:
        """Wait for output, for room in its input, or for the next exchange; False if none came."""
        self._ready.clear()
        self._loop.add_reader(self._output, self._ready.set)
        if writing:
            self._loop.add_writer(self._input.fileno(), self._ready.set)
        try:
            await asyncio.wait_for(self._ready.wait(), deadline_s - self._loop.time())
        except TimeoutError:
            return False
        finally:
            self._loop.remove_reader(self._output)
            if writing:
                self._loop.remove_writer(self._input.fileno())
        return True

    def close_input(self) -> None:
        self._input.close()

    def wait(self, wait_s: float) -> int | None:
        try:
            return self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        # Not after it was reaped: its group's number could be another's by then.
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        """Close the descriptors of a process that has ended."""
        self.close_input()
        self._loop.remove_reader(self._errors)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def log(self) -> bytes:
        self._read_errors()
        return bytes(self._log)

    def _read_errors(self) -> None:
        try:
            while chunk := os.read(self._errors, CHUNK_BYTES):
                self._log += chunk
                del self._log[:-LOG_BYTES_MAX]
            self._loop.remove_reader(self._errors)
        except BlockingIOError:
            pass


def ask_head() -> None:
    """Ask the head of the cluster something, and do not wait for the answer."""
    import ray

    threading.Thread(target=ray.nodes, daemon=True).start()


def in_memory(program: bytes) -> int:
    """Store a program in a sealed executable file in memory; return its descriptor."""
    descriptor = os.memfd_create("trueload", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        rest = memoryview(program)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fchmod(descriptor, 0o700)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def lift_niceness() -> None:
    """Take back the niceness that Ray gives its workers (15, ``RAY_worker_niceness``), which a
    generator must not have. Only a privileged user may do so."""
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(task), 0)


def user_environment(ours: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """The environment without the variables that Ray has set for its workers."""
    rays = ("RAY_", "PYTHON", "LD_", "OMP_")
    return {name: value for name, value in ours.items() if not name.startswith(rays)}
