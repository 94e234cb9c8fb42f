"""Stand-ins below aggregators. Each is a process of its own, as the ssh of a real host would be.

How: the program is small (`crates/engine/examples/stand_in.rs`), so that a machine can run
thousands. The aggregators are real. Must not know what is measured.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from process import BenchError
from setting import ROOT
from standin_hosts import nature_of, variant_of
from trueload.places import Channel, EngineHost, Start
from trueload.places.local import LocalChannel
from trueload.places.open import branches_of

PROFILE = "sim"  # optimised, and built sooner than a release
PROGRAM = ROOT / "target" / PROFILE / "examples" / "stand_in"
AHEAD_NS = 10 * 3_600 * 1_000_000_000
"""Added to each clock's lead: an engine's clock is never negative."""


@dataclass(frozen=True)
class StandInProcess:
    """A place where one stand-in can be started as a process."""

    name: str
    path: Path
    ahead_ns: int
    cluster: None = None

    def open(self, argv: Sequence[str]) -> Channel:
        """Start the stand-in, whatever `argv` says."""
        return self.open_by(LocalChannel, argv)

    def open_by(self, start: Start, argv: Sequence[str]) -> Channel:
        """Have it started, at a low priority: real hosts take no CPU time of this machine."""
        return start(["nice", "-n", "19", str(PROGRAM), str(self.path), str(self.ahead_ns)])


def build() -> None:
    """Build the program. Raises `BenchError`."""
    which = ("-p", "trueload-engine", "--example", "stand_in", "--profile", PROFILE)
    command = ["cargo", "build", "--quiet", *which]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise BenchError(f"the stand-in cannot be built: {built.stderr.strip()}")


def tree_hosts(paths: Sequence[Path], count: int) -> tuple[EngineHost, ...]:
    """Create `count` hosts, shared out among aggregators as a user's are."""
    places = [
        StandInProcess(f"host{number}", paths[variant_of(number, len(paths))], ahead_ns(number))
        for number in range(count)
    ]
    branches = branches_of(places, tree=True)
    return tuple(
        EngineHost(place, branch=branch) for place, branch in zip(places, branches, strict=True)
    )


def ahead_ns(number: int) -> int:
    """Tell the lead of a host's clock over the front's."""
    return nature_of(number).ahead_ns + AHEAD_NS
