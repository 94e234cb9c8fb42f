"""The check of the claimed percentile: is it known well enough to be claimed?

How: by its interval (record/percentile_interval.py). p50 and p99 are always shown, so they are
looked at even if no percentile is claimed: where the interval spans a wide gap of the distribution,
another run may show a time of the other side. A pure function of a record.
"""

from __future__ import annotations

from trueload.record import figures
from trueload.record.percentile_interval import gap_within, percentile_interval
from trueload.record.schema import Record
from trueload.stats import fewest_to_bound, parse_percentile
from trueload.units import counted, format_duration, format_share
from trueload.verdict.common import Definition, Finding, Moves, not_applicable

WIDTH_WARN = 0.20  # a limit that is nearer than this cannot be told from the value
# Without a claim, only a gap counts that no interval of a steady tail spans: the ends of a gap are
# four times apart, and at least so many requests are beyond it.
WIDE_GAP, BEYOND_GAP_MIN = 4.0, 10


def check_quantile_width(record: Record) -> Finding:
    """Grade the width of the claimed percentile's 95 % interval, as a share of its value."""
    claimed = record.plan.claim.percentile
    share = None if claimed is None else parse_percentile(claimed)
    if share is None:
        return _of_gaps(record)
    latency = figures.latency(record)
    found = latency.percentile(share)
    if found.value is None or found.above:
        why = f"{claimed} is not known: it falls on requests that failed or never ended"
        return Finding("warn", why, None, None)
    if found.too_few:
        why = (
            f"{counted(latency.count, 'request is', 'requests are')} too few to tell {claimed}:"
            f" it needs {fewest_to_bound(share):,}"
        )
        return Finding("fail", why, latency.count, fewest_to_bound(share))
    known = percentile_interval(latency, record.whole_seconds(), share)
    if known.between is None:
        why = f"{claimed} is {format_duration(found.value)}, with no interval: {known.how};"
        why += " its true value may be much higher than measured"
        return Finding("warn", why, None, None)
    low, high = known.between
    width = (high - low) / max(1, found.value)
    why = (
        f"{claimed} is {format_duration(found.value)}; its 95 % interval is"
        f" {format_duration(low)} to {format_duration(high)} ({known.how}), {format_share(width)}"
        f" wide{_gap_text(latency, known.between)}"
    )
    return Finding("warn" if width > WIDTH_WARN else "pass", why, width, WIDTH_WARN)


def _of_gaps(record: Record) -> Finding:
    """Warn if the interval of a percentile that is always shown spans a wide gap."""
    latency = figures.latency(record)
    for name in figures.BRIEF:
        share = figures.percentile_share(name)
        found = None if share is None else latency.percentile(share)
        if share is None or found is None or found.known is None:
            continue
        between = latency.interval(share)
        gap = None if between is None else gap_within(latency, between)
        if between is None or gap is None or gap[1] < WIDE_GAP * gap[0]:
            continue
        counts = zip(latency.known.highs, latency.known.counts, strict=True)
        if sum(count for high, count in counts if high >= gap[1]) >= BEYOND_GAP_MIN:
            low, high = map(format_duration, between)
            why = f"{name} is {format_duration(found.known)}; its 95 % interval is {low} to {high}"
            return Finding("warn", f"{why}{_gap_text(latency, between)}", None, None)
    return not_applicable("no percentile is claimed (--fail-on, --limit)")


def _gap_text(latency: figures.Sample, between: tuple[float, float]) -> str:
    """What an interval says that spans a gap; empty if it spans none."""
    gap = gap_within(latency, between)
    if gap is None:
        return ""
    below, above = map(format_duration, gap)
    return f": nothing took between {below} and {above}, and it may lie on either side"


QUANTILE_WIDTH = Definition(
    name="quantile-width",
    order=180,
    compute=check_quantile_width,
    of_client="no percentile is claimed: latencies are what the client claims",
    fault="load",
    moves=Moves("unknown", "exact", "exact"),
    meaning="A percentile of few requests, or of few moments, lies anywhere in a wide interval.",
    remedy="Use a longer --duration, or claim a lower percentile.",
)
