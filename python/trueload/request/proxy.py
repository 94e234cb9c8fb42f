"""The proxy that requests go through (``--proxy``), and what it changes in them. Pure.

For ``http://`` the request names the whole URL (RFC 9112, 3.2.2). For ``https://`` each connection
begins with CONNECT, which opens a tunnel to the server (RFC 9110, 9.3.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trueload.errors import UserError
from trueload.request.url import Url, parse_given_url
from trueload.request.values import Request

_HINT = "write it as --proxy http://[USER:PASSWORD@]HOST:PORT"
_HEADER = "Proxy-Authorization"


@dataclass(frozen=True)
class Proxy:
    """A proxy that speaks HTTP/1.1 without TLS. ``credentials`` is the value of a
    Proxy-Authorization header, or None."""

    endpoint: Url
    credentials: str | None = field(default=None, repr=False)

    def through(self, request: Request, origin: Url) -> Request:
        """Return the request as the proxy gets it, if its server has no TLS."""
        if origin.is_secure:
            return request
        own = () if self.credentials is None else ((_HEADER, self.credentials),)
        path = f"http://{origin.authority}{request.path}"
        return replace(request, path=path, headers=(*request.headers, *own))

    def tunnel(self, origin: Url) -> bytes | None:
        """Return the request for a tunnel to a server with TLS; None without TLS."""
        if not origin.is_secure:
            return None
        host = origin.host.partition("%")[0]
        to = f"[{host}]:{origin.port}" if ":" in host else f"{host}:{origin.port}"
        lines = [f"CONNECT {to} HTTP/1.1", f"Host: {to}"]
        if self.credentials is not None:
            lines.append(f"{_HEADER}: {self.credentials}")
        return "\r\n".join((*lines, "", "")).encode()


def parse_proxy(text: str | None) -> Proxy | None:
    """Parse the URL of a proxy; None if there is none. Raises ``UserError``."""
    if text is None:
        return None
    scheme = text.partition("://")[0].lower() if "://" in text else "http"
    if scheme != "http":
        raise UserError(f"--proxy cannot use a proxy by {scheme}://", _HINT)
    try:
        endpoint = parse_given_url(text)
    except UserError as error:
        raise UserError(f"--proxy: {error.message}", _HINT) from None
    if endpoint.path != "/":
        raise UserError("--proxy names a path, and a proxy has none", _HINT)
    return Proxy(endpoint, endpoint.credentials)
