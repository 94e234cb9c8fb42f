"""Whether a server's memory grew while it was measured: a leak, or a cache that fills. Pure."""

from __future__ import annotations

from trueload.record.schema import Server
from trueload.units import format_size

GROWN_SHARE = 0.5
# What an allocator takes at a time, and a garbage collector between two collections.
GROWN_LEAST_BYTES = 16 * 1024 * 1024


def growth_text(server: Server | None) -> str:
    """``the server's memory grew from 4.00 MiB to 804 MiB in the window``; empty where it is not
    known, or grew by at most half."""
    if server is None or server.rss_before_bytes is None or server.rss_after_bytes is None:
        return ""
    before, after = server.rss_before_bytes, server.rss_after_bytes
    if after - before <= max(GROWN_SHARE * before, GROWN_LEAST_BYTES):
        return ""
    span = f"from {format_size(before)} to {format_size(after)}"
    return f"the server's memory grew {span} in the window"
