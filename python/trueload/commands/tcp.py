"""The options of ``trueload tcp``, as a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trueload.commands.declarations import with_options
from trueload.commands.measuring import measuring
from trueload.errors import UserError
from trueload.protocol.request_options import TcpOptions

if TYPE_CHECKING:
    from trueload.commands.job import Workload


@with_options(TcpOptions)
def read_tcp(
    where: Annotated[
        str,
        typer.Argument(
            metavar="HOST:PORT",
            help="Server to load; unix:PATH is a socket file.",
            show_default=False,
        ),
    ],
    given: TcpOptions,
) -> Workload:
    """Return what is to be sent, and where to. Raises ``UserError``."""
    from trueload.commands.job import Workload
    from trueload.request.exchange import TcpEcho
    from trueload.request.message import make_messages
    from trueload.request.route import UNIX, make_route
    from trueload.request.traffic import Traffic
    from trueload.request.url import Url, parse_host_port

    if given.half_close and not given.close:
        raise UserError("--half-close ends each connection, and there is no --close", "add --close")
    unix = where.removeprefix(UNIX) if where.startswith(UNIX) else None
    endpoint = parse_host_port(where) if unix is None else Url.of_socket_file(where)
    exchange = TcpEcho(messages=make_messages(given.size, given.data), half_close=given.half_close)
    return Workload(
        kind="tcp",
        url=endpoint.url,
        endpoint=endpoint,
        route=make_route(given, unix),
        traffic=Traffic(exchange=exchange, local_addresses=given.local_address),
        close=given.close,
    )


read_job = measuring(read_tcp)
