"""The page as a screen of the live view: what viewers are sent, how often, and its end."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from page_viewer import Viewer, get
from samples import counts, good_record
from trueload.protocol.cpu_time import CpuTime
from trueload.protocol.tick import Tick
from trueload.report.course import Course
from trueload.report.heading import Heading
from trueload.report.live import watch
from trueload.report.panel import load_rows
from trueload.report.rows import Row, Size, Span
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.store.runs import Store
from trueload.trial.plan import make_phases
from trueload.trial.spec import HostTick, Progress, TrialSpec
from trueload.verdict import judge
from trueload.web.page import (
    EVERY_S,
    LINES_MAX,
    NOT_SAVED,
    SIZES,
    WebPage,
    make_report,
    rows_html,
)
from waiting import wait_until

SPEC = TrialSpec(
    url="http://h/", addresses=("127.0.0.1:1",), traffic=Traffic(request=Request(host="h"))
)
WINDOW = make_phases(SPEC)[1]
HEADING = Heading("trueload http http://h/", 2, 6, ", about 9 s left")
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


def tick(at_s: float, ok: int, failed: dict[str, int] | None = None) -> Tick:
    return Tick(
        type="tick",
        at_ns=int(at_s * 1e9),
        id="window",
        counts=counts(ok=ok, issued=ok, failed=failed or {}, statuses={"200": ok}),
        latency={500: 10},
        service={},
        open=9,
        bytes_in=0,
        bytes_out=0,
        busiest_ns=0,
    )


def progressed(one: Tick, *hosts: str) -> Progress:
    ticks = [HostTick(host, one) for host in hosts]
    server = CpuTime(one.at_ns, one.at_ns // 4)
    return Progress("window", one.at_ns, one, lambda: ticks, server=server, plan=WINDOW)


def rows_of(*ticks: Tick, hosts: tuple[str, ...] = ()) -> Callable[[Size], list[Row]]:
    """What the live view makes of these ticks, for a size."""
    course = Course()
    for one in ticks:
        course.receive(progressed(one, *hosts), is_open=False)
    return lambda size: load_rows(SPEC, progressed(ticks[-1], *hosts), course, HEADING, size)


def text_of(html: str) -> str:
    return unescape(re.sub("<.*?>", "", html))


def drawn_in(html: str) -> dict[str, str]:
    """The text of each width of a state."""
    found = re.findall('<pre class="(.*?)">(.*?)</pre>', html, re.DOTALL)
    return {name: text_of(text) for name, text in found}


def lines_in(html: str) -> list[str]:
    """The lines of text below the rows."""
    return "\n".join(map(text_of, re.findall("<pre>(.*?)</pre>", html, re.DOTALL))).split("\n")


def test_tones_are_classes_and_no_text_of_others_becomes_html() -> None:
    html = rows_html([(Span("a & b", "bad"), Span("<", "rate")), (Span("<script>", "label"),)])
    assert html == (
        '<span class="bad">a &amp; b</span><span class="rate">&lt;</span>\n'
        '<span class="label">&lt;script&gt;</span>'
    )


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def page(clock: Clock) -> Iterator[WebPage]:
    with WebPage(0, clock) as made:
        yield made


def viewing(page: WebPage) -> Viewer:
    viewer = Viewer(page.url)
    wait_until(lambda: page.viewers, "it watches")
    return viewer


def test_the_page_has_all_that_the_live_view_has_for_a_desk_and_for_a_phone(page: WebPage) -> None:
    viewer = viewing(page)
    ticks = [tick(at, int(1_000 * at), {"reset": 2}) for at in (1.0, 2.0)]
    page.begin(HEADING, ())
    page.draw(rows_of(*ticks, hosts=("host0", "host1")))
    state = viewer.state()
    assert (state["title"], state["end"]) == (HEADING.title, "")
    found = drawn_in(state["html"])
    assert list(found) == list(SIZES)
    for name, size in SIZES.items():
        rows = found[name].split("\n")
        assert len(rows) <= size.height
        assert {len(row) for row in rows} == {size.width}
        for word in ("trial", "2 of 6", "window", "1,000 requests/s", "p99.9", "host1", "reset"):
            assert word in found[name], word
        for title in ("load", "latency", "last seconds", "distribution", "answers", "hosts"):
            assert f"{title} ──" in found[name], title
    viewer.close()


def test_what_would_make_it_invalid_comes_first(page: WebPage) -> None:
    viewer = viewing(page)
    page.draw(rows_of(tick(2.0, 100, {"reset": 50})))
    for text in drawn_in(viewer.state()["html"]).values():
        assert text.startswith("invalid so far: errors: 50 % of the"), text
    viewer.close()


def test_a_state_is_made_only_if_somebody_watches_and_once_a_second(
    page: WebPage, clock: Clock
) -> None:
    made: list[float] = []

    def make(size: Size) -> list[Row]:
        if size == SIZES["wide"]:
            made.append(clock.now_s)
        return []

    page.begin(HEADING, ())
    page.draw(make)
    assert made == []
    viewer = viewing(page)
    for quarter in range(9):
        clock.now_s = 100 + quarter / 4
        page.draw(make)
    assert made == [100, 100 + EVERY_S, 100 + 2 * EVERY_S]
    assert viewer.state()["title"] == HEADING.title
    viewer.close()


def test_all_that_a_trial_reports_reaches_the_page_beside_the_terminal(page: WebPage) -> None:
    viewer = viewing(page)
    with watch(live=False, page=page)(SPEC, HEADING) as on_progress:
        assert on_progress is not None
        told = replace(progressed(tick(1.0, 900)), news=(f"host0 is lost: {HOSTILE}",))
        on_progress(told)
        html = viewer.state()["html"]
        assert "900 ok" in drawn_in(html)["wide"]
        assert lines_in(html)[0].startswith("host0 is lost: <script>alert(1)</script>")
        assert "<script" not in html
        on_progress(Progress("ended", 0, None, record=judge(good_record())))
    page.finish(None, lambda: True)
    while not (state := viewer.state())["end"]:
        pass
    assert state["end"] == NOT_SAVED
    lines = lines_in(state["html"])
    assert lines[0] == f"The result of {HEADING.title}:"
    assert any(line.startswith("latency ") for line in lines)
    viewer.close()


def test_only_the_last_lines_are_kept(page: WebPage) -> None:
    for number in range(LINES_MAX + 5):
        page.tell(str(number))
    viewer = viewing(page)
    page.draw(lambda size: [])
    lines = lines_in(viewer.state()["html"])
    assert (lines[0], lines[-1], len(lines)) == ("5", str(LINES_MAX + 4), LINES_MAX)
    viewer.close()


@pytest.mark.parametrize(
    ("engine", "left"),
    [((), {0, 1, 2}), ((0,), {1, 2}), ((0, 1, 2), {0, 1, 2}), ((7,), {0, 1, 2})],
)
def test_the_thread_leaves_the_generators_cpus_if_there_are_others(
    page: WebPage, monkeypatch: pytest.MonkeyPatch, engine: tuple[int, ...], left: set[int]
) -> None:
    kept: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: kept.append(set(cpus)))
    page.begin(HEADING, engine)
    assert kept == [left]


def test_every_file_of_the_page_is_served_and_asks_nothing_of_the_network(page: WebPage) -> None:
    kinds = {"": "text/html", "live.css": "text/css", "live.js": "text/javascript"}
    for name, kind in kinds.items():
        status, headers, body = get(page.url, name)
        assert (status, headers["Content-Type"].partition(";")[0]) == (200, kind)
        assert b"//" not in body.replace(b"// ", b"")


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run in a store of its own."""
    monkeypatch.setenv("TRUELOAD_STORE", str(tmp_path / "store.sqlite"))
    with Store.open() as store:
        run = store.new_run(kind="http", title="http://h/", plan=None, seed=None, command=[])
        store.add_record(run, judge(good_record()))
        store.end_run(run, "finished")
        return run.id


def test_the_end_is_the_report_of_the_run(page: WebPage, stored: str) -> None:
    viewer = viewing(page)
    fetched: list[Any] = []

    def fetch() -> bool:
        if not fetched:
            fetched.append(viewer.state())
            viewer.close()
            fetched.append(get(page.url, "report"))
        return False

    page.finish(stored, fetch)
    state, (status, _, body) = fetched
    assert (state["end"], status) == ("report", 200)
    assert b"<h1>http" in body
    assert b"<script" not in body


def test_a_page_that_nobody_watches_makes_no_report(
    page: WebPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueload.web.page.make_report", lambda run_id: pytest.fail("it is made"))
    page.finish("r1", lambda: False)


def test_a_report_that_cannot_be_made_is_told_with_what_to_do(
    stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, why = make_report("none-such")
    assert report is None
    assert why.startswith("There is no report: ")
    assert make_report(None) == (None, NOT_SAVED)
