"""From segments on the wire to service times: which answer belongs to which request. Pure.

How: over one connection without pipelining, requests and answers take turns. So the answer to a
request is all that the server sends before that connection's next request, and the service time
ends with the last segment of it.
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
WATCHED_OF = 16
"""trueload asks the kernel for arrival times on one connection in so many."""
DRAWS = 24
"""Samples of connections that are drawn: the range of so many holds 92 % of all."""


@dataclass(frozen=True)
class Matched:
    """The result: service times in ns, sorted, and the client's port of each.

    ``unanswered`` counts requests that had no answer before the next request or the end;
    ``unasked`` counts answers that came before any request; ``repeated`` counts retransmitted
    segments, which are left out.
    """

    service_ns: NDArray[np.int64]
    port: NDArray[np.uint16]
    unanswered: int
    unasked: int
    repeated: int

    def percentile_ns(self, part: float) -> float:
        """The percentile by the nearest rank, as HdrHistogram computes it, in ns.

        Raises ``ValueError`` when nothing was matched.
        """
        if not len(self.service_ns):
            raise ValueError("no request was matched with its answer")
        return _percentile(self.service_ns, part)

    def sampled_ns(self, part: float) -> tuple[float, float]:
        """The range of this percentile when only one connection in sixteen is observed, in ns.

        Returns the lowest and the highest of `DRAWS` samples. trueload's round trips are such a
        sample.
        """
        ports = np.unique(self.port)
        chance = np.random.default_rng(seed=1)
        size = max(1, len(ports) // WATCHED_OF)
        drawn = (chance.choice(ports, size, replace=False) for _ in range(DRAWS))
        found = [_percentile(self.service_ns[np.isin(self.port, some)], part) for some in drawn]
        return min(found), max(found)


def _percentile(sorted_ns: NDArray[np.int64], part: float) -> float:
    rank = max(1, math.ceil(part / 100 * len(sorted_ns)))
    return float(sorted_ns[rank - 1])


def match(segments: NDArray[np.void]) -> Matched:
    """Match requests with their answers; the segments may be in any order."""
    once = _sent_once(segments)
    # At equal times the request sorts first: an answer takes time, the next request may take none.
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
    by_time = np.argsort(service_ns, kind="stable")
    return Matched(
        service_ns=service_ns[by_time],
        port=ports[starts[answered]][by_time],
        unanswered=int(np.count_nonzero(~answered)),
        unasked=int(np.count_nonzero(~asked[first_of_port])),
        repeated=len(segments) - len(once),
    )


def _sent_once(segments: NDArray[np.void]) -> NDArray[np.void]:
    """Drop retransmissions: of the segments with the same data, keep the first."""
    key = segments["client_port"].astype(np.uint64) << np.uint64(33)
    key |= segments["from_server"].astype(np.uint64) << np.uint64(32)
    key |= segments["sequence"].astype(np.uint64)
    order = np.lexsort((segments["ns"], key))
    fresh = np.ones(len(segments), dtype=bool)
    fresh[1:] = key[order][1:] != key[order][:-1]
    return segments[order[fresh]]
