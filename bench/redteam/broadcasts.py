"""Attacks on broadcasts: servers that deliver messages late, not to all, or in another order.

Each is a `Room`, the WebSocket server of the tests with one thread per client, with one flaw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from redteam.demands import Answer, Demand, Seen
from redteam.stage import Stage, command
from ws_flaws import LateRoom, SwappingRoom
from ws_room import Room, peer

ROOMS: Mapping[str, Callable[[], Room]] = {
    "late": partial(LateRoom, late_s=1.0),
    "leaves one out": partial(Room, "json", "forgets one"),
    "swaps one sender's": partial(SwappingRoom, of_one_sender=True),
    "swaps two senders'": partial(SwappingRoom, of_one_sender=False),
}


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


def out_of_order(happens: bool) -> Demand:
    """Whether messages of one sender are seen to change places."""

    def demand(seen: Seen) -> Answer:
        count = sum(step["deliveries"]["out_of_order"] for step in seen.result["steps"])
        truth = "messages of a sender change places" if happens else "no sender's messages do"
        return Answer((count > 0) == happens, truth, f"{count:,} out of order")

    return demand
