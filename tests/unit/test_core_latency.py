"""The core latency between generator and server, and whether a host moved them."""

from __future__ import annotations

import pytest
from samples import flat, good_record
from trueload.record.core_latency import have_moved, latencies_of, moved_text, pair_of
from trueload.record.schema import CoreLatency
from trueload.report.result import repeated_lines, result_lines

MOVED_TEXT = (
    "the host moved the CPUs of generator and server: handing a cache line over and back took"
    " 88 ns to 403 ns"
)


def latency(before_ns: float | None, after_ns: float | None) -> CoreLatency:
    return CoreLatency(cpus=(1, 0), before_ns=before_ns, after_ns=after_ns)


@pytest.mark.parametrize(
    ("generator", "server", "pair"),
    [
        ((1,), {0}, (1, 0)),
        ((0, 1), {0, 1}, (0, 1)),
        ((2, 3), {0, 1}, (2, 0)),
        ((0,), {0}, None),
        ((1,), set(), None),
        ((), {0}, None),
    ],
)
def test_the_first_cpu_of_each_is_looked_at(
    generator: tuple[int, ...], server: set[int], pair: tuple[int, int] | None
) -> None:
    assert pair_of(generator, server) == pair


@pytest.mark.parametrize(
    ("latencies_ns", "moved"),
    [([], False), ([90.0], False), ([55.0, 132.0, 165.0], False), ([70.0, 211.0], True)],
)
def test_only_more_than_three_times_as_far_is_another_place(
    latencies_ns: list[float], moved: bool
) -> None:
    assert have_moved(latencies_ns) is moved


def test_what_was_not_seen_is_no_look() -> None:
    measured = [None, latency(90.0, None), latency(None, None), latency(91.0, 92.0)]
    assert latencies_of(measured) == [90, 91, 92]


@pytest.mark.parametrize(
    ("latencies", "expected"),
    [
        ([], ""),
        ([None], ""),
        ([latency(None, None)], ""),
        ([latency(88.0, 95.0)], ""),
        ([latency(403.0, 88.0)], MOVED_TEXT),
        ([latency(88.0, 95.0), None, latency(403.0, None)], MOVED_TEXT),
    ],
)
def test_a_move_is_told_and_none_is_not(latencies: list[CoreLatency | None], expected: str) -> None:
    assert moved_text(latencies) == expected


def test_a_result_tells_of_a_move_within_and_between_its_trials() -> None:
    near, far = (
        good_record(cpu_distance=latency(88, 90)),
        good_record(cpu_distance=latency(403, 400)),
    )
    across = good_record(cpu_distance=latency(88, 403))
    line = f"moved {MOVED_TEXT}"
    assert line in flat(result_lines(across))
    assert line in flat(repeated_lines([near, far]))
    assert not [each for each in result_lines(near) if each.startswith("moved")]
    assert not [each for each in repeated_lines([far, far]) if each.startswith("moved")]
