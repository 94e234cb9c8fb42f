"""``trueload http URL`` and the like for every protocol: loads a server and reports the result."""

from __future__ import annotations

import typer

from trueload.commands.flags import command
from trueload.commands.protocols import PROTOCOLS, reader_of_job
from trueload.commands.run import run_job


def register(app: typer.Typer, name: str) -> None:
    """Add the command of a protocol."""
    app.command(name, help=PROTOCOLS[name].help)(command(reader_of_job(name), run_job))
