"""Several origins (scheme, host and port) in one run: which there are, and how they are reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueload.errors import UserError
from trueload.protocol.request_options import TlsOptions
from trueload.request.proxy import Proxy
from trueload.request.redact import redact_url
from trueload.request.tls import make_tls, server_name
from trueload.request.url import Url
from trueload.request.values import OriginSpec, Tls
from trueload.units import counted

ORIGINS_MAX = 100  # crates/engine: each has a generator of its own on every thread

OriginKey = tuple[str, str, int]


def origin_key(endpoint: Url) -> OriginKey:
    """The key that all URLs of one origin have in common."""
    return endpoint.scheme, endpoint.host.lower(), endpoint.port


def shown_origins(origins: Sequence[Url]) -> str:
    """``http://a:8080``, or ``http://a:8080 and 2 more``."""
    first, more = redact_url(origins[0].origin), len(origins) - 1
    return f"{first} and {more} more" if more else first


def origin_specs(
    origins: Sequence[Url], tls: Tls | None, proxy: Proxy | None = None
) -> tuple[OriginSpec, ...]:
    """The origins as values. One with TLS gets ``tls`` under its own name. Their addresses have
    still to be resolved."""

    def own(origin: Url) -> Tls | None:
        if tls is None or not origin.is_secure:
            return None
        tunnel = None if proxy is None else proxy.tunnel(origin)
        return replace(tls, server_name=server_name(origin), tunnel=tunnel)

    return tuple(OriginSpec(url=redact_url(each.origin), tls=own(each)) for each in origins)


def tls_of_origins(origins: Sequence[Url], given: TlsOptions) -> Tls | None:
    """The settings of TLS, under the name of the first origin that uses it; None if none does.
    Raises ``UserError``."""
    secure = (origin for origin in origins if origin.is_secure)
    return make_tls(next(secure, origins[0]), given)


def check_origins(
    origins: Sequence[Url], *, connections: int, unix: bool, server_place: bool
) -> None:
    """Refuse options that cannot be combined with several origins. Raises ``UserError``."""
    count = len(origins)
    if count < 2:
        return
    shown = ", ".join(origin.authority for origin in origins[:3]) + (", …" if count > 3 else "")
    if unix:
        raise UserError(
            f"--unix connects to one socket file, and the targets are of {count} origins: {shown}",
            "leave --unix out, or use a file for each server",
        )
    if server_place:
        raise UserError(
            f"--server-place starts one server, and the targets are of {count} origins: {shown}",
            "start them with `trueload serve`, or use one origin",
        )
    if connections < count:
        raise UserError(
            f"{counted(connections, 'connection is', 'connections are')} too few for {count}"
            f" origins: {shown}",
            f"use at least {count}, one for each",
        )
