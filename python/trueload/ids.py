"""Ids that sort by the time at which they were made.

A record has a UUID of version 7 (RFC 9562), which never collides in practice. A run has a short id,
because people type it: date, time and four random hex digits; the store takes another if it is in
use. Order in the store is by sequence number, never by ids: clocks jump.
"""

from __future__ import annotations

import secrets
import time
import uuid
from datetime import UTC, datetime


def record_id(now_ms: int | None = None) -> str:
    """A UUID of version 7: 48 bits of milliseconds since 1970, then 74 random bits."""
    stamp_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    value = (stamp_ms & ((1 << 48) - 1)) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def run_id(now: datetime | None = None) -> str:
    """``20261120-190105-7f3a``: UTC to the second, then random."""
    moment = datetime.now(UTC) if now is None else now
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def now_iso() -> str:
    """This moment in UTC, ISO 8601 to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
