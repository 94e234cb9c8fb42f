"""Combines what several engines say of one phase, as if one had said it. Pure; nothing is lost:
counts and histograms are added, never averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from trueload import hdr
from trueload.protocol.data import DataUse
from trueload.protocol.http2 import Announced, Http2
from trueload.protocol.kinds import Kind, Kinds
from trueload.protocol.model import Model
from trueload.protocol.packed import PackedCounts, SparseSum
from trueload.protocol.plan import (
    Backlog,
    Connections,
    Counts,
    Deliveries,
    Flow,
    Generator,
    IdleClosed,
    Lateness,
    MachineShares,
    Measurement,
    Openings,
    Ready,
    Redirects,
    Second,
    Sessions,
    Slots,
    Stalls,
    Streams,
    TargetCounts,
    Work,
)


@dataclass(frozen=True)
class Span:
    """A phase of one engine on the front's clock, in ns: its planned start, when sending began,
    when it stopped, and when the last request was settled."""

    started_ns: int
    began_ns: int
    stopped_ns: int
    done_ns: int


Key = TypeVar("Key", str, int)
Whole = TypeVar("Whole", bound=Model)
Number = TypeVar("Number", int, float)


def sums(parts: Sequence[object], *names: str) -> dict[str, Any]:
    """The named fields, each summed over all parts; counts by name are summed name by name."""
    found = {name: [getattr(part, name) for part in parts] for name in names}
    return {
        name: add_counts(each) if isinstance(each[0], Mapping) else sum(each)
        for name, each in found.items()
    }


def add_up(parts: Sequence[Whole], **rest: Any) -> Whole:
    """The sum of each field over parts of one kind, except for the fields given in ``rest``."""
    kind = type(parts[0])
    return kind(**sums(parts, *(name for name in kind.model_fields if name not in rest)), **rest)


def add_counts(parts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Sum counts by name, or by the index of sparse histograms."""
    total: dict[Key, int] = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items()))


def first_reasons(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The first reason of each failure class."""
    found: dict[str, str] = {}
    for part in parts:
        for name, why in part.items():
            found.setdefault(name, why)
    return found


def merge_counts(parts: Sequence[Counts]) -> Counts:
    """The sum of all."""
    return add_up(parts)


def merge_histograms(parts: Sequence[Whole]) -> Whole:
    """Sum each histogram of a set of them. Raises ``ValueError`` for junk."""
    kind = type(parts[0])
    found = {name: tuple(getattr(part, name) for part in parts) for name in kind.model_fields}
    # In a closed loop several are the same.
    sums = {each: hdr.added(each) for each in set(found.values())}
    return kind(**{name: sums[each] for name, each in found.items()})


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
    by_length: dict[int, list[Stalls]] = {}
    for each in stalls:
        by_length.setdefault(each.at_least_ns, []).append(each)
    return tuple(add_up(by_length[ns], at_least_ns=ns) for ns in sorted(by_length))


def merge_targets(
    parts: Sequence[tuple[TargetCounts, ...] | None],
) -> tuple[TargetCounts, ...] | None:
    """Sum the counts target by target; None if there are none."""
    found = [part for part in parts if part is not None]
    return tuple(map(_merge_target, zip(*found, strict=True))) if found else None


def _merge_target(parts: Sequence[TargetCounts]) -> TargetCounts:
    return add_up(parts, kinds=merge_kinds([part.kinds for part in parts]))


def merge_sessions(parts: Sequence[Sessions | None]) -> Sessions | None:
    """The sum of all; None without a scenario."""
    found = [part for part in parts if part is not None]
    return add_up(found) if found else None


def merge_kinds(parts: Sequence[Kinds]) -> Kinds:
    """The kinds of answer to one request, each summed, in the order in which they came."""
    found: dict[tuple[int, str], Kind] = {}
    for kind in (kind for part in parts for kind in part.known):
        body = (kind.bytes, kind.sketch)
        mine = found.get(body)
        if mine is not None:
            before = min(mine.before, kind.before)
            kind = kind.model_copy(update={"count": mine.count + kind.count, "before": before})
        found[body] = kind
    known = tuple(sorted(found.values(), key=lambda kind: kind.before))
    bits = sorted({each.bits for part in parts for each in part.other})
    same = [[each for part in parts for each in part.other if each.bits == size] for size in bits]
    other = tuple(
        add_up(each, bits=each[0].bits, before=min(one.before for one in each)) for each in same
    )
    return Kinds(known=known, other=other)


def merge_deliveries(parts: Sequence[Deliveries | None]) -> Deliveries | None:
    """The sum of all, each counted at the engine where it arrived; None if nothing was broadcast.
    Raises ``ValueError`` for junk."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    return add_up(
        found,
        negative_max_ns=max(part.negative_max_ns for part in found),
        histograms=merge_histograms([part.histograms for part in found]),
    )


