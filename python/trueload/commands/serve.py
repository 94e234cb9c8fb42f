"""Reference servers: reads options into a plan, and starts and ends an engine that serves.

It must start quickly, as suites start it as a subject. So nothing of the statistics, the store or
the terminal is imported here. Must not know: trials.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import ipaddress
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from trueload.commands import options, serve_faults, serve_http2
from trueload.commands.declared import reader_of
from trueload.commands.flags import with_flags_of
from trueload.commands.options import DialectChoice
from trueload.commands.place_options import ServerPlaceOption, choose_places
from trueload.commands.protocols import PROTOCOLS
from trueload.engines.engine import Engine, EngineError
from trueload.errors import UserError, refused_by_machine
from trueload.files.private import open_text
from trueload.places.named import Here, Named
from trueload.protocol.exchange import ServeHttp, ServeTcpEcho, ServeUdpEcho, ServeWs, ServicePlan
from trueload.protocol.plan import (
    Blob,
    Done,
    Error,
    Ready,
    Serve,
    Served,
    ServeGiven,
    ServeSelfSigned,
    ServeTlsPlan,
    ThreadOptions,
)
from trueload.request.exchange import Exchange, WsBroadcast, WsEcho
from trueload.request.route import UNIX, socket_path
from trueload.trial.spec import Interrupt as Asked

READY_S = 10.0
STOP_S = 2.0
POLL_S = 0.1


ListenOption = Annotated[
    str,
    typer.Option(
        "--listen",
        metavar="IP:PORT",
        help=(
            "Address to listen on; port 0 picks a free one, and unix:PATH is a socket file."
            " Other machines need an address that they reach."
        ),
    ),
]


TlsOption = Annotated[
    bool,
    typer.Option(
        "--tls",
        help=(
            "Speak TLS, with the certificate of --cert, or one made at the start (its path"
            " is printed)."
        ),
    ),
]


@dataclass(frozen=True)
class Serving:
    """A parsed command line. ``loaded_by`` is the command that loads this server."""

    plan: Serve
    loaded_by: str
    identity: tuple[bytes, bytes] | None
    json_path: Path | None
    place: Named = field(default_factory=Here)


read_threads = reader_of(ThreadOptions)


@with_flags_of(read_threads, without=())
def read_plain(
    listen: ListenOption = "127.0.0.1:8080",
    json_path: options.JsonOption = None,
    server_place: ServerPlaceOption = None,
    **thread_flags: Any,
) -> Serving:
    """Read the flags of every server."""
    where = choose_places(server=None if server_place is None else server_place.place)
    place = Here() if where.server is None else where.server.place
    options.check_writable(json_path)
    here = isinstance(place, Here)
    threads = read_threads(**thread_flags)
    if here and threads.cpus is not None:
        options.check_cpus(threads.cpus)
    plan = Serve(
        listen=parse_listen(listen), **{**threads.model_dump(), "cpus": threads.cpus or ()}
    )
    return Serving(plan, "http", None, json_path, place)


@with_flags_of(read_plain, without=())
def read_secure(
    tls: TlsOption = False,
    cert: options.CertOption = None,
    key: options.KeyOption = None,
    **flags: Any,
) -> Serving:
    """Read the flags of a server that may speak TLS."""
    plain = read_plain(**flags)
    identity = None if cert is None and key is None else _read_identity(cert, key)
    secured = serve_tls(plain.plan.listen, identity) if tls or identity else None
    return replace(plain, plan=plain.plan.model_copy(update={"tls": secured}), identity=identity)


@with_flags_of(read_secure, without=())
def read_http(
    record: serve_faults.RecordOption = False,
    error_share: serve_faults.ErrorShareOption = None,
    reset_share: serve_faults.ResetShareOption = None,
    stall_share: serve_faults.StallShareOption = None,
    stall_for: serve_faults.StallForOption = None,
    slow_share: serve_faults.SlowShareOption = None,
    slow_for: serve_faults.SlowForOption = None,
    cut_share: serve_faults.CutShareOption = None,
    close_after: serve_faults.CloseAfterOption = None,
    close_silently: serve_faults.CloseSilentlyOption = False,
    work: serve_faults.WorkOption = None,
    fault_seed: serve_faults.FaultSeedOption = None,
    http: serve_http2.HttpOption = None,
    max_streams: serve_http2.MaxStreamsOption = None,
    refuse_share: serve_http2.RefuseShareOption = None,
    goaway_after: serve_http2.GoawayAfterOption = None,
    stall_window: serve_http2.StallWindowOption = False,
    settings_delay: serve_http2.SettingsDelayOption = None,
    **flags: Any,
) -> Serving:
    """Read ``serve http``. Faults turn the record on, so that their number is reported."""
    streams = serve_http2.StreamFaults(refuse_share, goaway_after, stall_window, settings_delay)
    http2 = serve_http2.read_http2(http, max_streams, streams)
    faults = serve_faults.read_faults(
        error_share,
        reset_share,
        stall_share,
        stall_for,
        slow_share,
        slow_for,
        cut_share,
        close_after,
        close_silently,
        work,
        fault_seed,
        streams,
    )
    recorded = record or (faults is not None and faults.spoil)
    service = ServeHttp(record=recorded, faults=faults, http2=http2)
    return _of_service(read_secure(**flags), "http", service)


@with_flags_of(read_plain, without=())
def read_tcp(**flags: Any) -> Serving:
    """Read ``serve tcp``."""
    return _of_service(read_plain(**flags), "tcp", ServeTcpEcho())


@with_flags_of(read_plain, without=())
def read_udp(**flags: Any) -> Serving:
    """Read ``serve udp``. Raises ``UserError``."""
    serving = _of_service(read_plain(**flags), "udp", ServeUdpEcho())
    if serving.plan.listen.startswith(UNIX):
        raise UserError("UDP has no socket files", "listen on IP:PORT")
    return serving


@with_flags_of(read_secure, without=())
def read_ws(dialect: options.DialectOption = None, **flags: Any) -> Serving:
    """Read ``serve ws``."""
    service = ServeWs(dialect=(dialect or DialectChoice.JSON).value)
    return _of_service(read_secure(**flags), "ws", service)


@dataclass(frozen=True)
class ReferenceServer:
    """A reference server: how its flags are read, and what it serves to a given load.

    ``service_for`` takes the load's exchange, None for HTTP.
    """

    read: Callable[..., Serving]
    service_for: Callable[[Exchange | None], ServicePlan]


def _ws_service(exchange: Exchange | None) -> ServeWs:
    dialect = exchange.dialect if isinstance(exchange, WsEcho | WsBroadcast) else None
    return ServeWs(dialect=dialect or "json")


SERVERS: dict[str, ReferenceServer] = {
    "http": ReferenceServer(read_http, lambda exchange: ServeHttp()),
    "tcp": ReferenceServer(read_tcp, lambda exchange: ServeTcpEcho()),
    "udp": ReferenceServer(read_udp, lambda exchange: ServeUdpEcho()),
    "ws": ReferenceServer(read_ws, _ws_service),
}
"""The reference servers by name of the protocol."""


def _of_service(serving: Serving, loaded_by: str, service: ServicePlan) -> Serving:
    plan = serving.plan.model_copy(update={"service": service})
    return replace(serving, plan=plan, loaded_by=loaded_by)


def begin(engine: Engine, serving: Serving, interrupt: Asked) -> Ready | None:
    """Make an engine serve; return its message once it listens.

    Returns None if the end was asked for before. Raises ``UserError``, ``EngineError``.
    """
    engine.send(serving.plan)
    for pem in serving.identity or ():
        name = hashlib.sha256(pem).hexdigest()
        engine.send(Blob(sha256=name, base64=base64.b64encode(pem).decode()))
    return _await_ready(engine, interrupt, serving.plan.listen)


def parse_listen(text: str) -> str:
    """Return ``IP:PORT``, ``[IPv6]:PORT`` or ``unix:PATH`` for the engine. Raises ``UserError``."""
    if text.startswith(UNIX):
        return UNIX + socket_path(text.removeprefix(UNIX), "--listen")
    host, colon, port = text.rpartition(":")
    hint = "write for example --listen 127.0.0.1:8080"
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise UserError(f"--listen '{text}' has no IP address", hint) from error
    if not colon or not (port.isascii() and port.isdigit()) or int(port[:10]) > 65535:
        raise UserError(f"--listen '{text}' has no port from 0 to 65535", hint)
    if address.version == 6 and not host.startswith("["):
        raise UserError(f"--listen '{text}' needs brackets", "write for example [::1]:8080")
    return text


def _await_ready(engine: Engine, interrupt: Asked, listen: str) -> Ready | None:
    for _ in range(int(READY_S / POLL_S)):
        message = engine.receive(POLL_S)
        if isinstance(message, Ready):
            return message
        if isinstance(message, Error):
            if message.class_ == "plan":
                raise UserError(
                    f"the engine refused the plan: {message.message}", "change the option it names"
                )
            if message.class_ == "machine":
                raise refused_by_machine(message.message)
            hint = "choose another port with --listen IP:PORT; port 0 is any that is free"
            if listen.startswith(UNIX):
                hint = "choose another file with --listen unix:PATH, in a folder that is there"
            where = "" if message.class_ == "listen" else f"cannot listen on {listen}: "
            raise UserError(where + message.message, hint)
        if interrupt.requested:
            return None
    raise EngineError("silent", f"the engine was not listening after {READY_S:g} s")


def _read_identity(cert: Path | None, key: Path | None) -> tuple[bytes, bytes]:
    from trueload.request.tls import (
        read_identity,  # not at the top: plain servers start quicker without it
    )

    return read_identity(cert, key)


def serve_tls(address: str, identity: tuple[bytes, bytes] | None) -> ServeTlsPlan:
    """Return the server's TLS, with the given identity or with a certificate made at the start.

    Such a certificate is for this machine and the address.
    """
    if identity is not None:
        certificate, key = (hashlib.sha256(pem).hexdigest() for pem in identity)
        return ServeGiven(certificate_sha256=certificate, key_sha256=key)
    names = ["localhost", "127.0.0.1", "::1"]
    if not address.startswith(UNIX):
        names.append(address.rpartition(":")[0].strip("[]"))
    return ServeSelfSigned(names=tuple(dict.fromkeys(names)))


def write_certificate(ready: Ready | None, stack: contextlib.ExitStack) -> Path | None:
    """Write the generated certificate to a file that exists as long as the server."""
    if ready is None or ready.certificate is None:
        return None
    import tempfile

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="trueload-"))
    path = Path(folder) / "certificate.pem"
    with open_text(path) as file:
        file.write(ready.certificate)
    return path


def scheme_of(serving: Serving) -> str:
    """Return the URL's scheme, such as ``http`` or ``https``."""
    return serving.loaded_by if serving.plan.tls is None else f"{serving.loaded_by}s"


