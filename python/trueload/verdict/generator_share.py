"""The part of each percentile that was spent in the generator itself, and its effect.

How: latency runs from when a request was due to when its answer was read. Our part lies at both
ends: from when the request could be sent until the kernel had it, and from when the kernel had the
answer until our loop read it. Pure functions of a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from trueload.record import figures
from trueload.record.schema import Record, Status
from trueload.units import counted, format_duration, format_share
from trueload.verdict.common import (
    DELAYS,
    Definition,
    Finding,
    graded,
    has_slow_connections,
    is_open,
    not_applicable,
)
from trueload.verdict.hosts import SEVERITY
from trueload.verdict.machine import SERVER_LIMIT

NAME = "client-share"
# With fewer stamped answers even a median is mostly chance: its 95 % interval spans ranks 40 to 60
# of 100. A p99 has one value beyond its upper rank from some 370 on (design.md, section 13).
STAMPED_MIN = {"p50": 100, "p99": 370}
SHARES = {"p50": 0.50, "p99": 0.99}


@dataclass(frozen=True)
class Limits:
    """The share of a percentile from which the generator's part matters.

    ``least_ns`` is the part in ns below which it does not matter, by percentile.
    """

    share: float
    least_ns: dict[str, int]


# The shares are by judgement: equal runs differ by less than a tenth, and with a quarter two
# servers would change places because of the generator. Below the times nothing is wrong, whatever
# the share. A generator on CPUs of its own, up to half of its capacity, added 32 to 115 us to p50
# and 114 to 440 us to p99. That was on loopback (64 and 1,000 connections, both drivers, nginx and
# the reference server), where it is most of p50. So p50 may have what `send-lag` allows, and p99
# twice that.
OPEN_WARN = Limits(0.10, {"p50": 250_000, "p99": 500_000})
OPEN_FAIL = Limits(0.25, {"p50": 1_000_000, "p99": 2_000_000})
# A closed loop at full speed keeps the generator busy, too, and answers wait for it by design. With
# 64 and 256 connections, our part of p50 was 1 to 16 % against nginx as the slower end. With the
# generator as the slower end it was 80 to 99 %. From half on, the latency is called an upper bound.
# That is true, and the latency without our part is known, so no warning is needed.
CLOSED_BOUND = Limits(0.50, OPEN_WARN.least_ns)


@dataclass(frozen=True)
class GeneratorShare:
    """The generator's part of one percentile of the latency; both in ns."""

    percentile: str
    ours_ns: int
    of_ns: int

    @property
    def share(self) -> float:
        """The generator's share of the percentile, from 0 to 1."""
        return self.ours_ns / self.of_ns if self.of_ns else 0.0

    @property
    def rest_ns(self) -> int:
        """The percentile without the generator's part, in ns."""
        return self.of_ns - self.ours_ns

    def sentence(self) -> str:
        """A text to show: ``140 us of p50 293 us``."""
        whole, ours = format_duration(self.of_ns), format_duration(self.ours_ns)
        return f"{ours} of {self.percentile} {whole}"


def generator_shares(record: Record) -> tuple[GeneratorShare, ...]:
    """Return the generator's part of p50 and of p99, if known.

    It is the sum of the same percentile at both ends. It is at most the difference between this
    percentile and that of the round trip, as no more lies between them. For p99 the sum alone would
    often be too much: the slowest sends and the slowest reads belong to different requests.
    """
    return tuple(_parts(record))


def _parts(record: Record) -> Iterator[GeneratorShare]:
    send, receive = record.client_ns.send, record.client_ns.receive
    if send is None or receive is None or has_slow_connections(record):
        return
    latency = figures.latency(record)
    for name, share in SHARES.items():
        found = latency.percentile(share)
        if found.above or not found.value or receive.count < STAMPED_MIN[name]:
            continue
        round_trip_ns = getattr(record.round_trip_ns, name) or 0
        above_ns = max(0, found.value - round_trip_ns)
        ours_ns = min(getattr(send, name) + getattr(receive, name), above_ns)
        yield GeneratorShare(name, ours_ns, found.value)


def check_generator_share(record: Record) -> Finding:
    """Grade the generator's part of p50 and of p99; the worse one decides."""
    parts = generator_shares(record)
    if not parts:
        return not_applicable(_unknown(record))
    judge = _judged_open if is_open(record) else partial(_judged_closed, _is_server_full(record))
    status, limit, part = max(map(judge, parts), key=_severity)
    why = f"the generator's part is {part.sentence()}: {format_share(part.share)}"
    if not is_open(record) and part.share >= limit:
        why += (
            f"; the server's latency is at most this, and {format_duration(part.rest_ns)}"
            " without the generator's part"
        )
    if status == "bound":
        why += ", and the throughput a lower bound"
    return Finding(status, why, part.share, limit)


CLIENT_SHARE = Definition(
    name="client-share",
    order=70,
    compute=check_generator_share,
    of_client="how long a request waits within the client only the client knows",
    fault="generator",
    moves=DELAYS,
    meaning=(
        "Time that a request waits inside the generator counts as latency, but the"
        " server did not cause it."
    ),
    remedy=(
        "Use fewer connections per thread: more --threads, or lower -c; give the generator CPUs of"
        " its own (--cpus), or send from another host."
    ),
    spoiled="too much of the time was the generator's own",
    per_host=True,
)


Judged = tuple[Status, float, GeneratorShare]
"""The status of one percentile, the share that decided, and the part."""


def _judged_open(part: GeneratorShare) -> Judged:
    return (*graded(part.share, _limit(part, OPEN_WARN), _limit(part, OPEN_FAIL)), part)


def _judged_closed(is_server_full: bool, part: GeneratorShare) -> Judged:
    """Judge a closed loop.

    If most answers wait for the generator, and the server is not full, a quicker generator would
    have sent more.
    """
    limit = _limit(part, CLOSED_BOUND)
    asked_less = part.percentile == "p50" and part.share >= limit and not is_server_full
    return ("bound" if asked_less else "pass"), limit, part


def _is_server_full(record: Record) -> bool:
    """Whether the server was at its limit, as `generator-limit` has it."""
    server = record.server.saturation if record.server else None
    return server is not None and server >= SERVER_LIMIT


def _severity(judged: Judged) -> tuple[int, float]:
    """A sort key: the status, then the distance beyond the limit."""
    status, limit, part = judged
    return SEVERITY[status], part.share / limit


def _limit(part: GeneratorShare, limits: Limits) -> float:
    """The share that the generator's part of this percentile must stay below."""
    return max(limits.share, limits.least_ns[part.percentile] / part.of_ns)


def _unknown(record: Record) -> str:
    """Return why the generator's part is not known."""
    receive = record.client_ns.receive
    if has_slow_connections(record):
        return "answers wait for the client on purpose (--read-rate)"
    if record.connections.family == "unix":
        return "the kernel does not tell when bytes arrive on a unix socket"
    if record.client_ns.send is None or receive is None:
        return "no answer's time of arrival was sampled"
    if receive.count < STAMPED_MIN["p50"]:
        stamped = counted(receive.count, "answer has", "answers have")
        return (
            f"only {stamped} an arrival time from the kernel; at least"
            f" {STAMPED_MIN['p50']} are needed"
        )
    return "the percentiles lie among requests that never ended"
