"""Checks of what came back: did each answer settle one request, and how many did not end well?

Pure functions of a record.
"""

from __future__ import annotations

from trueload.protocol.plan import Counts
from trueload.record.schema import Check, Record
from trueload.units import format_count
from trueload.verdict.common import checked, graded, in_one_line, is_http, not_applicable, times

ERRORS_WARN, ERRORS_FAIL = 0.001, 0.01  # the usual error budgets of 99.9 % and 99 %
NOT_HTTP = "the status line does not begin with"  # as the engine has it of what is no HTTP at all
STALE_WARN = 0.01  # as much as may fail: each cost its client a second try
CENSORED_WARN, CENSORED_FAIL = 0.001, 0.01  # p99.9 and p99 are unknown beyond these
# The figures of a latency that have a rank.
SHARES = (
    *(("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95)),
    *(("p99", 0.99), ("p999", 0.999), ("max", 1.0)),
)


def check_unsolicited(record: Record) -> Check:
    """Replies or bytes that settle no outstanding request, warm-up included."""
    count = sum(
        counts.failed.get("unsolicited", 0) for counts in (record.counts, record.warmup.counts)
    )
    if count == 0:
        return checked("unsolicited", "pass", "every reply settled a request", 0, 0)
    why = f"{times(count, 'request')} met bytes that nobody had asked for: the server answers"
    return checked("unsolicited", "fail", f"{why} twice or unasked", count, 0)


def check_errors(record: Record) -> Check:
    """failed / issued."""
    counts = record.counts
    failed = sum(counts.failed.values())
    if counts.issued == 0:
        return checked("errors", "fail", _nothing_issued(record))
    share = failed / counts.issued
    status, limit = graded(share, ERRORS_WARN, ERRORS_FAIL)
    worst = max(counts.failed, key=lambda name: counts.failed[name], default="")
    mostly = f", mostly {worst}" if failed else ""
    why = f"{format_count(failed)} of {format_count(counts.issued)} requests failed{mostly}"
    return checked("errors", status, why + _other_protocol(record), share, limit)


def _nothing_issued(record: Record) -> str:
    """Why there is nothing to judge; in a closed loop what is not answered holds up the rest."""
    why = "no request was issued in the window: nothing was measured"
    before = record.warmup.counts
    if before.issued == 0:
        return why
    asked = times(before.issued, "request")
    return f"{why}; {format_count(before.ok)} of {asked} of the warm-up were answered well"


def _other_protocol(record: Record) -> str:
    """What to ask where not one answer was HTTP: it is so with a port of TLS, too."""
    counts = record.counts
    if not is_http(record) or counts.ok or counts.statuses or set(counts.failed) != {"framing"}:
        return ""
    if not record.connections.reasons.get("framing", NOT_HTTP).startswith(NOT_HTTP):
        return ""
    encrypted = record.plan.url.startswith("https:")
    return "; none was answered in HTTP" + ("" if encrypted else ": does the server want https://?")


def check_stale(record: Record) -> Check:
    """stale / issued, of connections that are kept."""
    name, counts = "stale", record.counts
    if not is_http(record):
        return not_applicable(name, "only HTTP has requests that may be sent again")
    if record.plan.generate.close:
        return not_applicable(name, "no connection is kept (--close)")
    if counts.issued == 0:
        return not_applicable(name, "no request was issued")
    share = counts.stale / counts.issued
    why = (
        f"{format_count(counts.stale)} of {format_count(counts.issued)} requests met a connection"
        " that the server had just closed"
    )
    if counts.stale_resets:
        why += f", {format_count(counts.stale_resets)} of them by a reset"
    return checked(name, "warn" if share >= STALE_WARN else "pass", why, share, STALE_WARN)


def censored_count(counts: Counts) -> int:
    """Requests that were still open after the drain, or never sent."""
    return counts.cancelled + counts.unsent


def lower_bounds(record: Record) -> tuple[str, ...]:
    """The figures of the latency that are only lower bounds: their rank lies among requests that
    never ended, or were never sent."""
    worse, count = censored_count(record.counts), record.latency_ns.count
    if worse == 0:
        return ()
    return tuple(name for name, share in SHARES if share * (count + worse) > count)


def check_censored(record: Record) -> Check:
    """Requests whose latency is only known to be more than their age."""
    name, counts = "censored", record.counts
    if counts.scheduled == 0:
        return not_applicable(name, "no request was scheduled")
    share = censored_count(counts) / counts.scheduled
    status, limit = graded(share, CENSORED_WARN, CENSORED_FAIL)
    why = (
        f"{format_count(counts.cancelled)} open after the drain and {format_count(counts.unsent)}"
        f" never sent, of {format_count(counts.scheduled)}"
    )
    return checked(name, status, why, share, limit)


def check_ledger(record: Record) -> Check:
    """Each message of a broadcast exactly once at each receiver."""
    name, found = "ledger", record.deliveries
    if found is None:
        return not_applicable(name, "nothing is broadcast")
    if found.expected == 0 and found.duplicate == 0:
        return not_applicable(name, "no message was due to a receiver")
    wrong = found.lost + found.duplicate
    parts = [
        f"{format_count(found.lost)} of {format_count(found.expected)} deliveries were lost"
        if found.lost
        else "",
        f"{times(found.duplicate, 'delivery', 'deliveries')} came twice" if found.duplicate else "",
    ]
    if wrong:
        return checked(name, "fail", in_one_line(parts), wrong, 0)
    why = f"each of {times(found.expected, 'delivery', 'deliveries')} came once"
    if found.out_of_order:
        why += f", {format_count(found.out_of_order)} of them out of order"
    return checked(name, "pass", why, 0, 0)


def check_both_ends(record: Record) -> Check:
    """What a client claims against what the reference server saw."""
    return not_applicable(
        "both-ends", "the server is under test; it applies when an HTTP client is"
    )
