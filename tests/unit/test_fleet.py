"""Several engines as one: clocks, sums of their measurements, ticks, and the verdict over hosts."""

from __future__ import annotations

import random
from collections import Counter
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GOOD_HOST, PHASE, check_of, counts, distribution, good_record, histogram, plan
from trueload import hdr
from trueload.engines.clock import Comparison, Reading
from trueload.engines.merge import Series, merge_connections, merge_ready, merge_slots
from trueload.engines.ticks import Ticks
from trueload.protocol.connections import Connections, Slots
from trueload.protocol.exchange import RequestPlan, WsBroadcastPlan
from trueload.protocol.flow import Backlog, Flow, Work
from trueload.protocol.plan import Ready
from trueload.protocol.sums import add_up
from trueload.protocol.tick import Second, Tick
from trueload.record.accounts.flow import FLOW
from trueload.record.schema import Check, Host, RecordPlan
from trueload.report.accounts.hosts import HOSTS_SHOWN, host_lines
from trueload.stats import decode_histogram
from trueload.verdict.host_bias import median_without

MS = 1_000_000


def test_counts_of_several_engines_are_added_field_by_field() -> None:
    parts = [counts(stale=5, stale_resets=2), counts(stale=1, stale_resets=1)]
    merged = add_up(parts)
    assert (merged.stale, merged.stale_resets) == (6, 3)
    assert merged.ok == sum(part.ok for part in parts)


# --- clocks


@given(
    offset_ns=st.integers(-(10**15), 10**15),
    ways=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=80),
)
def test_the_true_offset_lies_within_the_bound_whatever_the_ways_take(
    offset_ns: int, ways: list[tuple[int, int]]
) -> None:
    comparison, now_ns = Comparison(), 0
    for there_ns, back_ns in ways:
        asked_ns = now_ns
        now_ns += there_ns + back_ns
        comparison.add(Reading(asked_ns, now_ns, asked_ns + there_ns + offset_ns))
    found = comparison.offset(now_ns)
    assert found is not None
    assert abs(found.ns - offset_ns) <= found.bound_ns
    assert found.to_engine(found.to_front(12_345)) == 12_345


@pytest.mark.parametrize(
    ("why", "readings", "now_ns", "expected"),
    [
        ("the way takes as long there as back", [(0, 100, 1_050)], 100, (1_000, 53)),
        ("the quickest answer counts", [(0, 900, 5), (1_000, 1_100, 2_050)], 1_100, (1_000, 53)),
        ("an old answer is worth less", [(0, 100, 1_050)], 100 + 10**9, (1_000, 100_053)),
        (
            "a quick one of long ago gives way to a fresh one",
            [(0, 10, 1_005), (10**9, 10**9 + 1_000, 10**9 + 1_600)],
            10**9 + 1_000,
            (1_100, 503),
        ),
    ],
)
def test_the_offset(
    why: str, readings: list[tuple[int, int, int]], now_ns: int, expected: tuple[int, int]
) -> None:
    comparison = Comparison()
    for reading in readings:
        comparison.add(Reading(*reading))
    found = comparison.offset(now_ns)
    assert found is not None
    assert (found.ns, found.bound_ns) == expected, why


def test_without_an_answer_there_is_no_offset() -> None:
    assert Comparison().offset(1) is None


# --- sums


values = st.lists(st.tuples(st.integers(1, 10**10), st.integers(1, 50)), max_size=12)


@given(parts=st.lists(values, min_size=1, max_size=5))
def test_a_sum_of_histograms_has_every_value_of_each(parts: list[list[tuple[int, int]]]) -> None:
    together = hdr.added(histogram(*part) if part else None for part in parts)
    whole = [pair for part in parts for pair in part]
    assert decode_histogram(together) == decode_histogram(histogram(*whole) if whole else None)


def test_junk_is_no_histogram() -> None:
    with pytest.raises(ValueError, match="not an HdrHistogram"):
        hdr.added(["junk", histogram((1, 1))])


def ready(**changes: Any) -> Ready:
    fields: dict[str, Any] = {"requested": 2, "established": 2, "failed": {}, "address": None}
    return Ready(type="ready", at_ns=1, listen=None, **{**fields, **changes})


def test_all_have_connected_when_the_slowest_has() -> None:
    merged = merge_ready(
        [
            ready(set_up_ns=5, driver="epoll", failed={"reset": 1}, reasons={"reset": "first"}),
            ready(
                requested=1,
                established=0,
                set_up_ns=9,
                driver="io_uring",
                address="10.0.0.1:80",
                failed={"reset": 1, "refused": 1},
                reasons={"reset": "second"},
            ),
        ],
        at_ns=77,
    )
    assert (merged.requested, merged.established, merged.set_up_ns) == (3, 2, 9)
    assert merged.failed == {"refused": 1, "reset": 2}
    assert merged.reasons == {"reset": "first"}
    assert (merged.driver, merged.address, merged.at_ns) == ("epoll, io_uring", "10.0.0.1:80", 77)


