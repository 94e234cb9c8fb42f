"""The windows and the header table of HTTP/2, as they are written. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trueload.protocol.option import within
from trueload.units import parse_size

WINDOW_FIRST = 65_535
WINDOW_MOST = 2**31 - 1
TABLE_MOST = 2**20


class Profile(NamedTuple):
    """The windows of each stream and of each connection, in bytes."""

    stream: int
    connection: int


PROFILES = {
    "rfc": Profile(WINDOW_FIRST, WINDOW_FIRST),
    "browser": Profile(stream=6 * 2**20, connection=15 * 2**20),
    "unlimited": Profile(WINDOW_MOST, WINDOW_MOST),
}
"""Windows by name. ``rfc`` has the defaults of RFC 9113, ``browser`` has those of Chrome."""


def window_of_stream(text: str) -> int:
    """Parse ``--window`` into bytes. Raises ``ValueError``."""
    return _window(text, 1, lambda profile: profile.stream)


def window_of_connection(text: str) -> int:
    """Parse ``--connection-window`` into bytes. Raises ``ValueError``."""
    return _window(text, WINDOW_FIRST, lambda profile: profile.connection)


header_table_size = within(parse_size, 0, TABLE_MOST, f"not from 0 to {TABLE_MOST // 2**20} MiB")
"""Parses ``--header-table-size`` into bytes. Raises ``ValueError``."""


def _window(text: str, least: int, of_profile: Callable[[Profile], int]) -> int:
    if text in PROFILES:
        return of_profile(PROFILES[text])
    try:
        size = parse_size(text)
    except ValueError:
        raise ValueError(f"'{text}' is neither a size nor {', '.join(PROFILES)}") from None
    if not least <= size <= WINDOW_MOST:
        raise ValueError(f"'{text}' is not from {least:,} B to 2 GiB less 1 B")
    return size
