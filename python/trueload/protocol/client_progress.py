"""The progress of a client while it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from trueload.protocol.client import ClientSetup
from trueload.protocol.cpu_time import CpuTime
from trueload.protocol.plan import Served


@dataclass(frozen=True)
class ClientProgress:
    """Where a client is: its phase (``start``, ``warm-up``, ``window``), how long its order has
    lasted, how many requests the order has (None before the first), and how many were answered.
    ``served`` is the server's last message. ``failed`` are the failures that the client claimed in
    the orders before, by class. CPU times are of both ends, in an order that counts."""

    setup: ClientSetup
    phase: str
    elapsed_ns: int
    requests: int | None
    answered: int
    served: Served
    failed: Mapping[str, int]
    client_cpu: CpuTime | None = None
    server_cpu: CpuTime | None = None


OnClientProgress = Callable[[ClientProgress], None]
WatchClient = Callable[[], AbstractContextManager[OnClientProgress | None]]
"""Gives the callback to notify during one repetition."""


def unwatched_client() -> AbstractContextManager[OnClientProgress | None]:
    """A ``WatchClient`` that notifies nobody."""
    return nullcontext(None)
