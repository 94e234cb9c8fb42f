"""A message that all living engines have to send before something is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Awaited:
    """A message that all living members have to send before ``then`` is done, once."""

    then: Callable[[], None]
    senders: set[int] = field(default_factory=set)
    done: bool = False
