"""A search that ends because the generator or the server lacks files, ports or memory."""

from __future__ import annotations

from typing import Any

import pytest
from samples import good_record
from search_samples import LIMIT_10MS, failing
from trueload.record.schema import Record, Trouble
from trueload.search.decide import Try
from trueload.search.execute import SearchPlan, make_bounds
from trueload.search.execute import search as run_steps
from trueload.search.result import exit_code, search_json


def lacking(**changes: Any) -> Record:
    """A record of a trial that lacked connections or memory."""
    record = failing("generator-limit")
    connections = record.connections.model_copy(update=changes)
    return record.model_copy(update={"connections": connections})


NO_MEMORY = Trouble(kind="memory", what="the engine ran out of memory in the window phase")


def test_a_search_whose_engine_has_no_memory_for_any_load_ends_as_the_machines_fault() -> None:
    plan = SearchPlan("connections", LIMIT_10MS, make_bounds("connections", None), None)
    record = good_record(trouble=NO_MEMORY, partial=True)
    taken = list(run_steps(plan, lambda following, ns: record))
    assert exit_code(plan, taken) == 71
    assert exit_code(plan, taken, interrupted=True) == 130
    result = search_json(plan, taken, None, interrupted=False)["result"]
    assert result["load"] is None
    assert "the generator's memory limit was reached at every load" in result["sentence"]


@pytest.mark.parametrize(
    ("record", "limited_by", "sentence"),
    [
        (
            lacking(
                failed={"local.fds": 9}, reasons={"local.fds": "9 connections need 20 open files"}
            ),
            "files",
            "the generator's open-file limit ended the search, not the server; raise the limit:"
            " `ulimit -n`",
        ),
        (
            lacking(failed={"local.ports": 9}),
            "ports",
            "the local ports of this machine ended the search, not the server; spread them over",
        ),
        (
            lacking(requested=400, established=300, server_files=310),
            "files",
            "the server's open-file limit of 310 ended the search, not the server; raise the"
            " limit with `ulimit -n`, then start the server again",
        ),
        (
            good_record(trouble=NO_MEMORY, partial=True),
            "memory",
            "the generator's memory limit ended the search, not the server; raise the limit of"
            " memory (`ulimit -v`",
        ),
    ],
)
def test_too_little_of_something_ends_a_search_as_a_result_of_its_own_kind(
    record: Record, limited_by: str, sentence: str
) -> None:
    plan = SearchPlan("connections", LIMIT_10MS, make_bounds("connections", None), None)

    def measure(following: Try, ns: int) -> Record:
        return good_record() if following.load <= 300 else record

    taken = list(run_steps(plan, measure))
    assert exit_code(plan, taken) == 0
    result = search_json(plan, taken, None, interrupted=False)["result"]
    assert (result["outcome"], result["limited_by"]) == ("found", limited_by)
    assert result["lower_bound"]
    at_least = f"at least {result['load']:.0f} connections keep p99<10ms and errors<1%"
    assert f"{at_least}: {sentence}" in result["sentence"]
    assert {each.judgement.outcome for each in taken} == {"kept", "short"}
