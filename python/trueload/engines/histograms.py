"""Several HdrHistograms as one, without loss. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trueload.stats import add_buckets, decode_histogram, encode_histogram


def merge_histogram(encoded: Iterable[str | None]) -> str | None:
    """The sum of HdrHistograms (V2 compressed, base64), bucket by bucket; None when all are empty.
    Raises ``ValueError`` for junk."""
    filled = [each for each in encoded if each is not None]
    if len(filled) < 2:
        return filled[0] if filled else None
    return encode_histogram(add_buckets(map(decode_histogram, filled)))
