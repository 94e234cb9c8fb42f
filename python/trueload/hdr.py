"""Histograms as text: HdrHistogram V2, compressed, as base64, which other tools read and write.

How: a header, then the counts of all buckets (https://github.com/HdrHistogram/HdrHistogram, V2
encoding). Pure. The package of that name does the same, but brings eight megabytes that nothing
here needs.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from trueload import zigzag
from trueload.buckets import Buckets, stretches

PACKED_COOKIE, COOKIE = 0x1C849314, 0x1C849313
# Cookie, bytes of counts, offset, digits, lowest and highest value, ratio of integer to double.
HEADER = struct.Struct(">IiiiQQd")
BYTES_MAX = 4 * 1024 * 1024  # the limit of that package, for histograms that others have written
DIGITS_MAX = 5
BITS = 64


class Histogram(NamedTuple):
    """The counts of all buckets from the first to the last, by rising value; some may be 0."""

    first: int
    counts: array[int]
    digits: int
    lowest: int
    highest: int

    def buckets(self) -> Buckets:
        """The same with the values of its buckets."""
        unit = self.lowest.bit_length() - 1
        return Buckets(*stretches(self.first, self.counts, _half_bits(self.digits), unit))


class Text(str):
    """An encoded histogram that remembers what it says. That of a host is needed twice: for the
    sum of all hosts, and for the host's own figures."""

    __slots__ = ("known",)

    known: Histogram


def encode(counts: Iterable[tuple[int, int]], highest: int, digits: int) -> str:
    """Encode values in rising order with their counts, with a unit of 1."""
    half = _half_bits(digits)
    by_index: dict[int, int] = {}
    for value, count in counts:
        shift = max(0, value.bit_length() - half - 1)
        index = (shift << half) + (value >> shift)
        by_index[index] = by_index.get(index, 0) + count
    return _write(by_index.items(), highest, digits, lowest=1)


def added(texts: Iterable[str | None]) -> str | None:
    """The sum of histograms, bucket by bucket; None if all are empty. Raises ``ValueError`` for
    junk, and unless all have the same buckets."""
    filled = [text for text in texts if text is not None]
    if len(filled) < 2:
        return filled[0] if filled else None
    first, total = read(filled[0]), zigzag.Sum()
    for found in map(read, filled):
        if (found.digits, found.lowest) != (first.digits, first.lowest):
            raise ValueError("they have different buckets")
        total.add(found.first, found.counts)
    return _write(total.items(), first.highest, first.digits, first.lowest)


def read(text: str) -> Histogram:
    """What an encoded histogram says. Raises ``ValueError`` for junk."""
    known: Histogram | None = getattr(text, "known", None)
    if known is None:
        try:
            known = _parse(text)
        except ValueError as error:
            raise ValueError(f"not an HdrHistogram: {error}") from error
        if isinstance(text, Text):
            text.known = known
    return known


def _parse(text: str) -> Histogram:
    packed = base64.b64decode(text)
    unpacking = zlib.decompressobj()
    try:
        (cookie,) = struct.unpack_from(">I", packed)
        payload = unpacking.decompress(packed[8:], BYTES_MAX)
        header = HEADER.unpack_from(payload)
    except (struct.error, zlib.error) as error:
        raise ValueError(str(error)) from error
    inner, _, offset, digits, lowest, highest, _ = header
    if (cookie, inner) != (PACKED_COOKIE, COOKIE) or not unpacking.eof:
        raise ValueError("it is not of version 2, or too long")
    if offset or lowest < 1 or not 0 <= digits <= DIGITS_MAX:
        raise ValueError("its header is broken")
    buckets = (BITS + 1) << _half_bits(digits)  # for all values of 64 bits
    counted = zigzag.unpack(payload[HEADER.size :], buckets)
    return Histogram(*counted, digits, lowest, highest)


def _write(counts: Iterable[tuple[int, int]], highest: int, digits: int, lowest: int) -> str:
    """Encode the counts of buckets, by rising index."""
    body = zigzag.pack(counts)
    packed = zlib.compress(HEADER.pack(COOKIE, len(body), 0, digits, lowest, highest, 1.0) + body)
    return base64.b64encode(struct.pack(">II", PACKED_COOKIE, len(packed)) + packed).decode()


def _half_bits(digits: int) -> int:
    """Half the number of buckets that tells 2 x 10^digits values apart, as an exponent of two."""
    return math.ceil(math.log2(2 * 10**digits)) - 1
