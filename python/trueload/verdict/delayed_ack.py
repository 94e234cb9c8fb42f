"""The check `delayed-ack`: do some answers wait for a delayed acknowledgement?

Nagle's algorithm (RFC 896) holds back a small segment while an earlier one is not acknowledged. The
other side delays its acknowledgement (RFC 1122 §4.2.3.2) in the hope of data to send with it. A
kernel timer ends that: 40 ms on Linux, 200 ms on Windows and as Linux's upper bound. So a server
that writes an answer in two pieces, without TCP_NODELAY, has answers that take 40 ms longer than
the others: a few, or all of them. Pure.

Other causes of 40 ms must not be accused. So the answers there have to be a mode of their own, with
hardly any neighbours, and far from the main body of answers. If there are no other answers, the
mode has to be far from the first bytes. On a connection with one request at a time, the request
acknowledges all that the server has sent before: only the *rest* of an answer can wait. The server
itself delayed answers whose first byte is as late.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trueload.buckets import Buckets
from trueload.record.schema import Record
from trueload.stats import EMPTY, decode_histogram, merge_sparse
from trueload.units import counted, format_duration, format_share
from trueload.verdict.common import (
    NOTHING,
    Definition,
    Finding,
    has_slow_connections,
    not_applicable,
)

MS = 1_000_000
# The timers in ns, each with its largest delay. Linux counts them in jiffies of up to 4 ms
# (TCP_DELACK_MIN is HZ/25, TCP_DELACK_MAX HZ/5) and rounds up twice: 48 ms is seen most.
TIMERS = ((40 * MS, 9 * MS), (200 * MS, 12 * MS))
DELAYED_WARN = 0.01  # from this share on p99 is such a wait
BODY_MOST = 0.25  # of the timer: a larger median is not far from the mode
# A mode has hardly any neighbours: each quarter of the timer beside it holds at most this share of
# its answers. A server that is slow for other reasons has a tail, without an edge at 40 ms.
NEIGHBOURS_MOST = 0.25
ANSWERS_MIN = 10  # fewer in a mode are chance
ALSO_FIRST_BYTE = 0.5  # of the mode: from here on the server waited, not the rest of its answers


@dataclass(frozen=True)
class Mode:
    """The ``count`` of ``total`` answers that took a timer's length and a little more."""

    timer_ns: int
    count: int
    total: int

    @property
    def share(self) -> float:
        return self.count / self.total


def delayed_mode(times: Buckets, first_bytes: Buckets = EMPTY) -> Mode | None:
    """Return the mode at a timer of delayed acknowledgements that has most of these times.

    It must be apart from the other times, or else from the first bytes of the same answers.
    """
    return _worst(_modes(times, times)) or _worst(
        mode for mode in _modes(times, first_bytes) if not is_late_from_the_start(mode, first_bytes)
    )


def _worst(modes: Iterable[Mode]) -> Mode | None:
    return max(modes, key=lambda mode: mode.count, default=None)


def _modes(times: Buckets, quick: Buckets) -> Iterable[Mode]:
    """Return the modes of ``times`` that are far from the median of ``quick``."""
    if times.total == 0 or quick.total == 0:
        return []
    found = [_mode_at(times, _median(quick), *timer) for timer in TIMERS]
    return [mode for mode in found if mode is not None]