def test_connections_were_down_at_the_same_time_on_all_hosts() -> None:
    fields: dict[str, Any] = {
        "requested": 4,
        "established": 4,
        "reconnects": 4,
        "down": 1,
        "family": "ipv4",
    }
    merged = merge_connections(
        [Connections(**fields, outages=2, outage_ns=longest_ns) for longest_ns in (3, 9, 5)]
    )
    assert (merged.requested, merged.down, merged.outages) == (12, 3, 6)
    assert merged.outage_ns == 9


def slots(asked: int, least: int, most: int, *waits_ns: int) -> Slots:
    return Slots(
        asked=asked,
        never_answered=0,
        answers_sum=asked * least,
        answers_sum_squares=asked * least * least,
        answers_min=least,
        answers_max=most,
        long_waits_ns=waits_ns,
        permitted_ns=10,
    )


def test_the_least_served_slot_is_one_that_was_asked() -> None:
    merged = merge_slots([slots(0, 0, 0), slots(2, 5, 7, 11), slots(1, 6, 6, 12)])
    assert (merged.asked, merged.answers_min, merged.answers_max) == (3, 5, 7)
    assert merged.long_waits_ns == (11, 12)
    assert merged.permitted_ns == 30


def test_flows_are_added_in_the_longest_parts_and_gaps_stay_each_hosts_own() -> None:
    backlog = Backlog(at_start=1, at_end=5, answered=(1, 2), latency_sum_ns=(10, 20))
    short = Flow(whole_ns=9, part_ns=2, answered=(1, 2, 3), gaps={7: 1}, backlog=backlog)
    long = Flow(whole_ns=8, part_ns=4, answered=(10,), gaps={}, backlog=backlog)
    merged = FLOW.added([short, long])
    assert merged is not None
    assert (merged.whole_ns, merged.part_ns, merged.answered) == (8, 4, (13, 3))
    assert merged.gaps == {}
    assert merged.backlog == Backlog(
        at_start=2, at_end=10, answered=(2, 4), latency_sum_ns=(20, 40)
    )
    assert FLOW.added([short]) == short
    edges = (
        Work(part_ns=2, before_ns=3, after_ns=4, together=((5, 2),)),
        Work(part_ns=4, before_ns=30, after_ns=40, together=((6, 1), (3, 1))),
    )
    parts = [
        each.model_copy(update={"work": work})
        for each, work in zip((short, long), edges, strict=True)
    ]
    both = FLOW.added(parts)
    assert both is not None
    assert (both.work.before_ns, both.work.after_ns) == (33, 44)
    assert both.work.together == ((11, 3), (3, 1))
    assert FLOW.added([short, None]) is None


def test_seconds_are_added_by_their_number() -> None:
    def second(t_s: int, ok: int) -> Second:
        return Second(t_s=t_s, ok=ok, failed=1, latency={7: ok})

    series = Series()
    series.add([second(0, 1), second(1, 2)])
    series.add([second(1, 3), second(2, 4)])
    assert [(each.t_s, each.ok, each.failed, each.latency) for each in series.sums()] == [
        (0, 1, 1, {7: 1}),
        (1, 5, 2, {7: 5}),
        (2, 4, 1, {7: 4}),
    ]


# --- ticks


def tick(ok: int, fresh: int, at_ns: int = 1) -> Tick:
    return Tick(
        type="tick",
        at_ns=at_ns,
        id="window",
        counts=counts(ok=ok),
        latency={5: fresh},
        service={},
        open=1,
        bytes_in=10,
        bytes_out=20,
        busiest_ns=ok,
    )


@pytest.mark.parametrize(
    ("why", "count", "ticks_sent", "expected"),
    [
        ("one engine's ticks go through", 1, [(0, 3, 3), (0, 5, 2)], [(3, 3), (5, 2)]),
        ("two are waited for", 2, [(0, 3, 3), (1, 4, 4)], [(7, 7)]),
        ("one that lags holds up none", 2, [(0, 3, 3), (0, 5, 2), (0, 9, 4)], [(3, 3), (5, 2)]),
        (
            "what a laggard says comes with the next",
            2,
            [(0, 3, 3), (0, 5, 2), (1, 1, 1), (0, 6, 1), (1, 2, 1)],
            [(3, 3), (6, 3), (8, 2)],
        ),
        (
            "of many that lag there is not a merged tick each",
            4,
            [(who, turn, 1) for who in range(4) for turn in range(1, 4)],
            [(1, 1), (2, 1), (5, 3)],
        ),
    ],
)
def test_ticks(
    why: str, count: int, ticks_sent: list[tuple[int, int, int]], expected: list[tuple[int, int]]
) -> None:
    ticks = Ticks(count)
    turns: Counter[int] = Counter()
    merged = []
    for index, ok, fresh in ticks_sent:
        turns[index] += 1
        merged.append(ticks.receive(index, tick(ok, fresh, at_ns=turns[index] * 250 * MS)))
    received = [(each.counts.ok, each.latency[5]) for each in merged if each is not None]
    assert received == expected, why


