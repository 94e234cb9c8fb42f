"""Compression of messages over WebSocket: sizes with it and without."""

from __future__ import annotations

from trueload.protocol.deflate import Deflate
from trueload.report.account import AccountView, Column
from trueload.units import counted, format_count, format_share, format_size


def deflate_text(found: Deflate) -> str:
    """A text: ``sent 1.20 MiB instead of 4.00 MiB (30 %), received …``, and how many connections
    are not compressed, if there are any."""
    every = found.agreed + found.declined
    if found.declined and not found.agreed:
        connections = f"{counted(every, 'connection')}: the server did not agree"
        return f"off on {'the' if every == 1 else 'all'} {connections}"
    sent = _sizes(found.sent_bytes, found.sent_compressed_bytes)
    received = _sizes(found.received_bytes, found.received_compressed_bytes)
    text = f"sent {sent}, received {received}"
    if found.declined:
        text += f"; off on {format_count(found.declined)} of {counted(every, 'connection')}"
    return text


def _sizes(plain: int, compressed: int) -> str:
    share = f" ({format_share(compressed / plain)})" if plain else ""
    return f"{format_size(compressed)} instead of {format_size(plain)}{share}"


DEFLATE = AccountView(
    name="deflate",
    after="messages",
    texts=lambda found: [("deflate", deflate_text(found))],
    columns=(
        Column("deflate_agreed", lambda found: found.agreed),
        Column("deflate_declined", lambda found: found.declined),
        Column("deflate_sent_bytes", lambda found: found.sent_bytes),
        Column("deflate_sent_compressed_bytes", lambda found: found.sent_compressed_bytes),
        Column("deflate_received_bytes", lambda found: found.received_bytes),
        Column("deflate_received_compressed_bytes", lambda found: found.received_compressed_bytes),
    ),
)
