"""The live panel as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import counts
from trueload.commands.suite_progress import time_left
from trueload.protocol.plan import Requests, Tick
from trueload.report.panel import (
    BAR_WIDTH,
    HOSTS_SHOWN,
    POINTS,
    Course,
    moving_line,
    panel_lines,
)
from trueload.request.values import Request
from trueload.trial.spec import HostTick, Progress, TrialSpec, open_load

SPEC = TrialSpec(url="http://h/", addresses=("127.0.0.1:1",), request=Request(host="h"))
OPEN = replace(SPEC, load=replace(SPEC.load, pacing=open_load(1_000, SPEC.load.stop)))


def tick(at_s: float, ok: int, failed: dict[str, int], **changes: object) -> Tick:
    made = Tick(
        type="tick",
        at_ns=int(at_s * 1e9),
        id="window",
        counts=counts(ok=ok, issued=ok, failed=failed),
        latency={500: 10},
        service={},
        open=9,
        bytes_in=0,
        bytes_out=0,
        busiest_ns=int(at_s * 0.74e9),
    )
    return made.model_copy(update=changes)


def course(*ticks: Tick, is_open: bool = False) -> Course:
    made = Course()
    for one in ticks:
        made.add(one, is_open=is_open)
    return made


def labelled(lines: list[str]) -> dict[str, str]:
    """Each line's rest, by its label."""
    return {line[:13].strip(): line[13:].strip() for line in lines}


def test_the_panel_shows_progress_throughput_percentiles_failures_and_the_generators_load() -> None:
    ticks = [tick(1.0, 1_000, {}), tick(2.0, 3_500, {"reset": 7})]
    lines = panel_lines(SPEC, Progress("window", 5_000_000_000, ticks[-1]), course(*ticks))
    found = labelled(lines)
    assert found["window"] == "█" * 14 + "░" * 14 + " 5.00 s of 10s, 5 s left"
    assert found["throughput"] == "█  2,500 requests/s"
    assert found["latency p50"].split()[0] == "█"
    assert found["requests"] == "3,500 ok, 7 failed"
    assert found["failures"] == "reset 7"
    assert found["connections"] == "9 open of 64"
    assert found["generator"] == "busiest thread 74%"


def test_an_open_loop_shows_what_was_asked_of_it_and_service_times_beside_response_times() -> None:
    ticks = [
        tick(at_s, 1_000, {}, service={100: 10}, counts=counts(ok=1_000, scheduled=int(at_s * 500)))
        for at_s in (1.0, 2.0)
    ]
    progress = Progress("window", 10**9, ticks[-1])
    found = labelled(panel_lines(OPEN, progress, course(*ticks, is_open=True)))
    assert found["rate"].startswith("offered 500 requests/s")
    assert found["service"].startswith("p50 100 ns")
    assert "response p50" in found
    assert "latency p50" not in found


@pytest.mark.parametrize(
    ("progress", "part"),
    [
        (Progress("connect", 1_000_000, None), "connect      1.00 ms"),
        (Progress("drain", 1_000_000_000, None), "drain        1.00 s"),
        (Progress("window", 99 * 10**9, None), "█" * BAR_WIDTH),
    ],
)
def test_the_panel_has_something_to_say_at_every_stage(progress: Progress, part: str) -> None:
    assert part in panel_lines(SPEC, progress, Course())[0]


def test_the_panel_counts_requests_where_they_end_the_run() -> None:
    spec = replace(SPEC, load=replace(SPEC.load, stop=Requests(count=100), warmup=None))
    now = tick(1.0, 25, {})
    line = panel_lines(spec, Progress("window", 10**9, now), course(now))[0]
    assert line.endswith("25 of 100, about 3 s left")


def test_where_nothing_comes_back_the_lines_are_empty() -> None:
    ticks = [tick(at_s, 0, {}, latency={}) for at_s in (1.0, 2.0)]
    found = labelled(panel_lines(SPEC, Progress("window", 10**9, ticks[-1]), course(*ticks)))
    assert found["throughput"] == "▁  0 requests/s"
    assert found["latency p99"] == "-"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([0.0, 0.0], "▁▁"),
        ([None, 7.0], " █"),
        ([0.0, 1.0, 2.0, 4.0], "▁▃▅█"),
    ],
)
def test_a_moving_line_is_as_high_as_its_highest_value(
    values: list[float | None], line: str
) -> None:
    assert moving_line(values) == line


def test_a_course_keeps_so_many_points_and_begins_anew_with_a_stage() -> None:
    made = course(*(tick(at / 4, at, {}) for at in range(200)))
    assert len(made.points) == POINTS
    made.add(None, is_open=False)
    assert not made.points
    assert not made.recent


@pytest.mark.parametrize(
    ("elapsed_s", "done", "left", "words"),
    [
        (3.0, 0, 9, ""),
        (10.0, 2, 3, ", about 15 s left"),
        (120.0, 4, 6, ", about 3 min left"),
    ],
)
def test_the_time_left_is_that_of_trials_like_those_done(
    elapsed_s: float, done: int, left: int, words: str
) -> None:
    assert time_left(elapsed_s, done, left) == words


def of_hosts(*oks: tuple[int, int]) -> list[str]:
    """The panel of hosts, each with its answers at 1 s and at 2 s."""
    made = Course()
    for at, at_s in enumerate((1.0, 2.0)):
        hosts = [
            HostTick(f"ssh:h{number}", tick(at_s, both[at], {"reset": number}))
            for number, both in enumerate(oks)
        ]
        made.add(hosts[0].tick, is_open=False, hosts=hosts)
    lines = panel_lines(SPEC, Progress("window", 2_000_000_000, hosts[0].tick), made)
    return [" ".join(line.split()) for line in lines if "ssh:" in line or "hosts" in line]


def test_each_of_several_hosts_has_a_line() -> None:
    assert of_hosts((10, 1_010), (0, 500)) == [
        "ssh:h0 1,000 requests/s 9 open, 0 failed, 74% busy",
        "ssh:h1 500 requests/s 9 open, 1 failed, 74% busy",
    ]


def test_of_very_many_hosts_those_that_do_least_are_shown() -> None:
    lines = of_hosts(*((0, 1_000 - number) for number in range(HOSTS_SHOWN + 5)))
    assert len(lines) == HOSTS_SHOWN + 1
    assert lines[0].startswith(f"ssh:h{HOSTS_SHOWN + 4} 988 requests/s")
    assert lines[-1] == "and 5 hosts that do more"
