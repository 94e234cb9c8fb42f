"""The verdict: one table of cases per check, and what follows from the checks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from samples import (
    NO_COUNTS,
    OK,
    PHASE,
    SLOTS,
    WINDOW_NS,
    check_of,
    connections,
    counts,
    distribution,
    good_record,
    histogram,
    plan,
    slots,
    staged,
)
from trueload.protocol.plan import Closed, Requests
from trueload.record.schema import (
    Claim,
    Generator,
    RecordPlan,
    Server,
    Status,
    Trouble,
    Warmup,
    Window,
)
from trueload.stats import Distribution
from trueload.verdict import _DECLARED, CHECKS, decide

GOOD = good_record()
HALF_LAG = GOOD.histograms.model_copy(update={"send_lag": histogram((500_000, OK))})


def generator(**changes: Any) -> Generator:
    return GOOD.generator.model_copy(update=changes)


def server(**changes: Any) -> Server:
    assert GOOD.server is not None
    return GOOD.server.model_copy(update=changes)


def window(**changes: Any) -> Window:
    return GOOD.window.model_copy(update=changes)


def record_plan(**changes: Any) -> RecordPlan:
    return GOOD.plan.model_copy(update={"generate": plan(**changes)})


def claiming(**claim: Any) -> dict[str, Any]:
    return {"plan": GOOD.plan.model_copy(update={"claim": Claim(**claim)})}


def opened(*rates: tuple[float, float], **load: Any) -> RecordPlan:
    """The plan of an open loop, at 10,000/s unless told otherwise."""
    phase = staged(*(rates or ((OK, OK),)), **load)
    return GOOD.plan.model_copy(update={"window": phase})


def by_count(**load: Any) -> RecordPlan:
    """The plan of 10,000 requests at 10,000/s."""
    found = opened(**load)
    window = found.window.model_copy(update={"stop": Requests(count=OK)})
    return found.model_copy(update={"window": window})


def connection_stages() -> RecordPlan:
    stages = [{"ns": WINDOW_NS, "from": 1, "to": SLOTS}]
    load = Closed.model_validate({"active": stages})
    return GOOD.plan.model_copy(update={"window": PHASE.model_copy(update={"load": load})})


def lagging(lag_ns: int | None, p50_ns: int = 1_000_000) -> dict[str, Any]:
    """An open loop with this send lag."""
    return {
        "plan": opened(),
        "generator": generator(send_lag_p99_ns=lag_ns),
        "latency_ns": distribution(histogram((p50_ns, OK))),
    }


def spread_out(count: int) -> dict[str, Any]:
    """``count`` answers, from 1 ms on by 1 % more each, with p99 claimed."""
    values = tuple((round(1_000_000 * 1.01**number), 1) for number in range(count))
    latency = histogram(*values)
    return {
        **claiming(percentile="p99"),
        "histograms": GOOD.histograms.model_copy(update={"latency": latency}),
        "counts": counts(ok=count, issued=count, scheduled=count),
    }


def failed(**classes: int) -> dict[str, Any]:
    lost = sum(classes.values())
    named = {name.replace("_", "."): count for name, count in classes.items()}
    return {"counts": counts(ok=OK - lost, failed=named)}


def test_an_ordinary_run_with_the_cpus_kept_apart_is_valid() -> None:
    assert GOOD.verdict == "valid"
    statuses = {check.name: check.status for check in GOOD.checks}
    assert len(statuses) == len(CHECKS)
    assert set(statuses.values()) == {"pass", "n/a"}
    assert {name for name, status in statuses.items() if status == "n/a"} == {
        *("send-lag", "rate-reached", "backlog", "server-idle", "quantile-width"),
        *("ledger", "both-ends", "over-pool", "cpu-limit", "subject-cpu-limit"),
        *("predicted", "varying", "cpu-speed", "sessions", *OF_THE_LOAD, *OF_SEVERAL_HOSTS),
        *OF_HTTP2,
    }


def test_every_check_is_explained_and_named_once() -> None:
    assert [check.name for check in GOOD.checks] == list(CHECKS)
    declared = {id(each): each.name for each in _DECLARED}
    assert sorted(declared.values()) == sorted(CHECKS)
    assert len({each.order for each in CHECKS.values()}) == len(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_is_explained_in_one_sentence_with_what_to_do(name: str) -> None:
    check = CHECKS[name]
    assert re.fullmatch(r"[A-Z][^.!?]+\.", check.meaning), "one sentence"
    orders = ("Look", "Fix", "Raise", "Give", "Use", "End", "Pin", "Above", "If")
    assert check.remedy.startswith(orders), "what to do comes first"
    assert check.remedy.endswith(".")


NOT_OF_HTTP_SERVERS = {"ledger", "both-ends", "over-pool"}
# Their cases are in test_fleet.py and test_lost_hosts.py.
OF_SEVERAL_HOSTS = {"host-bias", "hosts-lost", "one-machine", "clocks"}
OF_THE_LOAD = {"data"}  # its cases are in test_data.py
# The cases of the others are in test_generator_share.py, test_verdict_machine.py, test_varying.py,
# test_backends.py and test_cpu_speed.py.
OF_OUR_SIDE = {
    *("backends", "client-share", "hiccup", "cpu-limit", "subject-cpu-limit", "noise"),
    "same-host",
}
OF_THE_CPUS = {"cpu-speed"}
OF_ANSWERS = {"predicted", "varying"}
OF_THE_FLOW = {"backlog", "steady-state", "stall"}  # theirs are in test_verdict_flow.py
OF_SLOTS = {"slow-connections"}  # its cases are in test_slow_connections.py
OF_HTTP2 = {"protocol", "goaway", "streams", "flow-control"}  # theirs are in test_verdict_http2.py
OF_SESSIONS = {"sessions"}  # its cases are in test_verdict_sessions.py
OF_TIMERS = {"delayed-ack"}  # its cases are in test_delayed_ack.py
ELSEWHERE = {
    *(*OF_SEVERAL_HOSTS, *OF_OUR_SIDE, *OF_ANSWERS, *OF_THE_FLOW),
    *(*OF_SLOTS, *OF_HTTP2, *OF_TIMERS, *OF_THE_CPUS, *OF_THE_LOAD, *OF_SESSIONS),
}

Case = tuple[str, dict[str, Any], Status, str]

CASES: dict[str, list[Case]] = {
    "unsolicited": [
        ("none", {}, "pass", "settled"),
        ("one in the window", failed(unsolicited=1), "fail", "1 request received"),
        (
            "one in the warm-up",
            {"warmup": Warmup(counts=NO_COUNTS.model_copy(update={"failed": {"unsolicited": 2}}),
                              wall_s=1.0)},
            "fail",
            "2 requests received",
        ),
    ],
    "errors": [
        ("none", {}, "pass", "0 of 10,000"),
        ("under one in a thousand", failed(reset=9), "pass", "9 of 10,000"),
        ("one in a thousand", failed(reset=10), "warn", "mostly reset"),
        ("under one in a hundred", failed(reset=99), "warn", "99 of 10,000"),
        ("one in a hundred", failed(reset=40, timeout_total=60), "fail", "mostly timeout.total"),
        ("redirects", {"counts": counts(ok=0, failed={"status": OK}, statuses={"301": OK})},
         "fail", "mostly status 301, a redirect: load the URL that it leads to"),
        ("a redirect that says where to",
         {"counts": counts(ok=0, failed={"status": OK}, statuses={"301": OK}),
          "connections": connections(reasons={"status": "a redirect to /login\x07"})},
         "fail", "mostly status 301, a redirect to /login: load that URL, or use --follow"),
        ("redirects to another server, which are not followed", failed(redirect=OK) |
         {"connections": connections(reasons={
             "redirect": "to another server: a redirect to https://a.test/"})},
         "fail", "mostly a redirect to another server: load https://a.test/ instead"),
        ("some not found", {"counts": counts(ok=OK - 200, failed={"status": 200},
         statuses={"200": OK - 200, "404": 200})}, "fail", "mostly status 404"),
        ("another status asked for", {"counts": counts(ok=0, failed={"status": OK},
         statuses={"200": OK})}, "fail", "mostly status 200"),
        ("all", failed(connect_refused=OK), "fail", "10,000 of 10,000"),
        ("nothing was issued", {"counts": NO_COUNTS}, "fail", "nothing was measured"),
        (
            "what was asked before held it up",
            {"counts": NO_COUNTS, "warmup": Warmup(
                counts=counts(scheduled=64, issued=64, ok=12, cancelled=52), wall_s=1.0,
            )},
            "fail",
            "nothing was measured; 12 of 64 requests of the warm-up were answered well",
        ),
    ],
    "stale": [
        ("none", {}, "pass", "0 of 10,000"),
        ("under one in a hundred", {"counts": counts(stale=99)}, "pass", "99 of 10,000"),
        ("one in a hundred", {"counts": counts(stale=100)}, "warn", "just closed"),
        (
            "some by a reset",
            {"counts": counts(stale=100, stale_resets=3)},
            "warn",
            "just closed, 3 of them by a reset",
        ),
        ("a connection per request", {"plan": record_plan(close=True)}, "n/a", "--close"),
        ("nothing was issued", {"counts": NO_COUNTS}, "n/a", "no request"),
    ],
    "littles-law": [
        ("as many as permitted", {}, "pass", "10.0 requests in flight on average, 10.0 permitted"),
        ("9 % above", {"slots": slots(permitted_ns=SLOTS * WINDOW_NS * 100 // 109)}, "pass", ""),
        ("half of the time is send lag", {
            "service_ns": distribution(histogram((500_000, OK))), "histograms": HALF_LAG,
        }, "pass", "10.0 requests"),
        ("15 % above", {"slots": slots(permitted_ns=SLOTS * WINDOW_NS * 100 // 115)}, "warn",
         "more than the load permits"),
        ("30 % above", {"slots": slots(permitted_ns=SLOTS * WINDOW_NS * 100 // 130)}, "fail",
         "more than the load permits"),
        ("12 % below", {"slots": slots(permitted_ns=SLOTS * WINDOW_NS * 100 // 88)}, "warn",
         "too few requests in flight"),
        ("60 % below only warns", {"slots": slots(permitted_ns=SLOTS * WINDOW_NS * 100 // 40)},
         "warn", "too few requests in flight"),
        (
            "slots stand empty, with few requests each",
            {
                "slots": slots(permitted_ns=50 * WINDOW_NS),
                "service_ns": distribution(histogram((400_000_000, 90))),
            },
            "n/a",
            "9.0 requests a slot",
        ),
        (
            "slow answers that end in the drain are no surplus",
            {
                "service_ns": distribution(histogram((300_000_000, 40))),
                "window": window(drain_ns=200_000_000),
            },
            "pass",
            "12.0 requests",
        ),
        (
            "a stuck connection's long drain does not excuse a surplus",
            {
                "slots": slots(permitted_ns=SLOTS * WINDOW_NS * 100 // 130),
                "window": window(drain_ns=5_000_000_000),
            },
            "fail",
            "more than the load permits",
        ),
        ("a connection per request, which takes most of the time", {
            "plan": record_plan(close=True), "slots": slots(permitted_ns=4 * WINDOW_NS),
            "service_ns": distribution(histogram((400_000, OK))),
            "connect_ns": distribution(histogram((100_000, OK)))}, "pass",
         "4.0 permitted; besides, 1.0 of 10 slots were connecting, and 5.0 were closing"),
        ("a connection per request, which takes little of the time", {
            "plan": record_plan(close=True), "slots": slots(permitted_ns=SLOTS * WINDOW_NS)},
         "pass", "10.0 permitted"),
        ("an open loop", {"plan": opened()}, "n/a", "not a closed loop"),
        ("connections over time", {"plan": connection_stages()}, "n/a", "the load itself changes"),
        ("a window of two services", {"service_ns": distribution(histogram((600_000_000, 10)))},
         "n/a", "shorter than two service times"),
        ("a window too short to tell", {"window": window(window_ns=20_000_000)}, "n/a", "20.0 ms"),
        ("nothing answered", {"service_ns": Distribution()}, "n/a", "no service times"),
        ("no measurement", {"slots": None}, "n/a", "no service times"),
        ("no slot was permitted", {"slots": slots(permitted_ns=0)}, "n/a", "service times"),
    ],
    "generator-limit": [
        ("neither is full", {}, "pass", "50 %"),
        ("the server is full", {"server": server(saturation=0.99)}, "pass", "99 %"),
        ("the generator is full", {"generator": generator(saturation=0.95)}, "fail",
         "the generator was the limit"),
        (
            "the generator is full, the server hardly two thirds",
            {"generator": generator(saturation=0.95), "server": server(saturation=0.66)},
            "fail",
            "the generator was the limit",
        ),
        (
            "the generator is full, the server nearly",
            {"generator": generator(saturation=0.95), "server": server(saturation=0.8)},
            "bound",
            "a lower bound, the server may carry 25 % more",
        ),
        (
            "both are full",
            {"generator": generator(saturation=0.97), "server": server(saturation=0.90)},
            "bound",
            "a lower bound, the server may carry 11.1 % more",
        ),
        (
            "both are nearly full",
            {"generator": generator(saturation=0.90), "server": server(saturation=0.95)},
            "bound",
            "a lower bound, the server may carry 5.3 % more",
        ),
        ("the server cannot be seen", {"server": None}, "n/a", "is not known"),
        (
            "the server cannot be seen and the generator is full",
            {"server": None, "generator": generator(saturation=0.96)},
            "warn",
            "is not known",
        ),
        ("the kernel keeps no statistics", {"generator": generator(saturation=None)}, "n/a",
         "not known"),
        (
            "a window too short to tell",
            {"generator": generator(saturation=0.99), "window": window(window_ns=5_000_000)},
            "n/a",
            "too short",
        ),
        ("no file descriptor was left", failed(local_fds=3), "fail", "file descriptors"),
        (
            "no local port was left at the start",
            {"connections": connections(failed={"local.ports": 2})},
            "fail",
            "local ports",
        ),
    ],
    "send-lag": [
        ("a closed loop", {}, "n/a", "not an open loop"),
        ("nothing sent", lagging(None), "n/a", "no request was sent"),
        ("as timers are", lagging(60_000), "pass", "60.0 us"),
        ("at 250 us", lagging(250_000), "pass", ""),
        ("above 250 us", lagging(250_001), "warn", "later than they could have been"),
        ("5 % of a p50 of 100 ms", lagging(4_900_000, 100_000_000), "pass", ""),
        ("above 5 % of it", lagging(5_100_000, 100_000_000), "warn", ""),
        ("at 1 ms", lagging(1_000_000), "warn", ""),
        ("above 1 ms", lagging(1_000_001), "fail", "1.00 ms"),
        ("of few requests one decides", {**lagging(4_650_000), "histograms":
            GOOD.histograms.model_copy(update={"send_lag": histogram((4_650_000, 17))})},
         "warn", "the latest request of 17 was sent 4.65 ms late"),
        ("above 10 % of a p50 of 100 ms", lagging(10_100_000, 100_000_000), "fail", ""),
    ],
    "rate-reached": [
        ("a closed loop", {}, "n/a", "not an open loop"),
        ("all of it", {"plan": opened()}, "pass", "10,000 requests/s offered, 10,000/s sent"),
        ("under 1 % short", {"plan": opened(), "counts": counts(issued=OK - 99, unsent=99)},
         "pass", "9,901/s sent"),
        ("1 % short", {"plan": opened(), "counts": counts(issued=OK - 100, unsent=100)},
         "warn", "1 % short"),
        ("5 % short", {"plan": opened(), "counts": counts(issued=OK - 500, unsent=500)},
         "fail", "5 % short"),
        ("by count in its time", {"plan": by_count()}, "pass", "10,000/s sent"),
        ("by count in a tenth more", {"plan": by_count(), "window": window(
            window_ns=WINDOW_NS * 11 // 10)}, "fail", "9,099/s sent: 9 % short"),
        ("by count, within what chance spreads", {"plan": by_count(arrivals="poisson"),
         "window": window(window_ns=WINDOW_NS * 102 // 100)}, "pass", ""),
        ("nothing scheduled", {"plan": opened(), "counts": NO_COUNTS}, "n/a", "no request"),
    ],
    "window": [
        ("a thousand answers a slot", {}, "pass", "answers a slot: one takes"),
        ("two and a half", {"service_ns": replace(GOOD.service_ns, mean=WINDOW_NS / 2.5)},
         "warn", "2.5 answers a slot"),
        ("nothing was answered", {"service_ns": Distribution()}, "n/a", "no answer was timed"),
        ("one answer", {"counts": counts(ok=1, issued=1)}, "warn", "1 answer: too few"),
        ("ten", {"counts": counts(ok=10, issued=10)}, "pass", "answers a slot"),
    ],
    "starvation": [
        ("nobody waited", {}, "pass", "no slot waited 1.00 s"),
        ("a wait under a second, then an answer", {"slots": slots(long_waits_ns=(999_999_999,)),
         "service_ns": replace(GOOD.service_ns, max=999_999_999)}, "pass", ""),
        ("a wait under a second, then none", {"slots": slots(long_waits_ns=(999_999_999,))},
         "fail", "1 of 10 slots stopped getting answers, for 1,000 ms"),
        (
            "a wait under a hundred medians",
            {
                "latency_ns": distribution(histogram((20_000_000, OK))),
                "service_ns": replace(GOOD.service_ns, max=1_900_000_000),
                "slots": slots(long_waits_ns=(1_900_000_000,)),
            },
            "pass",
            "2.0",
        ),
        (
            "one slot of a thousand",
            {"slots": slots(asked=1_000, long_waits_ns=(1_500_000_000,))},
            "warn",
            "1 of 1,000 slots waited up to 1.50 s",
        ),
        (
            "one slot in a hundred",
            {"slots": slots(asked=100, long_waits_ns=(28_000_000_000,))},
            "fail",
            "28.0 s",
        ),
        ("one that never was answered", {"slots": slots(asked=1_000, never_answered=1)}, "fail",
         "got no answer"),
        ("no slot asked", {"slots": slots(asked=0)}, "n/a", "no slot asked"),
        ("no measurement", {"slots": None}, "n/a", "no slot asked"),
    ],
    "fairness": [
        ("all alike", {}, "pass", "1,000 to 1,000"),
        (
            "as far apart as chance takes them",
            {"slots": slots(answers_sum=200, answers_sum_squares=4_200)},
            "pass",
            "fairness 1.00",
        ),
        (
            "a quarter of the mean apart",
            {"slots": slots(answers_sum_squares=11_500_000)},
            "warn",
            "fairness 0.8",
        ),
        ("half of the slots got nothing", {"slots": slots(answers_sum_squares=2 * 10**7 + 10**5)},
         "fail", "fairness 0.5"),
        ("one got all", {"slots": slots(answers_sum_squares=10**8)}, "fail", "fairness 0.10"),
        ("too few replies", {"slots": slots(answers_sum=199)}, "n/a", "19.9 replies"),
        ("one slot", {"slots": slots(asked=1)}, "n/a", "nobody to share with"),
        ("no slot asked", {"slots": slots(asked=0)}, "n/a", "no slot asked"),
        ("no measurement", {"slots": None}, "n/a", "no slot asked"),
    ],
    "connections": [
        ("the server ends idle connections", {"connections": connections(reconnects=1_234,
         idle_closed=1_234, idle_closed_after_ns=502_000_000)}, "pass", "all 10 were there; the"
         " server ends connections that are idle for 0.5 s (1,234 times)"),
        ("one of ten was dropped in the warm-up", {"warmup": Warmup(
            counts=NO_COUNTS.model_copy(update={"failed": {"empty": 1}}), wall_s=1.0,
            reconnects=1)}, "fail", "dropped 9.1 % of those that were opened"),
        ("handshakes that were reset are no more than were opened", {**failed(reset=20),
            "connections": connections(requested=2, established=2)}, "fail", "dropped 100 %"),
        ("one of a hundred was dropped", {**failed(reset=1), "connections": connections(
            requested=99, established=99, reconnects=1)}, "warn", "dropped 1 %"),
        ("one of a thousand was dropped", {**failed(reset=1), "connections": connections(
            requested=999, established=999, reconnects=1)}, "pass", "all 999"),
        ("pipelined requests fail together", {**failed(truncated=10), "plan": record_plan(
            pipeline=10), "connections": connections(requested=199, established=199,
            reconnects=1)}, "pass", "all 199"),
        ("all there", {}, "pass", "all 10"),
        ("one in a hundred was never ended by the server", {"connections": connections(
            reconnects=990, unended=10)}, "warn", "left 10 connections open after its answer"),
        ("one in a thousand was never ended by the server", {"connections": connections(
            reconnects=990, unended=1)}, "pass", "all 10"),
        ("one in a thousand is missing", {"connections": connections(requested=1000,
         established=999)}, "warn", "1 of 1000 were never established"),
        ("one in a hundred is missing", {"connections": connections(requested=100,
         established=99)}, "fail", "never established"),
        ("one in a thousand was down", {"connections": connections(requested=1000,
         established=1000, down=1)}, "warn", "down for more than 1 s"),
        ("the server was away", {"connections": connections(outages=10, outage_ns=2_500_000_000)},
         "fail", "away for 2.50 s"),
        ("the server left in the drain", {"connections": connections(outages=10, outage_ns=0)},
         "fail", "gone at the end: 10 of the connections got no new one"),
        ("the server refused", {**failed(connect_refused=20), "connections": connections(
            outages=10, outage_ns=1_000_000_000)}, "fail", "were refused a new one"),
        ("the server did not answer attempts", {**failed(connect_timeout=20), "connections":
         connections(outages=10, outage_ns=1_000_000_000)}, "fail",
         "was away for 1.00 s: 10 of the connections got no answer to their attempt"),
        ("some were refused, some not answered", {**failed(connect_timeout=3, connect_refused=7),
         "connections": connections(outages=10, outage_ns=1_000_000_000)}, "fail",
         "10 of the connections got no new one (connect.refused 7, connect.timeout 3)"),
        ("there were no more ports, which is not the server's fault", {**failed(local_ports=20),
         "connections": connections(outages=10, outage_ns=1_000_000_000)}, "fail",
         "10 lost their connection and found no local port for a new one"),
        ("one in a thousand was refused", {"connections": connections(requested=1000,
         established=1000, outages=1)}, "pass", ""),
        ("none was there", {"connections": connections(established=0)}, "fail", "10 of 10"),
        ("the engine died", {"connections": connections(down=None, outages=None)}, "n/a",
         "before it could say"),
        ("none was asked for", {"connections": connections(requested=0)}, "n/a", "asked for"),
    ],
    "censored": [
        ("none", {}, "pass", "0 open"),
        ("under one in a thousand", {"counts": counts(ok=OK - 9, cancelled=9)}, "pass", "9 open"),
        ("one in a thousand", {"counts": counts(ok=OK - 10, cancelled=10)}, "warn", "10 open"),
        ("one in a hundred", {"counts": counts(ok=OK - 100, issued=OK - 50, cancelled=50,
         unsent=50)}, "fail", "50 never sent"),
        ("nothing scheduled", {"counts": NO_COUNTS}, "n/a", "no request was scheduled"),
    ],
    "server-idle": [
        ("no maximum is claimed", {"server": server(saturation=0.1)}, "n/a", "no maximum"),
        ("the server is full", {**claiming(maximum=True), "server": server(saturation=0.8)},
         "pass", "80 %"),
        ("the server has time", {**claiming(maximum=True), "server": server(saturation=0.79)},
         "warn", "something else was the limit"),
        ("the generator has none", {**claiming(maximum=True), "server": server(saturation=0.5),
         "generator": generator(saturation=0.95)}, "n/a", "the generator was the limit"),
        ("no server in sight", {**claiming(maximum=True), "server": None}, "n/a", "is not known"),
        ("too short to tell", {**claiming(maximum=True), "server": server(saturation=0.5),
         "window": window(window_ns=50_000_000)}, "n/a", "too short"),
    ],
    "quantile-width": [
        ("no percentile is claimed", {}, "n/a", "no percentile is claimed"),
        ("all the same", claiming(percentile="p99"), "pass", "(by rank), 0 % wide"),
        # Ranks 984 and 997 of 1,000, at 1 % per rank: 13 % wide.
        ("a thousand", spread_out(1_000), "pass", "13 % wide"),
        ("too few", spread_out(367), "fail", "367 requests are too few to tell p99: it needs 368"),
        ("its upper end is unknown", spread_out(380), "warn",
         "with no interval: 380 requests are too few"),
        # Ranks 87 and 114.
        ("few, and a low percentile", {**spread_out(200), **claiming(percentile="p50")}, "warn",
         "27.1 % wide"),
        ("failures are slower than any", {**spread_out(1_000), "counts": counts(
            ok=1_000, issued=1_020, failed={"reset": 20})}, "warn", "failed or never ended"),
    ],
    "ledger": [("HTTP", {}, "n/a", "nothing is broadcast")],
    "both-ends": [("a server", {}, "n/a", "a server is under test")],
    "over-pool": [("a server", {}, "n/a", "a server is under test")],
    "audit": [
        ("all adds up", {}, "pass", "add up"),
        ("one is lost", {"counts": counts(issued=OK + 1, scheduled=OK + 1)}, "fail",
         "10001 requests were issued, but 10000 are accounted for"),
        ("one more scheduled than sent", {"counts": counts(scheduled=OK + 1)}, "fail",
         "scheduled"),
        ("an ok without a time", {"counts": counts(ok=OK + 1, issued=OK + 1, scheduled=OK + 1)},
         "fail", "10000 were timed"),
        ("an ok without an answer", {"counts": counts(statuses={"200": OK - 1})}, "fail",
         "fewer complete answers"),
        ("a percentile out of order", {"latency_ns": replace(GOOD.latency_ns, p99=1)},
         "fail", "percentiles of latency_ns do not rise"),
        ("a mean above the largest", {"service_ns": replace(GOOD.service_ns, mean=2e9)},
         "fail", "percentiles of service_ns do not rise"),
        ("what the warm-up lost, the window has", {
            "warmup": Warmup(counts=counts(issued=OK + 1, scheduled=OK + 1), wall_s=1.0),
            "counts": counts(issued=OK - 1, scheduled=OK - 1)}, "pass", "add up"),
        ("the engine died", {"trouble": Trouble(kind="died", what="signal 9")}, "fail", "signal 9"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("check", "changes", "status", "why"),
    [
        pytest.param(check, changes, status, why, id=f"{check}: {sentence}")
        for check, cases in CASES.items()
        for sentence, changes, status, why in cases
    ],
)
def test_a_check_says(check: str, changes: dict[str, Any], status: Status, why: str) -> None:
    record = good_record(**changes)
    result = check_of(record, check)
    assert result.status == status, result
    assert why in result.why, result
    assert "\n" not in result.why
    assert (result.value is None) <= (result.limit is None)
    assert record.verdict == decide(record.checks)


def test_every_check_has_cases_that_pass_and_that_do_not() -> None:
    assert {check.name for check in GOOD.checks} == set(CASES) | ELSEWHERE
    for name, cases in CASES.items():
        if name in NOT_OF_HTTP_SERVERS:
            continue
        statuses = {status for _, _, status, _ in cases}
        assert "pass" in statuses, name
        assert statuses & {"warn", "fail"}, name