def merge_flows(parts: Sequence[Flow | None]) -> Flow | None:
    """The sum of all, in parts as long as the longest ones. Gaps are kept only for a single host:
    the clocks of several cannot tell when one server was silent to all. None if a host has no flow.
    """
    found = [part for part in parts if part is not None]
    if not found or len(found) < len(parts):
        return None
    part_ns, answered = _in_longest([(part.part_ns, part.answered) for part in found])
    whole_ns = min(part.whole_ns for part in found)
    return Flow(
        whole_ns=whole_ns,
        part_ns=part_ns,
        answered=answered,
        came=sum(part.came for part in found),
        work=_merge_works([_until(part, whole_ns) for part in found]),
        gaps=found[0].gaps if len(found) == 1 else {},
        backlog=_merge_backlogs([part.backlog for part in found if part.backlog is not None]),
    )


def _in_longest(
    parts: Sequence[tuple[int, tuple[Number, ...]]],
) -> tuple[int, tuple[Number, ...]]:
    """Sum counts over time, in parts as long as the longest, a multiple of all others."""
    longest_ns = max(part_ns for part_ns, _ in parts)
    total: list[Number] = []
    for part_ns, counts in parts:
        step = longest_ns // part_ns
        starts = range(0, len(counts), step)
        wide = [sum(counts[at : at + step]) for at in starts] if step > 1 else list(counts)
        together = [one + other for one, other in zip(total, wide, strict=False)]
        total = together + total[len(together) :] + wide[len(together) :]
    return longest_ns, tuple(total)


def _until(flow: Flow, whole_ns: int) -> Work:
    """The work of one host, up to the earliest end of any host's window."""
    work = flow.work
    last, inside_ns = divmod(whole_ns, work.part_ns)
    if whole_ns >= flow.whole_ns or len(work.answers) <= last:
        return work
    of_ns = min(work.part_ns, flow.whole_ns - last * work.part_ns)
    kept = work.answers[last] * inside_ns / of_ns
    return work.model_copy(update={"answers": (*work.answers[:last], kept)})


def _merge_works(parts: Sequence[Work]) -> Work:
    part_ns, answers = _in_longest([(part.part_ns, part.answers) for part in parts])
    return Work(
        part_ns=part_ns,
        answers=answers,
        before_ns=_known_sum([part.before_ns for part in parts]),
        after_ns=_known_sum([part.after_ns for part in parts]),
    )


def _known_sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _merge_backlogs(parts: Sequence[Backlog]) -> Backlog | None:
    """The sum of all; the schedule has the same quarters everywhere."""
    if not parts:
        return None
    return Backlog(
        **sums(parts, "at_start", "at_end"),
        answered=_by_place([part.answered for part in parts]),
        latency_sum_ns=_by_place([part.latency_sum_ns for part in parts]),
    )


def _by_place(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*parts, strict=True)))


