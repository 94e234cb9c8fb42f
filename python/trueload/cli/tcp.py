"""``trueload tcp HOST:PORT``: load a TCP echo server and say what it carried.

Must not know how its flags are read, or how a trial works.
"""

from __future__ import annotations

import typer

from trueload.cli.run import run_job
from trueload.commands.flags import command
from trueload.commands.tcp import read_tcp_job

HELP = """Load a TCP echo server and say what it carried, and whether that can be trusted.

Each connection sends a message, and the next one as soon as all of it has come back, compared byte
by byte; with --pipeline, several are on their way at once. A message counts as what a request is
of HTTP: --requests, --rate and --limit are of messages.

Example: trueload tcp 127.0.0.1:9000 --size 64 -c 128 -d 10s
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tcp", help=HELP)(command(read_tcp_job, run_job))
