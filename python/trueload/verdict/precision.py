"""The check of the claimed percentile: is it known well enough to be claimed?

How: by rank (binomial order statistics) or, over ten seconds and more, by how the percentile of
each second varies. The latter also sees that requests of one moment are slow together, which ranks
cannot. A pure function of a record.
"""

from __future__ import annotations

from trueload.record import figures
from trueload.record.schema import Record
from trueload.stats import fewest_to_bound, mean_interval, parse_percentile
from trueload.units import NS_PER_S, format_duration, format_share
from trueload.verdict.common import Definition, Finding, Moves, not_applicable

WIDTH_WARN = 0.20  # a limit that is nearer than this cannot be told from the value
BATCHES_MIN = 10
BATCH_BEYOND_MIN = 5  # values beyond the percentile that each second must have


def check_quantile_width(record: Record) -> Finding:
    """Grade the width of the claimed percentile's 95 % interval, as a share of its value."""
    claimed = record.plan.claim.percentile
    share = None if claimed is None else parse_percentile(claimed)
    if share is None:
        return not_applicable("no percentile is claimed (--fail-on, --limit)")
    latency = figures.latency(record)
    found = latency.percentile(share)
    if found.value is None or found.above:
        why = f"{claimed} is not known: it falls on requests that failed or never ended"
        return Finding("warn", why, None, None)
    if found.too_few:
        why = (
            f"{latency.count:,} requests are too few to tell {claimed}:"
            f" it needs {fewest_to_bound(share):,}"
        )
        return Finding("fail", why, latency.count, fewest_to_bound(share))
    between = _batches(record, share)
    by = "by its value in each second"
    if between is None:
        between, by = latency.interval(share), "by rank"
    if between is None:
        why = f"{latency.count} requests are too few for {claimed}: its true value may be"
        why += " much higher than measured"
        return Finding("warn", why, None, None)
    low, high = between
    width = (high - low) / max(1, found.value)
    why = (
        f"{claimed} is {format_duration(found.value)}; its 95 % interval is"
        f" {format_duration(low)} to {format_duration(high)} ({by}), {format_share(width)}"
        " wide"
    )
    return Finding("warn" if width > WIDTH_WARN else "pass", why, width, WIDTH_WARN)


QUANTILE_WIDTH = Definition(
    name="quantile-width",
    order=180,
    compute=check_quantile_width,
    of_client="no percentile is claimed: latencies are the client's own word",
    fault="load",
    moves=Moves("unknown", "exact", "exact"),
    meaning="A percentile of few requests lies anywhere in a wide interval.",
    remedy="Use a longer --duration, or claim a lower percentile.",
)


def _batches(record: Record, share: float) -> tuple[float, float] | None:
    """Return the interval from the percentiles of whole seconds.

    None if there are too few seconds, or too few requests in one.
    """
    bins = record.window.window_ns // NS_PER_S
    if bins < BATCHES_MIN:
        return None
    values: list[float] = []
    for second in record.whole_seconds():
        if (second.ok + second.failed) * (1 - share) < BATCH_BEYOND_MIN:
            return None
        found = figures.of_seconds([second]).percentile(share)
        if found.value is None or found.above:
            return None
        values.append(found.value)
    return mean_interval(values) if len(values) >= BATCHES_MIN else None
