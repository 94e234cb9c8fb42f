"""The checks of HTTP/2, and the lines about it in a result, one table each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_samples import html, put_records
from samples import (
    OK,
    PHASE,
    SLOTS,
    WINDOW_NS,
    check_of,
    connections,
    counts,
    good_record,
    histogram,
    plan,
    slots,
    staged,
    trial_facts,
)
from trueload.protocol import http2
from trueload.protocol.exchange import ExpectPlan, RequestPlan, WindowsPlan
from trueload.protocol.http2 import HeaderBytes, SettingRange, Waits
from trueload.protocol.plan import Requests, Stage
from trueload.protocol.scenario import StepPlan
from trueload.record.accounts.http2 import HTTP2, Http2, WaitShares, add_http2
from trueload.record.schema import Check, Record, Status, Warmup
from trueload.report.accounts.http2 import HTTP2 as HTTP2_SHOWN
from trueload.report.result import result_lines
from trueload.store.runs import Store
from trueload.verdict import judge
from virtual_server import Serve, closed_loop

STREAMS = 10
BROWSER = WindowsPlan(stream_window=6 * 2**20, connection_window=15 * 2**20)
NO_WAITS = dict.fromkeys(WaitShares.model_fields, 0.0)


def waited(**shares: float) -> WaitShares:
    return WaitShares(**{**NO_WAITS, **shares})


def spoken(**changes: Any) -> Http2:
    """Ten connections that had all ten streams in flight and waited for nothing."""
    fields: dict[str, Any] = {
        "connections": SLOTS,
        "http1": 0,
        "goaways": 0,
        "returned": 0,
        "resets": 0,
        "streams": float(SLOTS * STREAMS),
        "waited": waited(),
        "headers_out": HeaderBytes(plain=400_000, coded=200_000),
        "headers_in": HeaderBytes(plain=1_000_000, coded=50_000),
        "max_concurrent_streams": SettingRange(least=128, most=128),
        "initial_window_size": SettingRange(least=65_535, most=65_535),
        "max_frame_size": SettingRange(least=16_384, most=16_384),
        "header_table_size": SettingRange(least=4_096, most=4_096),
    }
    return Http2(**{**fields, **changes})


def record(found: Http2 | None, window: Any = PHASE, **changes: Any) -> Record:
    generate = plan(http2=BROWSER, pipeline=STREAMS, **changes.pop("plan", {}))
    changed_plan = good_record().plan.model_copy(update={"generate": generate, "window": window})
    return good_record(http2=found, **{"plan": changed_plan, **changes})


def check(name: str, found: Http2 | None, **changes: Any) -> Check:
    checks = record(found, **changes).checks
    return next(each for each in checks if each.name == name)


def by_alpn(count: int) -> dict[str, Any]:
    return {"connections": connections(failed={"tls.alpn": count})}


@pytest.mark.parametrize(
    ("sentence", "found", "changes", "status", "why"),
    [
        ("all speak it", {}, {}, "pass", "10 connections spoke HTTP/2"),
        ("some answer in HTTP/1", {"http1": 3}, {}, "fail",
         "10 connections spoke HTTP/2; to 3 attempts the server answered in HTTP/1"),
        ("some choose another by ALPN", {}, by_alpn(2), "fail", "2 handshakes did not agree on it"),
        ("in the warm-up only", {},
         {"warmup": Warmup(counts=counts(failed={"tls.alpn": 1}), wall_s=1.0)}, "fail",
         "1 handshake did not"),
        ("nobody was there", {"connections": 0}, {}, "n/a", "no connection became usable"),
    ],
)  # fmt: skip
def test_a_connection_that_speaks_another_version_fails(
    sentence: str, found: dict[str, Any], changes: dict[str, Any], status: Status, why: str
) -> None:
    seen = check("protocol", spoken(**found), **changes)
    assert (seen.status, why in seen.why) == (status, True), f"{sentence}: {seen.why}"


LIMITED = {"max_concurrent_streams": SettingRange(least=1, most=1), "streams": 10.0}
FEW = PHASE.model_copy(update={"stop": Requests(count=50)})
STEP = StepPlan(
    name="list",
    request=RequestPlan(method="GET", path="/", headers=(), body_sha256=None),
    expect=ExpectPlan(statuses=None, body_sha256=None),
    repeat=1,
)
HALF_PERMITTED = slots(permitted_ns=50 * WINDOW_NS)
LATE = good_record().histograms.model_copy(
    update={"send_lag": histogram((20 * WINDOW_NS // OK, OK))}
)
RAMP = PHASE.model_copy(
    update={"load": PHASE.load.model_copy(update={
        "active": (Stage(ns=WINDOW_NS, **{"from": 1.0, "to": 10.0}),)})}
)  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "found", "changes", "status", "why"),
    [
        ("all that were asked for", {}, {}, "pass", "100.0 streams in flight on average, 100.0 as"),
        ("nearly all", {"streams": 95.1}, {}, "pass", "permits 128 on each connection"),
        ("a few less", {"streams": 94.9}, {}, "warn", "94.9 streams in flight"),
        ("one is permitted", {**LIMITED, "waited": waited(stream=0.9)}, {}, "warn",
         "the server permits 1 on each connection (MAX_CONCURRENT_STREAMS); requests waited 90 %"),
        ("none is permitted",
         {"max_concurrent_streams": SettingRange(least=0, most=0), "streams": 0.0}, {}, "warn",
         "permits 0 on each connection"),
        ("servers differ", {"max_concurrent_streams": SettingRange(least=1), "streams": 50.0}, {},
         "warn", "permits 1 to any number on each"),
        ("no limit, but GOAWAYs",
         {"max_concurrent_streams": SettingRange(), "streams": 50.0, "goaways": 70}, {}, "warn",
         "no limit to them; the server ended 70 connections (GOAWAY)"),
        ("idle connections ask for nothing", {"streams": 50.0},
         {"window": PHASE.model_copy(update={"idle": 5})}, "pass", "50.0 asked for"),
        ("few requests run out", {"streams": 49.0}, {"window": FEW, "slots": HALF_PERMITTED},
         "pass", "50.0 asked for"),
        ("users of a scenario pause", {"streams": 49.0},
         {"plan": {"scenario": (STEP,)}, "slots": HALF_PERMITTED}, "pass", "50.0 asked for"),
        ("their steps are sent late", {"streams": 29.0},
         {"plan": {"scenario": (STEP,)}, "slots": HALF_PERMITTED, "histograms": LATE}, "pass",
         "30.0 asked for"),
        ("an open loop asks for a rate", LIMITED, {"window": staged((100, 100))}, "n/a",
         "no closed loop"),
        ("stages ask for more and more", LIMITED, {"window": RAMP}, "n/a", "--stages"),
        ("a connection for each request", LIMITED, {"plan": {"close": True}}, "n/a", "--close"),
    ],
)  # fmt: skip
def test_fewer_streams_in_flight_than_a_closed_loop_asks_for_warn(
    sentence: str, found: dict[str, Any], changes: dict[str, Any], status: Status, why: str
) -> None:
    seen = check("streams", spoken(**found), **changes)
    assert (seen.status, why in seen.why) == (status, True), f"{sentence}: {seen.why}"


@pytest.mark.parametrize(
    ("sentence", "shares", "status", "why"),
    [
        ("nobody waits", {}, "pass", "waited 0 % of their time"),
        ("waiting for a stream is none for a window", {"stream": 0.9}, "pass", "waited 0 % of"),
        ("a little of each", {"send_stream": 0.04, "receive_stream": 0.05}, "pass", "waited 9 %"),
        ("the server's window of a stream", {"send_stream": 0.5}, "warn",
         "50 %: our bodies waited for the server's window of their stream"),
        ("the server's of the connection", {"send_connection": 0.1}, "warn",
         "10 %: our bodies waited for the server's window of the connection"),
        ("ours, the worst first", {"receive_stream": 0.1, "receive_connection": 0.3}, "warn",
         "30 %: answers waited for our window of the connection (--connection-window);"
         " 10 %: answers waited for our window of their stream (--window)"),
    ],
)  # fmt: skip
def test_a_tenth_of_the_time_without_a_window_warns_and_says_whose(
    sentence: str, shares: dict[str, float], status: Status, why: str
) -> None:
    seen = check("flow-control", spoken(waited=waited(**shares)))
    assert (seen.status, why in seen.why) == (status, True), f"{sentence}: {seen.why}"


@pytest.mark.parametrize(
    ("returned", "stale", "goaway", "of_stale"),
    [
        (0, 0, "pass", "pass"),
        (99, 99, "pass", "pass"),
        (100, 100, "warn", "pass"),
        (0, 100, "pass", "warn"),
        (100, 200, "warn", "warn"),
    ],
)
def test_a_request_that_comes_back_undone_is_told_from_one_that_met_a_closed_connection(
    returned: int, stale: int, goaway: Status, of_stale: Status
) -> None:
    found = spoken(returned=returned, goaways=3)
    seen = {name: check(name, found, counts=counts(stale=stale)) for name in ("goaway", "stale")}
    assert (seen["goaway"].status, seen["stale"].status) == (goaway, of_stale)
    assert "the server ended 3 connections" in seen["goaway"].why


def test_over_http_1_none_of_them_applies() -> None:
    checks = {each.name: each.status for each in good_record().checks}
    names = ("protocol", "streams", "flow-control", "goaway")
    assert {checks[name] for name in names} == {"n/a"}
    assert HTTP2_SHOWN.shown(good_record()) == []


def test_a_result_tells_streams_waits_headers_and_what_was_reset() -> None:
    found = spoken(
        resets=20, goaways=1, waited=waited(stream=0.5, receive_stream=0.25), streams=50.0
    )
    assert dict(HTTP2_SHOWN.shown(record(found))) == {
        "streams": "50.0 in flight on average;"
        " the server permits 128 on each connection (MAX_CONCURRENT_STREAMS)",
        "waits": "for a stream 50 % of the time in flight, for a window 25 %"
        " (25 %: answers waited for our window of their stream (--window))",
        "headers": "sent 195 KiB for 391 KiB (50 %), received 48.8 KiB for 977 KiB (5 %);"
        " requests that are all alike flatter this",
        "ended": "20 streams reset by us, 1 connection by the server (GOAWAY)",
    }
    quiet = dict(HTTP2_SHOWN.shown(record(spoken())))
    assert quiet["waits"] == "for a stream 0 % of the time in flight, for a window 0 %"
    assert "ended" not in quiet


def test_shares_are_of_the_time_in_flight_and_other_versions_of_the_whole_trial() -> None:
    engine = http2.Http2(
        connections=2,
        http1=1,
        streams_ns=300,
        waits_ns=Waits(queued=100, stream=80, send_stream=40),
    )
    measured = measurement(engine)
    made = account(measured, [measured, measured])
    assert made is not None
    assert made.waited == waited(stream=0.2, send_stream=0.1)
    assert (made.http1, made.streams) == (2, 300 / measured.window_ns)
    idle = account(measurement(http2.Http2()))
    assert idle is not None
    assert idle.waited is None
    assert account(measurement(None)) is None


def account(window: Any, phases: Sequence[Any] = ()) -> Http2 | None:
    made: Http2 | None = HTTP2.made(
        trial_facts(window, generate=plan(http2=BROWSER), phases=phases)
    )
    return made


def measurement(engine: http2.Http2 | None) -> Any:
    """The parts of a measurement that are needed."""
    return SimpleNamespace(http2=engine, window_ns=100)


def test_what_several_engines_counted_is_added_up() -> None:
    def part(limit: int | None, resets: int = 0) -> http2.Http2:
        return http2.Http2(
            connections=1,
            resets=resets,
            waits_ns=Waits(queued=5),
            headers_in=HeaderBytes(plain=10, coded=1),
            max_concurrent_streams=SettingRange(least=limit, most=limit),
        )

    both = add_http2([part(100, 1), part(7, 2), http2.Http2(http1=1)])
    assert both is not None
    assert (both.connections, both.resets, both.http1, both.waits_ns.queued) == (2, 3, 1, 10)
    assert both.headers_in == HeaderBytes(plain=20, coded=2)
    assert both.max_concurrent_streams == SettingRange(least=7, most=100)
    unlimited = add_http2([part(None), part(7)])
    assert unlimited is not None
    assert unlimited.max_concurrent_streams == SettingRange(least=7, most=None)
    assert HTTP2.added([]) is None


@pytest.mark.parametrize(
    ("connections_of", "spoke", "streams"),
    [
        ((6, 4), "6 connections spoke HTTP/2, 4 connections spoke HTTP/1.1", "n/a"),
        ((SLOTS, 0), f"{SLOTS} connections spoke HTTP/2", "pass"),
        ((0, 1), "1 connection spoke HTTP/1.1", "n/a"),
    ],
)
def test_where_the_server_chooses_no_version_is_wrong_and_each_is_told(
    connections_of: tuple[int, int], spoke: str, streams: Status
) -> None:
    found = spoken(connections=connections_of[0], http1=connections_of[1])
    planned = record(found).plan
    http2_plan = BROWSER.model_copy(update={"http1_pipeline": 1})
    generate = planned.generate.model_copy(update={"http2": http2_plan})
    chosen = good_record(http2=found, plan=planned.model_copy(update={"generate": generate}))
    by_name = {each.name: each for each in chosen.checks}
    protocol = by_name["protocol"]
    assert (protocol.status, protocol.why) == ("pass", f"{spoke}, as the server chose")
    assert by_name["streams"].status == streams
    assert dict(HTTP2_SHOWN.shown(chosen))["versions"] == spoke


def test_requests_are_sent_again_that_the_server_had_not_begun() -> None:
    text = "\n".join(result_lines(record(spoken(), counts=counts(stale=12))))
    assert "12 sent again, as the server had not begun them" in text


def test_a_report_has_a_table_of_http2(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        run = put_records(store, [record(spoken(waited=waited(stream=0.25), resets=3))])
        text = html(store, run)
    assert "HTTP/2: streams, what requests waited for, headers" in text
    for cell in ("100.0 in flight on average", "for a stream 25 %", "3 streams reset by us"):
        assert f"<td>{cell}" in text, cell


def test_a_report_of_other_protocols_has_none(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        assert "HTTP/2: streams" not in html(store, put_records(store, [good_record()]))


def held(takes_s: float, every: int) -> Serve:
    """One place is held, again and again; with ``every``, one request of so many is slow."""
    free, seen = [0.0], count(1)

    def serve(slot: int, at: float, chance: random.Random) -> float:
        if every and next(seen) % every == 0:
            return at + takes_s
        if not every and at >= free[0]:
            free[0] = at + takes_s
            return free[0]
        return at + 0.02

    return serve


@pytest.mark.parametrize(
    ("what", "serve", "places", "status"),
    [
        ("one of 100 streams at a time", held(4.5, 0), 100, "warn"),
        ("one of 400", held(4.5, 0), 400, "pass"),
        ("no wait of a second", held(0.9, 0), 100, "pass"),
        ("p99.9 shows as many", held(1.5, 700), 100, "pass"),
        ("a single wait", held(1.5, 40_000), 100, "pass"),
    ],
)
def test_streams_that_get_nothing_are_told(
    what: str, serve: Serve, places: int, status: str
) -> None:
    record = closed_loop(serve, places, 10, http2=spoken())
    assert record.slots is not None
    # A slot is a connection, and each has had answers on its other streams.
    connections = record.slots.model_copy(update={"long_waits_ns": (), "long_waits": ()})
    record = judge(record.model_copy(update={"slots": connections}))
    found = check_of(record, "starvation")
    assert found.status == status, (what, found)
    over_http1 = judge(record.model_copy(update={"http2": None}))
    assert check_of(over_http1, "starvation").status == "pass", what


@pytest.mark.parametrize(("connections", "asks"), [(SLOTS, False), (0, True)])
def test_a_server_that_has_spoken_http_2_is_not_asked_whether_it_wants_tls(
    connections: int, asks: bool
) -> None:
    wrong = {"ok": 0, "failed": {"framing": 10_000}, "statuses": {}}
    found = check("errors", spoken(connections=connections), counts=counts(**wrong))
    assert ("does the server want https://?" in found.why) is asks, found
