"""Hosts that are lost: what a report says of them, what a suite measures again, what is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GOOD_HOST, check_of, counts, good_record
from trueload.commands.place_options import check_allowed_losses
from trueload.engines.host_ticks import HOST_SECONDS_MOST, condensed
from trueload.engines.twins import numbers_of
from trueload.errors import UserError
from trueload.places.names import GeneratorHost, Placement, RayCluster, SshHost
from trueload.protocol.fleet import Machine
from trueload.protocol.tick import Second
from trueload.record.schema import Host, Trouble
from trueload.report.accounts.hosts import HOSTS_SHOWN, host_lines
from trueload.report.result import result_lines
from trueload.runner.trials import SearchOutcome, Step, TrialFailure, TrialResult
from trueload.suites.execute import lost_host
from trueload.verdict import CHECKS

LOST = Trouble(kind="lost", what="host lost: b: it died")
WAY = Trouble(kind="lost", what="the way to all 2 hosts is lost: gone")
DIED = Trouble(kind="died", what="the engine died")


def host(place: str, lost: str | None = None, **more: object) -> Host:
    found = {"place": place, "lost": lost, "ok": 5, "connections": 1, "counts": counts(ok=5)}
    return GOOD_HOST.model_copy(update=found | more)


def unreached(place: str) -> Host:
    return host(place, WAY.what, way_lost=True)


@pytest.mark.parametrize(
    ("why", "hosts", "trouble", "status", "words"),
    [
        ("one host", (host("a"),), None, "n/a", "one host"),
        ("none lost", (host("a"), host("b")), None, "pass", "all 2 hosts sent to the end"),
        ("the run went on", (host("a"), host("b", "died")), None, "warn", "1 of 2 hosts lost: b"),
        ("the run ended", (host("a"), host("b", "died")), LOST, "fail", "1 of 2 hosts lost: b"),
        (
            "many",
            tuple(host(name, "gone") for name in "abcde"),
            LOST,
            "fail",
            "5 of 5 hosts lost: a, b, c and 2 more",
        ),
        (
            "the way to all",
            tuple(map(unreached, "ab")),
            WAY,
            "fail",
            f"2 of 2 hosts lost: {WAY.what}",
        ),
        (
            "the way to some, and another",
            (*map(unreached, "ab"), host("c", "died"), host("d")),
            None,
            "warn",
            f"3 of 4 hosts lost: {WAY.what}; c (died); the figures",
        ),
    ],
)
def test_hosts_lost(
    why: str, hosts: tuple[Host, ...], trouble: Trouble | None, status: str, words: str
) -> None:
    record = good_record(hosts=hosts, trouble=trouble)
    check = check_of(record, "hosts-lost")
    assert check.status == status, why
    assert words in check.why, why


def test_no_host_is_blamed_for_its_way() -> None:
    record = good_record(hosts=tuple(map(unreached, "ab")), trouble=WAY)
    assert all(line.endswith("lost with its connection") for line in host_lines(record)[-2:])
    assert "reached through" in CHECKS["hosts-lost"].remedy_for(record)


@pytest.mark.parametrize(
    ("why", "shared", "status", "words"),
    [
        ("one host", [(0, 0)], "n/a", "one host"),
        ("not told", [(None, None)] * 2, "n/a", "have not told"),
        ("apart", [(0, 0), (1, 1)], "pass", "no two"),
        (
            "one machine",
            [(0, 0), (1, 1), (0, 0)],
            "warn",
            "a and c are one machine, which sends the load of 2 hosts",
        ),
        (
            "one node",
            [(0, 0), (0, 1), (2, 2)],
            "warn",
            "a and b are on one machine, and take its CPUs from each other",
        ),
    ],
)
def test_hosts_that_share_a_machine_are_named(
    why: str, shared: list[tuple[int | None, int | None]], status: str, words: str
) -> None:
    hosts = tuple(
        host(name, machine=machine, network=network)
        for name, (machine, network) in zip("abc", shared, strict=False)
    )
    check = check_of(good_record(hosts=hosts), "one-machine")
    assert check.status == status, why
    assert words in check.why, why


def test_containers_with_cpus_of_their_own_share_none() -> None:
    cpus = [GOOD_HOST.generator.model_copy(update={"cpus": each}) for each in ((0, 1), (2,), (1,))]
    hosts = [host(name, machine=0, network=at) for at, name in enumerate("abc")]
    hosts = [
        each.model_copy(update={"generator": on}) for each, on in zip(hosts, cpus, strict=True)
    ]
    assert check_of(good_record(hosts=tuple(hosts[:2])), "one-machine").status == "pass"
    assert check_of(good_record(hosts=tuple(hosts)), "one-machine").status == "warn"


@pytest.mark.parametrize(
    ("machines", "expected"),
    [
        ([("x", 1), ("x", 1), ("y", 1)], ([0, 0, 2], [0, 0, 2])),
        ([("x", 1), ("x", 2)], ([0, 0], [0, 1])),
        ([("x", None), (None, 1)], ([0, None], [None, None])),
    ],
)
def test_hosts_are_one_machine_by_boot_id_and_network(
    machines: list[tuple[str | None, int | None]],
    expected: tuple[list[int | None], list[int | None]],
) -> None:
    told = [Machine(boot_id=boot_id, network=network) for boot_id, network in machines]
    assert numbers_of(told) == expected


def test_a_run_that_went_on_is_at_most_suspect() -> None:
    record = good_record(hosts=(host("a"), host("b"), host("c", "died")), partial=True)
    assert record.verdict == "suspect"
    assert "partial      without c" in result_lines(record)


def test_lost_hosts_are_shown_however_many_there_are() -> None:
    hosts = [host(f"h{number}") for number in range(HOSTS_SHOWN + 9)]
    lines = host_lines(good_record(hosts=(*hosts, host("last", "died"))))
    assert "last" in lines[1]
    assert "lost: died" in lines[1]


SECONDS = st.lists(
    st.tuples(st.integers(0, 2_000), st.integers(0, 99), st.integers(0, 9)), max_size=300
)


@given(seconds=SECONDS)
def test_a_condensed_series_has_every_request_in_few_bins(
    seconds: list[tuple[int, int, int]],
) -> None:
    series = [Second(t_s=t_s, ok=ok, failed=bad, latency={1: ok}) for t_s, ok, bad in seconds]
    short = condensed(series)
    assert len(short) <= HOST_SECONDS_MOST
    assert sum(each.ok for each in short) == sum(ok for _, ok, _ in seconds)
    assert sum(each.failed for each in short) == sum(bad for _, _, bad in seconds)
    assert all(each.t_s % each.width_s == 0 and not each.latency for each in short)


def measured(trouble: Trouble | None, step: Trouble | None = None) -> TrialResult:
    record, other = (good_record(trouble=each) for each in (trouble, step))
    searched = SearchOutcome(record, {}, (Step(other, {}),), finished=False)
    return TrialResult(record, None, None, "", searched)


@pytest.mark.parametrize(
    ("why", "outcome", "expected"),
    [
        ("nothing", None, ""),
        ("a good trial", measured(None), ""),
        ("a trial with a lost host", measured(LOST), LOST.what),
        ("a step with a lost host", measured(None, LOST), LOST.what),
        ("the engine here died", measured(DIED), ""),
        ("a subject that fails", TrialFailure("it ended", ""), ""),
        ("a host that cannot be reached", TrialFailure("no route", "", lost=True), "no route"),
    ],
)
def test_what_a_suite_measures_again(
    why: str, outcome: TrialResult | TrialFailure | None, expected: str
) -> None:
    assert lost_host(outcome) == expected, why


TWO = Placement(
    generators=(GeneratorHost(place=SshHost("a")), GeneratorHost(place=RayCluster())), hosts=3
)


@pytest.mark.parametrize(
    ("allowed", "where", "searches", "words"),
    [
        (None, Placement(), True, None),
        (1, TWO, False, None),
        (3, TWO, False, None),
        (4, TWO, False, "would leave no host: the load comes from 4 hosts"),
        (1, Placement(), False, "would leave no host: the load comes from 1 host"),
        (1, TWO, True, "a search needs all of its hosts"),
    ],
)
def test_how_many_hosts_may_be_lost(
    allowed: int | None, where: Placement, searches: bool, words: str | None
) -> None:
    if words is None:
        assert check_allowed_losses(allowed, where, searches=searches) == (allowed or 0)
        return
    with pytest.raises(UserError, match=words):
        check_allowed_losses(allowed, where, searches=searches)
