"""The check `host-bias`: does one of several hosts measure something else than the others?

How: a host differs in a figure if its interval lies wholly beyond those of the others, however few
replies it had. A slow host has few, so it is never left out. How much it differs is judged by the
figures themselves. Hosts of different groups, such as regions, are not compared. Pure.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import NormalDist

from trueload.buckets import Buckets
from trueload.grouping import grouped
from trueload.record import figures
from trueload.record.schema import Host, Record
from trueload.stats import decode_histogram
from trueload.units import NS_PER_S, format_duration, format_share
from trueload.verdict.common import Definition, Finding, graded, is_closed, not_applicable

BIAS_WARN, BIAS_FAIL = 0.25, 1.0
"""Hosts under the same load see the same server; what differs is a host's own path and CPU.

The limits are our judgement and do not come from measurements. Equal hosts should differ by less
than a quarter. A host with twice the percentile of the rest tells more about itself than about the
server.
"""
BIAS_LEAST_NS = 100_000  # by judgement: a longer way may add this much, whatever its share
ERROR = 0.05  # over all figures of all hosts together (Bonferroni)
PERCENTILES = {"p50": 0.5, "p99": 0.99}
REPLY = "time per reply and connection"


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A figure of one host in ns, and its interval; ``high_ns`` is inf if nothing bounds it."""

    place: str
    what: str
    value_ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class _Bias:
    """A figure of one host, and the median of the others' figures."""

    of: _Estimate
    rest_ns: float

    @property
    def share(self) -> float:
        """The difference as a share of the others' figure; 0 for up to ``BIAS_LEAST_NS``."""
        off_ns = abs(self.of.value_ns - self.rest_ns)
        return off_ns / self.rest_ns if off_ns > BIAS_LEAST_NS and self.rest_ns > 0 else 0.0


def check_host_bias(record: Record) -> Finding:
    """Compare each host's percentiles, and its replies per connection, with those of the rest."""
    hosts = [host for host in record.hosts if host.lost is None]
    if len(hosts) < 2:
        return not_applicable("the load came from one host")
    deviations = NormalDist().inv_cdf(1 - ERROR / (2 * len(hosts) * (len(PERCENTILES) + 1)))
    of_all: list[list[_Estimate]] = []
    together_ns = _together_ns(record)
    for group in (each for each in grouped(hosts, attrgetter("group")).values() if len(each) > 1):
        # Only hosts that began together met the same times of the server.
        began = grouped(group, attrgetter("joined_s")).values()
        for equal in (each for each in began if len(each) > 1):
            of_all += [_latencies(equal, what, deviations) for what in PERCENTILES]
        if is_closed(record):
            of_all.append(_times_per_reply(group, together_ns, deviations))
    if not of_all:
        return not_applicable("each host is the only one of its group")
    if not any(host.ok for host in hosts):
        return not_applicable("no host had a reply")
    compared = [each for each in of_all if len(each) > 1]
    found = [bias for estimates in compared for bias in _biases(estimates)]
    if not found:
        return Finding("pass", "no host differs by more than chance", 0.0, BIAS_WARN)
    worst = max(found, key=lambda each: each.share)
    status, limit = graded(worst.share, BIAS_WARN, BIAS_FAIL)
    why = (
        f"{worst.of.place}: {worst.of.what} {format_duration(worst.of.value_ns)}, the other hosts'"
        f" {format_duration(worst.rest_ns)}: off by {format_share(worst.share)}"
    )
    return Finding(status, why, worst.share, limit)


HOST_BIAS = Definition(
    name="host-bias",
    order=210,
    compute=check_host_bias,
    of_client="a client runs on one host",
    fault="hosts",
    meaning=(
        "Hosts of a group that send the same load to the same server must measure about the same"
        " latency."
    ),
    remedy=(
        "Look at what else that host does, at its CPUs and at its way to the server; leave it out"
        " and compare."
    ),
)