def merge_measurements(
    parts: Sequence[Measurement], spans: Sequence[Span], series: tuple[Second, ...]
) -> Measurement:
    """Combine one phase of all engines. ``spans`` are their times on the front's clock, which the
    result uses. ``series`` was added up as it came. Raises ``ValueError`` for junk."""
    started_ns = min(span.started_ns for span in spans)
    stopped_ns = max(span.stopped_ns for span in spans)
    began_ns = min(span.began_ns for span in spans)
    skew_ns = max(
        span.began_ns + (part.generator.start_skew_ns or 0) - began_ns
        for part, span in zip(parts, spans, strict=True)
    )
    datagrams = [part.datagrams for part in parts if part.datagrams is not None]
    return Measurement(
        **sums(parts, "bytes_in", "bytes_out"),
        started_ns=started_ns,
        began_ns=began_ns,
        window_ns=stopped_ns - started_ns,
        drain_ns=max(0, max(span.done_ns for span in spans) - stopped_ns),
        partial=any(part.partial for part in parts),
        counts=merge_counts([part.counts for part in parts]),
        histograms=merge_histograms([part.histograms for part in parts]),
        connections=merge_connections([part.connections for part in parts]),
        slots=merge_slots([part.slots for part in parts]),
        series=series,
        flow=merge_flows([part.flow for part in parts]),
        generator=merge_generators([part.generator for part in parts], skew_ns),
        targets=merge_targets([part.targets for part in parts]),
        sessions=merge_sessions([part.sessions for part in parts]),
        origins=tuple(map(add_up, zip(*(part.origins for part in parts), strict=True))),
        data=_merge_data([part.data for part in parts if part.data is not None]),
        deliveries=merge_deliveries([part.deliveries for part in parts]),
        datagrams=add_up(datagrams) if datagrams else None,
        http2=merge_http2([part.http2 for part in parts if part.http2 is not None]),
        kinds=merge_kinds([part.kinds for part in parts]),
        early=add_up([part.early for part in parts]),
        streams=merge_streams([part.streams for part in parts if part.streams is not None]),
        openings=merge_openings([part.openings for part in parts if part.openings is not None]),
        redirects=merge_redirects([part.redirects for part in parts if part.redirects is not None]),
    )


def _merge_data(parts: Sequence[DataUse]) -> DataUse | None:
    """The rows that all have taken; every engine has the same rows."""
    if not parts:
        return None
    return DataUse(
        rows=max(part.rows for part in parts),
        taken=sum(part.taken for part in parts),
        spent=any(part.spent for part in parts),
    )


def merge_streams(parts: Sequence[Streams]) -> Streams | None:
    """The sum of all; None if answers are no streams."""
    if not parts:
        return None
    return add_up(parts, histograms=merge_histograms([part.histograms for part in parts]))


def merge_openings(parts: Sequence[Openings]) -> Openings | None:
    """The sum of all; None if the load opened no connections."""
    return merge_histograms(parts) if parts else None


def merge_redirects(parts: Sequence[Redirects]) -> Redirects | None:
    """The sum of all; None if redirects are not followed."""
    if not parts:
        return None
    return add_up(parts, time=hdr.added([part.time for part in parts]))


def merge_http2(parts: Sequence[Http2]) -> Http2 | None:
    """The sum of all, with what all of their peers announced; None if there are none."""
    if not parts:
        return None
    connected = [part for part in parts if part.connections]
    announced = (
        name for name, field in Http2.model_fields.items() if field.annotation is Announced
    )
    return add_up(
        parts,
        waits_ns=add_up([part.waits_ns for part in parts]),
        headers_out=add_up([part.headers_out for part in parts]),
        headers_in=add_up([part.headers_in for part in parts]),
        **{name: _all_announced([getattr(part, name) for part in connected]) for name in announced},
    )


def _all_announced(parts: Sequence[Announced]) -> Announced:
    """The smallest and the largest value of all; no limit (None) is larger than any."""
    limits = [part.least for part in parts if part.least is not None]
    most = [part.most for part in parts]
    return Announced(
        least=min(limits, default=None),
        most=max((each for each in most if each is not None), default=None)
        if None not in most
        else None,
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
