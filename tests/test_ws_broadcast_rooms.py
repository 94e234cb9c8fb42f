"""Broadcasts to rooms that are late, leave a client out, or change the order: the receipts look
well in each. What is said of the deliveries, and what ``order`` counts."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
from harness import Finished, Trueload
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection
from ws_room import Room, peer

pytestmark = pytest.mark.engine

CLIENTS, MESSAGES = 4, 40
LATE_S, HELD_S = 0.3, 0.1


class LateRoom(Room):
    """The sender has its receipt at once, everybody the message later."""

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        kind, payload = self.heard(wire)
        if kind == "echo":
            self.echo(client, payload)
            return
        self.confirm(client, payload)
        self.after(LATE_S, self.deliver, [payload])

    def confirm(self, client: ServerConnection, payload: Any) -> None:
        """Its receipt."""
        with suppress(ConnectionClosed, OSError):
            client.send(self.said("broadcastResult", payload, len(self.clients)))

    def after(self, seconds: float, what: Any, *arguments: Any) -> None:
        """Later, unless the test is over by then."""
        timer = threading.Timer(seconds, what, arguments)
        timer.daemon = True
        timer.start()

    def deliver(self, payloads: list[Any], *, swapped: bool = False) -> None:
        """To all in this order; or ``swapped`` for every other client."""
        with self.lock:
            for place, each in enumerate(self.clients):
                for payload in reversed(payloads) if swapped and place % 2 else payloads:
                    with suppress(ConnectionClosed, OSError):
                        each.send(self.said("broadcast", payload))


class SwappingRoom(LateRoom):
    """Two messages change places: of one sender for all, or of two senders for every other one."""

    def __init__(self, *, of_one_sender: bool) -> None:
        super().__init__()
        self.of_one_sender = of_one_sender
        self.lock = threading.RLock()  # type: ignore[assignment]
        self.held: dict[Any, list[Any]] = {}
        self.sender: ServerConnection | None = None

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        kind, payload = self.heard(wire)
        if kind == "echo":
            self.echo(client, payload)
            return
        key = client if self.of_one_sender else None
        with self.lock:
            if not self.of_one_sender and self.sender is client:
                self.release(key)  # a pair is of two
            self.sender = client
            self.held.setdefault(key, []).append(payload)
            if len(self.held[key]) == 2:
                self.release(key)
        self.confirm(client, payload)
        self.after(HELD_S, self.release, key)

    def release(self, key: Any) -> None:
        """What is held, a pair or what nothing has joined."""
        with self.lock:
            held = self.held.pop(key, [])
            if self.of_one_sender:
                self.deliver(held[::-1])
            else:
                self.deliver(held, swapped=True)


def broadcast_to(trueload: Trueload, room: Room, *flags: str) -> Finished:
    load = ("--step", str(CLIENTS), "--samples", str(MESSAGES), "--timeout", "3s")
    with peer(room) as (host, port):
        url = f"ws://{host}:{port}/"
        return trueload.run("ws", url, "--mode", "broadcast", *load, *flags, "--json", "-")


def test_a_limit_is_on_the_deliveries_and_by_name_on_the_receipts(trueload: Trueload) -> None:
    late = broadcast_to(trueload, LateRoom(), "--steps", "1", "--limit", "p95<200ms").json()
    assert late["result"]["outcome"] != "found", late["result"]
    limit = ("--steps", "1", "--limit", "receipt_p95<3s")
    kept = broadcast_to(trueload, LateRoom(), *limit).json()
    assert (kept["result"]["outcome"], kept["result"]["load"]) == ("found", CLIENTS)


@pytest.mark.parametrize("limit", ["p95<3s", "receipt_p95<3s"])
def test_a_server_that_leaves_a_client_out_ends_invalid_with_the_reason(
    trueload: Trueload, limit: str
) -> None:
    done = broadcast_to(trueload, Room("json", "forgets one"), "--limit", limit, "--steps", "2")
    found = done.json()
    assert done.code == 4, done
    assert found["verdict"] == "invalid"
    assert found["result"]["load"] is None, found["result"]
    (ledger,) = (check for check in found["checks"] if check["name"] == "ledger")
    assert "deliveries were lost" in ledger["why"], ledger
    assert "deliveries were lost" in found["result"]["sentence"]


def test_order_is_that_of_each_sender(trueload: Trueload) -> None:
    flags = ("--steps", "1", "--limit", "p95<3s")
    swapped, across = (
        broadcast_to(trueload, SwappingRoom(of_one_sender=of_one_sender), *flags).json()["steps"][0]
        for of_one_sender in (True, False)
    )
    assert swapped["deliveries"]["out_of_order"] > 0, swapped["deliveries"]
    assert across["deliveries"]["out_of_order"] == 0, across["deliveries"]
    for step in (swapped, across):
        assert step["deliveries"]["lost"] == step["deliveries"]["duplicate"] == 0
        assert "ledger" not in [each["name"] for each in step["checks"] if each["status"] == "fail"]
