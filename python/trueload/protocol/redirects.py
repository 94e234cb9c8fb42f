"""Redirects that the engine followed (crates/meter/src/redirects.rs)."""

from __future__ import annotations

from trueload.protocol.model import Model


class Redirects(Model):
    """Redirects of a phase. ``statuses`` counts those that were followed, by status code, also
    those of requests that failed later. ``hops`` counts the requests that ended well, by the number
    of redirects before their final answers. ``time`` is how long each redirect took: from the send
    of the request, or from the redirect before it, to its last byte; HdrHistogram V2 compressed,
    base64, null if empty."""

    statuses: dict[str, int]
    hops: dict[str, int]
    time: str | None = None
