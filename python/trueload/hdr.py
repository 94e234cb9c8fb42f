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
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

PACKED_COOKIE, COOKIE = 0x1C849314, 0x1C849313
# Cookie, bytes of counts, offset, digits, lowest and highest value, ratio of integer to double.
HEADER = struct.Struct(">IiiiQQd")
BYTES_MAX = 4 * 1024 * 1024  # the limit of that package, for histograms that others have written
DIGITS_MAX = 5
BITS = 64


class Text(str):
    """An encoded histogram that remembers its decoded buckets. Those of a host are needed twice:
    for the sum of all hosts, and for the host's own figures."""

    __slots__ = ("read",)

    read: _Read


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
    return lows, highs, found.counts.tolist()


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
    total = [0] * (_buckets(first.digits) + 1)
    for found in chain([first], map(_read, filled[1:])):
        if (found.digits, found.lowest) != (first.digits, first.lowest):
            raise ValueError("they have different buckets")
        for index, count in zip(found.indexes, found.counts, strict=True):
            total[index] += count
    counts = ((index, count) for index, count in enumerate(total) if count)
    return _write(counts, first.highest, first.digits, first.lowest)


class _Read(NamedTuple):
    """A histogram as it is written: the index and the count of each bucket that is not empty."""

    indexes: array[int]
    counts: array[int]
    digits: int
    lowest: int
    highest: int


def _read(text: str) -> _Read:
    found: _Read | None = getattr(text, "read", None)
    if found is None:
        try:
            found = _parse(text)
        except ValueError as error:
            raise ValueError(f"not an HdrHistogram: {error}") from error
        if isinstance(text, Text):
            text.read = found
    return found


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
    return _Read(*_counts(payload[HEADER.size :], _buckets(digits)), digits, lowest, highest)


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


def _buckets(digits: int) -> int:
    """How many buckets there are for all values of 64 bits."""
    return (BITS + 1) << _half_bits(digits)


def _counts(data: bytes, most: int) -> tuple[array[int], array[int]]:
    """The index and the count of each bucket that is not empty, of at most ``most``."""
    indexes: list[int] = []
    counts: list[int] = []
    index = value = shift = 0
    for byte in data:
        # A number may have several bytes; the ninth has eight bits of its own. No function, since
        # a call for each takes twice as long.
        if byte >= 0x80 and shift < 56:
            value |= (byte & 0x7F) << shift
            shift += 7
            continue
        if shift:
            byte = value | byte << shift
            value = shift = 0
        if byte & 1:  # so many empty buckets, zigzag
            index += (byte + 1) >> 1
            if index > most:
                break
        else:
            if byte:
                indexes.append(index)
                counts.append(byte >> 1)
            index += 1
    if shift:
        raise ValueError("it ends within a number")
    if index > most:
        raise ValueError("it has more buckets than there are values")
    return _compact(indexes), _compact(counts)


def _compact(numbers: list[int]) -> array[int]:
    try:
        return array("I", numbers)
    except OverflowError:
        return array("Q", numbers)


def _varint(number: int) -> bytes:
    value, out = (number << 1) ^ (number >> 63), bytearray()
    while value >= 0x80 and len(out) < 8:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
