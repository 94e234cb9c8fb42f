"""The CPUs of each side: the subject on some, the engine on others.

How: a pure choice among the CPUs that we may use. The engine gets the first ones and the subject
the last. With one core for each, the two are on different physical cores if there are several,
because two threads of one core share its units.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trueload.machine.facts import read_siblings
from trueload.subjects.manifest import Cores
from trueload.units import counted


@dataclass(frozen=True)
class Layout:
    """The CPUs of each side; `shared` if the sides are not kept apart."""

    subject: tuple[int, ...]
    engine: tuple[int, ...]
    shared: bool


@dataclass(frozen=True)
class NoLayout:
    """The reason why the machine cannot keep the two apart."""

    reason: str


def lay_out(
    cores: Cores,
    available: Sequence[int],
    core_of: Mapping[int, str],
    engine_threads: int,
    share: bool,
) -> Layout | NoLayout:
    """Return the layout for one trial. `core_of` names the physical core of each CPU."""
    cpus = sorted(available)
    if cores == "single":
        return _single(cpus, core_of, engine_threads, share)
    if len(cpus) >= 3 and len(cpus) > engine_threads:
        return Layout(tuple(cpus[engine_threads:]), tuple(cpus[:engine_threads]), False)
    if share:
        return Layout(tuple(cpus), tuple(cpus), True)
    if len(cpus) < 3:
        return _too_few("--cores multi needs three CPUs, one of them for the engine", cpus)
    threads = counted(engine_threads, "engine thread leaves", "engine threads leave")
    return NoLayout(f"{threads} no CPU of {len(cpus)} to the subject")


def lay_out_client(
    cores: Cores,
    available: Sequence[int],
    core_of: Mapping[int, str],
    engine_threads: int,
    share: bool,
) -> Layout | NoLayout:
    """Return the layout for a client and its server, where the engine is the server.

    ``multi`` gives the client all CPUs that the server leaves, which is one on two CPUs.
    """
    cpus = sorted(available)
    if cores == "multi" and len(cpus) > engine_threads:
        return Layout(tuple(cpus[engine_threads:]), tuple(cpus[:engine_threads]), False)
    return _single(cpus, core_of, engine_threads, share)


def lay_out_there(cores: Cores, cpus: Sequence[int]) -> Layout:
    """Return the layout for a server on a host of its own with these CPUs.

    Nothing of ours runs there, so nothing has to be kept apart.
    """
    chosen = sorted(cpus)
    return Layout(tuple(chosen if cores == "multi" else chosen[-1:]), (), False)


def _single(
    cpus: list[int], core_of: Mapping[int, str], engine_threads: int, share: bool
) -> Layout | NoLayout:
    subject = cpus[-1]
    others = [cpu for cpu in cpus if cpu != subject]
    if len(others) < engine_threads:
        if share:
            return Layout((subject,), tuple(cpus), True)
        needed = f"one CPU for the subject and {engine_threads} for the engine are needed"
        return _too_few(needed, cpus)
    # Prefer other physical cores; the sort is stable, so the order of the CPUs is kept.
    others.sort(key=lambda cpu: core_of.get(cpu) == core_of.get(subject))
    return Layout((subject,), tuple(sorted(others[:engine_threads])), False)


def _too_few(needed: str, cpus: list[int]) -> NoLayout:
    there = f"{'are' if len(cpus) > 1 else 'is'} {len(cpus)}"
    return NoLayout(f"{needed}, and there {there}; --share-cpus measures anyway")


def available_cpus() -> list[int]:
    """Return the CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0))


def physical_cores() -> dict[int, str]:
    """Return for each CPU the threads of its physical core, as the kernel lists them."""
    return {cpu: read_siblings(cpu) or str(cpu) for cpu in available_cpus()}
