"""Checks of the answers: did each answer settle one request, and how many requests failed?

Pure functions of a record.
"""

from __future__ import annotations

from collections.abc import Mapping

from trueload.protocol.tick import Counts
from trueload.record import figures
from trueload.record.client import ClientEnd
from trueload.record.schema import REDIRECT, Record
from trueload.text import plain
from trueload.units import format_count, format_duration, format_share
from trueload.verdict.common import (
    HIDDEN_WAITS,
    NOTHING,
    ONLY_OF_CLIENTS,
    Definition,
    Finding,
    graded,
    in_one_line,
    is_http,
    listening_at_end,
    not_applicable,
    times,
)

ERRORS_WARN, ERRORS_FAIL = 0.001, 0.01  # the usual error budgets of 99.9 % and 99 %
NOT_HTTP = "the status line does not begin with"  # the engine's reason if bytes are no HTTP at all
ELSEWHERE = "to another server"  # the engine's word for a redirect that is not followed
REDIRECTS = frozenset({"301", "302", "303", "307", "308"})  # RFC 9110, section 15.4
STALE_WARN = 0.01  # the share that may fail, as each cost its client a second try
# The share of the time from an order to its claim by which a client's own figure differs from ours.
# Below 100 ms it may be the reading of the order and the writing of the claim.
IDLE_WARN, IDLE_WARN_NS = 0.10, 100_000_000
CENSORED_WARN, CENSORED_FAIL = 0.001, 0.01  # beyond these shares p99.9 and p99 are unknown


def check_unsolicited(record: Record) -> Finding:
    """Fail on answers or bytes that settle no outstanding request, warm-up included."""
    count = sum(
        counts.failed.get("unsolicited", 0) for counts in (record.counts, record.warmup.counts)
    )
    if count == 0:
        return _of_datagrams(record)
    why = f"{times(count, 'request')} received bytes that belong to no request: the server answers"
    return Finding("fail", f"{why} twice or without being asked", count, 0)


def _of_datagrams(record: Record) -> Finding:
    """Grade the datagrams that answer nothing; a network may bring one that is not the server's."""
    count = record.datagrams.unsolicited if record.datagrams is not None else 0
    if count == 0:
        return Finding("pass", "every reply settled a request", 0, 0)
    share = count / max(1, record.counts.issued)
    status, limit = graded(share, ERRORS_WARN, ERRORS_FAIL)
    why = f"{times(count, 'datagram')} answered nothing, {format_share(share)} of the requests"
    return Finding(status, why, share, limit)


UNSOLICITED = Definition(
    name="unsolicited",
    order=10,
    compute=check_unsolicited,
    of_client="the answers are the reference server's: one for each request",
    fault="subject",
    meaning=(
        "Each reply must answer exactly one request, so replies twice or without a"
        " request make the throughput too high."
    ),
    remedy="Fix the server: look at what it sends with `curl -v --http1.1` or tcpdump.",
    per_host=True,
)


def check_errors(record: Record) -> Finding:
    """Grade the share failed / issued."""
    counts = record.counts
    failed = figures.failed(counts)
    if counts.issued == 0:
        return Finding("fail", _nothing_issued(record))
    share = failed / counts.issued
    status, limit = graded(share, ERRORS_WARN, ERRORS_FAIL)
    mostly = f", mostly {_worst(counts, record.connections.reasons)}" if failed else ""
    if record.streams is not None and not record.streams.parts and counts.failed.get("mismatch"):
        mostly += ": no part of a stream came; does the request ask for a stream?"
    why = f"{format_count(failed)} of {times(counts.issued, 'request')} failed{mostly}"
    return Finding(status, why + _other_protocol(record), share, limit)


ERRORS = Definition(
    name="errors",
    order=20,
    compute=check_errors,
    fault="subject",
    moves=NOTHING,
    meaning=(
        "Failures are often faster than answers, so with many of them the figure shows"
        " how fast requests fail."
    ),
    remedy=(
        "Look at the classes of the failures and at the server's log; lower --connections, raise"
        " --timeout, or name the answer that is right with --expect-status."
    ),
    per_host=True,
)


