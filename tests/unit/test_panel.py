"""The live view of a load, at each width of a terminal."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import counts
from trueload.protocol.cpu_time import CpuTime
from trueload.protocol.plan import Requests
from trueload.protocol.tick import Tick
from trueload.report.course import POINTS, Course
from trueload.report.draw import WIDTH_MIN, inside
from trueload.report.heading import Heading
from trueload.report.panel import HOSTS_SHOWN, load_rows, rate_at
from trueload.report.rows import Row, Size, row_text, row_width
from trueload.report.widgets import log_bins
from trueload.request.exchange import WsBroadcast
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.stats import merge_sparse
from trueload.trial.plan import make_phases
from trueload.trial.spec import PHASES, HostTick, Progress, TrialSpec, make_stage, open_load

SPEC = TrialSpec(
    url="http://h/", addresses=("127.0.0.1:1",), traffic=Traffic(request=Request(host="h"))
)
OPEN = replace(SPEC, load=replace(SPEC.load, pacing=open_load(1_000, SPEC.load.stop)))
WARMUP, WINDOW = make_phases(SPEC)
STEP = WINDOW.model_copy(update={"id": "step 7"})
ALONE = Heading("trueload http http://h/")
WIDTHS = (WIDTH_MIN, 24, 40, 80, 120, 200)
ROOMY = Size(116, 60)


def tick(at_s: float, ok: int, failed: dict[str, int] | None = None, **changes: object) -> Tick:
    counted = counts(ok=ok, issued=ok, failed=failed or {}, statuses={"200": ok})
    made = Tick(
        type="tick",
        at_ns=int(at_s * 1e9),
        id="window",
        counts=counted,
        latency={500: 10},
        service={},
        open=9,
        bytes_in=int(at_s * 2**20),
        bytes_out=0,
        busiest_ns=int(at_s * 0.74e9),
    )
    return made.model_copy(update=changes)


def progressed(one: Tick, stage: str = "window", **changes: object) -> Progress:
    cpu = CpuTime(one.at_ns, one.at_ns // 4)
    made = Progress(
        stage, one.at_ns, one, server=cpu, plan=WARMUP if stage == "warm-up" else WINDOW
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def followed(*ticks: Tick, is_open: bool = False) -> Course:
    made = Course()
    for one in ticks:
        made.receive(progressed(one), is_open=is_open)
    return made


def shown(
    *ticks: Tick, spec: TrialSpec = SPEC, size: Size = ROOMY, heading: Heading = ALONE
) -> list[Row]:
    course = followed(*ticks, is_open=spec.load.is_open)
    return load_rows(spec, progressed(ticks[-1]), course, heading, size)


def parted(rows: list[Row]) -> dict[str, str]:
    """The text of each row of a one-column view by its label; of equal labels the first."""
    found: dict[str, str] = {}
    for row in rows:
        text = row_text(row)
        label, _, rest = text.partition("  ")
        found.setdefault(label.strip(), rest.strip())
    return found


NARROW = Size(56, 80)
TICKS = (tick(1.0, 1_000), tick(2.0, 3_500, {"reset": 7}))


def test_the_view_shows_progress_figures_percentiles_failures_and_both_ends_cpus() -> None:
    found = parted(shown(*TICKS, size=NARROW))
    assert found["window"].endswith("2.00 s of 10s, 8 s left")
    assert found["throughput"] == "2,500 requests/s"
    assert found["on average"] == "1,750 requests/s"
    assert found["requests"] == "3,500 ok, 7 failed"
    assert found["in, out"] == "1.00 MiB/s, 0 B/s"
    assert found["connections"] == "9 open of 64"
    assert found["generator"].endswith("74% busy")
    assert found["server"].endswith("0.25 CPUs")
    assert found["p50"].split() == ["7.49", "us", "7.49", "us"]
    assert found["p99.9"].split() == [">", "7.49", "us", ">", "7.49", "us"]
    assert found["max of 20"].split() == ["7.49", "us", "7.49", "us"]
    assert any(label.startswith("≤ 7.49 us ██") for label in found)
    assert found["reset"] == "7"
    assert found["200"] == "3,500"
    assert found["rate"].endswith("2,500/s")


def test_an_open_loop_shows_what_was_asked_of_it_and_service_times_beside_response_times() -> None:
    ticks = [
        tick(at_s, 1_000, service={100: 10}, counts=counts(ok=1_000, issued=int(at_s * 500)))
        for at_s in (1.0, 2.0)
    ]
    rows = [row_text(row) for row in shown(*ticks, spec=OPEN, size=NARROW)]
    assert any(row.startswith("response time ──") for row in rows)
    assert parted(shown(*ticks, spec=OPEN, size=NARROW))["asked for"] == "1,000/s, sent 500/s"
    p50 = next(row for row in rows if row.startswith("p50"))
    assert p50.rstrip().endswith("100 ns")
    narrow = [row_text(row) for row in shown(*ticks, spec=OPEN, size=Size(36, 80))]
    assert not any("service" in row for row in narrow), "there is no room for it"


@pytest.mark.parametrize(
    ("elapsed_s", "per_s"), [(0.0, 100.0), (5.0, 150.0), (10.0, 500.0), (99.0, 500.0)]
)
def test_the_rate_that_is_asked_for_follows_the_stages(elapsed_s: float, per_s: float) -> None:
    stages = [make_stage(10 * 10**9, 100, 200), make_stage(10**9, 500, 500)]
    assert rate_at(stages, int(elapsed_s * 1e9)) == per_s
    assert rate_at([], 0) == 0


def test_a_broadcast_shows_the_deliveries_that_are_due() -> None:
    exchange = WsBroadcast(opening=Request(host="h"), dialect="json", padding=0)
    found = parted(
        shown(*TICKS, spec=replace(SPEC, traffic=Traffic(exchange=exchange)), size=NARROW)
    )
    assert found["deliveries"] == "22,500/s due"
    assert "deliveries" not in parted(shown(*TICKS, size=NARROW))


def test_stages_have_a_line_of_the_rate_that_is_asked_for() -> None:
    stages = tuple(make_stage(2 * 10**9, rate, rate) for rate in (100.0, 400.0))
    pacing = OPEN.load.pacing.model_copy(update={"stages": stages})
    staged = replace(OPEN, load=replace(OPEN.load, pacing=pacing))
    ticks = [tick(at_s, 1_000) for at_s in (1.0, 2.5)]
    assert parted(shown(*ticks, spec=staged, size=NARROW))["target"].endswith("400/s")
    assert "target" not in parted(shown(*ticks, spec=OPEN, size=NARROW))


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress("connect", 2_490, None), "connect      0.0 s"),
        (Progress("drain", 1_000_000_000, None), "drain        1.0 s"),
        (Progress("connect", 1_600_000_000, None, plan=WINDOW), "connect      1.6 s"),
        (Progress("window", 99 * 10**9, None, plan=WINDOW), "99.0 s of 10s, 0 s left"),
        (Progress("window", 1_000_000_000, None), "window       1.0 s"),
        (Progress("window", 0, None, plan=STEP), "step 7       ░░"),
    ],
)
def test_the_view_has_something_to_say_at_every_stage(progress: Progress, text: str) -> None:
    [row] = load_rows(SPEC, progress, Course(), ALONE, ROOMY)
    assert text in row_text(row)


def test_the_view_counts_requests_where_they_end_the_run() -> None:
    phase = WINDOW.model_copy(update={"stop": Requests(count=100), "connections": 5})
    one = tick(1.0, 25)
    progress = progressed(one, plan=phase)
    rows = load_rows(SPEC, progress, followed(one), ALONE, NARROW)
    assert row_text(rows[0]).rstrip().endswith("25 of 100, about 3 s left")
    assert parted(rows)["connections"] == "9 open of 5"


def test_where_nothing_comes_back_the_lines_are_empty() -> None:
    ticks = [tick(at_s, 0, latency={}, counts=counts(ok=0)) for at_s in (0.2, 0.4)]
    found = parted(shown(*ticks, size=NARROW))
    assert found["throughput"] == "0 requests/s"
    assert found["p99"].split() == ["-", "-"]


def test_what_would_be_invalid_says_so_first_and_all_but_failures_is_dim() -> None:
    whole = shown(*TICKS)
    assert {span.tone for row in whole for span in row} >= {"rate", "middle", "tail", "good"}
    bad = shown(tick(1.0, 100), tick(2.0, 200, {"reset": 30, "status": 1}, latency={}))
    assert row_text(bad[0]).startswith("invalid so far: errors: 15.5 % of the requests failed, ")
    assert "mostly reset" in row_text(bad[0])
    tones = {span.tone for row in bad for span in row if span.text.strip()}
    assert tones == {"bad", "label"}


@pytest.mark.parametrize(
    ("failed", "ok", "why"),
    [
        ({"unsolicited": 1}, 10_000, "unsolicited: 1 met bytes nobody had asked for"),
        ({"local.ports": 1}, 10_000, "generator-limit: it ran out of local ports"),
        ({}, 0, "errors: nothing has been answered yet"),
    ],
)
def test_each_reason_that_is_known_before_the_end_is_told(
    failed: dict[str, int], ok: int, why: str
) -> None:
    rows = shown(tick(1.5, ok, failed), tick(2.0, ok, failed))
    assert row_text(rows[0]).rstrip() == f"invalid so far: {why}"


def test_the_reason_is_whole_on_a_narrow_terminal_too() -> None:
    rows = shown(tick(1.0, 100), tick(2.0, 200, {"reset": 30}), size=Size(36, 40))
    text = " ".join(row_text(row).strip() for row in rows[:2])
    assert text == "invalid so far: errors: 15 % of the requests failed, mostly reset"


def test_a_few_failures_and_those_of_a_warm_up_make_nothing_invalid() -> None:
    assert "invalid" not in row_text(shown(tick(1.0, 9_000), tick(2.0, 9_999, {"reset": 1}))[0])
    course = Course()
    for one in (tick(1.0, 1), tick(2.0, 2, {"reset": 99})):
        course.receive(progressed(one, "warm-up"), is_open=False)
    rows = load_rows(SPEC, progressed(one, "warm-up"), course, ALONE, ROOMY)
    assert row_text(rows[0]).startswith("warm-up")


def test_a_trial_of_several_says_which_and_how_long_the_others_will_take() -> None:
    rows = shown(*TICKS, heading=Heading("c/nginx", 3, 24, ", about 12 min left"))
    assert row_text(rows[0]).startswith("trial        ███")
    assert row_text(rows[0]).rstrip().endswith("3 of 24, about 12 min left")


MANY = {f"class.{number}": number + 1 for number in range(30)}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("height", [1, 2, 5, 10, 24, 25, 30, 50, 90])
@pytest.mark.parametrize("failed", [{}, MANY])
def test_no_row_is_too_wide_and_there_are_never_too_many(
    width: int, height: int, failed: dict[str, int]
) -> None:
    size = inside(width, height, alone=True)
    heading = Heading("t" * 300, 2, 9)
    ticks = [tick(at / 4, at * 10**6, failed) for at in range(1, 40)]
    for spec in (SPEC, OPEN):
        rows = shown(*ticks, spec=spec, size=size, heading=heading)
        assert len(rows) <= size.height
        assert {row_width(row) for row in rows} == {size.width}


SPARSE = st.dictionaries(st.integers(0, 3_000), st.integers(0, 10**9), max_size=6)
WORDS = st.dictionaries(st.text(max_size=40), st.integers(0, 10**12), max_size=6)


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**15), SPARSE, WORDS), max_size=8),
    st.integers(WIDTH_MIN, 200),
    st.integers(1, 60),
    st.sampled_from([SPEC, OPEN]),
    st.sampled_from(PHASES[:-1]),
)
def test_whatever_is_told_is_shown_and_fits(
    given_ticks: list[tuple[int, int, dict[int, int], dict[str, int]]],
    width: int,
    height: int,
    spec: TrialSpec,
    stage: str,
) -> None:
    course, size = Course(), inside(width, height, alone=True)
    progress = Progress(stage, 0, None)
    at_ns = 0
    for gap_ns, ok, latency, words in given_ticks:
        at_ns += gap_ns
        counted = counts(ok=ok, issued=ok // 2, scheduled=ok, failed=words, statuses=words)
        one = tick(0, 0, counts=counted, latency=latency, at_ns=at_ns, bytes_in=ok)
        of_host = HostTick("ssh:\x1b[31m" + "h" * 99, one)
        progress = progressed(one, stage, hosts=partial(tuple, [of_host]))
        course.receive(progress, is_open=spec.load.is_open)
        rows = load_rows(spec, progress, course, ALONE, size)
        assert len(rows) <= size.height
        assert {row_width(row) for row in rows} <= {size.width}
        assert "\x1b" not in "".join(map(row_text, rows))


@pytest.mark.parametrize(
    ("width", "height", "titles"),
    [
        (40, 24, ["load", "latency", "last seconds"]),
        (40, 50, ["load", "latency", "last seconds", "distribution", "answers"]),
        (80, 24, ["load", "latency", "last seconds", "distribution", "answers"]),
        (120, 30, ["load", "latency", "last seconds", "distribution", "answers"]),
    ],
)
def test_the_most_important_parts_are_there_at_every_size(
    width: int, height: int, titles: list[str]
) -> None:
    rows = shown(*TICKS[:1], tick(2.0, 3_500), size=inside(width, height, alone=True))
    text = "\n".join(row_text(row) for row in rows)
    every = ("load", "latency", "last seconds", "distribution", "answers")
    assert [name for name in every if f"{name} ──" in text] == titles


def test_a_course_keeps_so_many_points_and_begins_anew_with_a_stage_but_not_with_its_drain() -> (
    None
):
    made = followed(*(tick(1 + at / 4, at) for at in range(POINTS + 50)))
    assert len(made.points) == POINTS
    made.receive(Progress("drain", 1, None), is_open=False)
    assert made.points
    assert made.phase == "window"
    made.receive(Progress("window", 0, None), is_open=False)
    assert not made.points
    assert not made.recent
    assert not made.latency


def test_the_sum_of_a_stage_is_made_once_a_second_and_for_a_new_maximum() -> None:
    course = Course()
    counted = []
    for at in range(1, 13):
        latency = {500 if at != 11 else 600: 10}
        course.receive(progressed(tick(at / 4, at, latency=latency)), is_open=False)
        counted.append(course.so_far.count)
    assert counted == [10, 10, 10, 10, 50, 50, 50, 50, 90, 90, 110, 110]


@given(
    st.dictionaries(st.integers(0, 3_000), st.integers(0, 10**6), max_size=50), st.integers(0, 20)
)
def test_bins_hold_every_answer_once_and_rise(latency: dict[int, int], most: int) -> None:
    known = merge_sparse([latency])
    bins = log_bins(known, most)
    assert len(bins) <= most
    if most:
        assert sum(count for _, count in bins) == known.total
        assert [upper for upper, _ in bins] == sorted(upper for upper, _ in bins)


def of_hosts(*oks: tuple[int, int]) -> list[str]:
    """The rows of hosts, each with its number of answers at 1 s and at 2 s."""
    made = Course()
    for at, at_s in enumerate((1.0, 2.0)):
        hosts = tuple(
            HostTick(f"ssh:h{number}", tick(at_s, both[at], {"reset": number}))
            for number, both in enumerate(oks)
        )
        made.receive(progressed(hosts[0].tick, hosts=partial(tuple, hosts)), is_open=False)
    rows = load_rows(SPEC, progressed(hosts[0].tick), made, ALONE, ROOMY)
    lines = [" ".join(row_text(row).split()) for row in rows]
    return [line for line in lines if "ssh:" in line or "hosts that" in line]


def test_each_of_several_hosts_has_a_row() -> None:
    assert of_hosts((10, 1_010), (0, 500)) == [
        "ssh:h0 1,000/s 74% busy, 9 open, 0 failed",
        "ssh:h1 500/s 74% busy, 9 open, 1 failed",
    ]


def test_of_very_many_hosts_those_that_do_least_are_shown() -> None:
    lines = of_hosts(*((0, 1_000 - number) for number in range(HOSTS_SHOWN + 5)))
    assert len(lines) == HOSTS_SHOWN + 1
    assert lines[0].startswith(f"ssh:h{HOSTS_SHOWN + 4} 988/s")
    assert lines[-1] == "and 5 hosts that do more"
