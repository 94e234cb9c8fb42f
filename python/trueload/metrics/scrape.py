"""Answers Prometheus: ``GET /metrics`` in its text format, or as OpenMetrics if asked for that.

How: one thread with one event loop, for HTTP/1.1 without keep-alive. prometheus_client writes the
text and chooses the format; it is handed samples, never asked to count. Whoever connects is not
trusted: so many connections are looked at at once and so many taken a second, the rest waits in
the kernel's queue; a request has so many bytes, and an exchange so much time.

Must not know what any metric means.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import io
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, make_asgi_app
from prometheus_client.core import Metric as Written
from prometheus_client.utils import floatToGoString

from trueload.errors import UserError
from trueload.metrics.families import Family, make_families
from trueload.metrics.outlets import ScrapeAt, Tell
from trueload.metrics.tally import Tally
from trueload.metrics.times import BOUNDS_S, Times

CONNECTIONS_MAX = 16
BACKLOG = 64
PAUSE_S = 0.01  # between two connections that are taken: a hundred a second is plenty
HEAD_BYTES_MAX = 8_192
EXCHANGE_S = 5.0
CLOSE_S = 1.0
POLL_S = 0.1
TEXTS_MAX = 8  # kinds of scrapers that differ in what they accept
PATH = "/metrics"

Tallies = Callable[[], tuple[Tally, ...]]


@dataclass(frozen=True)
class Reply:
    """All of an answer, and whose metrics it has, if any."""

    bytes: bytes
    of: tuple[Tally, ...] | None = None


@dataclass(frozen=True)
class Text:
    """Metrics as they were written, and whose they are; nobody's if they could not be."""

    head: bytes
    body: bytes
    of: tuple[Tally, ...] | None


class Collector:
    """The samples, as prometheus_client takes them."""

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies
        self.taken: tuple[Tally, ...] | None = None

    def describe(self) -> Iterable[Written]:
        """Nothing beforehand: there may be no trial yet."""
        return ()

    def collect(self) -> Iterator[Written]:
        """What there is now; it is kept which that was."""
        self.taken = self._tallies()
        return map(written, make_families(self.taken))


def written(family: Family) -> Written:
    """A family in the library's words. Pure."""
    metric = family.metric
    name = metric.prometheus_name
    made = Written(name, metric.about, metric.kind, metric.prometheus_unit)
    ending = {"counter": "_total", "info": "_info"}.get(metric.kind, "")
    for sample in family.samples:
        labels = dict(sample.labels)
        value = sample.value
        if not isinstance(value, Times):
            made.add_sample(f"{name}{ending}", labels, value)
            continue
        bounds = (*map(floatToGoString, BOUNDS_S), "+Inf")
        for bound, count in zip(bounds, value.cumulative, strict=True):
            made.add_sample(f"{name}_bucket", {**labels, "le": bound}, count)
        made.add_sample(f"{name}_sum", labels, value.sum_s)
        made.add_sample(f"{name}_count", labels, value.count)
    return made


