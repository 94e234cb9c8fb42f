"""Reference servers: reads options into a plan, and starts and ends an engine that serves.

It must start quickly, as suites start it as a subject. So nothing of the statistics, the store or
the terminal is imported here.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import ipaddress
import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueload.commands.options import check_cpus, check_writable
from trueload.commands.place_options import choose_places
from trueload.commands.protocols import PROTOCOLS
from trueload.commands.serve_options import (
    ServeHttpOptions,
    ServeOptions,
    ServeTlsOptions,
    make_faults,
    make_http2_server,
)
from trueload.engines.engine import Engine, EngineError
from trueload.errors import UserError, refused_by_machine
from trueload.files.private import open_text
from trueload.places.names import Named, ThisMachine
from trueload.protocol.engine_options import ThreadOptions
from trueload.protocol.exchange import ServeHttp, ServeTcpEcho, ServeUdpEcho, ServeWs, ServicePlan
from trueload.protocol.plan import Blob, Done, Error, Ready, Serve, Served
from trueload.protocol.tls import ServeGiven, ServeSelfSigned, ServeTlsPlan
from trueload.request.exchange import Exchange, WsBroadcast, WsEcho
from trueload.request.route import UNIX, socket_path
from trueload.trial.spec import Interrupt as InterruptRequest

READY_S = 10.0
STOP_S = 2.0
_LIMITS = ("idle_timeout_ns", "max_connections")
POLL_S = 0.1


@dataclass(frozen=True)
class Serving:
    """A parsed command line. ``loaded_by`` is the command that loads this server."""

    plan: Serve
    loaded_by: str
    identity: tuple[bytes, bytes] | None
    json_path: Path | None
    place: Named = field(default_factory=ThisMachine)


def make_serving(protocol: str, given: ServeOptions) -> Serving:
    """Return what a server of that protocol does. Raises ``UserError``."""
    service = SERVERS[protocol].service(given)
    host = choose_places(server=given.server_place).server
    place = ThisMachine() if host is None else host.place
    check_writable(given.json_path)
    if isinstance(place, ThisMachine) and given.cpus is not None:
        check_cpus(given.cpus)
    listen, identity, secured = parse_listen(given.listen), None, None
    if isinstance(service, ServeUdpEcho) and listen.startswith(UNIX):
        raise UserError("UDP has no socket files", "listen on IP:PORT")
    if isinstance(given, ServeTlsOptions):
        if given.cert is not None or given.key is not None:
            from trueload.request.tls import read_identity  # imported late: few servers need it

            identity = read_identity(given.cert, given.key)
        secured = serve_tls(listen, identity) if given.tls or identity is not None else None
    threads = {**given.only(ThreadOptions).values, "cpus": given.cpus or ()}
    limits = {field: value for field, value in given.given.items() if field in _LIMITS}
    plan = Serve(listen=listen, **threads, tls=secured, service=service, **limits)
    return Serving(plan, protocol, identity, given.json_path, place)


def _http_service(given: ServeHttpOptions) -> ServeHttp:
    """Return what ``serve http`` does. Faults turn the record on, so that their number is
    reported."""
    http2, faults = make_http2_server(given), make_faults(given)
    recorded = given.record or (faults is not None and faults.spoil)
    return ServeHttp(record=recorded, faults=faults, http2=http2)


@dataclass(frozen=True)
class ReferenceServer:
    """A reference server: what it serves by its options, and to a given load.

    ``service_for`` takes the load's exchange, None for HTTP.
    """

    service: Callable[[Any], ServicePlan]
    service_for: Callable[[Exchange | None], ServicePlan]


def _ws_service(exchange: Exchange | None) -> ServeWs:
    dialect = exchange.dialect if isinstance(exchange, WsEcho | WsBroadcast) else None
    return ServeWs(dialect=dialect or "json")


SERVERS: dict[str, ReferenceServer] = {
    "http": ReferenceServer(_http_service, lambda exchange: ServeHttp()),
    "tcp": ReferenceServer(lambda given: ServeTcpEcho(), lambda exchange: ServeTcpEcho()),
    "udp": ReferenceServer(lambda given: ServeUdpEcho(), lambda exchange: ServeUdpEcho()),
    "ws": ReferenceServer(lambda given: ServeWs(dialect=given.dialect or "json"), _ws_service),
}
"""The reference servers by name of the protocol."""


def begin(engine: Engine, serving: Serving, interrupt: InterruptRequest) -> Ready | None:
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


def _await_ready(engine: Engine, interrupt: InterruptRequest, listen: str) -> Ready | None:
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
            hint = "choose another port with --listen IP:PORT; port 0 picks a free one"
            if listen.startswith(UNIX):
                hint = "choose another file with --listen unix:PATH, in a folder that is there"
            what = "" if message.class_ == "listen" else f"cannot listen on {listen}: "
            raise UserError(what + message.message, hint)
        if interrupt.requested:
            return None
    raise EngineError("silent", f"the engine was not listening after {READY_S:g} s")


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
    address = ready.listen or ""
    if address.startswith(UNIX):
        return address
    return f"{scheme_of(serving)}://{address}{PROTOCOLS[serving.loaded_by].server.path}"


def loading_command(ready: Ready, serving: Serving, certificate: Path | None) -> str:
    """Return a command line that loads this server, ready to be typed."""
    address, service = ready.listen or "", serving.plan.service
    url = url_of(ready, serving)
    words = ["trueload", serving.loaded_by, url]
    if address.startswith(UNIX):
        path = PROTOCOLS[serving.loaded_by].server.path
        words[2:] = [f"{scheme_of(serving)}://localhost{path}", "--unix", address[len(UNIX) :]]
    words += ["--dialect", service.dialect] if isinstance(service, ServeWs) else []
    words += ["--http", "2"] if isinstance(service, ServeHttp) and service.http2 else []
    words += ["--cacert", str(certificate)] if certificate is not None else []
    return shlex.join(words)


@contextlib.contextmanager
def drained(
    engine: Engine, ended: Callable[[Served | None], object] = lambda served: None
) -> Iterator[None]:
    """Read the server's output, so that its pipe never fills; end the server at the end, and hand
    its last counts to ``ended``."""
    over = threading.Event()
    last: Served | None = None

    def drain() -> None:
        nonlocal last
        # If the server dies, the load on it will show that.
        with contextlib.suppress(EngineError):
            while not over.is_set():
                message = engine.receive(POLL_S)
                if isinstance(message, Served):
                    last = message

    thread = threading.Thread(target=drain, name="server-drain", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with contextlib.suppress(EngineError):
            last = end(engine) or last
        ended(last)


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
