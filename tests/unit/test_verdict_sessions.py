"""The check of sessions, and how requests that were skipped count in figures and conditions."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from samples import check_of, counts, good_record, sparse_index, staged
from trueload.protocol.plan import Requests
from trueload.record import figures
from trueload.record.accounts.sessions import SessionsRecord, of_sessions
from trueload.record.schema import Record, Status
from trueload.report.result import rate_text
from trueload.stats import Distribution
from trueload.verdict import CHECKS, judge
from virtual_server import closed_loop

GOOD = good_record()
S = 1_000_000_000


def with_sessions(ok: int, failed: int = 0, unfinished: int = 0, skipped: int = 0) -> Record:
    sessions = SessionsRecord(
        begun=ok + failed + unfinished,
        ok=ok,
        failed=failed,
        unfinished=unfinished,
        latency_ns=Distribution(),
        latency={900: ok} if ok else {},
    )
    found = counts(skipped=skipped)
    return figures.with_figures(GOOD.model_copy(update={"sessions": sessions, "counts": found}))


@pytest.mark.parametrize(
    ("record", "status", "why"),
    [
        (GOOD, "n/a", "not a scenario"),
        (with_sessions(1000, unfinished=64), "pass", "0 of 1,000 sessions failed"),
        (with_sessions(10_000, failed=9), "pass", "9 of 10,009"),
        (with_sessions(999, failed=1, skipped=4), "warn", "and 4 requests behind the failures"),
        (with_sessions(95, failed=5), "fail", "5 of 100 sessions failed"),
        (with_sessions(0, unfinished=64), "fail", "none of 64 sessions ended"),
        (with_sessions(128, unfinished=64), "pass", "0 of 128"),
        (with_sessions(127, unfinished=64), "warn", "how long they take is hardly known"),
    ],
)
def test_failed_sessions_are_judged_like_failed_requests(
    record: Record, status: Status, why: str
) -> None:
    found = CHECKS["sessions"].check(record)
    assert (found.status, why in found.why) == (status, True), found.why


def test_of_a_number_of_sessions_only_their_rate_is_known() -> None:
    record = with_sessions(95, failed=5)
    window = staged((50, 50)).model_copy(update={"stop": Requests(count=100)})
    record = record.model_copy(update={"plan": record.plan.model_copy(update={"window": window})})
    assert rate_text(record) == "offered 50 sessions/s"
    assert CHECKS["rate-reached"].check(record).status == "pass", "its requests were all sent"


def test_what_to_do_fits_what_is_wrong() -> None:
    check = CHECKS["sessions"]
    assert "--duration" in check.remedy_for(with_sessions(0, unfinished=64))
    assert "extract" in check.remedy_for(with_sessions(95, failed=5))


def test_a_failed_session_is_slower_than_any() -> None:
    sessions = with_sessions(95, failed=5).sessions
    assert sessions is not None
    assert of_sessions(sessions).value("p95") < math.inf
    assert of_sessions(sessions).value("p96") == math.inf


def test_skipped_requests_have_no_time_and_count_as_errors() -> None:
    record = with_sessions(95, failed=5, skipped=GOOD.counts.ok)
    assert figures.metric_value("p50", record) < math.inf
    assert figures.metric_value("p51", record) == math.inf
    assert figures.metric_value("errors", record) == 0.5


def cut_by_a_window(chance: Random, warmup_s: float, window_s: float) -> SessionsRecord:
    """Sixteen users, one after the other's sessions: 92 % take 0.2 s, 8 % take 1.8 s."""
    begun = 0
    latency, entered, cut = (Counter[int]() for _ in range(3))
    for _ in range(16):
        at = -warmup_s
        while at < window_s:
            took = 1.8 if chance.random() < 0.08 else 0.2
            end = at + took
            begun += at >= 0
            if at < 0 <= end:
                entered[sparse_index(round(-at * S))] += 1
            if 0 <= end < window_s:
                latency[sparse_index(round(took * S))] += 1
            elif end >= window_s:
                cut[sparse_index(round((window_s - at) * S))] += 1
            at = end
    return SessionsRecord(
        begun=begun,
        ok=latency.total(),
        failed=0,
        unfinished=cut.total(),
        latency_ns=Distribution(),
        latency=dict(latency),
        entered=dict(entered),
        cut=dict(cut),
    )


