"""The check of a client's pools: did it have more connections at once than they have room for?

How: two counts of the reference server that an honest pool keeps to. Connections that were open for
a while: for a moment one that was just closed and its successor are both open, so a mean counts.
And requests under way at once, each of which takes a connection. Pure.
"""

from __future__ import annotations

from trueload.protocol.seen import Seen
from trueload.record.client import ClientEnd
from trueload.record.schema import Record
from trueload.units import format_count
from trueload.verdict.common import Definition, Finding, not_applicable, times


def check_over_pool(record: Record) -> Finding:
    """Nothing: a server has no pools."""
    return not_applicable(
        "this check is for HTTP clients under test, and here a server is under test"
    )


def check_client_over_pool(record: Record, client: ClientEnd) -> Finding:
    """Connections at once against those that the pools have room for."""
    room, seen = client.asked.room, client.seen
    at_work = -(-_under_way(seen) // client.asked.setup.pipelining)
    found = max(int(_steadily_open(seen)), at_work)
    why = f"{times(found, 'connection')} at once; the pools have room for {format_count(room)}"
    return Finding("fail" if found > room else "pass", why, found, room)


def _steadily_open(seen: Seen) -> float:
    """Connections open on average, in the quarter of a second that had most."""
    whole = (span.connections_mean for span in seen.series if span.ns >= seen.span_ns)
    return max((seen.connections.mean, *whole))


def _under_way(seen: Seen) -> int:
    """The most requests that were under way at once, at least. One that was given up is under way
    until the end of its connection is seen; peaks of several threads had different times."""
    return seen.open_requests.peak - seen.aborted if seen.threads == 1 else 0


OVER_POOL = Definition(
    name="over-pool",
    order=115,
    compute=check_over_pool,
    of_client=check_client_over_pool,
    fault="subject",
    meaning=(
        "A client with more connections than its pools allow ran under another load than the"
        " one asked for."
    ),
    remedy="Look at how the client limits its connections, and when it opens one more.",
)
