"""Rooms whose receipts look right while messages come late or in another order."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection
from ws_room import Room

HELD_S = 0.1


class LateRoom(Room):
    """A room that sends the receipt at once, and everybody the message ``late_s`` later."""

    def __init__(self, late_s: float) -> None:
        super().__init__()
        self.late_s = late_s

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        kind, payload = self.decoded(wire)
        if kind == "echo":
            self.echo(client, payload)
            return
        self.confirm(client, payload)
        self.after(self.late_s, self.deliver, [payload])

    def confirm(self, client: ServerConnection, payload: Any) -> None:
        """Send a client its receipt."""
        with suppress(ConnectionClosed, OSError):
            client.send(self.encoded("broadcastResult", payload, len(self.clients)))

    def after(self, seconds: float, what: Any, *arguments: Any) -> None:
        """Call ``what`` later, unless the test is over by then."""
        timer = threading.Timer(seconds, what, arguments)
        timer.daemon = True
        timer.start()

    def deliver(self, payloads: list[Any], *, swapped: bool = False) -> None:
        """Send the payloads in this order; ``swapped`` reverses it for every other client."""
        with self.lock:
            for place, each in enumerate(self.clients):
                for payload in reversed(payloads) if swapped and place % 2 else payloads:
                    with suppress(ConnectionClosed, OSError):
                        each.send(self.encoded("broadcast", payload))


class SwappingRoom(LateRoom):
    """A room that swaps two messages.

    They are of one sender and swapped for all, or of two senders and swapped for every other
    client.
    """

    def __init__(self, *, of_one_sender: bool) -> None:
        super().__init__(HELD_S)
        self.of_one_sender = of_one_sender
        self.lock = threading.RLock()  # type: ignore[assignment]
        self.held: dict[Any, list[Any]] = {}
        self.sender: ServerConnection | None = None

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        kind, payload = self.decoded(wire)
        if kind == "echo":
            self.echo(client, payload)
            return
        key = client if self.of_one_sender else None
        with self.lock:
            if not self.of_one_sender and self.sender is client:
                self.release(key)  # a pair has two senders
            self.sender = client
            self.held.setdefault(key, []).append(payload)
            if len(self.held[key]) == 2:
                self.release(key)
        self.confirm(client, payload)
        self.after(HELD_S, self.release, key)

    def release(self, key: Any) -> None:
        """Deliver what is held: a pair, or a single message that found no partner."""
        with self.lock:
            held = self.held.pop(key, [])
            if self.of_one_sender:
                self.deliver(held[::-1])
            else:
                self.deliver(held, swapped=True)
