"""Histograms as text: read and written as the package hdrhistogram does."""

from __future__ import annotations

import base64
import struct
import zlib
from itertools import accumulate, groupby

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from trueload import hdr, zigzag

HIGHEST = 3_600_000_000_000
VALUES = st.lists(st.integers(0, HIGHEST) | st.integers(0, 5_000), min_size=1, max_size=60)

# The package takes tens of milliseconds to count the values of one example.
FEWER = settings(max_examples=40)


def known(values: list[int], digits: int, lowest: int = 1) -> HdrHistogram:
    made = HdrHistogram(lowest, HIGHEST, digits)
    for value in values:
        assert made.record_value(value)
    return made


def filled(histogram: HdrHistogram) -> list[tuple[int, int, int]]:
    """The non-empty buckets, as the package returns them."""
    return [
        (value, histogram.get_highest_equivalent_value(value), count)
        for index, count in enumerate(list(histogram.counts))
        if count
        for value in [histogram.get_value_from_index(index)]
    ]


def buckets(text: str) -> list[tuple[int, int, int]]:
    found = hdr.read(text).buckets()
    return list(zip(found.lows, found.highs, found.counts, strict=True))


@FEWER
@given(VALUES, st.integers(1, 4), st.sampled_from([1, 2, 1000]))
def test_what_the_package_writes_is_read(values: list[int], digits: int, lowest: int) -> None:
    made = known(values, digits, lowest)
    assert buckets(made.encode().decode()) == filled(made)


@FEWER
@given(VALUES, st.integers(1, 4))
def test_the_package_reads_what_is_written(values: list[int], digits: int) -> None:
    counts = [(value, len(list(same))) for value, same in groupby(sorted(values))]
    text = hdr.encode(counts, HIGHEST, digits)
    assert filled(HdrHistogram.decode(text)) == filled(known(values, digits))


@given(st.lists(st.integers(0, 2**21) | st.integers(0, 2**40), max_size=900), st.integers(0, 99))
def test_many_numbers_are_read_as_few_are(counts: list[int], first: int) -> None:
    pairs = [(index, count) for index, count in enumerate(counts, first) if count]
    found, read = zigzag.unpack(zigzag.pack(pairs), 10_000)
    assert [(index, count) for index, count in enumerate(read, found) if count] == pairs


@given(st.binary(min_size=1, max_size=60))
def test_junk_of_any_length_is_refused_alike(piece: bytes) -> None:
    def read(data: bytes) -> object:
        try:
            first, counts = zigzag.unpack(data, 2**22)
            return [(index, count) for index, count in enumerate(counts, first) if count]
        except ValueError as error:
            return str(error)

    many = piece * (zigzag.FEW_BYTES // len(piece) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zigzag, "FEW_BYTES", 10**9)
        one_by_one = read(many)
    assert read(many) == one_by_one


@given(st.integers(0, HIGHEST), st.integers(1, 2**62))
def test_a_large_count_is_kept(value: int, count: int) -> None:
    ((low, high, read),) = buckets(hdr.encode([(value, count)], HIGHEST, 3))
    assert low <= value <= high
    assert read == count


def test_an_empty_histogram_has_no_buckets() -> None:
    assert buckets(known([], 3).encode().decode()) == []


def packed(payload: bytes) -> str:
    body = zlib.compress(payload)
    return base64.b64encode(struct.pack(">II", hdr.PACKED_COOKIE, len(body)) + body).decode()


HEADER = zlib.decompress(base64.b64decode(hdr.encode([(1, 1)], HIGHEST, 3))[8:])[:40]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        HEADER[:39],
        bytes(40),
        HEADER[:8] + b"\1" + HEADER[9:],
        HEADER[:12] + b"\xff" + HEADER[13:],
        HEADER[:16] + bytes(8) + HEADER[24:],
        HEADER + b"\x80",
        HEADER + b"\xff" * 9,
        HEADER + bytes(hdr.BYTES_MAX),
        HEADER + bytes(1_000_000),
    ],
)
def test_junk_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        hdr.read(packed(payload))


@given(st.binary(max_size=200), st.binary(min_size=40, max_size=40) | st.just(HEADER))
def test_no_junk_does_more_than_be_refused(body: bytes, header: bytes) -> None:
    try:
        found = buckets(packed(header + body))
    except ValueError:
        return
    assert all(low <= high and count > 0 for low, high, count in found)


@FEWER
@given(st.lists(VALUES, min_size=1, max_size=5), st.integers(1, 4), st.sampled_from([1, 1000]))
def test_a_sum_is_the_histogram_of_all_values(
    parts: list[list[int]], digits: int, lowest: int
) -> None:
    texts = [known(part, digits, lowest).encode().decode() for part in parts]
    together = known([value for part in parts for value in part], digits, lowest)
    added = hdr.added([None, *texts])
    assert added is not None
    assert buckets(added) == filled(together)
    assert filled(HdrHistogram.decode(added)) == filled(together)


def test_the_sum_of_nothing_is_nothing_and_of_one_is_itself() -> None:
    text = hdr.encode([(1, 1)], HIGHEST, 3)
    assert hdr.added([]) is None
    assert hdr.added([None, None]) is None
    assert hdr.added([None, text]) == text


def test_histograms_with_different_buckets_are_not_added_up() -> None:
    with pytest.raises(ValueError, match="different buckets"):
        hdr.added([hdr.encode([(1, 1)], HIGHEST, digits) for digits in (2, 3)])


@FEWER
@given(VALUES, st.integers(1, 4))
def test_moments_are_those_of_the_middles(values: list[int], digits: int) -> None:
    counts = [(value, len(list(same))) for value, same in groupby(sorted(values))]
    found = hdr.read(hdr.encode(counts, HIGHEST, digits)).buckets()
    twice = [low + high for low, high in zip(found.lows, found.highs, strict=True)]
    weighed = list(zip(twice, found.counts, strict=True))
    expected = sum(at * count for at, count in weighed), sum(at**2 * n for at, n in weighed)
    assert found.moments == expected
    for least in (-1, *found.lows, *found.highs):
        above = sum(
            a * n for (a, n), high in zip(weighed, found.highs, strict=True) if high > least
        )
        assert found.twice_above(least) == above
    assert (found.least, found.greatest) == (found.lows[0], found.highs[-1])
    assert [found.at_rank(rank) for rank in accumulate(found.counts)] == list(found.highs)
