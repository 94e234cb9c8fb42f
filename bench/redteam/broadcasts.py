"""Attacks on broadcasts: servers that deliver messages late, not to all, or in another order.

Each is a `Room`, the WebSocket server of the tests with one thread per client, with one flaw.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redteam.demands import Answer, Demand, Seen
from redteam.stage import Stage, command
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection
from ws_room import Room, peer

LATE_S = 1.0


class LateRoom(Room):
    """The sender gets its receipt at once; the message is delivered a second later."""

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        """Send the receipt, and set a timer for the deliveries."""
        kind, payload = self.heard(wire)
        if kind == "echo":
            self.echo(client, payload)
            return
        with self.lock:
            everybody = list(self.clients)
        client.send(self.said("broadcastResult", payload, len(everybody)))
        later = threading.Timer(LATE_S, self.deliver, (everybody, payload))
        later.daemon = True
        later.start()

    def deliver(self, everybody: list[ServerConnection], payload: Any) -> None:
        """Send the message to each of them."""
        for each in everybody:
            with suppress(ConnectionClosed, OSError):
                each.send(self.said("broadcast", payload))


class SwappingRoom(Room):
    """Every other client receives the messages of two senders in the opposite order."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Any] = []

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        """Hold the message until there is another one, at most for 100 ms."""
        kind, payload = self.heard(wire)
        if kind == "echo":
            self.echo(client, payload)
            return
        with self.lock:
            self.held.append((client, payload))
            self.release() if len(self.held) == 2 else self.release_later()

    def release_later(self) -> None:
        """Release a message that no other one has joined in time."""

        def late() -> None:
            with self.lock:
                self.release()

        timer = threading.Timer(0.1, late)
        timer.daemon = True
        timer.start()

    def release(self) -> None:
        """Deliver the held messages, in the opposite order to odd clients; then send receipts."""
        held, self.held = self.held, []
        for place, each in enumerate(self.clients):
            for _, payload in held if place % 2 else reversed(held):
                with suppress(ConnectionClosed, OSError):
                    each.send(self.said("broadcast", payload))
        for sender, payload in held:
            with suppress(ConnectionClosed, OSError):
                sender.send(self.said("broadcastResult", payload, len(self.clients)))


def forgetting() -> Room:
    """A room that never delivers to its last client."""
    return Room("json", "forgets one")


ROOMS = {"late": LateRoom, "forgets": forgetting, "swaps": SwappingRoom}


@dataclass(frozen=True)
class Broadcast:
    """`trueload ws --mode broadcast` with these flags, against one of `ROOMS`."""

    room: str
    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run the search."""
        with peer(ROOMS[self.room]()) as (host, port):
            words = ("ws", f"ws://{host}:{port}/", "--mode", "broadcast", *self.flags.split())
            with command(stage, *words, "--no-save") as running:
                return running.seen()


def found_none(seen: Seen) -> Answer:
    """No number of clients keeps to the limit."""
    result: Mapping[str, Any] = seen.result["result"]
    right = result["outcome"] != "found"
    return Answer(right, "no clients keep to it", f"{result['outcome']}, {result['load']}")


def found_at_most(load: float, within: float = 0.03) -> Demand:
    """The load that a search found is at most the true one."""

    def demand(seen: Seen) -> Answer:
        found = seen.result["result"]["load"]
        right = found is None or found <= load * (1 + within)
        return Answer(right, f"at most {load:,g}", "none" if found is None else f"{found:,g}")

    return demand


def out_of_order(seen: Seen) -> Answer:
    """It is seen that two clients had messages in different orders."""
    count = sum(step["deliveries"]["out_of_order"] for step in seen.result["steps"])
    return Answer(count > 0, "messages change places", f"{count:,} out of order")
