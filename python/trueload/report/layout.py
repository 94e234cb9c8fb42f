"""Lays out the blocks of a live view, in one column or in two. Pure.

How: the blocks of one band stand side by side if the terminal is wide enough, else below each
other. What does not fit is left out, the least important first. Height that is left goes to blocks
that can use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trueload.report.rows import Row, Size, beside, fit, rule

COLUMN_MIN = 36
"""The width in characters that suffices for every block."""


@dataclass(frozen=True)
class Block:
    """A title with rows below it.

    ``rows`` makes the rows for a width and a maximum height. The height goes from ``least`` to
    ``most`` in steps. The block with the lower ``rank`` is kept longer.
    """

    title: str
    rows: Callable[[Size], Sequence[Row]]
    rank: int
    least: int
    most: int = 0
    step: int = 1

    def grown(self, height: int) -> int:
        """Return the next height that the block can use, or the same if there is none."""
        return height + self.step if height + self.step <= self.most else height

    def drawn(self, width: int, height: int) -> list[Row]:
        found = [fit(row, width) for row in self.rows(Size(width, height))[:height]]
        return [rule(self.title, width), *found]


Band = tuple[Block, ...]
"""One block, or two that may stand side by side."""


def lay_out(bands: Sequence[Band], size: Size) -> list[Row]:
    """Return all rows, each ``size.width`` wide, at most ``size.height`` of them."""
    if size.width < 2 * COLUMN_MIN + 2:
        bands = [(block,) for band in bands for block in band]
    kept = _kept(bands, size.height)
    heights = _heights(kept, size.height)
    rows: list[Row] = []
    for band, height in zip(kept, heights, strict=True):
        rows += _band_rows(band, size.width, height)
    return rows


def _kept(bands: Sequence[Band], height: int) -> list[Band]:
    """Return the bands that fit, chosen by rank."""
    left, kept = height, set()
    for number in sorted(range(len(bands)), key=lambda at: min(block.rank for block in bands[at])):
        needed = 1 + _least(bands[number])
        if needed <= left:
            kept.add(number)
            left -= needed
    return [band for number, band in enumerate(bands) if number in kept]


def _least(band: Band) -> int:
    return max(block.least for block in band)


def _heights(bands: Sequence[Band], height: int) -> list[int]:
    """Return the rows below the title of each band; spare height is given out in turns."""
    found = [_least(band) for band in bands]
    left = height - sum(found) - len(found)
    grew = True
    while grew:
        grew = False
        for at, band in enumerate(bands):
            grown = max(block.grown(found[at]) for block in band)
            if 0 < grown - found[at] <= left:
                left -= grown - found[at]
                found[at] = grown
                grew = True
    return found


def _band_rows(band: Band, width: int, height: int) -> list[Row]:
    if len(band) == 1:
        return band[0].drawn(width, height)
    left, right = band
    widths = ((width - 2) // 2, width - 2 - (width - 2) // 2)
    return beside(left.drawn(widths[0], height), right.drawn(widths[1], height), widths)
