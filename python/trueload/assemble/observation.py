"""What was received and sampled of one trial; its record is made from this."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trueload.engines.bins import Bins
from trueload.machine.accounting import MachineSample, TreeSample
from trueload.machine.noise import NoiseSample
from trueload.protocol.fleet import Speeds
from trueload.protocol.plan import Generate, Measurement, Phase, Ready
from trueload.protocol.tick import Sparse, Tick
from trueload.record.account import Step
from trueload.record.schema import NO_CLAIM, Claim, CoreLatency, Environment, ServerSource, Trouble
from trueload.units import NS_PER_S

if TYPE_CHECKING:
    from trueload.engines.member import HostReport


@dataclass
class PhaseLog:
    """What was received of one phase.

    Of the ticks only the sums over time are kept, as runs may be long.
    """

    started_ns: int | None = None
    stopped_ns: int | None = None
    first: Tick | None = None
    last: Tick | None = None
    bins: Bins = field(default_factory=Bins)
    measurement: Measurement | None = None
    # Only if it is one of several hosts: the bins of a host hold counts, but no latencies.
    latency: Sparse | None = None

    def latencies(self) -> Iterator[Mapping[int, int]]:
        """Yield the latencies of all ticks, in parts, as counts by bucket."""
        yield from self.bins.latencies() if self.latency is None else (self.latency,)

    def add(self, tick: Tick) -> None:
        self.first = self.first or tick
        self.last = tick
        since_ns = tick.at_ns - (self.first.at_ns if self.started_ns is None else self.started_ns)
        self.bins.add(max(0, since_ns) // NS_PER_S, tick.counts, tick.latency)


@dataclass(frozen=True)
class HostSample:
    """Samples of the machine, the server's process tree and the local engines at one moment."""

    machine: MachineSample
    server: TreeSample | None
    processes: NoiseSample | None = None
    engine: TreeSample | None = None


@dataclass
class Observation:
    """Everything that was seen of one trial. Times in seconds are on the front's clock."""

    id: str
    started_at: str
    url: str
    generate: Generate
    warmup: Phase | None
    window: Phase
    environment: Environment
    place: str = "local"
    several_hosts: bool = False
    is_here: bool = True
    server_place: str | None = None
    hosts: tuple[HostReport, ...] = ()
    # With several hosts: how far a time from another host to this one may be off.
    clock_bound_ns: int | None = None
    server_source: ServerSource | None = None
    claim: Claim = NO_CLAIM
    target_urls: tuple[str, ...] = ()
    origin_urls: tuple[str, ...] = ()
    payload_bytes: int | None = None
    idle_server: TreeSample | None = None
    # Processes behind the server, by pid; if no server is known, those that we connected to.
    peers: dict[int, str] = field(default_factory=dict)
    may_be_here: bool = False  # the server may run on this machine
    sees_all: bool = True  # we may see every process of this machine
    most_connections: int = 0
    joined: Measurement | None = None
    server_files: int | None = None
    engine_cpus: tuple[int, ...] = ()
    front_pid: int = field(default_factory=os.getpid)
    ready: Ready | None = None
    steps: list[Step] = field(default_factory=list)
    resolve_failed: bool = False
    interrupted: bool = False
    trouble: Trouble | None = None
    phases: dict[str, PhaseLog] = field(default_factory=dict)
    # Samples at the window's start, at its end, and before anything was sent.
    before: HostSample | None = None
    after: HostSample | None = None
    earliest: HostSample | None = None
    cpu_distance: CoreLatency | None = None
    cpu_speeds: Speeds | None = None
    connect_wall_s: float = 0.0
    wall_s: float = 0.0

    def phase(self, phase_id: str) -> PhaseLog:
        """Return the log of a phase; creates it if there is none."""
        return self.phases.setdefault(phase_id, PhaseLog())

    def measurements(self) -> tuple[Measurement, ...]:
        """Return the measurements of the phases that came to their end."""
        found = (log.measurement for log in self.phases.values())
        return tuple(measurement for measurement in found if measurement is not None)
