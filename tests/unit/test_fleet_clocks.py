"""Times from one host to another: how wrong they may be, how that is measured, and what is said."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from broadcast_samples import DELIVERED, broadcast
from hypothesis import given
from hypothesis import strategies as st
from samples import GOOD_HOST, check_of, distribution, histogram
from trueload.engines.clock import DRIFT_NS_PER_NS, Comparison, Offset, SharedOffset, bounds_across
from trueload.engines.clock import Reading as Answer
from trueload.protocol.broadcast import Deliveries as Reported
from trueload.protocol.broadcast import DeliveryHistograms
from trueload.record.accounts.deliveries import DELIVERIES, Deliveries
from trueload.record.schema import Check, Host, Record
from trueload.record.thresholds import CLIENTS_LIMIT, parse_condition
from trueload.report.accounts.hosts import OF_BROADCAST, host_grid, host_lines
from trueload.report.sheets import host_values, record_values
from trueload.search.judge import judge_broadcast
from trueload.verdict import judge

MS = 1_000_000


@pytest.mark.parametrize(
    ("why", "bounds_ns", "across_ns"),
    [
        ("one host has no others", [5], ()),
        ("no hosts", [], ()),
        ("two hosts are as exact either way", [5, 9], (14, 14)),
        ("the worst of the others counts", [5, 9, 7], (14, 16, 16)),
        ("two equally bad ones", [9, 9, 1], (18, 18, 10)),
    ],
)
def test_a_time_between_hosts_is_as_exact_as_both_clocks(
    why: str, bounds_ns: list[int], across_ns: tuple[int, ...]
) -> None:
    assert bounds_across(bounds_ns) == across_ns, why


def test_an_agreed_offset_is_as_wrong_as_it_ever_was() -> None:
    agreed = SharedOffset(1_000)
    for offset, bound_ns in (
        (Offset(1_000, 50), 50),
        (Offset(1_020, 60), 80),
        (Offset(990, 30), 80),
        (Offset(880, 10), 130),
    ):
        agreed.compare(offset)
        assert agreed.bound_ns == bound_ns, offset


@given(
    offset_ns=st.integers(-(10**14), 10**14),
    drift=st.integers(-DRIFT_NS_PER_NS, DRIFT_NS_PER_NS),
    ways=st.lists(
        st.tuples(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**10)),
        min_size=2,
        max_size=80,
    ),
    data=st.data(),
)
def test_no_time_is_more_wrong_than_the_bound_however_the_clock_drifts(
    offset_ns: int, drift: int, ways: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """A host's clock is hours off, and gains or loses up to 100 ppm. Its times are converted by the
    offset that was known when the phase began."""

    def offset_at(front_ns: int) -> int:
        return offset_ns + front_ns * drift // DRIFT_NS_PER_NS**2

    begins = data.draw(st.integers(1, len(ways) - 1))
    comparison, now_ns, agreed = Comparison(), 0, None
    at_ns: list[int] = []
    for number, (there_ns, back_ns, pause_ns) in enumerate(ways):
        if number == begins:
            known = comparison.offset(now_ns)
            assert known is not None
            agreed = SharedOffset(known.ns)
            at_ns.append(now_ns)
        asked_ns, now_ns = now_ns, now_ns + there_ns + back_ns
        answer = Answer(asked_ns, now_ns, asked_ns + there_ns + offset_at(asked_ns + there_ns))
        if agreed is not None:
            known = comparison.offset(now_ns)
            assert known is not None
            agreed.compare(known)
            at_ns.append(now_ns)
        comparison.add(answer)
        now_ns += pause_ns
    known = comparison.offset(now_ns)
    assert known is not None
    assert agreed is not None
    agreed.compare(known)
    at_ns.append(now_ns)
    for each_ns in (*at_ns, *((first + then) // 2 for first, then in pairwise(at_ns))):
        assert abs(offset_at(each_ns) - agreed.ns) <= agreed.bound_ns


def test_the_longest_time_before_the_send_counts_for_all() -> None:
    nothing = DeliveryHistograms(delivery=None, first=None, median=None, p95=None, last=None)
    parts = [
        Reported(
            expected=9,
            delivered=9,
            lost=0,
            duplicate=0,
            out_of_order=0,
            untimed=1,
            negative=negative,
            negative_max_ns=ns,
            histograms=nothing,
        )
        for negative, ns in ((2, 70), (0, 0), (1, 30))
    ]
    merged = DELIVERIES.added(parts)
    assert merged is not None
    assert (merged.untimed, merged.negative, merged.negative_max_ns) == (3, 3, 70)


def host(place: str, own: Deliveries | None, **changes: Any) -> Host:
    fields = {"place": place, "deliveries": own, "clock_bound_ns": MS // 10, **changes}
    return GOOD_HOST.model_copy(update=fields)


def of_two(bound_ns: int, own: dict[str, Any] | None = None, **changes: Any) -> Record:
    """A broadcast over the hosts a and b; ``own`` changes the deliveries of b, ``changes`` those of
    both together."""
    whole = broadcast(clock_bound_ns=bound_ns, **changes)
    part = whole.deliveries
    assert part is not None
    part = part.model_copy(update={"negative": 0, "negative_max_ns": 0})
    hosts = (host("a", part), host("b", part.model_copy(update=own or {})))
    return judge(whole.model_copy(update={"hosts": hosts}))


def taking(ns: int) -> dict[str, Any]:
    """Deliveries that took ``ns``."""
    return {"delivery_ns": distribution(histogram((ns, DELIVERED)))}


@pytest.mark.parametrize(
    ("why", "bound_ns", "took_ns", "status"),
    [
        ("an error below 1 ms misleads nobody", MS, MS // 2, "pass"),
        ("a twentieth of the median", 2 * MS, 40 * MS, "pass"),
        ("2 ms of 10", 2 * MS, 10 * MS, "warn"),
        ("20 ms of 400", 20 * MS, 400 * MS, "pass"),
        ("20 ms of 50", 20 * MS, 50 * MS, "warn"),
        ("20 ms of 30", 20 * MS, 30 * MS, "fail"),
    ],
)
def test_clocks_are_judged_by_the_deliveries(
    why: str, bound_ns: int, took_ns: int, status: str
) -> None:
    assert check_of(of_two(bound_ns, **taking(took_ns)), "clocks").status == status, why


def test_a_delivery_before_its_send_is_as_wrong_as_clocks_may_be_or_fails_with_its_host() -> None:
    within = {"negative": 3, "negative_max_ns": MS // 5}
    fine = check_of(of_two(MS // 5, within, **within), "clocks")
    assert fine.status == "pass"
    assert "3 seem to have come up to 200 us before they were sent, and count as 0" in fine.why
    beyond = {"negative": 1, "negative_max_ns": MS // 5 + 1}
    check = check_of(of_two(MS // 5, beyond, **beyond), "clocks")
    assert check.status == "fail"
    assert check.why.startswith("a delivery to b seems to have come 200 us before it was sent")


def test_a_delivery_whose_send_time_was_changed_has_no_time_and_counts_as_slow() -> None:
    every = histogram((MS, DELIVERED - 60))
    each = histogram((MS, 100))
    record = of_two(
        MS // 5,
        untimed=60,
        delivery_ns=distribution(every),
        histograms=DeliveryHistograms(delivery=every, first=each, median=each, p95=each, last=each),
    )
    ledger = check_of(record, "ledger")
    assert (ledger.status, ledger.value) == ("warn", 60)
    assert "60 deliveries came with a changed send time" in ledger.why
    limit = parse_condition("p95<500ms", CLIENTS_LIMIT)
    assert judge_broadcast(record, limit, "bracket").outcome == "exceeded"


def test_a_host_whose_clients_lose_messages_is_named() -> None:
    lossy = Check(name="ledger", status="fail", value=3, limit=0, why="3 of 9 were lost")
    record = of_two(MS // 5, lost=3, delivered=DELIVERED - 3)
    fine = lossy.model_copy(update={"status": "pass"})
    hosts = [
        each.model_copy(update={"checks": (check,)})
        for each, check in zip(record.hosts, (fine, lossy), strict=True)
    ]
    judged = judge(record.model_copy(update={"hosts": tuple(hosts)}))
    check = check_of(judged, "ledger")
    assert check.status == "fail"
    assert check.why.endswith("(on b)")


def test_text_and_tables_say_how_exact_the_times_are() -> None:
    record = of_two(MS // 5)
    lines = host_lines(record)
    assert lines[1] == "times between hosts are accurate to within 200 us, 20 % of the median"
    assert "1,000 deliveries, p50 1.00 ms, p95 1.00 ms" in lines[2]
    grid = host_grid(record)
    own = record.hosts[1].deliveries
    assert grid is not None
    assert own is not None
    row = dict(zip(grid.header, grid.rows[1], strict=True))
    assert [row[name] for name in OF_BROADCAST] == ["1,000", "1.00 ms", "1.00 ms", "0", "200 us"]
    for values in (record_values(record), host_values(record.hosts[1])):
        assert values["deliveries_clock_bound_ns"] == MS // 5
        assert values["deliveries_delivered"] == DELIVERED
        assert values["delivery_p50_ns"] == own.delivery_ns.p50
