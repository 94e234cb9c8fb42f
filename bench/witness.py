"""An independent witness: it times segments on a loopback device of our own, by the kernel's clock.

How: `own_network` gives this process and its children a network namespace without other traffic.
`Witness` runs bench/witness.c beside a run: the kernel writes each segment to a ring, which is read
when the run is over, so that reading takes no CPU time during the run. Needs root and gcc.
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
# Factor by which the ring is larger than the expected number of segments.
SPARE = 1.5
LEAST_SEGMENTS = 50_000
ENDING_S = 60.0


@contextmanager
def own_network() -> Iterator[None]:
    """Enter a network namespace that has only a loopback device.

    It applies to this thread and the processes it starts. Raises `BenchError` without the
    privilege.
    """
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
class Captured:
    """The segments that passed during a run.

    ``dropped`` counts those that found no room in the ring.
    """

    segments: NDArray[np.void]
    dropped: int

    def matched(self) -> Matched:
        """Match requests with their answers. Raises `BenchError` when segments were dropped."""
        if self.dropped:
            raise BenchError(f"the witness missed {self.dropped:,} segments")
        return match(self.segments)


def build_witness(folder: Path) -> Path:
    """Compile the program. Raises `BenchError` with the reason if that fails."""
    program = folder / "witness"
    built(["gcc", "-O2", "-Wall", "-o", str(program), "witness.c"])
    return program


class Witness:
    """Captures what passes to and from a port while the block runs; then `captured` has it."""

    def __init__(self, program: Path, port: int, requests: float) -> None:
        """Prepare a ring for about `requests` requests, each with an answer."""
        self._program, self._port = program, port
        self._segments = int(max(LEAST_SEGMENTS, 2 * SPARE * requests))
        self._captured: Captured | None = None

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
        line = self._process.stdout.readline().strip()
        if line != "ready":
            self._process.kill()
            self._process.communicate()
            self._folder.cleanup()
            raise BenchError(f"the witness cannot listen: {line}")
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
                self._captured = self._read(out)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise BenchError("the witness does not end") from None
        finally:
            self._folder.cleanup()

    def _read(self, out: str) -> Captured:
        if self._process.returncode != 0:
            raise BenchError(f"the witness ended with {self._process.returncode}: {out}")
        counts = json.loads(out)
        segments = np.fromfile(self._file, dtype=SEGMENT)
        # Segments in a block that was never handed over count as dropped, too.
        lost = counts["heard"] - counts["dropped"] - len(segments)
        return Captured(segments, counts["dropped"] + max(0, lost))

    @property
    def captured(self) -> Captured:
        """What passed; available once the block has ended."""
        assert self._captured is not None
        return self._captured
