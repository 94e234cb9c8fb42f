"""The windows and the header table of HTTP/2, as they are written. Pure."""

from __future__ import annotations

from trueload.units import parse_size

WINDOW_FIRST = 65_535
WINDOW_MOST = 2**31 - 1
TABLE_MOST = 2**20
PROFILES = {
    "rfc": (WINDOW_FIRST, WINDOW_FIRST),
    "browser": (6 * 2**20, 15 * 2**20),
    "unlimited": (WINDOW_MOST, WINDOW_MOST),
}
"""The windows of a stream and of a connection by name. ``rfc`` has the defaults of RFC 9113,
``browser`` has those of Chrome."""


def window_of_stream(text: str) -> int:
    """Parse ``--window`` into bytes. Raises ``ValueError``."""
    return _window(text, 1, 0)


def window_of_connection(text: str) -> int:
    """Parse ``--connection-window`` into bytes. Raises ``ValueError``."""
    return _window(text, WINDOW_FIRST, 1)


def header_table_size(text: str) -> int:
    """Parse ``--header-table-size`` into bytes. Raises ``ValueError``."""
    size = parse_size(text)
    if size > TABLE_MOST:
        raise ValueError(f"'{text}' is not from 0 to {TABLE_MOST // 2**20} MiB")
    return size


def _window(text: str, least: int, at: int) -> int:
    if text in PROFILES:
        return PROFILES[text][at]
    try:
        size = parse_size(text)
    except ValueError:
        raise ValueError(f"'{text}' is neither a size nor {', '.join(PROFILES)}") from None
    if not least <= size <= WINDOW_MOST:
        raise ValueError(f"'{text}' is not from {least:,} B to 2 GiB less 1 B")
    return size
