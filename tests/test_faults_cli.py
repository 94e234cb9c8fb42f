"""Rows of the table of faults through the command line, as a user meets them: exit code and JSON.

It runs every fifth row of HTTP, at least one row of each class, and each class once more with 50
requests over the default connections. `test_faults_engine.py` runs all rows live, without the
front.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from faults.cases import Case, load
from faults.laws import (
    START_S_MOST,
    Seen,
    assert_exit,
    assert_laws,
    assert_out,
    of_record,
    run_lawfully,
)
from faults.peer import PLAYS_MOST, Peer
from harness import Trueload

# TCP and WebSocket have tests of their own: `test_tcp_cli.py`, `test_ws_cli.py`.
LIVE = [
    case.live()
    for case in load()
    if case.protocol == "http" and case.only != "virtual" and not case.tls
]

ONE_OF_EACH = (
    "an answer with Content-Length is ok",
    "500 is status, and is counted by its code",
    "a body of other content is mismatch",
    "garbage instead of a status line is framing",
    "an endless header line is over the limit",
    "two replies for one request are unsolicited",
    "a body cut short by FIN is truncated",
    "accepted, then reset: each request is reset, and a connection became usable",
    "accepted, then closed before any byte: each request is empty",
    "accepted, then silence: each request times out once",
    "a body dripped past the timeout is a timeout of the whole",
)
"""Rows in which every request ends in the same way, one for each way."""


def chosen() -> list[Case]:
    """Return every fifth row, and the first row of each class."""
    rows = LIVE[::5]
    for name in sorted(set().union(*(case.classes() for case in LIVE))):
        if not any(name in case.classes() for case in rows):
            rows.append(next(case for case in LIVE if name in case.classes()))
    return rows


@dataclass(frozen=True)
class Asked:
    """The way in which the command is called for a row."""

    requests: int
    connections: int | None


def command(case: Case, peer: Peer, asked: Asked) -> list[str]:
    """The command line for a row."""
    words = ["http", peer.url, "--requests", str(asked.requests), "--json", "-", "--no-save"]
    words += ["--timeout", f"{case.timeout_ms}ms", "--method", case.method]
    words += ["--pipeline", str(case.depth)]
    if asked.connections is not None:
        words += ["--connections", str(asked.connections)]
    if case.body is not None:
        words += ["--body", case.body.decode()]
    if case.expect_status:
        words += ["--expect-status", ",".join(map(str, case.expect_status))]
    if case.expect_body is not None:
        words += ["--expect-body", case.expect_body.decode()]
    return words + (["--close"] if case.close else [])


def run_through_cli(trueload: Trueload, case: Case, asked: Asked) -> Seen:
    """Run a row and check the laws; return the summary."""
    for left in reversed(range(PLAYS_MOST)):
        with Peer(case.scripts) as peer:
            words = command(case, peer, asked)
            _, seen = run_lawfully(trueload, case, peer, words)
        if not peer.was_late or not left:
            break
    return seen


@pytest.mark.engine
@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_a_user_is_told_what_a_faulty_peer_did(case: Case, trueload: Trueload) -> None:
    asked = Asked(case.requests, case.connections)
    assert_out(run_through_cli(trueload, case, asked), case)


@pytest.mark.engine
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_run_by_duration_with_a_warm_up_ends_in_time_and_keeps_the_laws(
    name: str, trueload: Trueload
) -> None:
    case = next(case for case in LIVE if case.name == name)
    with Peer(case.scripts) as peer:
        words = command(case, peer, Asked(case.requests, connections=4))
        at = words.index("--requests")
        words[at : at + 2] = ["--duration", "400ms", "--warmup", "200ms"]
        # Law 3: connect, warm-up, duration, timeout and 2 s.
        timeout_s = case.timeout_ms / 1000
        bound_s = timeout_s + 0.2 + 0.4 + timeout_s + 2
        finished = trueload.run(*words, timeout_s=bound_s + START_S_MOST)
        peer.settle()
        seen = of_record(json.loads(finished.out), finished.code)
        assert_laws(seen, requests_at_peer=peer.requests)
    endings = set(seen.failed) | ({"ok"} if seen.ok else set())
    assert endings == set(case.out.each), seen
    assert_exit(seen, (0,) if endings == {"ok"} else (4,))


@pytest.mark.engine
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_fifty_requests_over_the_default_connections_end_alike(
    name: str, trueload: Trueload
) -> None:
    case = next(case for case in LIVE if case.name == name)
    seen = run_through_cli(trueload, case, Asked(50, None))
    (ending,) = case.out.each
    count = seen.ok if ending == "ok" else seen.failed.get(ending, 0)
    assert count == 50, f"50 times {ending}: {seen}"
    assert_exit(seen, (0,) if ending == "ok" else (4,))
