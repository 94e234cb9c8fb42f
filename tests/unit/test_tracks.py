"""The parts of the traffic over time: streams, and steps of sessions. They are added up over hosts,
shown while a run goes on, kept in the record, and drawn in the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from report_samples import made, put_records
from samples import counts, good_record, plan, trial_facts
from trueload.engines.merge import OverTime
from trueload.engines.ticks import Ticks
from trueload.protocol.exchange import ExpectPlan, RequestPlan
from trueload.protocol.scenario import StepPlan
from trueload.protocol.streams import StreamPlan
from trueload.protocol.tick import Second, Tick, Track
from trueload.record.accounts.targets import TargetRecord
from trueload.record.accounts.tracks import STREAM_PARTS, TRACKS, TrackRecord, names_apart
from trueload.record.outcomes import Outcomes
from trueload.record.schema import Record
from trueload.report.course import Course
from trueload.report.heading import Heading
from trueload.report.html.curves import part_points, slowest_step_points
from trueload.report.html.view import View
from trueload.report.panel import load_rows
from trueload.report.rows import Size, row_text
from trueload.request.steps import StepSpec
from trueload.request.traffic import Traffic
from trueload.request.values import Request, TargetSpec
from trueload.stats import Distribution
from trueload.store.runs import Store
from trueload.trial.spec import Progress, TrialSpec

MS = 1_000_000
SSE = StreamPlan(kind="sse")
REQUEST = Request(host="h")


def index(ns: int) -> int:
    """The index of a time in sparse histograms."""
    shift = max(0, ns.bit_length() - 7)
    return (shift << 6) + (ns >> shift)


def track(ok: int, ms: int, failed: int = 0) -> Track:
    return Track(ok=ok, failed=failed, latency={index(ms * MS): ok})


def tick(at_s: float, tracks: Sequence[Track]) -> Tick:
    return Tick(
        type="tick",
        at_ns=int(at_s * 1e9),
        id="window",
        counts=counts(ok=int(at_s * 1_000), issued=int(at_s * 1_000), statuses={"200": 1}),
        latency={index(10 * MS): 1_000},
        service={},
        tracks=tuple(tracks),
        open=9,
        bytes_in=0,
        bytes_out=0,
        busiest_ns=0,
    )


# ---- over hosts


def test_a_merged_tick_has_what_each_engine_told_of_each_part_once() -> None:
    ticks = Ticks(2)
    assert ticks.receive(0, tick(1.0, [track(3, 5), track(1, 9, failed=2)])) is None
    merged = ticks.receive(1, tick(1.0, [track(4, 5), track(2, 9, failed=1)]))
    assert merged is not None
    assert merged.tracks == (track(7, 5), track(3, 9, failed=3))
    ticks.receive(0, tick(1.25, [track(1, 5), track(0, 9)]))
    rest = ticks.rest()
    assert rest is not None
    assert [each.ok for each in rest.tracks] == [1, 0]


def second(t_s: int, ok: int, ms: int = 5, width_s: int = 1) -> Second:
    return Second(t_s=t_s, width_s=width_s, ok=ok, failed=0, latency={index(ms * MS): ok})


def test_parts_of_several_engines_are_added_second_by_second() -> None:
    total = OverTime()
    for tracks in (((second(0, 1),), (second(1, 2),)), (), ((second(0, 4), second(1, 8)), ())):
        total.add(SimpleNamespace(series=(second(0, 7),), tracks=tracks))  # type: ignore[arg-type]
    found = total.sums()
    assert found["series"] == (second(0, 21),)
    assert found["tracks"] == ((second(0, 5), second(1, 8)), (second(1, 2),))


# ---- in the record


def step(name: str) -> StepPlan:
    request = RequestPlan(method="GET", path="/", headers=(), body_sha256=None)
    return StepPlan(
        name=name, request=request, expect=ExpectPlan(statuses=None, body_sha256=None), repeat=1
    )


def test_the_record_names_each_part_in_the_order_of_the_plan() -> None:
    series = (second(0, 1),)
    both = plan().model_copy(update={"stream": SSE, "scenario": (step("in"), step("in"))})
    for generate, urls, named in (
        (plan(), (), []),
        (plan().model_copy(update={"stream": SSE}), (), [("first part", True), ("gap", True)]),
        (
            both,
            ("u", "u"),
            [("first part", True), ("gap", True), ("in", False), ("in (2)", False)],
        ),
    ):
        window = SimpleNamespace(tracks=(series,) * len(named))
        made = TRACKS.made(trial_facts(window, generate=generate, target_urls=urls))
        assert [(each.name, each.of_stream) for each in made] == named
    died = trial_facts(SimpleNamespace(tracks=()), generate=both, target_urls=("u", "u"))
    assert TRACKS.made(died) == (), "an engine that died tells nothing of them"


def test_records_of_before_and_of_one_request_have_no_parts() -> None:
    stored = good_record().model_dump(mode="json", by_alias=True)
    assert "tracks" not in stored
    assert Record.model_validate(stored).tracks == ()
    drawn = good_record(tracks=(TrackRecord(name="gap", of_stream=True, series=(second(0, 3),)),))
    assert Record.model_validate_json(drawn.model_dump_json(by_alias=True)) == drawn


@pytest.mark.parametrize(
    ("steps", "names"),
    [
        ([], ()),
        ([("buy", "GET", "/"), (None, "PUT", "/a")], ("buy", "PUT /a")),
        ([("a", "GET", "/"), ("a", "GET", "/"), ("b\x1b[1m", "GET", "/")], ("a", "a (2)", "b")),
    ],
)
def test_no_two_parts_have_the_same_name(
    steps: list[tuple[str | None, str, str]], names: tuple[str, ...]
) -> None:
    assert names_apart(steps) == names


# ---- while a run goes on


def shown(traffic: Traffic, ticks: Sequence[Tick], size: Size) -> list[str]:
    spec = TrialSpec(url="http://h/", addresses=("127.0.0.1:1",), traffic=traffic)
    course = Course()
    for each in ticks:
        course.receive(Progress("window", each.at_ns, each), is_open=False)
    last = Progress("window", ticks[-1].at_ns, ticks[-1])
    rows = load_rows(spec, last, course, Heading("trueload"), size)
    return [row_text(row).rstrip() for row in rows]


def part(rows: list[str], title: str) -> list[str]:
    """The rows below a title, up to the next."""
    at = next(number for number, row in enumerate(rows) if row.startswith(f"{title} ─"))
    below = rows[at + 1 :]
    end = next((number for number, row in enumerate(below) if " ──" in row), len(below))
    return below[:end]


def test_streams_have_a_row_for_first_parts_and_one_for_gaps() -> None:
    told = [(track(0, 90), track(0, 2)), (track(50, 90), track(400, 2))]
    ticks = [tick(1.0, told[0]), tick(1.5, told[1]), tick(2.0, told[1])]
    rows = shown(Traffic(request=REQUEST, stream=SSE), ticks, Size(80, 24))
    assert part(rows, "streams") == [
        "                            per second    p99 so far       p50 now        failed",
        "first part                         100       too few       90.2 ms             0",
        "gap                                800       2.02 ms       2.02 ms             0",
    ]


def steps(count: int) -> Traffic:
    return Traffic(
        scenario=tuple(
            StepSpec(name=f"step {at}", url="http://h/", request=REQUEST) for at in range(count)
        )
    )


def test_each_step_of_a_session_has_a_row() -> None:
    told = (track(500, 3), track(400, 30, failed=1))
    ticks = [tick(at, told) for at in (1.0, 1.5, 2.0)]
    assert part(shown(steps(2), ticks, Size(80, 24)), "steps") == [
        "                            per second    p99 so far       p50 now        failed",
        "step 0                           1,000       3.01 ms       3.01 ms             0",
        "step 1                             800       30.1 ms       30.1 ms             3",
    ]
    narrow = part(shown(steps(2), ticks, Size(42, 60)), "steps")
    assert narrow == [
        "                  per second    p99 so far",
        "step 0                 1,000       3.01 ms",
        "step 1                   800       30.1 ms",
    ], "what does not fit is left out"


def test_of_more_steps_than_fit_those_with_the_highest_p99_are_shown() -> None:
    ticks = [tick(at, [track(500, 1 + at_step) for at_step in range(9)]) for at in (1.0, 2.0)]
    rows = part(shown(steps(9), ticks, Size(80, 24)), "steps")
    assert [row.split()[:2] for row in rows[1:]] == [
        ["step", "6"],
        ["step", "7"],
        ["step", "8"],
        ["and", "6"],
    ]
    assert rows[-1] == "and 6 that are quicker"
    assert len(part(shown(steps(9), ticks, Size(80, 60)), "steps")) == 10, "with room for all"


def test_several_requests_have_rows_and_one_has_none() -> None:
    several = Traffic(
        targets=tuple(TargetSpec(url=f"http://h/{at}", request=REQUEST) for at in range(2))
    )
    ticks = [tick(at, [track(5, 1)] * 2) for at in (1.0, 2.0)]
    names = [row.split("  ")[0] for row in part(shown(several, ticks, Size(80, 24)), "requests")]
    assert names[1:] == ["GET http://h/0", "GET http://h/1"]
    plain = [tick(at, ()) for at in (1.0, 2.0)]
    rows = shown(Traffic(request=REQUEST), plain, Size(80, 24))
    assert not any(row.startswith(("requests ─", "steps ─", "streams ─")) for row in rows)


# ---- in the report


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite3") as opened:
        yield opened


def over_time(*tracks: TrackRecord, seconds: int = 6) -> Record:
    window = good_record().window.model_copy(update={"window_ns": seconds * 10**9})
    return good_record(window=window, tracks=tracks)


def record_of(name: str, ok: int, ms: int, *, of_stream: bool = False) -> TrackRecord:
    series = tuple(second(t_s, ok, ms) for t_s in range(6))
    return TrackRecord(name=name, of_stream=of_stream, series=series)


def charts(view: View) -> dict[str, str]:
    return {each.slug: each.title for part in view.parts for each in part.drawn}


def test_the_report_draws_first_parts_gaps_and_parts_over_time(store: Store) -> None:
    first, gap = STREAM_PARTS
    parts = (
        record_of(first, 400, 90, of_stream=True),
        record_of(gap, 4_000, 2, of_stream=True),
    )
    found = charts(made(store, put_records(store, [over_time(*parts)])).view)
    assert found["first-part-over-time"] == "First part over time"
    assert found["gap-between-parts-over-time"] == "Gap between parts over time"
    assert found["parts-over-time"] == "Parts over time"


def test_the_report_draws_the_slowest_steps_over_time(store: Store) -> None:
    steps = [record_of(f"step {at}", 400, 1 + at) for at in range(10)]
    asked = tuple(
        TargetRecord(
            name=each.name,
            method="GET",
            url="http://h/",
            weight=1,
            counts=Outcomes(issued=1, ok=1, stale=0, cancelled=0, failed={}, statuses={}),
            latency_ns=Distribution(),
            latency={},
        )
        for each in steps
    )
    record = over_time(*steps).model_copy(update={"targets": asked})
    view = made(store, put_records(store, [record])).view
    drawn = [
        e for part in view.parts for e in part.drawn if e.slug == "latency-by-request-over-time"
    ]
    assert len(drawn) == 1
    assert drawn[0].title.startswith("Latency by request over time: ")
    assert "step 9: 10.1 ms to 10.1 ms" in drawn[0].description
    assert "step 1:" not in drawn[0].description
    assert "2 more are not drawn" in drawn[0].note
    assert not any("step" in title for title in charts_without(store))


def charts_without(store: Store) -> list[str]:
    one = over_time(record_of("alone", 400, 3))
    view = made(store, put_records(store, [one, over_time()])).view
    return [e.slug for part in view.parts for e in part.drawn if "by-request-over" in e.slug]


def test_a_part_with_few_answers_has_points_of_several_seconds() -> None:
    for ok, points in ((400, 6), (200, 3), (1, 3)):
        record = over_time(record_of("gap", ok, 3, of_stream=True))
        assert len(part_points(record, "gap")) == points, ok
    assert part_points(over_time(), "gap") == ()
    record = over_time(record_of("a", 400, 3), record_of("b", 400, 5), record_of("c", 400, 4))
    assert list(slowest_step_points(record, 2)) == ["b", "c"]
