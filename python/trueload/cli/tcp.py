"""``trueload tcp HOST:PORT``: load a TCP echo server and say what it carried.

Must not know when a message is sent, or how a trial works.
"""

from __future__ import annotations

import typer

from trueload.cli import options
from trueload.cli.flags import command
from trueload.cli.job import Asked
from trueload.cli.measure import measuring
from trueload.cli.request_flags import read_local_addresses
from trueload.cli.run import run_job
from trueload.errors import UserError
from trueload.request.message import make_messages
from trueload.request.route import UNIX, make_route
from trueload.request.target import Target, parse_host_port
from trueload.request.values import TcpEcho

HELP = """Load a TCP echo server and say what it carried, and whether that can be trusted.

Each connection sends a message, and the next one as soon as all of it has come back, compared byte
by byte; with --pipeline, several are on their way at once. A message counts as what a request is
of HTTP: --requests, --rate and --limit are of messages.

Example: trueload tcp 127.0.0.1:9000 --size 64 -c 128 -d 10s
"""


def read_tcp(
    where: options.HostPortArgument,
    size: options.SizeOption = None,
    data: options.DataOption = None,
    close: options.CloseOption = False,
    half_close: options.HalfCloseOption = False,
    resolve: options.ResolveOption = None,
    local_address: options.LocalAddressOption = None,
) -> Asked:
    """What is to be sent, and where to. Raises ``UserError``."""
    if half_close and not close:
        raise UserError("--half-close ends each connection, and there is no --close", "add --close")
    unix = where.removeprefix(UNIX) if where.startswith(UNIX) else None
    target = parse_host_port(where) if unix is None else Target.of_socket_file(where)
    local = local_address or ()
    return Asked(
        kind="tcp",
        url=target.url,
        target=target,
        route=make_route(unix=unix, overrides=resolve or (), local_addresses=local),
        local_addresses=read_local_addresses(local),
        exchange=TcpEcho(messages=make_messages(size, data), half_close=half_close),
        close=close,
    )


read_tcp_job = measuring(read_tcp)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tcp", help=HELP)(command(read_tcp_job, run_job))