def _median(times: Buckets) -> int:
    return times.at_rank((times.total + 1) // 2)


def _mode_at(times: Buckets, median_ns: int, timer_ns: int, later_ns: int) -> Mode | None:
    if median_ns > BODY_MOST * timer_ns:
        return None
    top_ns = timer_ns + later_ns + median_ns
    beside_ns = timer_ns // 4
    count = _between(times, timer_ns, top_ns)
    neighbours = max(
        _between(times, timer_ns - beside_ns, timer_ns),
        _between(times, top_ns, top_ns + beside_ns),
    )
    if count < ANSWERS_MIN or neighbours > NEIGHBOURS_MOST * count:
        return None
    return Mode(timer_ns, count, times.total)


def _between(times: Buckets, from_ns: int, to_ns: int) -> int:
    """Count the times in between; a bucket counts as its highest value, to include the timer."""
    buckets = zip(times.highs, times.counts, strict=True)
    return sum(count for high, count in buckets if from_ns <= high < to_ns)


def is_late_from_the_start(mode: Mode, first_bytes: Buckets) -> bool:
    """Whether the first byte of these answers was as late as their end."""
    later_ns = dict(TIMERS)[mode.timer_ns]
    # A first byte comes before the end, by at most the time of the body.
    late = _between(first_bytes, mode.timer_ns - later_ns, mode.timer_ns + 2 * later_ns)
    return late >= ALSO_FIRST_BYTE * mode.count


def check_delayed_ack(record: Record) -> Finding:
    """Grade the share of answers that waited for a delayed acknowledgement."""
    if record.datagrams is not None:
        return not_applicable("datagrams are not acknowledged")
    if record.deliveries is not None:
        return not_applicable("a broadcast has deliveries, not answers")
    if record.plan.generate.addresses and record.plan.generate.addresses[0].startswith("unix:"):
        return not_applicable("a Unix socket has no acknowledgements")
    if record.streams is not None:
        return not_applicable("a stream takes its time")
    if has_slow_connections(record):
        return not_applicable("the client reads slowly on purpose (--read-rate)")
    times = decode_histogram(record.histograms.service)
    if times.total == 0:
        return not_applicable("nothing was answered well")
    first_bytes = decode_histogram(record.histograms.first_byte)
    modes = [mode for each in _by_request(record, times) if (mode := delayed_mode(*each))]
    worst = max(modes, key=lambda mode: mode.share, default=None)
    if worst is None or worst.share < DELAYED_WARN:
        share = worst.share if worst is not None else 0.0
        why = "no separate group of answers took 40 ms or 200 ms longer than the others"
        if worst is not None:
            why = f"{_mode_text(worst)}: too few to tell"
        return Finding("pass", why, share, DELAYED_WARN)
    if record.plan.generate.pipeline == 1 and is_late_from_the_start(worst, first_bytes):
        why = f"{_mode_text(worst)}, but so did their first bytes: the server itself waited"
        return Finding("pass", why, worst.share, DELAYED_WARN)
    others = f"p50 {format_duration(_median(times))}"
    if worst.share > 1 / 2:
        others = f"p50 of first bytes {format_duration(_median(first_bytes))}"
    why = (
        f"{_mode_text(worst)}, a group apart from the others ({others}): typical of Nagle's"
        " algorithm together with delayed acknowledgements"
    )
    return Finding("warn", why, worst.share, DELAYED_WARN)


def _by_request(record: Record, times: Buckets) -> Iterable[tuple[Buckets, Buckets]]:
    """Return the times of each target by itself, or those of a single request with its first bytes.

    A target that always takes 40 ms is no mode of the others.
    """
    if record.targets is None:
        return [(times, decode_histogram(record.histograms.first_byte))]
    return [(merge_sparse([target.latency]), EMPTY) for target in record.targets]


def _mode_text(mode: Mode) -> str:
    return (
        f"{counted(mode.count, 'answer')} ({format_share(mode.share)}) took just over"
        f" {format_duration(mode.timer_ns)}"
    )


DELAYED_ACK = Definition(
    name="delayed-ack",
    order=137,
    compute=check_delayed_ack,
    of_client="only our generator times answers",
    fault="subject",
    moves=NOTHING,
    meaning=(
        "Answers that come 40 ms later than others, or than their own first byte, waited for"
        " a TCP timer."
    ),
    remedy=(
        "Give the server's connections TCP_NODELAY, or write each answer at once. At 200"
        " ms packets may have been lost instead: Linux retransmits after 200 ms at the"
        " earliest."
    ),
)
