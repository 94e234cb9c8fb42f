"""A message that all living engines have to send before something is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Barrier:
    """A message that all living members have to send before ``then`` is done, once."""

    then: Callable[[], None]
    senders: set[int] = field(default_factory=set)
    done: bool = False

    def pass_if_all(self, living: int) -> None:
        """Do it if so many have sent the message, and it has not been done."""
        if not self.done and len(self.senders) == living > 0:
            self.done = True
            self.then()