def test_what_no_merged_tick_has_told_is_told_at_the_end() -> None:
    ticks = Ticks(2)
    assert ticks.receive(0, tick(3, 3)) is None
    rest = ticks.rest()
    assert rest is not None
    assert (rest.counts.ok, rest.latency) == (3, {5: 3})
    assert ticks.rest() is None


# --- the verdict


def host(
    place: str,
    p50_ms: float = 5,
    p99_ms: float = 10,
    replies: int = 5_000,
    unsent: int = 0,
    **more: Any,
) -> Host:
    slow = replies * 2 // 100
    latency = histogram((int(p50_ms * MS), replies - slow), (int(p99_ms * MS), slow))
    changes = {
        "place": place,
        "counts": counts(ok=replies, unsent=unsent),
        "ok": replies,
        "connections": 8,
        "latency": latency,
        "latency_ns": distribution(latency),
        "clock_bound_ns": MS // 10,
        **more,
    }
    return GOOD_HOST.model_copy(update=changes)


@pytest.mark.parametrize(
    ("why", "hosts", "status", "named"),
    [
        ("one host has no rest", [host("a")], "n/a", "one host"),
        ("alike", [host("a"), host("b"), host("c")], "pass", "than chance"),
        ("a path apart", [host("a", 0.1, 0.2), host("b", 0.18, 0.28)], "pass", "off by 0"),
        ("one is a third slower", [host("a"), host("b", 7), host("c")], "warn", "b: p50"),
        ("one has a tail", [host("a"), host("b"), host("c", 5, 30)], "fail", "c: p99"),
        ("nobody replied", [host("a", replies=0), host("b", replies=0)], "n/a", "no host had"),
        (
            "few say little of a tail",
            [host("a", replies=90), host("b", 5, 60, replies=90)],
            "pass",
            "than chance",
        ),
        (
            "a slow host is known by its few replies",
            [*(host(f"h{i}", replies=2_370) for i in range(9)), host("far", 310, 320, replies=75)],
            "fail",
            "far: p50 310",
        ),
        (
            "a host without a reply is slower than that",
            [host("a"), host("b"), host("dead", replies=0)],
            "fail",
            "dead: time per reply and connection",
        ),
        (
            "a host that failed most of its requests is slower",
            [host("a"), host("b"), host("c", unsent=9_000)],
            "fail",
            "c: p50 10.0 ms",
        ),
        (
            "of many hosts one of a few replies is not off by chance",
            [*(host(f"h{i}", replies=20) for i in range(99)), host("c", 6, replies=20)],
            "pass",
            "",
        ),
        (
            "regions are not compared",
            [
                *(host(name, group="eu") for name in "ab"),
                *(host(name, 80, 90, group="us") for name in "cd"),
            ],
            "pass",
            "than chance",
        ),
        (
            "a slow host of a region is found",
            [
                *(host(name, group="eu") for name in "ab"),
                *(host(name, 80, 90, group="us") for name in "cd"),
                host("e", 300, 310, group="us"),
            ],
            "fail",
            "e: p50 300",
        ),
        (
            "a heavier host has more connections and replies, and is not biased",
            [host("a", replies=10_000, connections=16, weight=2), host("b"), host("c")],
            "pass",
            "than chance",
        ),
        (
            "a heavier host that has no more replies is slower",
            [host("a", connections=16, weight=2), host("b"), host("c")],
            "fail",
            "a: time per reply and connection",
        ),
        ("nobody to compare", [host("a", group="eu"), host("b")], "n/a", "only one of its group"),
    ],
)
def test_host_bias(why: str, hosts: list[Host], status: str, named: str) -> None:
    check = check_of(good_record(hosts=tuple(hosts)), "host-bias")
    assert check.status == status, f"{why}: {check}"
    assert named in check.why, f"{why}: {check}"


