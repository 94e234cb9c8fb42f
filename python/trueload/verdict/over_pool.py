"""The check of a client's pools: did it have more connections than they have room for?

How: by two counts of the reference server that an honest pool stays within. One is the mean of open
connections: for a moment a closed connection and its successor both look open, so a peak would be
too strict. The other is the number of requests under way at once, each of which takes a connection.
Pure.
"""

from __future__ import annotations

from trueload.protocol.server_report import ServerReport
from trueload.record.client import ClientEnd
from trueload.record.schema import Record
from trueload.units import format_count
from trueload.verdict.common import ONLY_OF_CLIENTS, Definition, Finding, times


def check_client_over_pool(record: Record, client: ClientEnd) -> Finding:
    """Compare the connections at once with the pools' room."""
    room, seen = client.asked.room, client.seen
    at_work = -(-_under_way(seen) // client.asked.setup.pipelining)
    found = max(int(_steadily_open(seen)), at_work)
    why = f"{times(found, 'connection')} at once; the pools have room for {format_count(room)}"
    return Finding("fail" if found > room else "pass", why, found, room)


def _steadily_open(seen: ServerReport) -> float:
    """The mean number of open connections, in the quarter of a second that had most."""
    whole = (span.connections_mean for span in seen.series if span.ns >= seen.span_ns)
    return max((seen.connections.mean, *whole))


def _under_way(seen: ServerReport) -> int:
    """A lower limit of the most requests that were under way at once.

    A request that was given up stays under way until the end of its connection is seen. The peaks
    of several threads came at different times, so the result is 0 then.
    """
    return seen.open_requests.peak - seen.aborted if seen.threads == 1 else 0


OVER_POOL = Definition(
    name="over-pool",
    order=115,
    compute=ONLY_OF_CLIENTS,
    of_client=check_client_over_pool,
    fault="subject",
    meaning=(
        "A client with more connections than its pools allow ran under another load than the"
        " one asked for."
    ),
    remedy="Look at how the client limits its connections, and when it opens one more.",
)
