"""Recorded traffic: requests that are sent again, each at its recorded time.

How: equal requests are kept once. An entry is a time and the number of its request, in arrays, so
that a million entries take little memory. The engine gets both as blobs.
"""

from __future__ import annotations

import base64
import itertools
import json
import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from trueload.protocol.traffic import ReplayPlan
from trueload.request.make import is_text
from trueload.request.plans import digest, full_headers
from trueload.request.recorded_request import Headers, RecordedRequest
from trueload.request.values import Request
from trueload.units import NS_PER_S, Ramp

PIECE_BYTES = 8 * 2**20  # one line to the engine, in base64
ENTRIES_A_PIECE = PIECE_BYTES // 12
SPAN_NS_MIN = NS_PER_S // 10  # a burst of a moment has no rate that says anything
RATE_MAX = 1e9  # crates/engine/src/plan.rs refuses more
BINS_MAX = 60  # stages that tell people the rate over time
ENTRIES_A_BIN = 10
GOOD = (*range(200, 209), 226, *range(300, 309))
"""The status codes of a good answer, as they are registered."""

Sent = tuple[str, str, Headers, bytes | None]
"""Method, path, headers and body of a request."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """Recorded traffic. ``about`` says what it is, and ``notes`` what is done with it. ``at_ns``
    are the times of its entries from the start, in order, and ``numbers`` their places in
    ``requests``. ``statuses`` are the codes of a good answer to each request, or None for those of
    the plan. ``through`` changes a request on its way, as for a proxy."""

    about: str
    notes: tuple[str, ...] = ()
    host: str
    at_ns: array[int] = field(repr=False)
    numbers: array[int] = field(repr=False)
    requests: Sequence[Sent] = field(repr=False)
    statuses: Sequence[tuple[int, ...] | None] = field(repr=False)
    through: Callable[[Request], Request] | None = None
    _made: dict[bool, tuple[tuple[bytes, ...], tuple[bytes, ...]]] = field(
        default_factory=dict, repr=False, init=False
    )

    @property
    def count(self) -> int:
        return len(self.at_ns)

    @property
    def span_ns(self) -> int:
        """The time of the last request."""
        return self.at_ns[-1]

    def before(self, at_ns: int) -> int:
        """Return how many requests are sent before this time."""
        return bisect_left(self.at_ns, at_ns)

    def rates(self, from_ns: int = 0) -> tuple[Ramp, ...]:
        """Return the rate over time from ``from_ns`` on; it lasts until the last request."""
        first, ns = self.before(from_ns), max(SPAN_NS_MIN, self.span_ns - from_ns)
        bins = min(BINS_MAX, max(1, (self.count - first) // ENTRIES_A_BIN))
        edges = [from_ns + ns * number // bins for number in range(bins)] + [from_ns + ns + 1]
        found = []
        for start, end in itertools.pairwise(edges):
            width = min(end, from_ns + ns) - start
            per_s = (self.before(end) - self.before(start)) * NS_PER_S / width
            found.append(Ramp(width, min(per_s, RATE_MAX), min(per_s, RATE_MAX)))
        return tuple(found)

    def plan(self, *, close: bool) -> ReplayPlan:
        """Return its form in a plan. ``close``: each request has a connection of its own."""
        requests, entries = self._pieces(close)
        return ReplayPlan(
            about=self.about,
            count=self.count,
            requests=tuple(map(digest, requests)),
            entries=tuple(map(digest, entries)),
        )

    def pieces(self, *, close: bool) -> Iterator[bytes]:
        """Yield the pieces that the plan names, each once."""
        yield from dict.fromkeys(piece for kind in self._pieces(close) for piece in kind)

    def size_bytes(self, *, close: bool) -> int:
        """The length of all pieces."""
        return sum(map(len, self.pieces(close=close)))

    def _pieces(self, close: bool) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        if close not in self._made:
            lines = (self._line(number, close) for number in range(len(self.requests)))
            self._made[close] = tuple(_cut(lines)), tuple(self._entries())
        return self._made[close]

    def _line(self, number: int, close: bool) -> bytes:
        method, path, headers, body = self.requests[number]
        request = Request(host=self.host, path=path, method=method, headers=headers, body=body)
        if self.through is not None:
            request = self.through(request)
        given = full_headers(request, close=close, length=True)
        fields: dict[str, object] = {"method": request.method, "path": request.path}
        if not all(value.isascii() or is_text(value) for _, value in given):
            given = tuple((name, _latin1(value)) for name, value in given)
            fields["latin1"] = True
        fields["headers"] = given
        if (statuses := self.statuses[number]) is not None:
            fields["statuses"] = statuses
        if body is not None:
            fields["body"] = base64.b64encode(body).decode()
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    def _entries(self) -> Iterator[bytes]:
        pack = struct.Struct("<QI").pack
        for at in range(0, self.count, ENTRIES_A_PIECE):
            part = slice(at, at + ENTRIES_A_PIECE)
            yield b"".join(map(pack, self.at_ns[part], self.numbers[part]))


def _latin1(value: str) -> str:
    """A value whose characters are its bytes, which need not be UTF-8."""
    return value.encode("utf-8", "surrogateescape").decode("latin-1")


def _cut(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines to pieces of whole lines."""
    piece: list[bytes] = []
    size_bytes = 0
    for line in lines:
        piece.append(line)
        size_bytes += len(line)
        if size_bytes >= PIECE_BYTES:
            yield b"".join(piece)
            piece, size_bytes = [], 0
    if piece:
        yield b"".join(piece)


def times_in_order(at_ns: Sequence[int]) -> list[int]:
    """Return the places of times in order; equal times keep theirs."""
    places = list(range(len(at_ns)))
    if any(one > next_ for one, next_ in itertools.pairwise(at_ns)):
        places.sort(key=at_ns.__getitem__)
    return places


def spread(at_ns: list[int]) -> None:
    """Spread times that are known to the second evenly within their second: of three in a second
    the first is at its start, and the others a third and two thirds later."""
    first = 0
    for place in range(1, len(at_ns) + 1):
        if place < len(at_ns) and at_ns[place] == at_ns[first]:
            continue
        count = place - first
        for number in range(1, count):
            at_ns[first + number] += number * NS_PER_S // count
        first = place


def from_start(at_ns: Sequence[int], speed: float) -> array[int]:
    """Return times in order as they are sent at this speed, from the first one on."""
    begin = at_ns[0]
    return array("Q", (round((at - begin) / speed) for at in at_ns))


@lru_cache(maxsize=1024)
def good_statuses(recorded: frozenset[int]) -> tuple[int, ...] | None:
    """Return the status codes of a good answer to a request that once had these: ``GOOD`` and the
    4xx that were recorded; None if there was none."""
    missing = [code for code in recorded if 400 <= code < 500]
    return tuple(sorted({*GOOD, *missing})) if missing else None


def sent_of(recorded: RecordedRequest, headers: Headers) -> Sent:
    """Return what is sent again of a recorded request, with these headers."""
    return recorded.method, recorded.path, headers, recorded.body
