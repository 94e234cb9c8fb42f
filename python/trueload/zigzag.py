"""Counts of buckets as bytes, as HdrHistogram V2 has them, and their sums. Pure.

How: the counts of all buckets in rising order, as zigzag LEB128; a negative number stands for so
many empty ones. With 256 hosts the front decodes 1,800 of these at the end of a run. So counts are
decoded and added all at once, as lanes of a very large integer, which takes a half to a third of
the time. Arrays are little-endian, as every machine is for which there is an engine.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

ODD = bytes([0, 1]) * 128  # by the lowest byte of a number
MARK = "\u8000"  # more than 14 bits: no lane of a number has it
FEW_BYTES = 100  # fewer are decoded faster one by one
TOO_MANY = "it has more buckets than there are values"
LANE = 8  # bytes of a count in a sum
COUNT_MOST = 1 << 48  # of a sum's parts; four million requests a second need two years for it


class Sum:
    """Counts by bucket, added up."""

    def __init__(self) -> None:
        self._lanes = 0

    def add(self, first: int, counts: array[int]) -> None:
        """Add the counts of the buckets from ``first`` on. Raises ``ValueError`` if they are too
        large for any sum."""
        if counts.itemsize == 4:
            wide = array("I", bytes(LANE * len(counts)))
            wide[::2] = counts
            counts = wide
        else:
            check(counts)
        self._lanes += int.from_bytes(counts.tobytes(), "little") << 8 * LANE * first

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield each bucket that is not empty, by rising index, and its count."""
        size = -(-self._lanes.bit_length() // (8 * LANE)) * LANE
        counts = array("Q", self._lanes.to_bytes(size, "little"))
        return ((index, count) for index, count in enumerate(counts) if count)


def check(counts: array[int]) -> None:
    """Raise ``ValueError`` if a count is too large to be added to others."""
    if counts.itemsize == LANE and max(counts, default=0) > COUNT_MOST:
        raise ValueError("a count is too large")


def pack(counts: Iterable[tuple[int, int]]) -> bytes:
    """The counts of buckets, by rising index, as bytes."""
    body, end = bytearray(), 0
    for index, count in counts:
        if index > end:
            body += _varint(end - index)
        body += _varint(count)
        end = index + 1
    return bytes(body)


def unpack(data: bytes, most: int) -> tuple[int, array[int]]:
    """The index of the first bucket that is not empty, and the counts from there on: 32 bits each,
    or 64 if one needs them. Raises ``ValueError`` for junk, and more than ``most`` buckets."""
    numbers = None if len(data) < FEW_BYTES else _numbers(data)
    return _one_by_one(data, most) if numbers is None else _at_once(numbers, most)


def _one_by_one(data: bytes, most: int) -> tuple[int, array[int]]:
    counts: list[int] = []
    first = value = shift = 0
    for byte in data:
        # The ninth byte of a number has eight bits of its own.
        if byte >= 0x80 and shift < 56:
            value |= (byte & 0x7F) << shift
            shift += 7
            continue
        if shift:
            byte = value | byte << shift
            value = shift = 0
        if not byte & 1:
            counts.append(byte >> 1)
            continue
        empty = (byte + 1) >> 1
        if first + len(counts) + empty > most:
            break
        if counts:
            counts += [0] * empty
        else:
            first += empty
    else:
        if shift:
            raise ValueError("it ends within a number")
        if first + len(counts) <= most:
            return first, _array(counts)
    raise ValueError(TOO_MANY)


def _array(counts: list[int]) -> array[int]:
    try:
        return array("I", counts)
    except OverflowError:
        return array("Q", counts)


def _at_once(numbers: bytes, most: int) -> tuple[int, array[int]]:
    """The same from decoded numbers of 32 bits."""
    lanes = int.from_bytes(numbers, "little")
    ones = int.from_bytes(b"\1\0\0\0" * (len(numbers) // 4), "little")
    halved = (lanes >> 1 & ones * 0x7FFFFFFF).to_bytes(len(numbers), "little")
    halves = array("I", halved)
    # A zigzag number is a count if it is even, and of so many empty buckets if it is odd. That of
    # one becomes the count 0 by itself.
    runs = [each.start() for each in re.finditer(b"\1", numbers[::4].translate(ODD))]
    if len(halves) + sum(halves[at] for at in runs) > most:
        raise ValueError(TOO_MANY)
    start = 1 if runs[:1] == [0] else 0
    first = halves[0] + 1 if start else 0
    pieces: list[bytes] = []
    for at in runs[start:]:
        if halves[at]:
            pieces += (halved[4 * start : 4 * at], bytes(4 * (halves[at] + 1)))
            start = at + 1
    return first, array("I", b"".join([*pieces, halved[4 * start :]]))


def _numbers(data: bytes) -> bytes | None:
    """Decode LEB128 numbers, into 32 bits each; None if one has more than four bytes.

    How: each byte is put into a lane of 16 bits of one very large integer, so that an operation
    works on all of them. Then each lane gets the 14 bits that begin there. Lanes where no number
    begins are marked, and dropped by replacing a character in a string, which is the fastest way
    to drop something here.
    """
    count = len(data)
    lanes = int.from_bytes(data.decode("latin-1").encode("utf-16-le"), "little")
    ones = int.from_bytes(b"\1\0" * count, "little")
    more = lanes >> 7 & ones  # the next byte belongs to the same number
    third = more & more >> 16
    if third & third >> 32 or data[-1] >= 0x80:
        return None
    pairs = lanes & ones * 0x7F | (lanes >> 16 & more * 0x7F) << 7
    begins, marks = (ones ^ more << 16) * 0x3FFF, more << 31
    found = _begun(pairs & begins | marks, count)
    if not third:
        return found
    upper = _begun(pairs >> 32 & third * 0x3FFF & begins | marks, count)
    both = int.from_bytes(found, "little") | int.from_bytes(upper, "little") << 14
    return both.to_bytes(len(found), "little")


def _begun(lanes: int, count: int) -> bytes:
    """The lanes that are not marked, each with 32 bits."""
    text = lanes.to_bytes(2 * count, "little").decode("utf-16-le")
    return text.replace(MARK, "").encode("utf-32-le")


def _varint(number: int) -> bytes:
    value, out = (number << 1) ^ (number >> 63), bytearray()
    while value >= 0x80 and len(out) < 8:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
