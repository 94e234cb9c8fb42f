"""Several HdrHistograms as one, without loss. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trueload.stats import Buckets, decode_histogram, encode_histogram


def merge_histogram(encoded: Iterable[str | None]) -> str | None:
    """The sum of HdrHistograms (V2 compressed, base64), bucket by bucket; None when all are empty.
    Raises ``ValueError`` for junk."""
    filled = [each for each in encoded if each is not None]
    if len(filled) < 2:
        return filled[0] if filled else None
    total: Counter[tuple[int, int]] = Counter()
    for found in map(decode_histogram, filled):
        for low, high, count in zip(found.lows, found.highs, found.counts, strict=True):
            total[low, high] += count
    lows, highs = zip(*sorted(total), strict=True)
    return encode_histogram(Buckets(lows, highs, tuple(total[each] for each in sorted(total))))