class ScrapeOutlet:
    """Listens from the start. Raises ``UserError`` where it cannot."""

    def __init__(self, at: ScrapeAt, tallies: Tallies, linger_ns: int) -> None:
        registry = CollectorRegistry()
        self._tallies = tallies
        self._collector = Collector(tallies)
        registry.register(self._collector)
        self._app = make_asgi_app(registry)
        self._listener = listen(at)
        self._linger_s = linger_ns / 1e9
        self._texts: dict[tuple[str, tuple[tuple[bytes, bytes], ...]], Text] = {}
        self._answered: tuple[Tally, ...] | None = None
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        self.thread = threading.Thread(target=self._run, name="metrics-scrape", daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        """Where the metrics are."""
        host, port = self._listener.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    def finish(self, stopped: Callable[[], bool], tell: Tell) -> None:
        """Wait until what there is has been scraped, if so asked."""
        if self._linger_s and not (stopped() or self._answered is self._tallies()):
            tell(f"waiting up to {self._linger_s:g} s for the last scrape")
        until_s = time.monotonic() + self._linger_s
        while not (stopped() or self._answered is self._tallies()):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return
            time.sleep(min(POLL_S, left_s))

    def close(self) -> None:
        """Take no more connections, and leave those that there are."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end)
        self.thread.join(CLOSE_S)

    def _end(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError), self._listener:
            try:
                self._serving = self._loop.create_task(self._serve())
                self._loop.run_until_complete(self._serving)
            finally:
                self._loop.close()

    async def _serve(self) -> None:
        room = asyncio.Semaphore(CONNECTIONS_MAX)
        async with asyncio.TaskGroup() as exchanges:
            while True:
                await room.acquire()
                # Before the accept: who floods us waits, and nobody else pays for it.
                await asyncio.sleep(PAUSE_S)
                try:
                    connection, _ = await self._loop.sock_accept(self._listener)
                except OSError:  # it has gone, or there are no descriptors: for now
                    room.release()
                    continue
                task = exchanges.create_task(self._exchange(connection))
                task.add_done_callback(lambda _: room.release())

    async def _exchange(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, TimeoutError):
            connection.setblocking(False)
            async with asyncio.timeout(EXCHANGE_S):
                reply = await self._reply(await self._read_head(connection))
                await self._loop.sock_sendall(connection, reply.bytes)
            if reply.of is not None:
                self._answered = reply.of

    async def _read_head(self, connection: socket.socket) -> bytes:
        """Up to the empty line, or as much as there may be. Raises ``OSError`` at an early end."""
        head = b""
        while b"\r\n\r\n" not in head and len(head) <= HEAD_BYTES_MAX:
            more = await self._loop.sock_recv(connection, HEAD_BYTES_MAX)
            if not more:
                raise ConnectionResetError
            head += more
        return head

    async def _reply(self, head: bytes) -> Reply:
        if len(head) > HEAD_BYTES_MAX:
            return _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        line, _, rest = head.partition(b"\r\n")
        try:
            method, target, version = line.decode("ascii").split(" ")
            url = urlsplit(target)
            headers = http.client.parse_headers(io.BytesIO(rest))
        except (ValueError, http.client.HTTPException):
            return _refusal(HTTPStatus.BAD_REQUEST)
        if not version.startswith("HTTP/1."):
            return _refusal(HTTPStatus.BAD_REQUEST)
        if url.path != PATH:
            return _refusal(HTTPStatus.NOT_FOUND, f"metrics are at {PATH}\n")
        if method not in ("GET", "HEAD"):
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{PATH} is read with GET\n")
        return await self._metrics(headers, url.query, with_body=method == "GET")

    async def _metrics(
        self, headers: http.client.HTTPMessage, query: str, *, with_body: bool
    ) -> Reply:
        """The metrics as asked for; written once for all who ask alike before there is news."""
        accepted = tuple(
            (name.encode(), str(headers.get(name, "")).encode("ascii", "replace"))
            for name in ("accept", "accept-encoding")
        )
        asked = (query, accepted)
        text = self._texts.get(asked)
        if text is None or text.of is not self._tallies():
            text = await self._write(query, accepted)
            if len(self._texts) >= TEXTS_MAX:
                self._texts.clear()
            self._texts[asked] = text
        return Reply(text.head + text.body, text.of) if with_body else Reply(text.head)

    async def _write(self, query: str, accepted: tuple[tuple[bytes, bytes], ...]) -> Text:
        said: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        scope = {"type": "http", "query_string": query.encode(), "headers": list(accepted)}
        try:
            await self._app(scope, receive, send)
        except Exception:  # whatever the library makes of words that a peer chose
            refusal = _head(HTTPStatus.BAD_REQUEST, (), 0)
            return Text(refusal, b"", None)
        start, body = said[0], said[1]["body"]
        head = _head(HTTPStatus(start["status"]), start["headers"], len(body))
        return Text(head, body, self._collector.taken)


def _refusal(status: HTTPStatus, why: str = "") -> Reply:
    body = why.encode()
    headers = [(b"Content-Type", b"text/plain; charset=utf-8")]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append((b"Allow", b"GET, HEAD"))
    return Reply(_head(status, headers, len(body)) + body)


def _head(status: HTTPStatus, headers: Iterable[tuple[bytes, bytes]], length: int) -> bytes:
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}".encode(),
        *(name + b": " + value for name, value in headers),
        b"Content-Length: %d" % length,
        b"Connection: close",
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def listen(at: ScrapeAt) -> socket.socket:
    """A socket that listens. Raises ``UserError``."""
    where = f"--prometheus {at.host}:{at.port}"
    try:
        found = socket.getaddrinfo(at.host, at.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UserError(f"{where}: {error.strerror}", _HINTS[None]) from error
    try:
        # A run that has just ended leaves connections behind, and its port is free all the same.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        hint = _HINTS.get(error.errno, _HINTS[None])
        raise UserError(f"{where}: {error.strerror}", hint) from error
    return listener


_HINTS: dict[int | None, str] = {
    errno.EADDRINUSE: "choose another port; port 0 is any that is free",
    errno.EACCES: "ports below 1024 are the system's; choose one above, or 0 for a free one",
    None: "leave the host out for 127.0.0.1; port 0 is any that is free",
}