def _worst(counts: Counts, reasons: Mapping[str, str]) -> str:
    """Return the most frequent class of failure.

    For wrong statuses it is the most frequent code and, if known, where its redirect leads.
    """
    worst = max(counts.failed, key=lambda name: counts.failed[name])
    if worst == "redirect" and reasons.get(worst, "").startswith(ELSEWHERE):
        url = reasons[worst].partition(REDIRECT)[2]
        return "a redirect to another server" + (f": load {plain(url)} instead" if url else "")
    if worst == "encoded":
        return "encoded: only gzip, deflate and br are decoded, to 64 MiB; ask for one of them"
    # If some answers were right, a status of success was the right one.
    codes = {code: n for code, n in counts.statuses.items() if not counts.ok or code[0] != "2"}
    if worst != "status" or not codes:
        return worst
    code = max(codes, key=lambda code: codes[code])
    if code not in REDIRECTS:
        return f"status {code}"
    if (leads := reasons.get("status", "")).startswith(REDIRECT):
        return f"status {code}, {plain(leads)}: load that URL, or use --follow"
    return f"status {code}, a redirect: load the URL that it leads to (`curl -I` shows it)"


def _nothing_issued(record: Record) -> str:
    """Return why there is nothing to judge.

    In a closed loop, requests without an answer hold up all others.
    """
    why = "no request was issued in the window: nothing was measured"
    before = record.warmup.counts
    if before.issued == 0:
        return why
    asked = times(before.issued, "request")
    return f"{why}; {format_count(before.ok)} of {asked} of the warm-up were answered well"


def _other_protocol(record: Record) -> str:
    """A hint if no answer at all was HTTP, which also happens on a TLS port.

    Over HTTP/2, whoever sends an answer with a wrong length has sent frames before it.
    """
    counts = record.counts
    if not is_http(record) or counts.ok or counts.statuses or set(counts.failed) != {"framing"}:
        return ""
    if record.http2 is not None and record.http2.connections:
        return ""
    if not record.connections.reasons.get("framing", NOT_HTTP).startswith(NOT_HTTP):
        return ""
    encrypted = record.plan.url.startswith("https:")
    return "; none was answered in HTTP" + ("" if encrypted else ": does the server want https://?")


def check_stale(record: Record) -> Finding:
    """Grade the share stale / issued, for connections that are kept."""
    counts = record.counts
    if not is_http(record):
        return not_applicable("only HTTP has requests that may be sent again")
    if record.plan.generate.close:
        return not_applicable("no connection is kept (--close)")
    if counts.issued == 0:
        return not_applicable("no request was issued")
    # The check `goaway` judges the requests that GOAWAY or REFUSED_STREAM gave back.
    returned = record.http2.returned if record.http2 is not None else 0
    stale = max(0, counts.stale - returned)
    share = stale / counts.issued
    why = (
        f"{format_count(stale)} of {times(counts.issued, 'request was', 'requests were')} sent on a"
        " connection that the server had just closed"
    )
    if counts.stale_resets:
        why += f", {format_count(counts.stale_resets)} of them by a reset"
    return Finding("warn" if share >= STALE_WARN else "pass", why, share, STALE_WARN)


STALE = Definition(
    name="stale",
    order=30,
    compute=check_stale,
    of_client="what a client sends again is in both-ends",
    fault="subject",
    meaning=(
        "A server that closes keep-alive connections makes its clients send requests a second time."
    ),
    remedy="Raise the server's keep-alive time and its requests per connection.",
    per_host=True,
)


