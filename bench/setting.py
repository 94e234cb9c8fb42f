"""The setting of every report of bench/: the CPU of each program, and the measured engine."""

from __future__ import annotations

import os
from pathlib import Path

from trueload.engines.binary import find_engine
from trueload.errors import UserError
from trueload.machine.accounting import MachineSample, machine_sample, machine_usage
from trueload.machine.noise import NoiseSample, cpu_use, noise_sample

ROOT = Path(__file__).resolve().parent.parent
SERVER_CPU, GENERATOR_CPU = 0, 1


class SettingError(Exception):
    """This machine cannot run a report: the problem, and a hint."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint

    def __str__(self) -> str:
        return f"error: {self.args[0]}\nhint: {self.hint}"


def find_setting() -> Path:
    """Return the engine that `trueload` runs.

    Raises `SettingError` if it cannot be measured on this machine.
    """
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
    """Do the same and pin this process to the server's CPU, so that the generator has its own.

    Not for reports whose server must be punctual: those pin this process to the generator's CPU.
    """
    binary = find_setting()
    os.sched_setaffinity(0, {SERVER_CPU})
    return binary


class Quiet:
    """Watches how much CPU time other processes and the host take, from its creation.

    Where that is much, the measurement is disturbed.
    """

    def __init__(self) -> None:
        self._noise: NoiseSample = noise_sample()
        self._machine: MachineSample = machine_sample()

    def __str__(self) -> str:
        others = cpu_use(self._noise, noise_sample(), [os.getpid()]).others_share
        stolen = machine_usage(self._machine, machine_sample()).stolen_share
        return (
            f"Meanwhile other processes took {others:.1%} of the CPUs' time, the host {stolen:.1%}."
        )
