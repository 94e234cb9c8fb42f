"""The state of a trial so far: the sum of the progress it reports. Pure.

How: a tally is a value, and each ``Progress`` makes the next one, so a thread that reads one needs
no lock. The engine's totals are of one phase; those of a session's windows are added up here.
Counters never go back here, even if the engine corrects itself (an answer that turns out to be
none).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trueload.metrics.times import NO_TIMES, Times, make_times
from trueload.protocol.tick import Counts, Tick
from trueload.record.accounts.generator_times import GeneratorTimes
from trueload.record.figures import latency as latency_of
from trueload.record.schema import Check, Host, Record, Verdict
from trueload.record.throughput import bytes_moved
from trueload.report.accounts import ACCOUNTS
from trueload.stats import Distribution, decode_histogram, merge_sparse
from trueload.trial.spec import ENDED, WARMUP, WINDOW, Progress, TrialSpec

Totals = Mapping[tuple[str, str], int]
"""Totals by field and detail.

The field is one of ``Counts`` or of an account, or ``bytes_in`` or ``bytes_out``. The detail is
the class or code in it.
"""

Saturation = Mapping[str, float]
"""Saturation from 0 to 1, by host; a single host has an empty name."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PhaseTally:
    """The totals of warm-up or window; ``before`` has the totals of earlier windows."""

    before: Totals = field(default_factory=dict)
    now: Totals = field(default_factory=dict)
    latency_before: Times = NO_TIMES
    latency: Times = NO_TIMES
    service_before: Times = NO_TIMES
    service: Times = NO_TIMES

    @property
    def totals(self) -> Totals:
        """The totals over all windows."""
        return _plus(self.before, self.now)

    def following(self) -> PhaseTally:
        """Return the state at the start of another window of the same session."""
        times = {"latency_before": self.latency, "service_before": self.service}
        return replace(self, before=self.totals, now={}, **times)

    def receive(self, tick: Tick) -> PhaseTally:
        """Return the state after one more tick."""
        return replace(
            self,
            now=_at_least(self.now, _totals(tick.counts, tick.bytes_in, tick.bytes_out)),
            latency=self.latency.plus(_sparse(tick.latency)),
            service=self.service.plus(_sparse(tick.service)),
        )

    def close(self, totals: Totals, latency: Times, service: Times) -> PhaseTally:
        """Return the state after the window, with its final totals and times."""
        return replace(
            self,
            now=_at_least(self.now, totals),
            latency=self.latency.at_least(self.latency_before.plus(latency)),
            service=self.service.at_least(self.service_before.plus(service)),
        )


@dataclass(frozen=True)
class Outcome:
    """The results of a trial that has ended; ``hosts`` is empty for a single one."""

    verdict: Verdict
    checks: tuple[Check, ...]
    ok_per_s: float | None
    latency_ns: Distribution
    saturation: Saturation
    client_ns: GeneratorTimes = field(default_factory=GeneratorTimes)
    lower_bound: bool = False
    hosts: tuple[Host, ...] = ()


