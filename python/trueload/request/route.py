"""Where to connect for a URL: the socket file of ``--unix``, the address that ``--resolve`` gives
for its host and port, or what the system's resolver says.

The options are checked here before anything is resolved.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trueload.errors import UserError
from trueload.protocol.request_options import RouteOptions
from trueload.request.proxy import Proxy, parse_proxy
from trueload.request.url import Url, resolve, with_port

UNIX = "unix:"
"""Prefix of an address that is a Unix socket."""
UNIX_PATH_BYTES_MAX = 108  # sun_path of unix(7)

_OVERRIDE = re.compile(r"\+?(\[[^]]+\]|\*|[^:\[\]]+):([0-9]{1,5}):(.+)", re.ASCII | re.DOTALL)
_HINT = "write it as --resolve HOST:PORT:ADDRESS, for example example.org:80:127.0.0.1"


@dataclass(frozen=True)
class Override:
    """The addresses given for one host and port; the host ``*`` means any."""

    host: str
    port: int
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """How to reach the server of a URL."""

    unix: str | None = None
    """An absolute path of a Unix socket."""
    overrides: tuple[Override, ...] = ()
    proxy: Proxy | None = None

    def next_hop(self, endpoint: Url) -> Url:
        """What is connected to: the proxy, or the server itself."""
        return endpoint if self.proxy is None else self.proxy.endpoint

    def addresses(self, endpoint: Url) -> tuple[str, ...]:
        """Where to connect, in the order to try: ``IP:PORT``, ``[IPv6]:PORT`` or ``unix:PATH``.
        Empty if the name does not exist, or is not resolved in time."""
        if self.unix is not None:
            return (UNIX + self.unix,)
        endpoint = self.next_hop(endpoint)
        # As in curl, the last option counts, and one for this very host comes before one for any.
        for host in (_plain_name(endpoint.host), "*"):
            for override in reversed(self.overrides):
                if (override.host, override.port) == (host, endpoint.port):
                    return tuple(
                        with_port(address, endpoint.port) for address in override.addresses
                    )
        return resolve(endpoint.host, endpoint.port)


def make_route(given: RouteOptions, unix: str | None = None, proxy: str | None = None) -> Route:
    """Make the route that the flags describe. Raises ``UserError``. Whether a local address can be
    used, only its host can tell."""
    for text in given.local_address:
        try:
            ipaddress.ip_address(text)
        except ValueError as error:
            raise UserError(
                f"--local-address '{text}' is not an IP address", "write for example 127.0.0.2"
            ) from error
    if unix is None:
        return Route(overrides=tuple(map(parse_override, given.resolve)), proxy=parse_proxy(proxy))
    given.refuse_beside("--unix", "resolve", "local_address", "proxy")
    return Route(unix=socket_path(unix, "--unix"))


def check_sources(addresses: Sequence[str], local_addresses: Sequence[str]) -> None:
    """Refuse an address to connect from whose family is not that of any address to connect to.
    Raises ``UserError``."""
    if not (addresses and local_addresses):
        return  # a Unix socket has no family, and is connected to from no address
    reached = {_version(at.rpartition(":")[0].strip("[]")) for at in addresses}
    for local in local_addresses:
        if _version(local) not in reached:
            raise UserError(
                f"--local-address {local} is IPv{_version(local)}, and {addresses[0]} is not",
                "use an address of the target's own family",
            )


def _version(address: str) -> int:
    return ipaddress.ip_address(address).version


def parse_override(text: str) -> Override:
    """Parse ``HOST:PORT:ADDRESS[,ADDRESS]…``, as curl has it. Raises ``UserError``."""
    found = _OVERRIDE.fullmatch(text)
    if found is None:
        raise UserError(f"--resolve '{text}' is not HOST:PORT:ADDRESS", _HINT)
    host, port, addresses = found[1], int(found[2]), found[3].split(",")
    if not 1 <= port <= 65535:
        raise UserError(f"--resolve '{text}' has no port from 1 to 65535", _HINT)
    return Override(_plain_name(host.strip("[]")), port, tuple(map(_address, addresses)))


def _address(text: str) -> str:
    plain = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return str(ipaddress.ip_address(plain))
    except ValueError as error:
        raise UserError(f"--resolve names '{text}', which is not an IP address", _HINT) from error


def _plain_name(host: str) -> str:
    return host.lower().removesuffix(".")


def socket_path(text: str, flag: str) -> str:
    """A path in the form for a plan: absolute, and text. Only its use shows whether it can be used.
    Raises ``UserError``."""
    path = os.path.abspath(text) if text else ""
    try:
        length = len(path.encode())
    except UnicodeEncodeError as error:
        raise UserError(f"{flag} has a path that is not UTF-8", "give it another name") from error
    if not path or "\0" in path:
        raise UserError(f"{flag} {text!r} is not a path", "write for example /run/app.sock")
    if length > UNIX_PATH_BYTES_MAX:
        raise UserError(
            f"{flag} names a path of {length} bytes, and the kernel takes {UNIX_PATH_BYTES_MAX}",
            "use a shorter path, or a link to it",
        )
    return path


def is_loopback(address: str) -> bool:
    """Whether ``IP:PORT``, ``[IPv6]:PORT`` or ``unix:PATH`` is local; a ``unix:PATH`` always is."""
    if address.startswith(UNIX):
        return True
    host = address.rpartition(":")[0].strip("[]")
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback
