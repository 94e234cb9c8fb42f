"""What a server must not do besides answering wrongly, as docs/adding-a-subject.md says."""

from __future__ import annotations

import time

from trueload.deadline import looks
from trueload.runner.process import Processes
from trueload.runner.verify import HttpVariant, PeerError, connect
from trueload.subjects.contracts import Contract
from trueload.units import counted

STOP_S = 5.0
# A second answer leaves with the first, or right behind it.
SILENCE_S = 0.2
POLL_S = 0.01


def answers_more(contract: Contract, address: tuple[str, int], *, tls: bool) -> str | None:
    """What comes behind the answer to a single request, if anything does."""
    first = contract.exchanges[0]
    try:
        with connect(address, HttpVariant(tls=tls)) as connection:
            connection.send(first)
            connection.receive(first)
            more = connection.unread or connection.read_within(SILENCE_S)
    except PeerError as error:
        return str(error)
    if not more:
        return None
    return f"it sends {counted(len(more), 'byte')} after the answer to one request: {more[:40]!a}"


def stops_late(processes: Processes) -> str | None:
    """What is left of it after SIGTERM to the programs that were started alone, if anything is."""
    processes.terminate()
    for left_s in looks(time.monotonic() + STOP_S):
        if not processes.alive():
            return None
        processes.poll(min(left_s, POLL_S))
    left = sorted(processes.pids())
    if not left:
        return None
    if set(processes.started) & set(left):
        return f"it does not stop within {STOP_S:g} s of SIGTERM"
    plural = "es" if len(left) > 1 else ""
    return f"it leaves {len(left)} process{plural} behind when it stops on SIGTERM"
