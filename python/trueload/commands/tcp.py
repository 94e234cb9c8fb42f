"""The flags of ``trueload tcp``, as a job.

Must not know: when a message is sent, or how a trial works.
"""

from __future__ import annotations

from trueload.commands import options
from trueload.commands.job import Asked
from trueload.commands.measure import measuring
from trueload.commands.request_flags import read_local_addresses
from trueload.errors import UserError
from trueload.request.exchange import TcpEcho
from trueload.request.message import make_messages
from trueload.request.route import UNIX, make_route
from trueload.request.target import Target, parse_host_port


def read_tcp(
    where: options.HostPortArgument,
    size: options.SizeOption = None,
    data: options.DataOption = None,
    close: options.CloseOption = False,
    half_close: options.HalfCloseOption = False,
    resolve: options.ResolveOption = None,
    local_address: options.LocalAddressOption = None,
) -> Asked:
    """Return what is to be sent, and where to. Raises ``UserError``."""
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


read_job = measuring(read_tcp)
