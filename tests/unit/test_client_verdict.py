"""A client's record and its checks: what both ends report of one order, and what follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from client_samples import ASKED, CLAIM, LATE, REQUESTS, SEEN, S, good_client_record, look
from samples import check_of, good_record
from trueload.assemble.client import EndSample
from trueload.machine.throttling import ThrottleCounters
from trueload.protocol.server_report import Concurrent
from trueload.record.client import make_client_end
from trueload.record.schema import Record, Status
from trueload.verdict import CHECKS, decide

GOOD = good_client_record()


def seen(**changes: Any) -> dict[str, Any]:
    return {"seen": SEEN.model_copy(update=changes)}


def claim(**changes: Any) -> dict[str, Any]:
    return {"claim": CLAIM.model_copy(update=changes)}


def at_once(peak: int, mean: float | None = None) -> Concurrent:
    return Concurrent(now=peak, peak=peak, mean=float(peak) if mean is None else mean)


def steady(mean: float, most: float | None = None, ns: int = SEEN.span_ns) -> dict[str, Any]:
    """A mean number of connections; one span of ``ns`` has ``most`` instead."""
    update = {"connections_mean": mean if most is None else most, "ns": ns}
    spans = (*SEEN.series[1:], SEEN.series[0].model_copy(update=update))
    return seen(connections=at_once(300, mean), series=spans)


def busy(client_ns: int, server_ns: int, *, server_cpu: int = 0) -> dict[str, Any]:
    return {"after": look(S, client_ns, server_ns, server_cpu=server_cpu)}


def limited(client_ns: int = 0, server_ns: int = 0) -> dict[str, Any]:
    """Both ends in limited cgroups, throttled for these times."""

    def held(at_ns: int, client_ns: int, server_ns: int) -> EndSample:
        end = look(at_ns, 9 * at_ns // 10, at_ns // 2)
        assert end.host.server is not None
        server = replace(end.host.server, throttled={"/server": ThrottleCounters(server_ns, None)})
        client = replace(end.client, throttled={"/client": ThrottleCounters(client_ns, None)})
        return replace(end, client=client, host=replace(end.host, server=server))

    return {"before": held(0, 0, 0), "after": held(S, client_ns, server_ns)}


def unwatched() -> EndSample:
    """The sample at an order's end without the machine's other processes."""
    end = look(S, 9 * S // 10, S // 2)
    return replace(end, host=replace(end.host, processes=None))


def failing(count: int, name: str = "timeout.total") -> dict[str, Any]:
    return claim(ok=REQUESTS - count, failed={name: count})


def taking(ns: int) -> dict[str, Any]:
    return seen(first_request_ns=0, last_answer_ns=ns)


def spans(*answered: int) -> dict[str, Any]:
    """An order whose quarters of a second have these numbers of answers."""
    series = tuple(
        SEEN.series[0].model_copy(update={"began_ns": at * S // 4, "answered": count})
        for at, count in enumerate(answered)
    )
    whole = {"first_request_ns": 0, "last_answer_ns": len(series) * S // 4, "series": series}
    return seen(**whole)


# For each check: (name of the case, what was observed, the status, a part of the reason).
CASES: dict[str, list[tuple[str, dict[str, Any], Status, str]]] = {
    "both-ends": [
        ("both agree", {}, "pass", "the server completed 20,000, the client claims 20,000"),
        ("the client gave some up", failing(5), "pass", "claims 19,995 of them"),
        (
            "it begins a second late",
            {"wall_s": 2.0},
            "warn",
            "for 1.00 s of the 2.00 s between the",
        ),
        ("it takes a moment to begin", {"wall_s": 1.09}, "pass", "claims 20,000"),
        ("one claimed too much", seen(ok=19_999), "fail", "claims 20,000 ok, but the server"),
        ("all made up", seen(ok=0, requests=0), "fail", "the server completed 0"),
        (
            "asked twice, unseen",
            seen(requests=20_400, answered=20_400, ok=20_400, statuses={"200": 20_400}),
            "warn",
            "hidden retries: the server saw 20,400 requests, the client speaks of 20,000",
        ),
        (
            "what was never sent hides no retry",
            {**failing(100, "connect.refused"), **seen(requests=20_000)},
            "warn",
            "the client speaks of 19,900",
        ),
    ],
    "errors": [
        ("none", {}, "pass", "0 of 20,000"),
        ("few", failing(30), "warn", "mostly timeout.total"),
        ("as the published leader", failing(15_920), "fail", "15,920 of 20,000"),
    ],
    "littles-law": [
        ("within the pools", {}, "pass", "allow at most 25,600/s"),
        ("hardly more", taking(S * 77 // 100), "fail", "more requests in flight at once"),
        ("far more", taking(S // 2), "fail", "40,000 answers/s"),
        ("however short it is", taking(S // 100), "fail", "2,000,000 answers/s"),
        (
            "nothing was seen",
            seen(first_request_ns=None, last_answer_ns=None),
            "n/a",
            "nothing that took time",
        ),
    ],
    "generator-limit": [
        ("the server has time to spare", {}, "pass", "busy for 50"),
        ("the server is nearly full", busy(S, S * 85 // 100), "fail", "it was the limit"),
        (
            "the server answers late",
            seen(delay_error_ns=LATE.model_copy(update={"mean": 2_000_000.0})),
            "warn",
            "2.00 ms late on average",
        ),
        ("its usage is over the order", {**busy(S, S // 2), **taking(S // 4)}, "fail", "limit"),
    ],
    "over-pool": [
        ("as many as the pools have room for", {}, "pass", "256 connections at once; the pools"),
        ("one more", steady(257.0), "fail", "257 connections at once; the pools have room for 256"),
        ("one more for a quarter of a second", steady(256.0, 257.0), "fail", "257 connections"),
        ("one was closed, and has a successor", seen(connections=at_once(257, 256.02)), "pass", ""),
        ("one was open as the order ended", steady(256.0, 257.0, ns=1_000), "pass", "256 conn"),
        ("over in less than a quarter of a second", seen(series=()), "pass", "256 connections"),
        ("one more at work", seen(open_requests=at_once(257)), "fail", "257 connections"),
        ("a request was given up", seen(open_requests=at_once(257), aborted=1), "pass", "256 conn"),
        (
            "peaks of two threads at different times",
            seen(threads=2, open_requests=at_once(300)),
            "pass",
            "256 connections",
        ),
    ],
    "same-host": [
        ("apart", {}, "pass", "client on CPU 1, server on 0"),
        (
            "together",
            {**busy(S, S // 2, server_cpu=1), "before": look(0, 0, 0, server_cpu=1)},
            "warn",
            "they share CPUs",
        ),
    ],
    "audit": [
        ("all adds up", {}, "pass", "adds up"),
        ("too few", claim(ok=5), "fail", "claims 5 ok and 0 failed, of 20,000 requests"),
        ("too many", claim(ok=REQUESTS + 1), "fail", "claims 20001 ok"),
        ("longer than it took", claim(elapsed_s=9.0), "fail", "in 1.000 s"),
        ("no latency", claim(latency_us=None), "fail", "null where requests were answered"),
        ("our own account", seen(statuses={"200": 7}), "fail", "by status"),
    ],
    "cpu-limit": [
        ("ours counts nothing", {}, "n/a", "no cgroup of the reference server"),
        (
            "ours was paused",
            limited(server_ns=S // 10),
            "fail",
            "the reference server was throttled for 10 %",
        ),
    ],
    "subject-cpu-limit": [
        ("nobody counts", {}, "n/a", "no cgroup of the client"),
        (
            "the client was paused",
            limited(client_ns=S // 20),
            "pass",
            "the client was throttled for 5 %",
        ),
    ],
    "noise": [
        ("nobody else is there", {}, "pass", "other processes delayed the generator for 0 %"),
        ("nobody looked", {"after": unwatched()}, "warn", "not known"),
    ],
    "steady-state": [
        ("short", {}, "n/a", "too short"),
        ("even", spans(*[500] * 40), "pass", "2,000 requests/s throughout"),
        ("half as fast at first", spans(*[250] * 12, *[500] * 28), "warn", "1,000 requests/s from"),
        ("no whole span", {**spans(500), **taking(S // 8)}, "n/a", "it is not known when"),
    ],
}


@pytest.mark.parametrize(
    ("check", "changes", "status", "why"),
    [
        pytest.param(check, changes, status, why, id=f"{check}: {sentence}")
        for check, cases in CASES.items()
        for sentence, changes, status, why in cases
    ],
)
def test_a_check_of_a_client_says(
    check: str, changes: dict[str, Any], status: Status, why: str
) -> None:
    record = good_client_record(**changes)
    result = check_of(record, check)
    assert result.status == status, result
    assert why in result.why, result
    assert "\n" not in result.why
    assert record.verdict == decide(record.checks)


def test_a_client_that_does_what_it_says_is_valid() -> None:
    assert GOOD.verdict == "valid", GOOD.checks


UNKNOWN_HERE = {"steady-state", "cpu-limit", "subject-cpu-limit"}


def test_a_client_has_the_checks_of_a_server_by_the_same_names_in_the_same_order() -> None:
    assert [check.name for check in GOOD.checks] == [c.name for c in good_record().checks]
    assert len(GOOD.checks) == len(CHECKS)
    for check in GOOD.checks:
        assert check.why, "what does not apply says why"
        assert check.status != "n/a" or check.name not in set(CASES) - UNKNOWN_HERE


def test_what_is_mostly_errors_is_invalid_however_fast() -> None:
    record = good_client_record(**failing(15_920))
    assert record.verdict == "invalid"
    assert record.client is not None
    assert record.client.answered_per_s == 20_000
    assert record.client.goodput_per_s == 4_080, "only what both ends have counts"


def test_the_record_of_a_client_is_by_the_servers_clock_and_of_the_clients_tree() -> None:
    end = GOOD.client
    assert end is not None
    assert GOOD.throughput.ok_per_s == end.goodput_per_s == 20_000
    assert GOOD.window.window_ns == S
    assert (end.pool_ceiling_per_s, end.ceiling_per_s, end.ceiling_share) == (
        25_600,
        25_600,
        0.78125,
    )
    assert end.cpu_ns_per_request == 45_000
    assert (GOOD.generator.cpu_s, GOOD.generator.allowed_cpus) == (0.9, (1,))
    assert GOOD.server is not None
    assert GOOD.server.pids == (20,)
    assert GOOD.latency_ns.count == 0, "nobody but the client timed it"
    assert [(second.t_s, second.ok) for second in GOOD.series] == [(0, REQUESTS)]


def test_fewer_requests_at_once_than_places_are_a_lower_ceiling() -> None:
    few = ASKED.model_copy(
        update={"setup": ASKED.setup.model_copy(update={"concurrency": 16, "pool_size": 256})}
    )
    end = make_client_end(few, CLAIM, SEEN, None, S)
    assert (end.pool_ceiling_per_s, end.ceiling_per_s) == (102_400, 1_600)
    assert end.cpu_ns_per_request is None


# (the case, how long an order took, of which the server saw one second, and its throughput)
ORDERS = [
    ("the server's clock fills it", 1.0, 20_000),
    ("it began a second late, or claimed so", 2.0, 10_000),
    ("it claimed before its last answer", 0.5, 20_000),
]


@pytest.mark.parametrize(("sentence", "wall_s", "per_s"), ORDERS, ids=[each[0] for each in ORDERS])
def test_the_time_of_an_order_runs_from_its_start_to_the_claim(
    sentence: str, wall_s: float, per_s: float
) -> None:
    record = good_client_record(wall_s=wall_s, **claim(elapsed_s=0.5))
    end = record.client
    assert end is not None
    assert end.goodput_per_s == record.throughput.ok_per_s == per_s, sentence
    assert end.answered_per_s == 20_000, "by the server's clock alone"
    assert end.ceiling_share == per_s / 25_600
    assert (end.idle_ns > 0) == (wall_s > 1)


def test_a_record_of_a_client_comes_back_from_the_store_as_it_was() -> None:
    assert Record.model_validate_json(GOOD.model_dump_json(by_alias=True)) == GOOD
