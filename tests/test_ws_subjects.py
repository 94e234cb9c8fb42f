"""Subjects of ws-shootout that build quickly, and the reference server, against the contract.

`make test-subjects` checks all of them; these few represent the ways to build and run one.
"""

from __future__ import annotations

from typing import get_args

import pytest
from harness import ROOT, Trueload, server_contract, start_server
from trueload.protocol.shootout import Dialect
from trueload.runner.verify import verify
from trueload.subjects.contracts import ShootoutContract, as_spoken

# Includes the first fetching and compiling.
CHECK_TIMEOUT_S = 280.0
QUICK = [
    "python/websockets:",
    pytest.param("javascript/ws", marks=pytest.mark.needs("node")),
    pytest.param("go/gorilla", marks=pytest.mark.needs("go")),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", QUICK)
def test_a_subject_is_built_and_keeps_the_contract(trueload: Trueload, name: str) -> None:
    ended = trueload.run("subjects", "check", "--json", name, cwd=ROOT, timeout_s=CHECK_TIMEOUT_S)
    checks = ended.json()["checks"]
    assert ended.code == 0, checks
    assert {(each["contract"], each["outcome"]) for each in checks} == {("ws-shootout", "ok")}


@pytest.mark.parametrize("dialect", get_args(Dialect))
def test_the_reference_server_keeps_the_contract_in_every_dialect(
    trueload: Trueload, dialect: Dialect
) -> None:
    contract = as_spoken(server_contract("ws-shootout"), None, dialect)
    assert isinstance(contract, ShootoutContract)
    server = start_server(trueload, "--dialect", dialect, service="ws")
    assert verify(contract, "platform", ("127.0.0.1", server.port), pipelined=True) is None
