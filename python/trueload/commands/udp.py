"""The flags of ``trueload udp``, as a job.

Must not know: when a datagram is sent, or how a trial works.
"""

from __future__ import annotations

from pathlib import Path

from trueload.commands import options
from trueload.commands.job import Asked
from trueload.commands.measure import measuring
from trueload.commands.request_flags import read_local_addresses
from trueload.errors import UserError
from trueload.request.exchange import UdpEcho
from trueload.request.message import Messages, make_messages
from trueload.request.route import UNIX, make_route
from trueload.request.target import parse_host_port

# At least two numbers of 8 bytes each; at most 65,535 bytes less the headers of IPv4 and UDP
# (crates/wire/src/udp_echo.rs).
SIZE_BYTES_MIN, SIZE_BYTES_MAX = 16, 65_507


def read_udp(
    where: options.HostPortArgument,
    size: options.SizeOption = None,
    data: options.DataOption = None,
    resolve: options.ResolveOption = None,
    local_address: options.LocalAddressOption = None,
) -> Asked:
    """Return what is to be sent, and where to. Raises ``UserError``."""
    if where.startswith(UNIX):
        raise UserError("UDP has no socket files", "write it as HOST:PORT")
    target = parse_host_port(where, "udp")
    local = local_address or ()
    return Asked(
        kind="udp",
        url=target.url,
        target=target,
        route=make_route(unix=None, overrides=resolve or (), local_addresses=local),
        local_addresses=read_local_addresses(local),
        exchange=UdpEcho(messages=make_datagrams(size, data)),
    )


def make_datagrams(size_bytes: int | None, data: Path | None) -> Messages:
    """Return the datagrams that are sent repeatedly. Raises ``UserError``."""
    messages = make_messages(size_bytes, data)
    if not SIZE_BYTES_MIN <= messages.size_bytes <= SIZE_BYTES_MAX:
        raise UserError(
            f"a datagram cannot have {messages.size_bytes:,} bytes here",
            f"use {SIZE_BYTES_MIN} (two numbers that tell answers apart) to {SIZE_BYTES_MAX:,}",
        )
    return messages


read_job = measuring(read_udp)
