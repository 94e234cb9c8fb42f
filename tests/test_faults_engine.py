"""Every row of the table of faults, live: the engine on real sockets, against a scripted peer.

The engine is driven by its own JSON lines, so a row takes as long as its timeouts. The same rows
run in virtual time in `crates/sim/tests/faults`; one of each class runs through the command line in
`test_faults_cli.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faults.cases import MESSAGE_BYTES, PAYLOAD, Case, load
from faults.engine_lines import Engine, Plan, by_requests, run_plan, sha256
from faults.laws import assert_laws, assert_out, give_up_s, of_engine
from faults.peer import PLAYS_MOST, Peer

# Rows with TLS run through the command line, in `test_tls_cli.py`.
LIVE = [case.live() for case in load() if case.only != "virtual" and not case.tls]


def plan_of(case: Case, peer: Peer) -> Plan:
    """The plan of the row's load, with the peer as its target."""
    return Plan(
        **_exchange_of(case),
        address=f"{peer.host}:{peer.port}",
        method=case.method,
        body=case.body,
        statuses=case.expect_status,
        expect_body=case.expect_body,
        connections=case.connections,
        depth=case.depth,
        close=case.close,
        timeout_ms=case.timeout_ms,
    )


def _exchange_of(case: Case) -> dict[str, Any]:
    if case.protocol == "http":
        return {}
    exchange: dict[str, Any] = {"payload_sha256": sha256(PAYLOAD), "size": MESSAGE_BYTES}
    if case.protocol == "tcp":
        exchange |= {"kind": "tcp_echo", "half_close": case.half_close}
    else:
        opening = {"method": "GET", "path": "/echo", "headers": [["Host", "a"]]}
        exchange |= {"kind": "ws_echo", "text": True, "opening": opening | {"body_sha256": None}}
    return {"exchange": exchange, "payload": PAYLOAD}


def play(case: Case, engine_path: Path, seed: int | None) -> None:
    for left in reversed(range(PLAYS_MOST)):
        with (
            Peer(case.scripts, seed=seed, protocol=case.protocol) as peer,
            Engine(engine_path) as engine,
        ):
            phase = by_requests(case.requests)
            run = run_plan(engine, plan_of(case, peer), phase, bound_s=give_up_s(case))
            peer.settle()
            seen = of_engine(run)
            assert_laws(seen, requests_at_peer=peer.requests, protocol=case.protocol)
        if not peer.was_late or not left:
            break
    assert_out(seen, case, apart=seed is not None)


@pytest.mark.engine
@pytest.mark.parametrize("case", LIVE, ids=lambda case: case.name)
def test_a_faulty_peer_is_reported_as_what_it_is(case: Case, engine_path: Path) -> None:
    play(case, engine_path, seed=None)


@pytest.mark.engine
@pytest.mark.parametrize("case", LIVE[::3], ids=lambda case: case.name)
def test_bytes_that_come_in_pieces_change_nothing(case: Case, engine_path: Path) -> None:
    play(case, engine_path, seed=7)
