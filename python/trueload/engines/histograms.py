"""Several HdrHistograms as one, without loss. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trueload.stats import HIGHEST_NS, SIGNIFICANT_DIGITS


def merge_histogram(encoded: Iterable[str | None]) -> str | None:
    """The sum of HdrHistograms (V2 compressed, base64), bucket by bucket; None when all are empty.
    Raises ``ValueError`` for junk.

    The library adds those of one size at once, and others value by value, a hundred times as
    slowly; the engine's are as long as the longest value needs. So those of a size come first.
    """
    filled = [each for each in encoded if each is not None]
    if len(filled) < 2:
        return filled[0] if filled else None
    from hdrh.histogram import HdrHistogram

    total = HdrHistogram(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
    by_size: dict[int, Any] = {}
    try:
        for each in filled:
            found = HdrHistogram.decode(each)
            if (same := by_size.setdefault(found.counts_len, found)) is not found:
                same.add(found)
        for same in by_size.values():
            total.add(same)
    except Exception as error:  # the library raises whatever its parts raise
        raise ValueError(f"not an HdrHistogram: {error}") from error
    merged = total.encode()
    return merged.decode() if isinstance(merged, bytes) else str(merged)