def test_hosts_at_chance_are_alike() -> None:
    """At most 5 % of 80 simulated runs have a host that is told from the others."""
    chance, told = random.Random(3), 0
    for _ in range(80):
        hosts = []
        for number in range(10):
            replies = chance.choice((30, 400))
            times = [int(chance.expovariate(1 / (10 * MS))) for _ in range(replies)]
            latency = histogram(*((each, 1) for each in times))
            hosts.append(host(f"h{number}", latency=latency, replies=replies, connections=replies))
        told += check_of(good_record(hosts=tuple(hosts)), "host-bias").status != "pass"
    assert told <= 4, f"{told} of 80"


def test_hosts_that_fail_a_check_are_named_if_they_are_few() -> None:
    failing = Check(name="errors", status="fail", value=1.0, limit=0.01, why="all failed")
    refused = {"counts": counts(ok=0, failed={"connect.refused": 10_000})}
    hosts = [host(name, checks=(failing,)) for name in "abcde"]
    fine = [host(f"h{number}") for number in range(5)]
    for made, end in (
        (hosts[:1] + fine, " (on a)"),
        (hosts[:4] + fine, " (on a, b, c and 1)"),
        (hosts, "ed"),
    ):
        check = check_of(good_record(hosts=tuple(made), **refused), "errors")
        assert check.status == "fail"
        assert check.why.endswith(end), check


@given(values=st.lists(st.integers(0, 9), min_size=2, max_size=9), data=st.data())
def test_the_median_of_the_others_is_that_of_all_but_one(
    values: list[int], data: st.DataObject
) -> None:
    one = data.draw(st.sampled_from(values))
    others = [*values]
    others.remove(one)
    assert median_without(sorted(values), one) == median(others)


def broadcast() -> RecordPlan:
    opening = RequestPlan(method="GET", path="/", headers=(), body_sha256=None)
    exchange = WsBroadcastPlan(opening=opening, dialect="json", padding=0)
    generate = plan(exchange=exchange, request=None)
    return RecordPlan(url="ws://a/", generate=generate, warmup=None, window=PHASE)


@pytest.mark.parametrize(
    ("why", "bounds_ns", "changes", "status"),
    [
        ("one host", [None], {}, "n/a"),
        ("times stay on their host", [5 * MS, 50 * MS], {}, "n/a"),
        ("close enough", [MS // 10, MS], {"plan": broadcast()}, "pass"),
        ("over 1 ms", [MS // 10, MS + 1], {"plan": broadcast()}, "warn"),
        ("over 10 ms", [MS // 10, 10 * MS + 1], {"plan": broadcast()}, "fail"),
    ],
)
def test_clocks(
    why: str, bounds_ns: list[int | None], changes: dict[str, Any], status: str
) -> None:
    hosts = tuple(host(f"h{bound_ns}", clock_bound_ns=bound_ns) for bound_ns in bounds_ns)
    check = check_of(good_record(hosts=hosts, **changes), "clocks")
    assert check.status == status, f"{why}: {check}"


def test_what_one_host_fails_by_itself_stands_in_the_verdict_with_its_name() -> None:
    full = Check(name="generator-limit", status="fail", value=1.0, limit=0.95, why="was the limit")
    idle = full.model_copy(update={"status": "pass"})
    record = good_record(hosts=(host("a", checks=(idle,)), host("b", checks=(full,))))
    check = check_of(record, "generator-limit")
    assert (check.status, check.why) == ("fail", "b: was the limit")
    assert record.verdict == "invalid"


def test_a_host_cannot_mend_what_the_whole_fails() -> None:
    fine = Check(name="errors", status="pass", value=0.0, limit=0.001, why="none")
    record = good_record(
        counts=counts(ok=5_000, failed={"reset": 5_000}), hosts=(host("a", checks=(fine,)),)
    )
    assert check_of(record, "errors").status == "fail"


# --- in words


def test_of_one_host_nothing_more_is_said() -> None:
    assert host_lines(good_record()) == []


def test_hosts_are_told_with_what_each_did() -> None:
    several = (
        host("ssh:a", ok=5_000, connections=6, start_ns=0),
        host("ssh:b", 7, ok=4_000, connections=4, start_ns=200_000),
    )
    assert host_lines(good_record(hosts=several)) == [
        "2, began within 200 us, clocks known to within 100 us",
        "ssh:a  5,000 ok on 6   p50 5.00 ms, p99 10.0 ms   50 % busy",
        "ssh:b  4,000 ok on 4   p50 7.00 ms, p99 10.0 ms   50 % busy",
    ]


def test_of_very_many_hosts_the_first_are_shown() -> None:
    lines = host_lines(good_record(hosts=tuple(host(f"h{n}") for n in range(HOSTS_SHOWN + 3))))
    assert lines[-1] == "and 3 more, in the record"
    assert len(lines) == HOSTS_SHOWN + 2
