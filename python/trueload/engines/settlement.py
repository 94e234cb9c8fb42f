"""How a front settles a broadcast that several engines share.

It collects what each engine sent in a phase, and sends it to all of them. Then it collects what
failed at each engine's receivers, and sends that to all. Pure: received messages go in, messages to
every engine come out. Each message is settled where it arrives; nothing is counted here.
"""

from __future__ import annotations

from trueload.protocol.broadcast import Charge, FailedMessage, PhaseSent, Sent, Settle, Settled


class Settlement:
    """The phases of ``count`` engines. Methods return ``None`` while others have yet to speak."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._sent: dict[str, dict[int, Sent]] = {}
        self._failed: dict[str, dict[int, tuple[FailedMessage, ...]]] = {}

    def receive_sent(self, index: int, message: PhaseSent) -> Settle | None:
        """Note that an engine's own messages are over. With the last engine, return what all have
        sent. The deadline is left open, because it is a time of each engine's own clock."""
        sent = self._sent.setdefault(message.id, {})
        sent[index] = message.sent
        if len(sent) < self._count:
            return None
        together = {sender: last for each in sent.values() for sender, last in each.items()}
        return Settle(id=message.id, sent=together, until_ns=None)

    def receive_settled(self, index: int, message: Settled) -> Charge | None:
        """Note that the others' messages are over at an engine's receivers. With the last engine,
        return what failed at any of them. A message that failed at several has failed once."""
        failed = self._failed.setdefault(message.id, {})
        failed[index] = message.failed
        if len(failed) < self._count:
            return None
        first = {
            (each.sender, each.sequence): each for part in failed.values() for each in part[::-1]
        }
        return Charge(id=message.id, failed=tuple(first.values()))