@pytest.mark.parametrize("warmup_s", [0.0, 1.0, 3.0])
def test_sessions_that_the_end_cuts_are_not_taken_for_short_ones(warmup_s: float) -> None:
    chance, slow, quick = Random(4), [], []
    for _ in range(30):
        found = of_sessions(cut_by_a_window(chance, warmup_s, 3.0))
        slow.append(found.percentile(0.95).value)
        quick.append(found.percentile(0.5).value)
        share = 1 - sum(n for high, n in counted(found) if high < S) / found.count
        assert 0.01 < share < 0.2
    assert sum(ns is not None and ns > 1.7 * S for ns in slow) >= 25
    assert all(ns is not None and ns < 0.21 * S for ns in quick)


def counted(found: figures.Sample) -> Iterator[tuple[int, int]]:
    return zip(found.known.highs, found.known.counts, strict=True)


def test_a_percentile_among_sessions_that_were_cut_is_a_lower_bound() -> None:
    sessions = with_sessions(90, unfinished=10).sessions
    assert sessions is not None
    rows = [
        ({}, {}, 0, 90),  # older records do not know the ages
        ({}, {800: 10}, 0, 100),  # younger than any that ended: they say nothing
        ({}, {1500: 10}, 10, 90),  # older than all that ended
        ({1400: 3}, {1500: 10}, 7, 93),  # three of them count only from that age on
    ]
    for entered, cut, longer, known in rows:
        found = of_sessions(sessions.model_copy(update={"entered": entered, "cut": cut}))
        assert (found.slower, found.known.total) == (longer, known), (entered, cut)
        assert found.percentile(0.95).above is bool(longer)


PAGES = 5


class Shop:
    """Sessions of five pages, of which this share takes 2 s for each page but the first.

    On the slots of ``slow_slots`` all sessions are slow. Some slots are in the middle of a slow
    session when the window begins.
    """

    def __init__(self, share: float, slow_slots: int = 0, rest_s: float = 0.0) -> None:
        self.share, self.slow_slots, self.rest_s = share, slow_slots, rest_s
        self.pages: dict[int, int] = {}
        self.slow: dict[int, bool] = {}
        self.ended = 0

    def serve(self, slot: int, at: float, chance: random.Random) -> float:
        """Answer one page."""
        page = self.pages.get(slot, 0)
        self.pages[slot] = (page + 1) % PAGES
        self.ended += page + 1 == PAGES
        if page == 0 and slot not in self.slow:
            long_s = self.share * (PAGES - 1) * 2.0
            under_way = chance.random() < long_s / (long_s + PAGES * 0.01 + self.rest_s)
            page = self.pages[slot] = int(under_way)
            self.slow[slot] = under_way
        if page == 0:
            self.slow[slot] = slot < self.slow_slots or chance.random() < self.share
        return at + (2.0 if page and self.slow[slot] else chance.uniform(0.005, 0.015))

    def rest(self, slot: int, chance: random.Random) -> float:
        """Rest after a session, so that sessions begin at random times."""
        ended = self.pages[slot] == 0 and self.rest_s
        return chance.expovariate(1 / self.rest_s) if ended else 0.0

    def record(self, slots: int, window_s: float, seed: int) -> Record:
        """The record of the load."""
        found = closed_loop(self.serve, slots, window_s, seed, self.rest)
        sessions = with_sessions(self.ended, unfinished=slots).sessions
        return judge(found.model_copy(update={"sessions": sessions}))


OF_SLOTS = ("starvation", "slow-connections", "fairness")


@pytest.mark.parametrize("share", [0.06, 0.1])
@pytest.mark.parametrize(("slots", "rest_s"), [(64, 1.3), (16, 0.0), (64, 0.0)])
def test_sessions_that_are_slow_by_chance_accuse_no_connection(
    share: float, slots: int, rest_s: float
) -> None:
    for seed in range(10):
        record = Shop(share, rest_s=rest_s).record(slots, 12, seed)
        found = {name: check_of(record, name) for name in OF_SLOTS}
        if rest_s:
            del found["fairness"]  # of closed loops
        assert {each.status for each in found.values()} <= {"pass", "n/a"}, (seed, found)


def test_connections_that_are_slow_in_all_sessions_are_told() -> None:
    record = Shop(0.0, slow_slots=8).record(64, 20, 1)
    assert check_of(record, "slow-connections").status == "warn"