def check_censored(record: Record) -> Finding:
    """Grade the share of requests whose latency is only known to exceed their age."""
    counts = record.counts
    if counts.scheduled == 0:
        return not_applicable("no request was scheduled")
    cancelled = counts.cancelled - listening_at_end(record)
    share = (cancelled + counts.unsent) / counts.scheduled
    status, limit = graded(share, CENSORED_WARN, CENSORED_FAIL)
    why = (
        f"{format_count(cancelled)} open after the drain and"
        f" {format_count(counts.unsent)} never sent, of"
        f" {times(counts.scheduled, 'request')} scheduled"
    )
    return Finding(status, why, share, limit)


CENSORED = Definition(
    name="censored",
    order=120,
    compute=check_censored,
    of_client="an order ends when each of its requests has",
    fault="subject",
    moves=HIDDEN_WAITS,
    meaning=(
        "A request that never ended counts as slower than all that did; without it the"
        " percentiles hide the worst requests."
    ),
    remedy=(
        "Raise --timeout so that what is open can end; if requests were never sent, use more"
        " --connections or a lower --rate."
    ),
    per_host=True,
)


def check_ledger(record: Record) -> Finding:
    """Check that each message of a broadcast reached each receiver exactly once."""
    found = record.deliveries
    if found is None:
        return not_applicable("nothing is broadcast")
    if found.expected == 0 and found.duplicate == 0:
        return not_applicable("no message was due to a receiver")
    wrong = found.lost + found.duplicate
    parts = [
        f"{format_count(found.lost)} of"
        f" {times(found.expected, 'delivery was', 'deliveries were')} lost"
        if found.lost
        else "",
        f"{times(found.duplicate, 'delivery', 'deliveries')} came twice" if found.duplicate else "",
    ]
    if wrong:
        return Finding("fail", in_one_line(parts), wrong, 0)
    if found.untimed and found.clock_bound_ns is not None:
        untimed = times(found.untimed, "delivery", "deliveries")
        why = f"{untimed} came with a changed send time, so their times are not known"
        return Finding("warn", why, found.untimed, 0)
    why = f"each of {times(found.expected, 'delivery', 'deliveries')} came once"
    if found.out_of_order:
        why += f", {format_count(found.out_of_order)} of them out of order"
    return Finding("pass", why, 0, 0)


LEDGER = Definition(
    name="ledger",
    order=190,
    compute=check_ledger,
    of_client="nothing is broadcast",
    fault="subject",
    meaning="Each message of a broadcast must reach each receiver exactly once, as it was sent.",
    remedy="Look at how the server keeps its receivers and their queues.",
    per_host=True,
)


def check_client_both_ends(record: Record, client: ClientEnd) -> Finding:
    """Compare the client's claim with what the reference server completed."""
    claimed, completed = client.claim.ok, client.seen.ok
    if claimed > completed:
        why = (
            f"the client claims {format_count(claimed)} ok, but the server completed"
            f" {format_count(completed)}"
        )
        return Finding("fail", why, claimed - completed, 0)
    if client.retries:
        made = client.seen.requests - client.retries
        why = (
            f"hidden retries: the server saw {times(client.seen.requests, 'request')}, the"
            f" client speaks of {format_count(made)}"
        )
        return Finding("warn", why, client.retries, 0)
    order_ns, idle_ns = client.order_ns or 0, client.idle_ns
    if idle_ns >= max(IDLE_WARN * order_ns, IDLE_WARN_NS):
        why = (
            f"for {format_duration(idle_ns)} of the {format_duration(order_ns)} between"
            " the order and the client's claim the server had no request to answer:"
            " before the first request or after the last answer"
        )
        return Finding("warn", why, idle_ns / order_ns, IDLE_WARN)
    why = f"the server completed {format_count(completed)}, the client claims"
    return Finding("pass", f"{why} {format_count(claimed)} of them", 0, 0)


BOTH_ENDS = Definition(
    name="both-ends",
    order=200,
    compute=ONLY_OF_CLIENTS,
    of_client=check_client_both_ends,
    fault="subject",
    meaning=(
        "The client's own counts must agree with what the reference server saw in the same time."
    ),
    remedy=(
        "Look at how the client counts, whether it retries without saying so, and what"
        " it does before the first request and after the last answer."
    ),
)
