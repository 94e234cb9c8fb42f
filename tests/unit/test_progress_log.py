"""The lines about a long trial in a pipe: when they are printed, and what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import counts
from trueload.protocol.plan import Requests
from trueload.protocol.tick import Tick
from trueload.report.progress_log import line, progress_logger
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.spec import Progress, TrialSpec

NS = 10**9
SPEC = TrialSpec(
    url="http://h/", addresses=("127.0.0.1:1",), traffic=Traffic(request=Request(host="h"))
)
COUNTED = replace(SPEC, load=replace(SPEC.load, stop=Requests(count=9_000)))


def tick(*, ok: int = 0, failed: int = 0, open_: int = 0) -> Tick:
    return Tick(
        type="tick",
        at_ns=0,
        id=None,
        counts=counts(ok=ok, issued=ok, failed={"reset": failed} if failed else {}),
        latency={},
        service={},
        open=open_,
        bytes_in=0,
        bytes_out=0,
        busiest_ns=0,
    )


def test_a_line_comes_after_five_seconds_and_then_every_ten() -> None:
    now_s = 100.0
    lines: list[tuple[float, str]] = []
    show = progress_logger(
        SPEC, "trueload http", lambda: now_s, lambda text: lines.append((now_s, text))
    )
    for tenths in range(400):
        now_s = 100 + tenths / 10
        show(Progress("connect", tenths * NS // 10, None))
    assert [when for when, _ in lines] == [105, 115, 125, 135]
    assert lines[0][1] == "trueload http: connect 5s, opening 64 connections"


def test_a_lost_host_is_told_at_once() -> None:
    lines: list[str] = []
    show = progress_logger(SPEC, "trueload http", lambda: 100.0, lines.append)
    show(Progress("window", NS, None, news=("host lost: a: it died",)))
    show(Progress("window", NS, None))
    assert lines == ["trueload http: host lost: a: it died"]


@pytest.mark.parametrize(
    ("spec", "progress", "expected"),
    [
        (
            SPEC,
            Progress("connect", 6 * NS, tick(open_=12)),
            "connect 6s, 12 of 64 connections open",
        ),
        (
            SPEC,
            Progress("window", 5 * NS + 7, tick(ok=1_234_567, failed=2, open_=64)),
            "window 5s of 10s, 1,234,567 ok, 2 failed, 64 of 64 connections open",
        ),
        (
            COUNTED,
            Progress("window", 75 * NS, tick(ok=9, open_=64)),
            "window 75s, 9 ok, 0 failed, 64 of 64 connections open",
        ),
        (SPEC, Progress("drain", 0, None), "drain 0s"),
    ],
)
def test_it_says_how_far_a_stage_has_come(
    spec: TrialSpec, progress: Progress, expected: str
) -> None:
    assert line(spec, progress) == expected
