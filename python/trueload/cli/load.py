"""``trueload http URL`` and the like for every protocol: loads a server and reports the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from trueload.commands.flags import command
from trueload.commands.protocols import PROTOCOLS, reader_of_job

if TYPE_CHECKING:
    from trueload.commands.job import Job


def register(app: typer.Typer, name: str) -> None:
    """Add the command of a protocol."""
    app.command(name, help=PROTOCOLS[name].help)(command(reader_of_job(name), _run))


def _run(job: Job) -> int:
    from trueload.commands.run import run_job  # imported late: a help needs none of it

    return run_job(job)
