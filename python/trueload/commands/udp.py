"""The options of ``trueload udp``, as a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trueload.commands.declarations import with_options
from trueload.commands.measuring import measuring
from trueload.errors import UserError
from trueload.protocol.request_options import EchoOptions

if TYPE_CHECKING:
    from trueload.commands.job import Workload
    from trueload.request.message import Messages

# At least two numbers of 8 bytes each; at most 65,535 bytes less the headers of IPv4 and UDP
# (crates/wire/src/udp_echo.rs).
SIZE_BYTES_MIN, SIZE_BYTES_MAX = 16, 65_507


@with_options(EchoOptions)
def read_udp(
    where: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Server to load.", show_default=False)
    ],
    given: EchoOptions,
) -> Workload:
    """Return what is to be sent, and where to. Raises ``UserError``."""
    from trueload.commands.job import Workload
    from trueload.request.exchange import UdpEcho
    from trueload.request.route import UNIX, make_route
    from trueload.request.traffic import Traffic
    from trueload.request.url import parse_host_port

    if where.startswith(UNIX):
        raise UserError("UDP has no socket files", "write it as HOST:PORT")
    endpoint = parse_host_port(where, "udp")
    exchange = UdpEcho(messages=make_datagrams(given.size, given.data))
    return Workload(
        kind="udp",
        url=endpoint.url,
        endpoint=endpoint,
        route=make_route(given),
        traffic=Traffic(exchange=exchange, local_addresses=given.local_address),
    )


def make_datagrams(size_bytes: int | None, data: Path | None) -> Messages:
    """Return the datagrams that are sent repeatedly. Raises ``UserError``."""
    from trueload.request.message import make_messages

    messages = make_messages(size_bytes, data)
    if not SIZE_BYTES_MIN <= messages.size_bytes <= SIZE_BYTES_MAX:
        raise UserError(
            f"a datagram cannot have {messages.size_bytes:,} bytes here",
            f"use {SIZE_BYTES_MIN} (two numbers that tell answers apart) to {SIZE_BYTES_MAX:,}",
        )
    return messages


read_job = measuring(read_udp)
