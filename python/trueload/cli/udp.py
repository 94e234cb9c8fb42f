"""``trueload udp HOST:PORT``: load a UDP echo server and say what it carried.

Must not know how its flags are read, or how a trial works.
"""

from __future__ import annotations

import typer

from trueload.cli.run import run_job
from trueload.commands.flags import command
from trueload.commands.udp import read_udp_job

HELP = """Load a UDP echo server and say what it carried, and whether that can be trusted.

Each socket sends a datagram, and the next one as soon as it has come back, compared byte by byte;
with --pipeline, several are on their way at once, and answers may come in any order. A datagram
without an answer within --timeout is lost, and fails alone; late, duplicated and reordered answers
are counted apart. A datagram counts as what a request is of HTTP: --requests, --rate and --limit
are of datagrams, and -c is a number of sockets.

Example: trueload udp 127.0.0.1:9000 --size 64 -c 128 -d 10s
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("udp", help=HELP)(command(read_udp_job, run_job))
