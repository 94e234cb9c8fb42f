"""Runs one program to its end on one CPU and reports what it cost.

CPU time comes from `wait4`: the whole life of the process, set-up included, and of children that it
has reaped. Peak memory is VmHWM, read from /proc while the process lives, because `ru_maxrss`
inherits the launcher's memory across fork. Memory is sampled only on request: sampling costs time
on a machine with few CPUs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SAMPLE_EVERY_S = 0.02
BUILD_S = 180.0
BENCH = Path(__file__).resolve().parent
OPEN_FILES = 20_000


class BenchError(Exception):
    """A program could not be measured; the message is for the reader of the benchmark."""


@dataclass(frozen=True)
class Ended:
    """A program's output and what it cost."""

    out: str
    cpu_s: float
    peak_rss_bytes: int | None


def prepare(*cpus: int, hard: bool = False) -> Callable[[], None]:
    """Return what a child does before exec: set its CPUs and its soft limit of open files.

    With `hard` the hard limit is the same, so that the program cannot raise it.
    """

    def in_child() -> None:
        os.sched_setaffinity(0, cpus)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = OPEN_FILES if limit == resource.RLIM_INFINITY else min(OPEN_FILES, limit)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most if hard else limit))

    return in_child


def run(
    command: Sequence[str],
    *,
    cpu: int,
    timeout_s: float,
    memory: bool = False,
    talk: Callable[[IO[str], IO[str]], str] | None = None,
) -> Ended:
    """Run `command` on `cpu`; `talk(stdin, stdout)` converses with it and returns what it said.

    Raises `BenchError` when it takes longer than `timeout_s` or ends with another code than 0.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if talk is None else subprocess.DEVNULL,
        text=True,
        preexec_fn=prepare(cpu),
    )
    watchdog = threading.Timer(timeout_s, process.kill)
    watchdog.start()
    sampler = _Sampler(process.pid) if memory else None
    try:
        assert process.stdout is not None
        if talk is not None:
            assert process.stdin is not None
            out = talk(process.stdin, process.stdout)
        else:
            out = process.stdout.read()
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                # The program has ended; what is still buffered for it is of no use.
                with suppress(BrokenPipeError):
                    stream.close()
        peak = sampler.stop() if sampler else None
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        watchdog.cancel()
    if process.returncode != 0:
        raise BenchError(f"`{' '.join(command)}` ended with {process.returncode}:\n{out[-2000:]}")
    return Ended(out=out, cpu_s=used.ru_utime + used.ru_stime, peak_rss_bytes=peak)


def vm_hwm_bytes(pid: int) -> int:
    """Peak resident memory of a live process; 0 when it has exited."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def built(command: list[str], cwd: Path = BENCH, most_s: float = BUILD_S) -> None:
    """Build a helper program. Raises `BenchError` with the reason if that fails."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=most_s)
    except FileNotFoundError:
        raise BenchError(f"there is no {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"`{' '.join(command)}` took longer than {most_s:g} s") from None
    if done.returncode != 0:
        raise BenchError(f"`{' '.join(command)}` failed: {done.stderr[-300:]}")


class _Sampler:
    """Reads VmHWM repeatedly: it only grows, so the last reading is the peak."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self._peak

    def _sample(self) -> None:
        while not self._stop.is_set():
            self._peak = max(self._peak, vm_hwm_bytes(self._pid))
            time.sleep(SAMPLE_EVERY_S)
