"""How a front settles a broadcast that several engines share: it hears from each what it sent in a
phase, tells all of them, hears from each what failed at its receivers, and tells all of that.

Pure: what is heard goes in, what is to be said to every engine comes out. Each message is settled
where it arrives; nothing is counted here. Must not know how engines are spoken to.
"""

from __future__ import annotations

from trueload.protocol.broadcast import FailedMessage, Sent
from trueload.protocol.plan import Charge, PhaseSent, Settle, Settled


class Settling:
    """The phases of ``count`` engines. ``None`` comes out while others have still to speak."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._sent: dict[str, dict[int, Sent]] = {}
        self._failed: dict[str, dict[int, tuple[FailedMessage, ...]]] = {}

    def hear_sent(self, index: int, said: PhaseSent) -> Settle | None:
        """An engine's own messages are over: with the last engine, what all have sent. By when it
        has to be there is each engine's own time, and left open."""
        sent = self._sent.setdefault(said.id, {})
        sent[index] = said.sent
        if len(sent) < self._count:
            return None
        together = {sender: last for each in sent.values() for sender, last in each.items()}
        return Settle(id=said.id, sent=together, until_ns=None)

    def hear_settled(self, index: int, said: Settled) -> Charge | None:
        """The others' messages are over at an engine's receivers: with the last engine, what has
        failed at any. A message that failed at several has failed once."""
        failed = self._failed.setdefault(said.id, {})
        failed[index] = said.failed
        if len(failed) < self._count:
            return None
        first = {
            (each.sender, each.sequence): each for part in failed.values() for each in part[::-1]
        }
        return Charge(id=said.id, failed=tuple(first.values()))
