"""An account of a result, as one value: from the engine's message to what the record keeps.

How: an engine counts something beside the outcomes of requests, and reports it in a field of its
measurement. An `Account` says how the messages of several hosts add up, and what the record keeps.
To add one, declare it in a module of `record/accounts`, and how it is shown in `report/accounts`.
Pure.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trueload.machine.accounting import TreeSample
from trueload.protocol.plan import Generate, Measurement, Ready
from trueload.protocol.sums import add_up
from trueload.protocol.tick import Counts
from trueload.record.sample import Sample

Declared = TypeVar("Declared")


def declared(package: str, path: Iterable[str], kind: type[Declared]) -> list[Declared]:
    """Return what all modules of a package declare of this kind, module by module."""
    names = sorted(each.name for each in pkgutil.iter_modules(path))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    found = [value for module in modules for value in vars(module).values()]
    return [value for value in found if isinstance(value, kind)]


@dataclass
class Step:
    """What was seen of one step of idle connections so far."""

    idle: int
    server: TreeSample | None = None
    measurement: Measurement | None = None


@dataclass(frozen=True, kw_only=True)
class TrialFacts:
    """What the accounts of a trial are made from."""

    window: Measurement
    generate: Generate
    complete: bool = True
    """Whether the engine measured the window; else it is made of ticks."""
    warmup: Measurement | None = None
    phases: Sequence[Measurement] = ()
    """The phases that were completed."""
    ready: Ready | None = None
    target_urls: Sequence[str] = ()
    origin_urls: Sequence[str] = ()
    steps: Sequence[Step] = ()
    ok_per_s: float | None = None
    """Good answers per second of the part of the window that counts; None if it is not known."""
    clock_bound_ns: int | None = None
    """How far off times from one host to another may be; None without such times."""


@dataclass(frozen=True)
class Account:
    """One account. ``name`` is its field of the record, ``message`` that of a measurement; without
    a message it is made from other things that were told."""

    name: str
    message: str | None
    make: Callable[[Any, TrialFacts], Any] = lambda found, facts: found
    """What the record keeps, from the message."""
    add: Callable[[Sequence[Any]], Any] = add_up
    """The messages of several hosts as one."""
    of_every_host: bool = False
    """Whether a host without a message leaves all without one."""
    renew: Callable[[Any], Any] | None = None
    """What was stored, with its figures by the rule of this version."""
    in_suites: bool = False
    """Whether a row of a suite has it."""
    middle: Callable[[Sequence[Any]], Any] | None = None
    """The one of several trials that stands for all; without it, that of the trial with the median
    throughput."""
    samples: Mapping[str, Callable[[Any, Counts], Sample]] = field(default_factory=dict)
    """Times of which percentiles can be asked for, by the prefix of these metrics."""

    def made(self, facts: TrialFacts) -> Any:
        """What the record keeps; None if there is nothing to tell."""
        if self.message is None:
            return self.make(None, facts)
        found = getattr(facts.window, self.message)
        return None if found is None else self.make(found, facts)

    def added(self, parts: Sequence[Any]) -> Any:
        """The sum of the messages of several hosts; None if there are none."""
        known = [each for each in parts if each is not None]
        if not known or (self.of_every_host and len(known) < len(parts)):
            return None
        return self.add(known)
