"""Histograms as text: HdrHistogram V2, compressed, as base64, which other tools read and write.

How: a header, then the counts of all buckets in rising order as zigzag LEB128, where a negative
number stands for so many empty ones (https://github.com/HdrHistogram/HdrHistogram, V2 encoding).
The first buckets are as wide as the unit; above them each power of two is divided into the same
number of buckets. Pure. The package of that name does the same, but brings eight megabytes that
nothing here needs.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

PACKED_COOKIE, COOKIE = 0x1C849314, 0x1C849313
# Cookie, bytes of counts, offset, digits, lowest and highest value, ratio of integer to double.
HEADER = struct.Struct(">IiiiQQd")
BYTES_MAX = 4 * 1024 * 1024  # the limit of that package, for histograms that others have written
DIGITS_MAX = 5
BITS = 64


def decode(text: str) -> tuple[list[int], list[int], list[int]]:
    """The lowest values, the highest values and the counts of the buckets that are not empty, in
    rising order. Raises ``ValueError`` for junk."""
    found = _read(text)
    half, unit = _half_bits(found.digits), found.lowest.bit_length() - 1
    lows: list[int] = []
    highs: list[int] = []
    first = 0
    while first < len(found.indexes):
        # All buckets up to the next power of two have the same width.
        shift = max(0, (found.indexes[first] >> half) - 1)
        end = bisect_left(found.indexes, (shift + 2) << half, first)
        base, scale, width = shift << half, shift + unit, (1 << shift + unit) - 1
        some = [(index - base) << scale for index in found.indexes[first:end]]
        lows += some
        highs += [low + width for low in some]
        first = end
    return lows, highs, found.counts


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
    first = _read(filled[0])
    total = dict(zip(first.indexes, first.counts, strict=True))
    for text in filled[1:]:
        found = _read(text)
        if (found.digits, found.lowest) != (first.digits, first.lowest):
            raise ValueError("they have different buckets")
        for index, count in zip(found.indexes, found.counts, strict=True):
            total[index] = total.get(index, 0) + count
    return _write(sorted(total.items()), first.highest, first.digits, first.lowest)


class _Read(NamedTuple):
    """A histogram as it is written: the index and the count of each bucket that is not empty."""

    indexes: list[int]
    counts: list[int]
    digits: int
    lowest: int
    highest: int


def _read(text: str) -> _Read:
    try:
        return _parse(text)
    except ValueError as error:
        raise ValueError(f"not an HdrHistogram: {error}") from error


def _parse(text: str) -> _Read:
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
    most = (BITS + 1) << _half_bits(digits)
    return _Read(*_counts(payload[HEADER.size :], most), digits, lowest, highest)


def _write(counts: Iterable[tuple[int, int]], highest: int, digits: int, lowest: int) -> str:
    """Encode the counts of buckets, by rising index."""
    body, end = bytearray(), 0
    for index, count in counts:
        if index > end:
            body += _varint(end - index)
        body += _varint(count)
        end = index + 1
    packed = zlib.compress(HEADER.pack(COOKIE, len(body), 0, digits, lowest, highest, 1.0) + body)
    return base64.b64encode(struct.pack(">II", PACKED_COOKIE, len(packed)) + packed).decode()


def _half_bits(digits: int) -> int:
    """Half the number of buckets that tells 2 x 10^digits values apart, as an exponent of two."""
    return math.ceil(math.log2(2 * 10**digits)) - 1


def _counts(data: bytes, most: int) -> tuple[list[int], list[int]]:
    """The index and the count of each bucket that is not empty."""
    indexes: list[int] = []
    counts: list[int] = []
    index, left = 0, iter(data)
    for byte in left:
        value = byte if byte < 0x80 else _long(byte, left)
        if value & 1:  # so many empty buckets, zigzag
            index += (value + 1) >> 1
        else:
            if value:
                indexes.append(index)
                counts.append(value >> 1)
            index += 1
        if index > most:
            raise ValueError("it has more buckets than there are values")
    return indexes, counts


def _long(first: int, left: Iterator[int]) -> int:
    """The value of a number of several bytes; the ninth has eight bits of its own."""
    value, shift = first & 0x7F, 7
    for byte in left:
        if byte < 0x80 or shift == 56:
            return value | byte << shift
        value |= (byte & 0x7F) << shift
        shift += 7
    raise ValueError("it ends within a number")


def _varint(number: int) -> bytes:
    value, out = (number << 1) ^ (number >> 63), bytearray()
    while value >= 0x80 and len(out) < 8:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
