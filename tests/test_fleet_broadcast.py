"""A broadcast over several hosts: every delivery is counted on the host where it arrives.

The ledger is settled over all hosts, whatever the server does to clients on a host other than the
sender's. In virtual time: crates/sim/tests/broadcast/shared.rs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from harness import Trueload, start_server
from samples import check_of
from test_fleet_live import MS, engines, hosts
from trueload.errors import UserError
from trueload.interrupt import Interrupt
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Requests, Turns
from trueload.protocol.shootout import Dialect
from trueload.record.accounts.deliveries import Deliveries
from trueload.record.schema import Record
from trueload.request.exchange import WsBroadcast
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.search.crowd import Crowd
from trueload.trial.spec import Load, TrialSpec
from waiting import be_late
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection
from ws_room import Room, peer

CLIENTS, EACH = 6, 3
MESSAGES = CLIENTS * EACH
ALL = MESSAGES * CLIENTS
# The short timeout is for tests in which messages are lost and waited for. The long one is for the
# others, because a busy machine may be slow.
TIMEOUT_NS, SHORT_NS = 5_000 * MS, 1_000 * MS


def step_of(clients: int, messages: int, concurrent: int = 4) -> Load:
    return Load(
        connections=clients,
        pacing=Turns(concurrent=concurrent),
        stop=Requests(count=messages),
        warmup=None,
    )


def broadcast(address: str, dialect: Dialect = "json", **changes: Any) -> TrialSpec:
    headers = (("Sec-WebSocket-Protocol", "actioncable-v1-json"),)
    opening = Request(host=address, path="/ws", headers=headers if dialect == "actioncable" else ())
    spec: dict[str, Any] = {
        "url": f"ws://{address}/ws",
        "addresses": (address,),
        "traffic": Traffic(exchange=WsBroadcast(opening=opening, dialect=dialect, padding=20)),
        "load": step_of(CLIENTS, MESSAGES),
        "engine": EngineOptions(timeout_ns=TIMEOUT_NS),
        "hosts": hosts(2),
    }
    return TrialSpec(**(spec | changes))


def counts(found: Deliveries | None) -> tuple[int, ...]:
    assert found is not None
    return found.expected, found.delivered, found.lost, found.duplicate, found.out_of_order


def step(spec: TrialSpec) -> Record:
    with Crowd(Interrupt(), spec.load.connections) as crowd:
        return crowd.measure(spec)


@pytest.mark.parametrize("dialect", ["json", "binary", "actioncable", "phoenix"])
def test_clients_of_three_hosts_join_step_by_step_and_every_delivery_is_settled(
    trueload: Trueload, dialect: Dialect
) -> None:
    server = start_server(trueload, "--dialect", dialect, service="ws")
    address = server.url.split("/")[2]
    before = engines()
    spec = broadcast(address, dialect, hosts=hosts(3))
    with Crowd(Interrupt(), 100) as crowd:
        for clients, messages in ((6, 30), (50, 200), (7, 20)):
            load = step_of(clients, messages)
            record = crowd.measure(broadcast(address, dialect, hosts=spec.hosts, load=load))
            found = record.deliveries
            everything = messages * clients
            assert counts(found) == (everything, everything, 0, 0, 0), record.checks
            assert record.counts.ok == messages
            assert check_of(record, "ledger").status == check_of(record, "audit").status == "pass"
            assert found is not None
            assert (found.untimed, found.delivery_ns.count) == (0, everything)
            assert found.clock_bound_ns is not None
            assert 0 <= found.negative_max_ns <= found.clock_bound_ns
            own = [host.deliveries for host in record.hosts if host.deliveries is not None]
            assert sum(each.delivery_ns.count for each in own) == everything
            assert max(each.clock_bound_ns or 0 for each in own) == found.clock_bound_ns
            bounds = sorted(host.clock_bound_ns or 0 for host in record.hosts)
            assert found.clock_bound_ns == sum(bounds[-2:])
            # One value per message at each of the three hosts.
            assert found.first_ns.count == found.last_ns.count == 3 * messages
            assert found.spread_ns is not None
            # One value per message at each of the two hosts that did not send it.
            assert found.spread_ns.count == 2 * messages
            assert record.latency_ns.count == messages
    assert engines() == before


HELD_NS = 50 * MS


class Holding(Room):
    """A room that keeps each broadcast for a while before it passes it on."""

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        if self.decoded(wire)[0] == "broadcast":
            be_late(HELD_NS / 1e9)
        super().answer(client, wire)


@pytest.mark.parametrize("dialect", ["json", "binary"])
def test_a_delivery_from_another_host_takes_as_long_as_the_server_held_it(dialect: Dialect) -> None:
    with peer(Holding(dialect)) as (host, port):
        record = step(broadcast(f"{host}:{port}", dialect))
    found = record.deliveries
    assert found is not None
    assert (found.delivered, found.untimed, found.negative) == (ALL, 0, 0)
    assert found.clock_bound_ns is not None
    # What a host sent to itself is exact; of what came from the other, the bound may be missing.
    assert found.delivery_ns.count == ALL
    assert found.delivery_ns.min is not None
    assert found.delivery_ns.min >= HELD_NS - found.clock_bound_ns
    for each in record.hosts:
        assert each.deliveries is not None
        assert each.deliveries.delivery_ns.count == MESSAGES * CLIENTS // 2
    assert "times between hosts" in check_of(record, "clocks").why


class Changing(Room):
    """A room that passes messages on with another send time."""

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        kind, payload = self.decoded(wire)
        if kind == "broadcast":
            first = payload["padding"][0]
            other = "1" if first == "0" else "0"
            payload["padding"] = other + payload["padding"][1:]
            wire = self.encoded(kind, payload)
        super().answer(client, wire)


def test_a_send_time_that_the_server_changed_is_not_believed() -> None:
    with peer(Changing()) as (host, port):
        record = step(broadcast(f"{host}:{port}"))
    found = record.deliveries
    assert found is not None
    assert counts(found) == (ALL, ALL, 0, 0, 0)
    assert found.untimed == ALL // 2, "what a host sent to itself is timed by its own ledger"
    assert check_of(record, "ledger").status == "warn"


class Partial(Room):
    """A room that errs only for the clients of host 1, with messages from clients of host 0."""

    def __init__(self, flaw: str) -> None:
        super().__init__("json", flaw)
        self.numbers: dict[ServerConnection, int] = {}
        self.held: list[Any] = []

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        kind, payload = self.decoded(wire)
        if kind == "echo":
            self.numbers[client] = payload["sender"]
            self.echo(client, payload)
            return
        with self.lock:
            mine = payload["sender"] == 0
            for each in self.clients:
                there = self.numbers[each] % 2 == 1
                for one in self.due(payload) if mine and there else [payload]:
                    with suppress(ConnectionClosed):
                        each.send(self.encoded("broadcast", one))
            if mine and payload["sequence"] == 1:
                self.held = [payload]
        with suppress(ConnectionClosed):
            client.send(self.encoded("broadcastResult", payload, CLIENTS))

    def due(self, payload: Any) -> list[Any]:
        match self.flaw, payload["sequence"]:
            case ("loses", 2) | ("swaps", 1):
                return []
            case ("doubles", 2):
                return [payload, payload]
            case ("swaps", 2):
                return [payload, *self.held]
            case ("makes up", 2):
                return [payload, {**payload, "sequence": 99}]
            case ("repeats", 3):
                return [payload, *self.held]
        return [payload]


@pytest.mark.parametrize(
    ("flaw", "expected", "failed"),
    [
        ("nothing", (ALL, ALL, 0, 0, 0), {}),
        ("loses", (ALL, ALL - 3, 3, 0, 0), {"lost": 1}),
        ("doubles", (ALL, ALL, 0, 3, 0), {"duplicate": 1}),
        ("repeats", (ALL, ALL, 0, 3, 0), {"duplicate": 1}),
        ("swaps", (ALL, ALL, 0, 0, 3), {}),
        ("makes up", (ALL, ALL, 0, 0, 3), {"unsolicited": 3}),
    ],
)
def test_what_a_server_does_to_the_clients_of_another_host_is_settled_once(
    flaw: str, expected: tuple[int, ...], failed: dict[str, int]
) -> None:
    with peer(Partial(flaw)) as (host, port):
        timeout_ns = SHORT_NS if flaw == "loses" else TIMEOUT_NS
        record = step(broadcast(f"{host}:{port}", engine=EngineOptions(timeout_ns=timeout_ns)))
    assert record.trouble is None, "the engines end by themselves, as law 3 says"
    assert record.counts.failed == failed, record.checks
    assert counts(record.deliveries) == expected
    count = record.counts
    assert (
        count.issued
        == count.ok + sum(count.failed.values())
        == MESSAGES + sum(n for name, n in failed.items() if name == "unsolicited")
    )
    assert record.latency_ns.count == count.ok
    good = "pass" if expected[2:4] == (0, 0) else "fail"
    ledger = check_of(record, "ledger")
    assert ledger.status == good
    assert ledger.why.endswith(" (on host1)") == (good == "fail"), "the host whose clients lack it"
    assert check_of(record, "audit").status == "pass"


def test_fewer_messages_in_flight_than_hosts_are_refused_before_anything_is_sent(
    trueload: Trueload,
) -> None:
    server = start_server(trueload, service="ws")
    before = engines()
    spec = broadcast(server.url.split("/")[2], hosts=hosts(3), load=step_of(CLIENTS, MESSAGES, 2))
    with pytest.raises(UserError, match="2 messages in flight cannot be shared by 3 hosts"):
        step(spec)
    assert engines() == before
