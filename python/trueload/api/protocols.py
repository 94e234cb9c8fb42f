"""The functions and keyword arguments of each protocol: what loads a server, and what serves.

``trueload.aio``, the pytest fixture and the package's names follow from these functions
(tools/options.py writes them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from trueload.api.measure import OF_PRINTING, load_server
from trueload.api.options import (
    HttpOptions,
    ServeHttpOptions,
    ServeOptions,
    ServeStreamOptions,
    ServeWsOptions,
    TcpOptions,
    UdpOptions,
    WsOptions,
)
from trueload.api.results.result import Result
from trueload.api.signatures import naming
from trueload.errors import UserError

if TYPE_CHECKING:
    from trueload.api.server import Server


@naming(HttpOptions)
def http(url: str | None = None, /, **options: Unpack[HttpOptions]) -> Result:
    """Load an HTTP server: ``http("http://127.0.0.1:8080/", connections=64, duration=5)``.

    Options are those of `trueload http --help`, with ``_`` for ``-``. A ``body`` that is a dict or
    a list is sent as JSON. Raises ``UserError``.
    """
    from trueload.api.body import with_json_body

    return load_server("http", url, with_json_body(options))


@naming(WsOptions)
def ws(url: str, /, **options: Unpack[WsOptions]) -> Result:
    """Load a WebSocket server: ``ws("ws://127.0.0.1:8080/ws", mode="broadcast", step=100)``.

    Options are those of `trueload ws --help`, with ``_`` for ``-``. Raises ``UserError``.
    """
    return load_server("ws", url, options)


@naming(TcpOptions)
def tcp(where: str, /, **options: Unpack[TcpOptions]) -> Result:
    """Load a TCP echo server: ``tcp("127.0.0.1:9000", size=64, duration=5)``.

    Options are those of `trueload tcp --help`, with ``_`` for ``-``. Raises ``UserError``.
    """
    return load_server("tcp", where, options)


@naming(UdpOptions)
def udp(where: str, /, **options: Unpack[UdpOptions]) -> Result:
    """Load a UDP echo server: ``udp("127.0.0.1:9000", size=64, duration=5)``.

    Options are those of `trueload udp --help`, with ``_`` for ``-``. Raises ``UserError``.
    """
    return load_server("udp", where, options)


@overload
def serve(protocol: Literal["http"] = "http", /, **options: Unpack[ServeHttpOptions]) -> Server: ...
@overload
def serve(protocol: Literal["ws"], /, **options: Unpack[ServeWsOptions]) -> Server: ...
@overload
def serve(protocol: Literal["tcp"], /, **options: Unpack[ServeStreamOptions]) -> Server: ...
@overload
def serve(protocol: Literal["udp"], /, **options: Unpack[ServeOptions]) -> Server: ...
@naming(ServeHttpOptions, ServeWsOptions)
def serve(protocol: str = "http", /, **options: Any) -> Server:
    """A reference server for a ``with`` block: ``with serve("http") as server: http(server.url)``.

    ``protocol`` is ``http``, ``ws``, ``tcp`` or ``udp``. Options are those of `trueload serve http
    --help` and so on, with ``_`` for ``-``. The server listens on a free port unless ``listen``
    names an address.
    """
    from trueload.api.server import Server
    from trueload.commands.command_line import understand
    from trueload.commands.serve_flags import OPTIONS, reader_of_serving

    if protocol not in OPTIONS:
        known = ", ".join(OPTIONS)
        raise UserError(f"there is no reference server '{protocol}'", f"it is one of {known}")
    options = {"listen": "127.0.0.1:0", **options}
    read = reader_of_serving(protocol)
    understood = understand(("serve", protocol), read, (), options, OF_PRINTING)
    return Server(understood.value)
