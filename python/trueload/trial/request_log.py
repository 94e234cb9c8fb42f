"""The log of single requests (``--request-log``): rows as they come from the engines.

How: rows stay packed, 44 bytes each (crates/meter/src/log.rs). An engine with too many requests
leaves out those of the lowest levels, and one in 2^level is left. If engines differ, the highest
level counts for all.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence

from trueload.protocol.plan import RequestRows
from trueload.record.schema import RequestLogCounts

ROWS_MOST = 1_000_000  # of all engines; each row takes 48 bytes there, twice when it is reported
_ROW = struct.Struct("<4QIIHBB")
_NO_TIME, _NO_CONNECTION = 2**64 - 1, 2**32 - 1
TIMES = ("due_at_ns", "sent_at_ns", "first_byte_at_ns", "end_at_ns")


class RequestLog:
    """The rows of one trial."""

    def __init__(self) -> None:
        self._parts: list[tuple[str | None, bytes]] = []
        self._ended = self._level = 0
        self._classes: Sequence[str] = ()

    def add(self, message: RequestRows) -> None:
        """Take the rows of a message."""
        self._ended += message.ended
        self._level = max(self._level, message.level)
        self._classes = message.classes
        self._parts.append((message.host, base64.b64decode(message.rows)))

    @property
    def has_hosts(self) -> bool:
        """Whether rows are of several hosts."""
        return any(host is not None for host, _ in self._parts)

    def counts(self) -> RequestLogCounts:
        """Return how many of the requests are here."""
        levels = (part[_ROW.size - 1 :: _ROW.size] for _, part in self._parts)
        rows = sum(sum(level >= self._level for level in each) for each in levels)
        return RequestLogCounts(rows=rows, requests=self._ended, one_in=2**self._level)

    def rows(self, targets: Sequence[str]) -> Iterator[dict[str, object]]:
        """Yield the rows: those of one host in the order in which they were due."""
        for host, part in self._parts:
            for *times, connection, target, status, failed, level in _ROW.iter_unpack(part):
                if level < self._level:
                    continue
                ended = "ok" if times[-1] != _NO_TIME else "cancelled"
                yield {
                    "host": host,
                    "connection": None if connection == _NO_CONNECTION else connection + 1,
                    "target": targets[target] if targets else None,
                    "status": status or None,
                    "class": self._classes[failed - 1] if failed else ended,
                    **{n: None if t == _NO_TIME else t for n, t in zip(TIMES, times, strict=True)},
                    "one_in": 2**self._level,
                }
