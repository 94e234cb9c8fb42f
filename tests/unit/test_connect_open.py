"""New connections at a rate: what excludes it, and what a record says of their steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from samples import counts, flat, good_record, histogram, trial_facts
from trueload.commands.http import read_job
from trueload.errors import UserError
from trueload.protocol.openings import Openings as Seen
from trueload.protocol.plan import Open
from trueload.record.accounts.openings import OPENINGS, Openings
from trueload.record.thresholds import crossed
from trueload.report.accounts.openings import OPENINGS as OPENINGS_SHOWN
from trueload.report.result import result_lines
from trueload.report.sheets import record_values
from trueload.trial.plan import make_plan

MS = 1_000_000
URL = "https://127.0.0.1:8443/"


def job(**flags: Any) -> Any:
    return read_job(**{"url": URL, "connect_open": 5000.0, **flags})


def seen(connected: int = 1000, full: int = 100, resumed: int = 900) -> Seen:
    return Seen(
        connect=histogram((2 * MS, connected)),
        full_handshake=histogram((9 * MS, full)),
        resumed_handshake=histogram((4 * MS, resumed)),
        first_byte=histogram((11 * MS, full + resumed)),
    )


def account(found: Seen, **of: Any) -> Openings:
    window = SimpleNamespace(openings=found, counts=counts(**of))
    made: Openings | None = OPENINGS.made(trial_facts(window))
    assert made is not None
    return made


def test_the_rate_of_connections_is_an_open_loop_of_one_request_each() -> None:
    load = job(arrivals="poisson", connections=256).spec.load
    assert (load.connections, load.close, load.connect_open) == (256, True, True)
    assert isinstance(load.pacing, Open)
    assert (load.pacing.stages[0].from_, load.pacing.arrivals) == (5000.0, "poisson")
    plan = make_plan(job().spec, (0,))
    assert (plan.close, plan.connect_open) == (True, True)
    assert "connect_open" not in make_plan(read_job(url=URL).spec, (0,)).model_dump()


def test_a_search_begins_at_the_rate_of_connections() -> None:
    found = job(limit="p99<10ms")
    assert (found.search.axis, found.search.bounds.start) == ("rate", 5000.0)
    assert found.spec.load.connect_open


@pytest.mark.parametrize(
    ("flags", "other"),
    [
        ({"rate": 100.0}, "--rate"),
        ({"stages": "10s@1k"}, "--stages"),
        ({"idle": 10}, "--idle"),
        ({"pipeline": 4}, "--pipeline"),
        ({"http": "2", "streams": 4}, "--streams"),
        ({"connect_rate": 100}, "--connect-rate"),
        ({"limit": "p99<10ms", "search": "connections"}, "--search connections"),
    ],
)
def test_what_does_not_go_with_it_is_refused(flags: dict[str, Any], other: str) -> None:
    with pytest.raises(UserError, match=f"--connect-open and {other} cannot be used together"):
        job(**flags)


def test_a_connection_that_did_not_get_so_far_is_slower_than_any() -> None:
    whole = account(seen(), scheduled=1000, ok=1000, issued=1000)
    steps = (whole.connect_ns, whole.full_handshake_ns, whole.resumed_handshake_ns)
    assert [step.slower for step in steps] == [0, 0, 0]
    found = account(
        seen(connected=990, full=80),
        scheduled=1000,
        issued=1000,
        ok=980,
        failed={"connect.timeout": 10, "timeout.tls": 10},
    )
    assert found.connect_ns.slower == 10
    assert (found.full_handshake_ns.slower, found.resumed_handshake_ns.slower) == (20, 20)
    assert found.first_byte_ns.slower == 20


def test_several_engines_are_added_up_without_loss() -> None:
    both = OPENINGS.added([seen(), seen(connected=10, full=5, resumed=0)])
    assert both is not None
    found = account(both, scheduled=1010, ok=1005, issued=1010)
    assert (found.connect_ns.count, found.full_handshake_ns.count) == (1010, 105)
    assert OPENINGS.added([]) is None


def test_each_step_has_a_line_and_columns() -> None:
    record = good_record(openings=account(seen(), scheduled=1000, ok=1000, issued=1000))
    lines = result_lines(record)
    texts = OPENINGS_SHOWN.shown(record)
    assert [label for label, _ in texts] == ["connect", "full TLS", "resumed TLS", "first byte"]
    assert texts[1][1].endswith("(100 handshakes)")
    assert all(flat([label, text]) in flat(lines) for label, text in texts)
    values = record_values(record)
    assert values["opening_resumed_handshake_p50_ns"] == pytest.approx(4 * MS, rel=0.01)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("connect_p99>1ms", True),
        ("connect_p99>3ms", False),
        ("full_handshake_p50>8ms", True),
        ("resumed_handshake_p50>8ms", False),
        ("first_byte_p99>10ms", True),
    ],
)
def test_a_gate_may_be_on_each_step(text: str, holds: bool) -> None:
    of = counts(scheduled=1000, ok=1000, issued=1000)
    record = good_record(openings=account(seen(), scheduled=1000, ok=1000, issued=1000), counts=of)
    assert bool(crossed(job(fail_on=[text]).thresholds, [record])) is holds


def test_a_gate_on_handshakes_needs_tls_and_one_on_connections_the_flag() -> None:
    with pytest.raises(UserError, match="'full_handshake_p99' cannot be used here"):
        job(url="http://127.0.0.1/", fail_on=["full_handshake_p99>1ms"])
    with pytest.raises(UserError, match="'connect_p99' cannot be used here"):
        read_job(url=URL, fail_on=["connect_p99>1ms"])
