"""An independent witness: the wire of a loopback device of our own, by the kernel's clock.

How: `own_network` gives this process, and what it starts, a network namespace in which nothing else
speaks. `Witness` runs bench/witness.c beside a run: the kernel notes each segment in a ring, which
is read when the run is over, so that no CPU time is taken meanwhile. Needs root and gcc.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
from matching import SEGMENT, Matched, match
from numpy.typing import NDArray
from process import BenchError, built, prepare
from setting import SERVER_CPU

CLONE_NEWNET = 0x4000_0000
# Room in the ring for more segments than expected.
SPARE = 1.5
LEAST_SEGMENTS = 50_000
ENDING_S = 60.0


@contextmanager
def own_network() -> Iterator[None]:
    """A network namespace with a loopback device alone, for this thread and what it starts.
    `BenchError` without the right to have one."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if libc.unshare(CLONE_NEWNET) != 0:
            why = os.strerror(ctypes.get_errno())
            raise BenchError(f"no network namespace of our own ({why}): run it as root")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            libc.setns(before, CLONE_NEWNET)
    finally:
        os.close(before)


@dataclass(frozen=True)
class Heard:
    """What passed on the wire during a run; ``dropped`` segments found no room in the ring."""

    segments: NDArray[np.void]
    dropped: int

    def matched(self) -> Matched:
        """Requests with their answers; `BenchError` when not everything was heard."""
        if self.dropped:
            raise BenchError(f"the witness missed {self.dropped:,} segments")
        return match(self.segments)


def build_witness(folder: Path) -> Path:
    """The program, compiled; `BenchError` says why that cannot be."""
    program = folder / "witness"
    built(["gcc", "-O2", "-Wall", "-o", str(program), "witness.c"])
    return program


class Witness:
    """Hears what passes to and from a port while the block runs; then `heard` has it."""

    def __init__(self, program: Path, port: int, requests: float) -> None:
        """`requests` are about as many as will be sent, each with an answer."""
        self._program, self._port = program, port
        self._segments = int(max(LEAST_SEGMENTS, 2 * SPARE * requests))
        self._heard: Heard | None = None

    def __enter__(self) -> Witness:
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "segments"
        command = [str(self._program), str(self._port), str(self._segments), str(self._file)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=prepare(SERVER_CPU),
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if said != "ready":
            self._process.kill()
            self._process.communicate()
            self._folder.cleanup()
            raise BenchError(f"the witness cannot listen: {said}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            out, _ = self._process.communicate(timeout=ENDING_S)
            if kind is None:
                self._heard = self._read(out)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise BenchError("the witness does not end") from None
        finally:
            self._folder.cleanup()

    def _read(self, out: str) -> Heard:
        if self._process.returncode != 0:
            raise BenchError(f"the witness ended with {self._process.returncode}: {out}")
        told = json.loads(out)
        segments = np.fromfile(self._file, dtype=SEGMENT)
        # What stayed in a block that was never handed over was not heard, either.
        lost = told["heard"] - told["dropped"] - len(segments)
        return Heard(segments, told["dropped"] + max(0, lost))

    @property
    def heard(self) -> Heard:
        """What passed; there once the block has ended."""
        assert self._heard is not None
        return self._heard
