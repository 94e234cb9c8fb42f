"""Combines what several engines say of one phase, as if one had said it. Pure; nothing is lost:
counts and histograms are added, never averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

from trueload.grouping import grouped
from trueload.protocol.connections import Connections, IdleClosed, Slots
from trueload.protocol.fleet import MachineShares
from trueload.protocol.lateness import Lateness, Stalls
from trueload.protocol.packed import PackedCounts, SparseSum
from trueload.protocol.plan import Generator, Measurement, Ready
from trueload.protocol.sums import add_histograms, add_up, sums
from trueload.protocol.tick import Second
from trueload.record.accounts import MESSAGES


@dataclass(frozen=True)
class Span:
    """A phase of one engine on the front's clock, in ns: its planned start, when sending began,
    when it stopped, and when the last request was settled."""

    started_ns: int
    began_ns: int
    stopped_ns: int
    done_ns: int


def first_reasons(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The first reason of each failure class."""
    found: dict[str, str] = {}
    for part in parts:
        for name, why in part.items():
            found.setdefault(name, why)
    return found


def merge_ready(parts: Sequence[Ready], at_ns: int) -> Ready:
    """The message that all have connected; ``at_ns`` is when, on the front's clock."""
    first = parts[0]
    return first.model_copy(
        update={
            "at_ns": at_ns,
            **sums(parts, "requested", "established", "failed", "grown_bytes"),
            "address": next((part.address for part in parts if part.address), None),
            "set_up_ns": max(part.set_up_ns for part in parts),
            "driver": _together(part.driver for part in parts),
            "driver_note": next((part.driver_note for part in parts if part.driver_note), None),
            "reasons": first_reasons(part.reasons for part in parts),
            "tls": next((part.tls for part in parts if part.tls), None),
        }
    )


def merge_connections(parts: Sequence[Connections]) -> Connections:
    """The sum of all. Engines connect at the same time, so the slowest one decides how long that
    took, and the longest outage counts."""
    return add_up(
        parts,
        outage_ns=max(part.outage_ns for part in parts),
        set_up_ns=max(part.set_up_ns for part in parts),
        idle_closed=merge_idle_closed([part.idle_closed for part in parts]),
        family=parts[0].family,
        reasons=first_reasons(part.reasons for part in parts),
    )


def merge_idle_closed(parts: Sequence[IdleClosed]) -> IdleClosed:
    """The sum of the counts, and the shortest idle time among the engines that had any."""
    after_ns = min((part.after_ns for part in parts if part.count), default=0)
    return IdleClosed(count=sum(part.count for part in parts), after_ns=after_ns)


def merge_slots(parts: Sequence[Slots]) -> Slots:
    """All slots. The least number of answers is that of the engines whose slots asked at all."""
    asked = [part for part in parts if part.asked] or parts
    return add_up(
        parts,
        answers_min=min(part.answers_min for part in asked),
        answers_max=max(part.answers_max for part in parts),
        means=merge_means(part.means for part in parts),
        long_waits_ns=tuple(wait_ns for part in parts for wait_ns in part.long_waits_ns),
        long_waits=tuple(waits for part in parts for waits in part.long_waits),
    )


def merge_means(
    parts: Iterable[Sequence[tuple[int, int, int]]],
) -> tuple[tuple[int, int, int], ...]:
    """Add up the slots that have the same mean, taken over the same number of answers."""
    total: Counter[tuple[int, int]] = Counter()
    for mean, answers, slots in chain.from_iterable(parts):
        total[mean, answers] += slots
    return tuple((*key, total[key]) for key in sorted(total))


class Series:
    """Seconds added up, by their number since the common start. Each engine has very many, so they
    are added as they come, and none is kept."""

    def __init__(self) -> None:
        self._width_s = 1
        self._ok: dict[int, int] = {}
        self._failed: dict[int, int] = {}
        self._latency: dict[int, SparseSum] = {}

    def add(self, seconds: Iterable[Second]) -> None:
        """Add the seconds of one more engine."""
        for second in seconds:
            if second.width_s > self._width_s:
                self._coarsen(second.width_s)
            t_s = second.t_s // self._width_s * self._width_s
            self._ok[t_s] = self._ok.get(t_s, 0) + second.ok
            self._failed[t_s] = self._failed.get(t_s, 0) + second.failed
            self._latency.setdefault(t_s, SparseSum()).add(second.latency)

    def _coarsen(self, width_s: int) -> None:
        """Widen the bins to those of an engine that ran for longer; widths are powers of two."""
        before = self.sums()
        self._width_s = width_s
        for each in (self._ok, self._failed, self._latency):
            each.clear()
        self.add(before)

    def sums(self) -> tuple[Second, ...]:
        """The sums of all seconds that any engine had."""
        return tuple(
            Second(
                t_s=t_s,
                width_s=self._width_s,
                ok=ok,
                failed=self._failed[t_s],
                latency=PackedCounts(self._latency[t_s].as_dict()),
            )
            for t_s, ok in sorted(self._ok.items())
        )