def url_of(ready: Ready, serving: Serving) -> str:
    """Return the URL to load; for a socket file its path after ``unix:``."""
    where = ready.listen or ""
    if where.startswith(UNIX):
        return where
    return f"{scheme_of(serving)}://{where}{PROTOCOLS[serving.loaded_by].server.path}"


def loading_command(ready: Ready, serving: Serving, certificate: Path | None) -> str:
    """Return a command line that loads this server, ready to be typed."""
    where, service = ready.listen or "", serving.plan.service
    url = url_of(ready, serving)
    words = ["trueload", serving.loaded_by, url]
    if where.startswith(UNIX):
        path = PROTOCOLS[serving.loaded_by].server.path
        words[2:] = [f"{scheme_of(serving)}://localhost{path}", "--unix", where[len(UNIX) :]]
    words += ["--dialect", service.dialect] if isinstance(service, ServeWs) else []
    words += ["--http", "2"] if isinstance(service, ServeHttp) and service.http2 else []
    words += ["--cacert", str(certificate)] if certificate is not None else []
    return shlex.join(words)


def end(engine: Engine) -> Served | None:
    """End the engine; return its last counts, if it reports any."""
    served: Served | None = None
    engine.stop()
    for _ in range(int(STOP_S / POLL_S)):
        message = engine.receive(POLL_S)
        if isinstance(message, Served):
            served = message
        elif isinstance(message, Done):
            break
    return served
