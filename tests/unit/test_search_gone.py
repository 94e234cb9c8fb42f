"""The search of a server that is gone, or that is only partly reachable."""

from __future__ import annotations

import itertools

import pytest
from samples import check_of, flat, good_record
from search_samples import LIMIT_10MS, SLOW, failing, nobody
from trueload.record.accounts.origins import OriginRecord
from trueload.record.schema import Record
from trueload.search.decide import Try
from trueload.search.execute import SearchPlan, make_bounds, take
from trueload.search.execute import search as run_steps
from trueload.search.judge import judge_step
from trueload.search.result import exit_code, search_json, search_lines
from trueload.verdict import judge


def half_refused(established: int = 0, **failed: int) -> Record:
    """A record of two origins, the second of which established only some connections."""
    there, away = (
        OriginRecord(
            url=f"http://127.0.0.1:{port}",
            requested=32,
            established=32,
            connect_failed={},
            counts=None,
        )
        for port in (1, 2)
    )
    met = {name.replace("_", "."): n for name, n in failed.items()}
    away = away.model_copy(update={"established": established, "connect_failed": met})
    shown = {"requested": 64, "established": 32 + established}
    connections = good_record().connections.model_copy(update=shown)
    return failing("send-lag", histograms=SLOW, connections=connections, origins=(there, away))


def test_one_of_several_origins_that_refuses_is_gone_whatever_our_side_did() -> None:
    judged = judge_step(half_refused(connect_refused=32), LIMIT_10MS, "bisect")
    why = "no connection to http://127.0.0.1:2 was established: connect.refused"
    assert (judged.outcome, judged.why) == ("gone", why)
    for record in (half_refused(connect_timeout=32), half_refused(1, connect_refused=31)):
        assert judge_step(record, LIMIT_10MS, "bisect").outcome == "limited"


@pytest.mark.parametrize(
    ("record", "code", "why"),
    [
        (half_refused(connect_refused=32), 4, "to http://127.0.0.1:2 was established: connect.r"),
        (half_refused(connect_timeout=32), 4, "to http://127.0.0.1:2 was established: connect.t"),
        (nobody("connect.refused"), 3, "was established: connect.refused"),
        (nobody("tls.cert"), 3, "was established: tls.cert"),
    ],
)
def test_a_search_of_what_cannot_be_reached_from_the_start_ends_with_its_first_step(
    record: Record, code: int, why: str
) -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    taken = list(run_steps(plan, lambda following, ns: judge(record)))
    assert len(taken) == 1
    result = search_json(plan, taken, None, interrupted=False)["result"]
    assert (result["outcome"], result["load"]) == ("gone", None)
    sentence = f"the search ended at its first step, 1,000 requests/s: no connection {why}"
    assert result["sentence"].startswith(sentence)
    assert exit_code(plan, taken) == code


def few_of_many(established: int) -> Record:
    """A record of two origins: all 998 connections to the first, some of 2 to the second."""
    there, away = (
        OriginRecord(
            url=f"http://127.0.0.1:{port}",
            requested=requested,
            established=found,
            connect_failed={},
            counts=None,
        )
        for port, requested, found in ((1, 998, 998), (2, 2, established))
    )
    shown = {"requested": 1000, "established": 998 + established}
    connections = good_record().connections.model_copy(update=shown)
    return judge(good_record(connections=connections, origins=(there, away)))


@pytest.mark.parametrize(
    ("established", "status", "why"),
    [
        (0, "fail", "2 of 1000 were never established; none to http://127.0.0.1:2 was established"),
        (1, "warn", "1 of 1000 were never established"),
        (2, "pass", "all 1000 were there"),
    ],
)
def test_an_origin_that_is_not_reached_spoils_the_whole_however_few_its_connections_are(
    established: int, status: str, why: str
) -> None:
    record = few_of_many(established)
    check = check_of(record, "connections")
    assert (check.status, check.why) == (status, why)
    assert (record.verdict == "invalid") == (status == "fail")


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_search_that_ends_at_an_origin_of_few_connections_is_not_to_be_trusted(
    before: int,
) -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    met = {"connect_failed": {"connect.refused": 2}}
    record = few_of_many(0)
    there, away = record.origins or ()
    record = record.model_copy(update={"origins": (there, away.model_copy(update=met))})
    number = itertools.count()
    taken = list(
        run_steps(plan, lambda following, ns: good_record() if next(number) < before else record)
    )
    assert len(taken) == before + 1
    assert search_json(plan, taken, None, interrupted=False)["result"]["outcome"] == "gone"
    assert exit_code(plan, taken) == 4
    assert "no connection to http://127.0.0.1:2" in flat(search_lines(plan, taken))


@pytest.mark.parametrize(
    ("from_step", "code", "sentence"),
    [
        (
            3,
            4,
            "the server no longer answered at 4,000 requests/s: no connection was established:"
            " connect.refused; 2,000 requests/s had kept p99<10ms and errors<1%, not confirmed",
        ),
        (1, 3, "the server no longer answered at 125 requests/s: no connection was established"),
    ],
)
def test_a_search_whose_server_is_gone_says_so(from_step: int, code: int, sentence: str) -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    number = itertools.count(1)
    refused = judge(nobody("connect.refused"))

    def measure(following: Try, ns: int) -> Record:
        return refused if next(number) >= max(2, from_step) else first

    first = refused if from_step == 1 else good_record()
    # A search that finds no server in its first step ends; a stored one may have continued.
    taken = list(run_steps(plan, measure))
    if from_step == 1:
        taken.append(take(plan, Try(125, "bracket"), refused))
    assert taken[-1].judgement.outcome == "gone"
    result = search_json(plan, taken, None, interrupted=False)["result"]
    assert (result["outcome"], result["load"]) == ("gone", None)
    assert result["sentence"].startswith(sentence)
    assert exit_code(plan, taken) == code
    assert "gone: no connection" in flat(search_lines(plan, taken))
