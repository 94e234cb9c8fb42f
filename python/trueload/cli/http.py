"""``trueload http URL``: load an HTTP server and say what it carried.

Must not know how its flags are read, or how a trial works.
"""

from __future__ import annotations

import typer

from trueload.cli.run import run_job
from trueload.commands.flags import command
from trueload.commands.http import read_job

HELP = """Load an HTTP/1.1 server and say what it carried, and whether that can be trusted.

Each connection sends its next request as soon as its answer is there (a closed loop); with --rate
or --stages requests are sent by a schedule, and latency counts from it (an open loop). No redirects
are followed: an answer counts as it comes. With --body and no --method, the method is POST;
{counter} and {random} in path, header values and body are filled in for each request. With
--limit the largest load that keeps to it is searched, and confirmed by a run of its own.

Example: trueload http http://127.0.0.1:8080/ -c 64 -d 10s --fail-on 'p99>20ms'
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("http", help=HELP)(command(read_job, run_job))
