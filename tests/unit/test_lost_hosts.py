"""Hosts that are lost: what a report says of them, what a suite measures again, what is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GOOD_HOST, counts, good_record
from trueload.commands.place_options import check_allowed_losses
from trueload.engines.told import HOST_SECONDS_MOST, condensed
from trueload.errors import UserError
from trueload.places.named import GeneratorHost, RayCluster, SshHost, Where
from trueload.protocol.plan import Second
from trueload.record.schema import Check, Host, Record, Trouble
from trueload.report.hosts import HOSTS_SHOWN, host_lines
from trueload.report.result import result_lines
from trueload.runner.trials import Failed, Measured, Searched, Step
from trueload.suites.execute import lost_host

LOST = Trouble(kind="lost", what="host lost: b: it died")
DIED = Trouble(kind="died", what="the engine died")


def host(place: str, lost: str | None = None) -> Host:
    return GOOD_HOST.model_copy(
        update={"place": place, "lost": lost, "ok": 5, "connections": 1, "counts": counts(ok=5)}
    )


def found(record: Record, name: str) -> Check:
    return next(check for check in record.checks if check.name == name)


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
    ],
)
def test_hosts_lost(
    why: str, hosts: tuple[Host, ...], trouble: Trouble | None, status: str, words: str
) -> None:
    record = good_record(hosts=hosts, trouble=trouble)
    check = found(record, "hosts-lost")
    assert check.status == status, why
    assert words in check.why, why


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


def measured(trouble: Trouble | None, step: Trouble | None = None) -> Measured:
    record, other = (good_record(trouble=each) for each in (trouble, step))
    searched = Searched(record, {}, (Step(other, {}),), finished=False)
    return Measured(record, None, None, "", searched)


@pytest.mark.parametrize(
    ("why", "outcome", "expected"),
    [
        ("nothing", None, ""),
        ("a good trial", measured(None), ""),
        ("a trial with a lost host", measured(LOST), LOST.what),
        ("a step with a lost host", measured(None, LOST), LOST.what),
        ("the engine here died", measured(DIED), ""),
        ("a subject that fails", Failed("it ended", ""), ""),
        ("a host that cannot be reached", Failed("no route", "", lost=True), "no route"),
    ],
)
def test_what_a_suite_measures_again(
    why: str, outcome: Measured | Failed | None, expected: str
) -> None:
    assert lost_host(outcome) == expected, why


TWO = Where(
    generators=(GeneratorHost(place=SshHost("a")), GeneratorHost(place=RayCluster())), hosts=3
)


@pytest.mark.parametrize(
    ("allowed", "where", "searches", "words"),
    [
        (None, Where(), True, None),
        (1, TWO, False, None),
        (3, TWO, False, None),
        (4, TWO, False, "would leave no host: the load comes from 4 hosts"),
        (1, Where(), False, "would leave no host: the load comes from 1 host"),
        (1, TWO, True, "a search needs all of its hosts"),
    ],
)
def test_how_many_hosts_may_be_lost(
    allowed: int | None, where: Where, searches: bool, words: str | None
) -> None:
    if words is None:
        assert check_allowed_losses(allowed, where, searches=searches) == (allowed or 0)
        return
    with pytest.raises(UserError, match=words):
        check_allowed_losses(allowed, where, searches=searches)
