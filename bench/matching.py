"""From segments on the wire to service times: which answer belongs to which request. Pure.

How: over one connection without pipelining requests and answers take turns. So a request's answer
is all that the server sends before the next request of that connection, and its service time ends
with the last segment of it. Must not know how the segments were heard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEGMENT = np.dtype(
    [
        ("ns", "<u8"),
        ("sequence", "<u4"),
        ("client_port", "<u2"),
        ("length", "<u2"),
        ("from_server", "u1"),
        ("unused", "u1", 7),
    ]
)
"""As bench/witness.c writes a segment with data: when it passed, where its data lies in the
connection's stream, which connection (its client's port), and who sent it."""


@dataclass(frozen=True)
class Matched:
    """The service times in ns, sorted. ``unanswered`` requests had no answer, or another request
    came before it; ``unasked`` answers came before any request; ``repeated`` segments were sent
    again, and are left out."""

    service_ns: NDArray[np.int64]
    unanswered: int
    unasked: int
    repeated: int

    def percentile_ns(self, part: float) -> float:
        """The value that so many percent do not pass, by the nearest rank, as HdrHistogram has it.
        Raises ``ValueError`` when nothing was matched."""
        if not len(self.service_ns):
            raise ValueError("no request was matched with its answer")
        rank = max(1, math.ceil(part / 100 * len(self.service_ns)))
        return float(self.service_ns[rank - 1])


def match(segments: NDArray[np.void]) -> Matched:
    """Requests with their answers, of segments in any order."""
    once = _sent_once(segments)
    # At equal times the request comes first: an answer takes time, the next request may take none.
    order = np.lexsort((once["from_server"], once["ns"], once["client_port"]))
    ordered = once[order]
    ports, asked = ordered["client_port"], ordered["from_server"] == 0
    starts = np.flatnonzero(asked)
    # The last segment before the next request, or before the next connection.
    last_of_port = np.searchsorted(ports, ports[starts], side="right") - 1
    next_start = np.append(starts[1:], len(ordered))
    ends = np.minimum(next_start - 1, last_of_port)
    answered = ends > starts
    times_ns = ordered["ns"].astype(np.int64)
    service_ns = times_ns[ends[answered]] - times_ns[starts[answered]]
    first_of_port = np.unique(ports, return_index=True)[1]
    return Matched(
        service_ns=np.sort(service_ns),
        unanswered=int(np.count_nonzero(~answered)),
        unasked=int(np.count_nonzero(~asked[first_of_port])),
        repeated=len(segments) - len(once),
    )


def _sent_once(segments: NDArray[np.void]) -> NDArray[np.void]:
    """The first of the segments that carry the same data."""
    key = segments["client_port"].astype(np.uint64) << np.uint64(33)
    key |= segments["from_server"].astype(np.uint64) << np.uint64(32)
    key |= segments["sequence"].astype(np.uint64)
    order = np.lexsort((segments["ns"], key))
    fresh = np.ones(len(segments), dtype=bool)
    fresh[1:] = key[order][1:] != key[order][:-1]
    return segments[order[fresh]]
