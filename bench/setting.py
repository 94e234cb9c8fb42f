"""Where every report of bench/ runs: which CPU is whose, and which engine is measured."""

from __future__ import annotations

import os
from pathlib import Path

from trueload.engines.engine import find_engine
from trueload.errors import UserError
from trueload.machine.accounting import MachineSample, machine_sample, machine_usage
from trueload.machine.noise import NoiseSample, cpu_use, noise_sample

ROOT = Path(__file__).resolve().parent.parent
SERVER_CPU, GENERATOR_CPU = 0, 1


class SettingError(Exception):
    """This machine cannot run a report: what is wrong, and the cure."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint

    def __str__(self) -> str:
        return f"error: {self.args[0]}\nhint: {self.hint}"


def find_setting() -> Path:
    """The engine that `trueload` runs, if it can be measured here; `SettingError` otherwise."""
    if not {SERVER_CPU, GENERATOR_CPU} <= os.sched_getaffinity(0):
        raise SettingError(
            f"server and generator need CPUs {SERVER_CPU} and {GENERATOR_CPU}",
            "run it where there are two CPUs",
        )
    try:
        return find_engine()
    except UserError as error:
        raise SettingError(error.message, error.hint) from None


def prepare_setting() -> Path:
    """The same, and this process keeps to the server's CPU from now on: the generator's is left to
    the generator. Not where the server needs its CPU to be punctual."""
    binary = find_setting()
    os.sched_setaffinity(0, {SERVER_CPU})
    return binary


class Quiet:
    """Watches how much of the machine others take, from its making on: where that is much, what
    was measured is their doing."""

    def __init__(self) -> None:
        self._noise: NoiseSample = noise_sample()
        self._machine: MachineSample = machine_sample()

    def __str__(self) -> str:
        others = cpu_use(self._noise, noise_sample(), [os.getpid()]).others_share
        stolen = machine_usage(self._machine, machine_sample()).stolen_share
        return (
            f"Meanwhile other processes took {others:.1%} of the CPUs' time, the host {stolen:.1%}."
        )