def _together_ns(record: Record) -> range:
    """Return the part of the window, in ns, in which all hosts sent: from when the last joined."""
    joined_s = max((host.joined_s or 0 for host in record.hosts), default=0)
    return range(joined_s * NS_PER_S, record.window.window_ns)


def _latencies(hosts: Sequence[Host], what: str, deviations: float) -> list[_Estimate]:
    """Estimate a percentile of each host that had a reply; requests without one are slower."""
    share, found = PERCENTILES[what], []
    for host in hosts:
        known = decode_histogram(host.latency)
        if not known.total or host.counts is None:
            continue
        count = known.total + figures.without_time(host.counts)
        spread = deviations * math.sqrt(count * share * (1 - share))
        value_ns, low_ns, high_ns = (
            _at_rank(known, rank)
            for rank in (
                math.ceil(count * share),
                math.floor(count * share - spread),
                math.ceil(count * share + spread),
            )
        )
        if math.isinf(value_ns):
            value_ns = _at_rank(known, known.total)  # it is at least this
        found.append(_Estimate(host.place, what, value_ns, low_ns, high_ns))
    return found


def _at_rank(known: Buckets, rank: int) -> float:
    """Return the value of a rank: 0 for one below the first, inf for one without a value."""
    if rank < 1:
        return 0.0
    return float(known.at_rank(rank)) if rank <= known.total else math.inf


def _replies(host: Host, window_ns: range) -> tuple[int | None, int]:
    """Return the replies of a host in a part of the window, and how long that lasted in ns. Those
    of the whole window are known exactly, others by the bins that lie in it."""
    if window_ns.start == 0:
        return host.ok, window_ns.stop
    width_s = max((each.width_s for each in host.series), default=1)
    from_s = math.ceil(window_ns.start / NS_PER_S / width_s) * width_s
    until_s = window_ns.stop // NS_PER_S // width_s * width_s
    found = sum(each.ok for each in host.series if from_s <= each.t_s < until_s)
    return (found, (until_s - from_s) * NS_PER_S) if from_s < until_s else (None, 0)


def _times_per_reply(hosts: Sequence[Host], window_ns: range, deviations: float) -> list[_Estimate]:
    """Estimate how long a connection of each host took for a reply, also of one without any.

    The number of replies is taken as that of a Poisson process. Its square root has a standard
    deviation of a half (M. S. Bartlett, *The square root transformation in analysis of variance*,
    1936).
    """
    found = []
    for host in hosts:
        ok, lasted_ns = _replies(host, window_ns)
        if ok is None or not host.connections:
            continue
        time_ns = host.connections * lasted_ns
        fewest = max(0.0, math.sqrt(ok) - deviations / 2) ** 2
        most = (math.sqrt(ok + 1) + deviations / 2) ** 2
        low_ns, high_ns = time_ns / most, time_ns / fewest if fewest else math.inf
        value_ns = time_ns / ok if ok else low_ns
        found.append(_Estimate(host.place, REPLY, value_ns, low_ns, high_ns))
    return found


def _biases(estimates: Sequence[_Estimate]) -> Iterator[_Bias]:
    """Yield the estimates whose interval lies beyond the median one of the others."""
    # Sorted once: there may be thousands.
    values = sorted(each.value_ns for each in estimates)
    lows = sorted(each.low_ns for each in estimates)
    highs = sorted(each.high_ns for each in estimates)
    for each in estimates:
        slower = each.low_ns > median_without(highs, each.high_ns)
        faster = each.high_ns < median_without(lows, each.low_ns)
        if slower or faster:
            yield _Bias(each, median_without(values, each.value_ns))


def median_without(ordered: Sequence[float], value: float) -> float:
    """Return the median of the values without one of them, ``value``.

    The values are in rising order, and there are two or more.
    """
    at, left = bisect_left(ordered, value), len(ordered) - 1
    lower, upper = (
        ordered[rank + 1 if rank >= at else rank] for rank in ((left - 1) // 2, left // 2)
    )
    return (lower + upper) / 2
