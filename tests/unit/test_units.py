"""Durations, sizes, rates, counts and CPU lists: each parser and each formatter as a table."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trueload import units


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("500ms", 500_000_000),
        ("10s", 10_000_000_000),
        ("2m", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1d", 86_400_000_000_000),
        ("0.5d", 43_200_000_000_000),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("7ns", 7),
        ("0.1s", 100_000_000),
        ("1.5m", 90_000_000_000),
        (" 3s ", 3_000_000_000),
        ("0s", 0),
        ("1e3ms", 1_000_000_000),
        ("2.5E-1s", 250_000_000),
        ("1m30s", 90_000_000_000),
        ("1h5m", 3_900_000_000_000),
        ("2h3m4s5ms6us7ns", 7_384_005_006_007),
        ("1.5m10s", 100_000_000_000),
        *(("3" + word, 3_000_000_000) for word in ("sec", "secs", "second", "seconds")),
        *(("2" + word, 120_000_000_000) for word in ("min", "mins", "minute", "minutes")),
        *(("1" + word, 3_600_000_000_000) for word in ("hr", "hrs", "hour", "hours")),
        ("1day", 86_400_000_000_000),
        ("5msec", 5_000_000),
        ("5usec", 5_000),
        ("1min30sec", 90_000_000_000),
    ],
)
def test_a_duration_is_whole_nanoseconds(text: str, ns: int) -> None:
    assert units.parse_duration(text) == ns


def test_an_age_may_be_longer_than_a_trial() -> None:
    assert units.parse_duration("30d", units.AGE_NS_MAX) == 30 * 86_400 * 10**9
    with pytest.raises(ValueError, match="too long: at most 36,500d"):
        units.parse_duration("36501d", units.AGE_NS_MAX)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("10", "no unit"),
        ("10 s", "not a duration"),
        ("-1s", "not a duration"),
        ("1e", "unit 'e' is not known"),
        ("1e3", "no unit"),
        ("1e999s", "no unit"),
        ("1e99s", "too long"),
        ("1m30", "no unit"),
        ("30s1m", "largest unit comes first"),
        ("1s1s", "largest unit comes first"),
        ("1m60sec1s", "largest unit comes first"),
        ("1m 30s", "not a duration"),
        ("1m-30s", "not a duration"),
        ("1.5.5s", "not a duration"),
        ("1,5s", "not a duration"),
        ("1:30", "not a duration"),
        ("3secondes", "unit 'secondes' is not known"),
        ("", "not a duration"),
        ("s", "not a duration"),
        (".5s", "not a duration"),
        ("10x", "unit 'x' is not known"),
        ("10S", "unit 'S' is not known"),
        ("inf", "not a duration"),
        ("٣s", "not a duration"),
        ("9999999h", "too long: at most a day"),
        ("1.1d", "too long: at most a day"),
        ("2D", "unit 'D' is not known"),
        ("1s\n2s", "not a duration"),
    ],
)
def test_what_is_no_duration_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        units.parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("64", 64), ("10KiB", 10_240), ("1MiB", 2**20), ("1MB", 10**6), ("1.5kib", 1536), ("0", 0)],
)
def test_a_size_is_whole_bytes(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "10 KiB", "1TiB", "0.3KiB", "1" * 40])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="'"):
        units.parse_size(text)


@pytest.mark.parametrize(
    ("text", "per_s"),
    [
        *(("5000/s", 5000), ("50k/s", 50_000), ("20k", 20_000), ("300/m", 5)),
        *(("1.5M/s", 1_500_000), ("86400/d", 1), ("5/ms", 5000), ("60/min", 1), ("7200/hour", 2)),
        *(("1e3", 1000), ("1e3/s", 1000), ("1.5E3", 1500), ("5e-1", 0.5), ("1e3k", 1_000_000)),
        *(("1000rps", 1000), ("1krps", 1000), ("5QPS", 5), ("1e3rps", 1000)),
        *(("10req/s", 10), ("12krequests/s", 12_000)),
        *(("50/1s", 50), ("5/100ms", 50), ("30/1m", 0.5), ("90/1m30s", 1), ("1k/10sec", 100)),
    ],
)
def test_a_rate_is_per_second(text: str, per_s: float) -> None:
    assert units.parse_rate(text) == per_s


@pytest.mark.parametrize(
    "text",
    [
        *("", "/s", "5/", "5/x", "x/s", "5//s", "5q/s", "-5/s", "5/0s", "5/1", "5/1x", "5/s/s"),
        *("nan", "inf", "1,000", "1_000", "rps", "5rpm", "5req", "1000 rps", "1e999", "e3"),
        "5/-1s",
    ],
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="rate"):
        units.parse_rate(text)


@pytest.mark.parametrize(
    ("text", "count"), [("1", 1), ("20k", 20_000), ("1M", 10**6), ("1.5k", 1500), ("1e6", 10**6)]
)
def test_a_count_is_a_whole_number(text: str, count: int) -> None:
    assert units.parse_count(text) == count


@pytest.mark.parametrize(
    "text", ["", "1.5", "-3", "k", "1e16", "1e-1", "1e999", "e3", "nan", "9999999G"]
)
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="'"):
        units.parse_count(text)


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0.1%", 0.001), ("0.5", 0.5)])
def test_a_share_is_a_fraction(text: str, share: float) -> None:
    assert units.parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("1", (1,)), ("0-1,3", (0, 1, 3)), ("3,1,2", (1, 2, 3)), ("2-2", (2,)), ("0, 1", (0, 1))],
)
def test_a_list_of_cpus_is_rising_numbers(text: str, cpus: tuple[int, ...]) -> None:
    assert units.parse_cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "3-1", "1,,2", "99999", "1;2"])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="'"):
        units.parse_cpu_list(text)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_a_list_of_cpus_is_read_as_it_was_written(cpus: set[int]) -> None:
    assert units.parse_cpu_list(units.format_cpu_list(cpus)) == tuple(sorted(cpus))


@given(st.integers(0, units.DURATION_NS_MAX))
def test_a_span_is_read_as_it_was_written(ns: int) -> None:
    assert units.parse_duration(units.format_span(ns)) == ns


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"),
        (7, "7 ns"),
        (1_500, "1.50 us"),
        (420_000, "420 us"),
        (12_345_678, "12.3 ms"),
        (1_500_000_000, "1.50 s"),
        (3_600_000_000_000, "3,600 s"),
    ],
)
def test_a_duration_is_shown_with_three_digits_and_its_unit(ns: int, text: str) -> None:
    assert units.format_duration(ns) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (13, "13 B"), (1536, "1.50 KiB"), (4.2 * 2**20, "4.20 MiB"), (2**40, "1,024 GiB")],
)
def test_a_size_is_shown_in_binary_units(size: float, text: str) -> None:
    assert units.format_size(size) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((0, "0"), (0.0004, "0.0004"), (0.125, "0.12"), (1, "1"), (9.5, "9.5"), (43.266, "43.27")),
        *((99.999, "100"), (123.4, "123"), (1_234_567.8, "1,234,568")),
    ],
)
def test_little_is_never_shown_as_nothing(count: float, text: str) -> None:
    assert units.format_count(count) == text
    assert units.format_rate(count, "requests") == f"{text} requests/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0, "0"), (0.25, "0.25"), (1.4, "1"), (12_345.6, "12346")],
)
def test_a_cell_of_a_column_is_whole_but_where_it_is_little(value: float | None, text: str) -> None:
    assert units.format_cell(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.00012, "0.012 %"), (0.992, "99.2 %"), (1, "100 %"), (0.05, "5 %")],
)
def test_a_small_share_is_never_shown_as_nothing(share: float, text: str) -> None:
    assert units.format_share(share) == text


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("10s@1k", [(10, 1000, 1000)]),
        ("10s@1k,30s@1k..20k/s,10s@20k", [(10, 1e3, 1e3), (30, 1e3, 2e4), (10, 2e4, 2e4)]),
        (" 1s@0..5 , 1m@60/m", [(1, 0, 5), (60, 1, 1)]),
    ],
)
def test_stages_hold_or_ramp(text: str, stages: list[tuple[int, float, float]]) -> None:
    found = units.parse_stages(text, units.parse_rate)
    assert [(ramp.ns / 1e9, ramp.first, ramp.last) for ramp in found] == stages
    assert units.parse_stages(units.format_stages(found), units.parse_rate) == found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "at its end: a stage is missing"),
        ("1s@5,", "at its end: a stage is missing"),
        ("1s@5,,1s@5", "at character 6: a stage is missing"),
        ("1s", "at character 1: stage '1s' has no @: write TIME@VALUE"),
        ("1s@5,2s", "at character 6: stage '2s' has no @: write TIME@VALUE"),
        ("@5", "at character 1: a time is missing"),
        ("1s@", "at its end: a value is missing"),
        ("1s@5..", "at its end: a value is missing"),
        ("1s@..5", "at character 4: a value is missing"),
        ("1s@5,x@5", "at character 6: 'x' is not a duration: write for example 10s"),
        ("1s@5,10@5", "'10' has no unit"),
        ("1s@5..x", "at character 7: 'x' is not a rate: write for example 50k/s"),
        ("0s@5", "at character 1: stage '0s@5' lasts 0 s"),
        ("1s@0,1s@0..0", "asks for nothing"),
        ("20h@5,20h@5", "too long: at most a day in all"),
        ("1s@-5", "'-5' is not a rate"),
    ],
)
def test_what_are_no_stages_is_refused_at_the_character(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^'") as caught:
        units.parse_stages(text, units.parse_rate)
    assert complaint in str(caught.value)


@given(st.text(max_size=30))
def test_stages_never_fail_otherwise(text: str) -> None:
    with contextlib.suppress(ValueError):
        units.parse_stages(text, units.parse_rate)
