"""The history of a phase stays small however long it lasts, and loses nothing."""

from __future__ import annotations

from base64 import b64decode

import pytest
from trueload.engines.bins import BINS_MOST, Bins
from trueload.engines.merge import Series
from trueload.protocol.packed import PackedCounts
from trueload.protocol.tick import Counts, Second, Sparse

DAY_S = 86_400


def totals(ok: int, failed: int = 0) -> Counts:
    return Counts(
        scheduled=ok + failed,
        unsent=0,
        issued=ok + failed,
        ok=ok,
        stale=0,
        cancelled=0,
        failed={"reset": failed} if failed else {},
        statuses={},
    )


def bins_of(seconds: int, step_s: int, latency: Sparse, most: int = BINS_MOST) -> Bins:
    bins = Bins(most)
    for number, second in enumerate(range(0, seconds, step_s), 1):
        bins.add(second, totals(number * 10, number), latency)
    return bins


@pytest.mark.parametrize(
    ("seconds", "width_s", "count"),
    [
        (1, 1, 1),
        (BINS_MOST, 1, BINS_MOST),
        (BINS_MOST + 1, 2, BINS_MOST // 2 + 1),
        (2 * BINS_MOST, 2, BINS_MOST),
        (2 * BINS_MOST + 1, 4, BINS_MOST // 2 + 1),
    ],
)
def test_bins_become_wider_and_lose_nothing(seconds: int, width_s: int, count: int) -> None:
    bins = bins_of(seconds, 1, {100: 9, 200: 1})
    assert (bins.width_s, len(bins)) == (width_s, count)
    found = bins.seconds()
    assert [second.t_s for second in found] == list(range(0, seconds, width_s))
    assert {second.width_s for second in found} == {width_s}
    assert sum(second.ok for second in found) == 10 * seconds
    assert sum(second.failed for second in found) == seconds
    assert sum(second.latency[100] for second in found) == 9 * seconds
    assert sum(second.latency[200] for second in found) == seconds
    assert sum(latency[100] for latency in bins.latencies()) == 9 * seconds


def test_a_day_of_10_000_requests_a_second_takes_less_than_100_mb() -> None:
    # A tenth of a day in a tenth of the bins is a tenth of the work: the bins become as wide, are
    # merged as often, and each takes as much memory.
    part_s, most = DAY_S // 10, BINS_MOST // 10
    # A loaded server has about this many different latencies within some seconds: 50 us to 50 ms.
    bins = bins_of(part_s, 8, dict.fromkeys(range(960, 1600), 13), most)
    assert len(bins) <= most
    assert bins.width_s == 32
    held = [each for each in bins.latencies() if isinstance(each, PackedCounts)]
    assert len(held) > most // 2
    assert sum(len(b64decode(each.as_base64())) for each in held) < 4_000_000
    assert sum(second.ok for second in bins.seconds()) == part_s // 8 * 10


def test_hosts_that_ran_for_longer_than_others_are_added_by_the_widest_bins() -> None:
    def second(t_s: int, width_s: int) -> Second:
        return Second(t_s=t_s, width_s=width_s, ok=width_s, failed=1, latency={7: width_s})

    fine = [second(t_s, 1) for t_s in range(5)]
    wide = [second(t_s, 4) for t_s in (0, 4)]
    for order in ((fine, wide), (wide, fine)):
        series = Series()
        for each in order:
            series.add(each)
        assert series.sums() == (
            Second(t_s=0, width_s=4, ok=8, failed=5, latency={7: 8}),
            Second(t_s=4, width_s=4, ok=5, failed=2, latency={7: 5}),
        )