@dataclass(frozen=True)
class Tally:
    """One trial.

    ``labels`` tell it from the others of its run, and ``about`` holds the labels of its info
    metric. ``tick`` is the last tick of the current phase, and ``ticks`` has the last of each host.
    ``saturation`` is measured between the last two ticks. ``is_over``: nothing more comes.
    """

    labels: Labels
    about: Labels
    is_open_loop: bool
    requested: int
    began_unix_ns: int
    phase: str = "connect"
    phases: Mapping[str, PhaseTally] = field(default_factory=dict)
    tick: Tick | None = None
    ticks: Mapping[str, Tick] = field(default_factory=dict)
    saturation: Saturation = field(default_factory=dict)
    outcome: Outcome | None = None
    is_over: bool = False

    @classmethod
    def of(cls, spec: TrialSpec, labels: Labels, about: Labels, now_unix_ns: int) -> Tally:
        return cls(
            labels=labels,
            about=(*about, ("url", spec.url)),
            is_open_loop=spec.load.is_open,
            requested=spec.load.most,
            began_unix_ns=now_unix_ns,
        )

    def receive(self, progress: Progress) -> Tally:
        """Return the tally after the trial's progress."""
        if progress.record is not None:
            return self.end(progress.record)
        updated = replace(self, phase=progress.phase)
        tick = progress.tick
        if tick is None or tick.id is None:
            return updated
        ticks = {host.place: host.tick for host in progress.hosts()}
        return updated._receive_tick(tick, ticks or {"": tick})

    def _receive_tick(self, tick: Tick, ticks: Mapping[str, Tick]) -> Tally:
        name = WARMUP if tick.id == WARMUP else WINDOW
        phase = self.phases.get(name, PhaseTally())
        if self.tick is None or self.tick.id != tick.id:
            phase = phase.following()
        known = {
            host: _saturation(self.ticks.get(host), now, self.saturation.get(host))
            for host, now in ticks.items()
        }
        return replace(
            self,
            phases={**self.phases, name: phase.receive(tick)},
            tick=tick,
            ticks=ticks,
            saturation={host: share for host, share in known.items() if share is not None},
            outcome=None,
        )

    def end(self, record: Record) -> Tally:
        """The tally of a window that has ended; another one of the same session may follow."""
        window = self.phases.get(WINDOW, PhaseTally())
        if self.tick is None or self.tick.id == WARMUP:
            window = window.following()
        latency = make_times(decode_histogram(record.histograms.latency))
        service = NO_TIMES
        if self.is_open_loop:
            service = make_times(decode_histogram(record.histograms.service))
        phases = {**self.phases, WINDOW: window.close(_totals_of(record), latency, service)}
        if WARMUP in phases:
            warmed = _totals(record.warmup.counts)
            phases[WARMUP] = phases[WARMUP].close(warmed, NO_TIMES, NO_TIMES)
        return replace(
            self,
            phase=ENDED,
            phases=phases,
            tick=None,
            ticks={},
            saturation={},
            outcome=Outcome(
                verdict=record.verdict,
                lower_bound=record.lower_bound,
                checks=record.checks,
                ok_per_s=record.throughput.ok_per_s,
                latency_ns=latency_of(record).figures,
                saturation=_saturation_of(record),
                client_ns=record.client_ns,
                hosts=record.hosts if len(record.hosts) > 1 else (),
            ),
        )

    def over(self) -> Tally:
        return replace(self, tick=None, ticks={}, saturation={}, is_over=True)


def _saturation(before: Tick | None, now: Tick, known: float | None) -> float | None:
    """The saturation of the busiest thread between two ticks of one phase.

    Returns ``known`` if ``now`` is no newer than ``before``.
    """
    if before is None or before.id != now.id:
        return None
    if now.at_ns <= before.at_ns:
        return known
    return min(1.0, max(0.0, (now.busiest_ns - before.busiest_ns) / (now.at_ns - before.at_ns)))


def _saturation_of(record: Record) -> Saturation:
    found = {host.place: host.generator.saturation for host in record.hosts}
    if len(found) < 2:
        found = {"": record.generator.saturation}
    return {host: share for host, share in found.items() if share is not None}


def _totals_of(record: Record) -> Totals:
    found = _totals(record.counts, *bytes_moved(record))
    found["unsent", ""] = record.counts.unsent
    for account in ACCOUNTS:
        kept = getattr(record, account.name) if account.metrics else None
        if kept is not None:
            found |= {(account.total(name), ""): getattr(kept, name) for name in account.metrics}
    return found


def _totals(counts: Counts, bytes_in: int = 0, bytes_out: int = 0) -> dict[tuple[str, str], int]:
    """Return the totals, without unsent requests: their number is known at the end only."""
    found = {
        ("scheduled", ""): counts.scheduled,
        ("issued", ""): counts.issued,
        ("ok", ""): counts.ok,
        ("stale", ""): counts.stale,
        ("cancelled", ""): counts.cancelled,
        ("bytes_in", ""): bytes_in,
        ("bytes_out", ""): bytes_out,
    }
    found |= {("failed", name): count for name, count in counts.failed.items()}
    return found | {("statuses", code): count for code, count in counts.statuses.items()}


def _plus(one: Totals, other: Totals) -> Totals:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def _at_least(one: Totals, other: Totals) -> Totals:
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {**one, **other}}


def _sparse(found: Mapping[int, int]) -> Times:
    return make_times(merge_sparse([found])) if found else NO_TIMES
