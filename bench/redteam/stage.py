"""The processes of an attack: the compiled programs of this folder, and the command.

The server has CPU 0 and the generator CPU 1, as in every report of bench/.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import COMMAND_TIMEOUT_S, Trueload, kill_group
from process import BenchError, built, prepare
from redteam.demands import Seen
from redteam.truth import Truth, read_log, window_of
from setting import GENERATOR_CPU, SERVER_CPU
from trueload.machine.processes import descendants

HERE = Path(__file__).resolve().parent
READY_S = 20.0
PROGRAMS = ("server", "hinder", "path")


@dataclass(frozen=True)
class Stage:
    """A folder with the compiled programs, and the command with a store of its own."""

    folder: Path
    trueload: Trueload

    def program(self, name: str) -> str:
        """The path of a program."""
        return str(self.folder / name)


@contextmanager
def open_stage() -> Iterator[Stage]:
    """Compile the programs. Raises `BenchError` with the reason if that fails."""
    with tempfile.TemporaryDirectory(prefix="redteam") as name:
        folder = Path(name)
        # nginx's worker runs as another user.
        folder.chmod(0o755)
        for program in PROGRAMS:
            source = str(HERE / f"{program}.c")
            built(["cc", "-O2", "-o", str(folder / program), source, "-lm"])
        trueload = Trueload(folder / "world")
        try:
            yield Stage(folder, trueload)
        finally:
            trueload.close()


class Adversary:
    """A running `server.c`."""

    def __init__(
        self, stage: Stage, options: Sequence[str], enter: Sequence[str] = (), host: str = ""
    ) -> None:
        self._log = stage.folder / "log"
        self._log.unlink(missing_ok=True)
        where = [f"host={host}"] if host else []
        self.process = subprocess.Popen(
            [*enter, stage.program("server"), f"log={self._log}", *where, *options],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=prepare(SERVER_CPU),
        )
        self.port = int(self.line())
        self.url = f"http://{host or '127.0.0.1'}:{self.port}/"

    def line(self) -> str:
        """Return the next line of its output. Raises `BenchError` if none comes in `READY_S`."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if readable else ""
        if not line:
            raise BenchError("the scripted server says nothing")
        return line.strip()

    def await_first(self) -> None:
        """Wait for the first request."""
        while self.line() != "first":
            pass

    def end(self) -> dict[str, Any]:
        """End it, and return its last line."""
        assert self.process.stdout is not None
        self.process.terminate()
        lines = self.process.stdout.read().splitlines()
        self.process.wait()
        self.process.stdout.close()
        report: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        return report

    def truth(self, report: dict[str, Any], warmup_s: float, window_s: float) -> Truth:
        """Read its log, and determine the window in it."""
        begin_ns, end_ns = window_of(report, warmup_s, window_s)
        return Truth(read_log(self._log.read_bytes()), report, begin_ns, end_ns)


@contextmanager
def adversary(
    stage: Stage, options: Sequence[str], enter: Sequence[str] = (), host: str = ""
) -> Iterator[Adversary]:
    """Run a scripted server, and end it when the block ends."""
    server = Adversary(stage, options, enter, host)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def engine_of(pid: int) -> int:
    """Return the PID of the engine that a command has started; waits for it."""
    end_s = time.monotonic() + READY_S
    while time.monotonic() < end_s:
        for child in descendants(pid):
            with suppress(OSError):
                if "engine" in os.path.basename(os.readlink(f"/proc/{child}/exe")):
                    return child
        time.sleep(0.005)
    raise BenchError("the command has started no engine")


@dataclass(frozen=True)
class Command:
    """A running command, and the path of its result."""

    process: subprocess.Popen[str]
    path: Path

    def seen(self, timeout_s: float = COMMAND_TIMEOUT_S) -> Seen:
        """Wait for its end; the result is empty if it leaves none. Raises ``TimeoutExpired``."""
        out, err = self.process.communicate(timeout=timeout_s)
        result = json.loads(self.path.read_text()) if self.path.exists() else {}
        return Seen(self.process.returncode, out + err, result)


@contextmanager
def command(
    stage: Stage,
    *words: str,
    pinned: bool = True,
    enter: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[Command]:
    """Run `trueload WORDS` in the background, and end it when the block ends.

    The generator runs on its CPU if `pinned`. `enter` is a prefix of the command, such as `ip netns
    exec NAME`.
    """
    path = stage.folder / "result.json"
    path.unlink(missing_ok=True)
    cpus = ("--cpus", str(GENERATOR_CPU)) if pinned else ()
    process = subprocess.Popen(
        [*enter, sys.executable, "-m", "trueload", *words, *cpus, "--json", str(path)],
        env=stage.trueload.env(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Command(process, path)
    finally:
        kill_group(process)