class OverTime:
    """A phase of several engines over time, and each part of its traffic."""

    def __init__(self) -> None:
        self._series = Series()
        self._tracks: list[Series] = []

    def add(self, part: Measurement) -> None:
        """Add what one more engine measured."""
        self._series.add(part.series)
        self._tracks += (Series() for _ in part.tracks[len(self._tracks) :])
        for track, seconds in zip(self._tracks, part.tracks, strict=False):
            track.add(seconds)

    def sums(self) -> dict[str, Any]:
        """The sums of all engines, by the field of a measurement."""
        return {
            "series": self._series.sums(),
            "tracks": tuple(track.sums() for track in self._tracks),
        }


def merge_generators(parts: Sequence[Generator], start_skew_ns: int) -> Generator:
    """Generators combined: the busiest gives the saturation, the latest the lateness. CPU numbers
    of several hosts mean nothing together, and are left out."""
    first = parts[0]
    return add_up(
        parts,
        driver=_together(part.driver for part in parts),
        driver_note=next((part.driver_note for part in parts if part.driver_note), None),
        refill=first.refill,
        spin_ns=first.spin_ns,
        coalesced_ns=max(part.coalesced_ns for part in parts),
        cpus=first.cpus if len(parts) == 1 else (),
        start_skew_ns=start_skew_ns,
        saturation=max(part.saturation for part in parts),
        lateness=merge_lateness([part.lateness for part in parts]),
        machine=_worst_machine([part.machine for part in parts if part.machine is not None]),
    )


def merge_lateness(parts: Sequence[Lateness]) -> Lateness:
    """The stalls of all by their length, and the longest wait of any thread."""
    return Lateness(
        waited_ns=max(part.waited_ns for part in parts),
        stopped=_merge_stalls(each for part in parts for each in part.stopped),
        queued=_merge_stalls(each for part in parts for each in part.queued),
    )


def _merge_stalls(stalls: Iterable[Stalls]) -> tuple[Stalls, ...]:
    by_length = grouped(stalls, attrgetter("at_least_ns"))
    return tuple(add_up(by_length[ns], at_least_ns=ns) for ns in sorted(by_length))


def merge_measurements(
    parts: Sequence[Measurement], spans: Sequence[Span], over_time: OverTime
) -> Measurement:
    """Combine one phase of all engines. ``spans`` are their times on the front's clock, which the
    result uses. ``over_time`` was added up as it came. Raises ``ValueError`` for junk."""
    started_ns = min(span.started_ns for span in spans)
    stopped_ns = max(span.stopped_ns for span in spans)
    began_ns = min(span.began_ns for span in spans)
    skew_ns = max(
        span.began_ns + (part.generator.start_skew_ns or 0) - began_ns
        for part, span in zip(parts, spans, strict=True)
    )
    return Measurement(
        **sums(parts, "bytes_in", "bytes_out"),
        started_ns=started_ns,
        began_ns=began_ns,
        window_ns=stopped_ns - started_ns,
        drain_ns=max(0, max(span.done_ns for span in spans) - stopped_ns),
        partial=any(part.partial for part in parts),
        counts=add_up([part.counts for part in parts]),
        histograms=add_histograms([part.histograms for part in parts]),
        connections=merge_connections([part.connections for part in parts]),
        slots=merge_slots([part.slots for part in parts]),
        **over_time.sums(),
        generator=merge_generators([part.generator for part in parts], skew_ns),
        **{
            name: account.added([getattr(part, name) for part in parts])
            for name, account in MESSAGES.items()
        },
    )


def _worst_machine(parts: Sequence[MachineShares]) -> MachineShares | None:
    """The worst of each share: what one machine lacked, another's plenty does not make up for."""
    if not parts:
        return None
    return MachineShares(
        idle=min(part.idle for part in parts),
        others=max(part.others for part in parts),
        stolen=max(part.stolen for part in parts),
        throttled=max((t for part in parts if (t := part.throttled) is not None), default=None),
    )


def _together(names: Iterable[str]) -> str:
    """Join the distinct names."""
    return ", ".join(dict.fromkeys(names))
