"""Probes a subject under load with the contract's other exchanges: another path, another form.

How: a thread sends one exchange after the other, at times and in an order that a seed decides, and
the contract judges the answers. Each goes over a connection of its own, behind some requests like
the load's. So a server that stops reading after a few is found, too. A probe without any answer
says nothing, as the load may leave no room for it.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from trueload.protocol.plan import Duration, Requests
from trueload.record.schema import Probes, Record
from trueload.runner.verify import EXCHANGE_TIMEOUT_S, ask, over
from trueload.subjects.contracts import AnyContract, Contract, Exchange, asked_of, exchange_of
from trueload.trial.spec import Load
from trueload.units import NS_PER_S
from trueload.verdict import judge as judge_record

PROBES = 15  # in a trial by time, so that at least ten are answered
PAUSE_S_MOST = 0.5
PAUSE_S_BY_REQUESTS = 0.05
BEFORE = (0, 1, 3, 10)  # requests on a probe's connection before it


@dataclass
class Prober:
    """The probes of a subject beside its load, and its answers."""

    asked: int = 0
    wrong: int = 0
    fault: str | None = None
    over: threading.Event = field(default_factory=threading.Event)

    def found(self) -> Probes | None:
        """Return the result; None if nothing was answered."""
        if not self.asked:
            return None
        return Probes(asked=self.asked, wrong=self.wrong, fault=self.fault)

    def note(self, exchange: Exchange, fault: str | None) -> None:
        """Count an exchange that was answered."""
        self.asked += 1
        if fault is not None:
            self.wrong += 1
            self.fault = self.fault or f"{exchange.what} ({exchange.path}): {fault}"


@contextlib.contextmanager
def probing(
    contract: AnyContract,
    category: str,
    address: tuple[str, int],
    load: Load,
    seed: int,
    *,
    path: str | None = None,
    tls: bool = False,
) -> Iterator[Prober]:
    """Send probes until the end of the block.

    The load requests the contract's ``path``, or its load's own if that is None.
    """
    prober = Prober()
    exchanges = others(contract, category, path)
    # If each request has a connection of its own, connections are scarce.
    if not isinstance(contract, Contract) or not exchanges or load.close:
        yield prober
        return
    chance, pause_s = random.Random(seed), _pause_s(load)
    first, means = exchange_of(contract, path), over(contract, tls=tls)

    def ask_on() -> None:
        turns: list[Exchange] = []
        while not prober.over.wait(chance.uniform(0.5, 1.5) * pause_s):
            turns = turns or chance.sample(exchanges, len(exchanges))
            exchange = turns.pop()
            before = [first] * chance.choice(BEFORE)
            answer = ask(exchange, (), address, before=before, means=means)
            if answer.reply is not None and not prober.over.is_set():
                prober.note(exchange, answer.fault)

    thread = threading.Thread(target=ask_on, daemon=True)
    thread.start()
    try:
        yield prober
    finally:
        prober.over.set()
        thread.join(EXCHANGE_TIMEOUT_S * 2)


def with_probes(record: Record, prober: Prober) -> Record:
    """Return the record with the probes' result, judged again."""
    found = prober.found()
    return judge_record(record.model_copy(update={"probes": found})) if found else record


def others(contract: AnyContract, category: str, path: str | None = None) -> list[Exchange]:
    """Return the exchanges of a contract that differ from the load's own."""
    if not isinstance(contract, Contract):
        return []
    asked, loaded = asked_of(contract, category, pipelined=False), path or contract.load.path
    return [each for each in asked if each.path != loaded or each.form != "plain"]


def _pause_s(load: Load) -> float:
    phases = [phase for phase in (load.warmup, load.stop) if phase is not None]
    if any(isinstance(phase, Requests) for phase in phases):
        return PAUSE_S_BY_REQUESTS
    total_s = sum(phase.ns for phase in phases if isinstance(phase, Duration)) / NS_PER_S
    return min(PAUSE_S_MOST, total_s / PROBES)
