"""What a host reports about itself, and whether a program can run there. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trueload.errors import UserError
from trueload.places.program import Program


@dataclass(frozen=True)
class Host:
    """What a host reports about itself. ``has_program`` is about the program asked for."""

    system: str
    machine: str
    has_loader: bool
    has_program: bool


@dataclass(frozen=True)
class ScriptResult:
    """How a script ended: its exit code (None if it took too long), and its stdout and stderr."""

    code: int | None
    out: str
    err: str


def parse_host(words: str) -> Host | None:
    """Read the words of the probe's line; None if they are others."""
    found = words.split()
    if len(found) != 4:
        return None
    system, machine, loader, have = found
    return Host(system, machine, loader == "yes", have == "yes")


def check_host(where: str, host: Host, program: Program) -> None:
    """Refuse a host that cannot run the program, before it is sent. Raises ``UserError``."""
    if host.system != "Linux":
        raise UserError(f"{where} is {host.system}, and the engine runs on Linux", "use Linux")
    if program.machine not in (None, host.machine):
        raise another_machine(where, host.machine, program)
    if not host.has_loader:
        raise UserError(
            f"{where} lacks the C library that this engine needs, {program.loader}",
            "build it where the static C library is (Debian's libc6-dev): `pip install .`",
        )


def another_machine(where: str, machine: str, program: Program) -> UserError:
    """The error for a host that needs another engine than there is. Pure."""
    return UserError(
        f"{where} is {machine}, and the engine here is for {program.machine}",
        f"put one for {machine} beside {program.path}, with the name"
        f" {program.path.name}-{machine}: docs/hosts.md",
    )
