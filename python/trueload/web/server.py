"""Serves one page on 127.0.0.1, at a URL with a random token, to a few viewers.

How: an event loop in a thread of its own; h11 reads the requests. The token keeps out other users
of this machine, the Host header other sites whose names lead here (DNS rebinding). Viewers are sent
the newest state as server-sent events; one that reads slowly misses states, and delays nobody.
Whatever a peer decides has a bound: bytes and time of a request, what waits to be sent, and the
number of connections, at once and per second.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import h11

from trueload.closeable import Closeable
from trueload.errors import UserError

NAMES = ("127.0.0.1", "localhost", "[::1]")
VIEWERS_MAX = 8
CONNECTIONS_MAX = 32
BETWEEN_S = 0.1  # between two connections, so that any number of them costs 1 % of a CPU at most
HEAD_BYTES_MAX = 8_192
HEAD_S = 5.0
STALLED_S = 10.0  # how long a peer may take nothing
SEND_BYTES = 65_536  # the kernel's buffer for a connection
READS_MAX = 64  # of what a peer sends after its request
LINGER_S = 10.0  # for the viewers to fetch the report
POLL_S = 0.05
CLOSE_S = 2.0

HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
_ALONE = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src data:"
POLICY = f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; {_ALONE}"
# The report names its one style sheet itself, by its hash.
REPORT_POLICY = f"default-src 'none'; style-src 'unsafe-inline'; {_ALONE}"


@dataclass(frozen=True)
class Answer:
    """What a request gets; the body ends with the connection."""

    status: HTTPStatus
    body: bytes = b""
    kind: str = TEXT
    policy: str = POLICY

    def head(self) -> bytes:
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Content-Type: {self.kind}",
            f"Content-Security-Policy: {self.policy}",
            "Referrer-Policy: no-referrer",
            "X-Content-Type-Options: nosniff",
            "Cross-Origin-Resource-Policy: same-origin",
            "Cache-Control: no-store",
            "Connection: close",
        ]
        if self.status == HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append("Allow: GET")
        return "\r\n".join([*lines, "", ""]).encode("ascii")


EVENTS = Answer(HTTPStatus.OK, kind="text/event-stream; charset=utf-8")
CROWDED = Answer(
    HTTPStatus.SERVICE_UNAVAILABLE,
    b"%d viewers are watching this run already. Close one of them, then reload.\n" % VIEWERS_MAX,
)


class PageServer(Closeable):
    """Serves files, events and in the end a report. Raises ``UserError`` if it cannot listen."""

    def __init__(self, port: int, files: Mapping[str, Answer]) -> None:
        self._listener = listen(port)
        self.port: int = self._listener.getsockname()[1]
        self._token = secrets.token_urlsafe(24)
        self.url = f"http://127.0.0.1:{self.port}/{self._token}/"
        self._files = {name.encode(): answer for name, answer in files.items()}
        ends = ("", ":80") if self.port == 80 else (f":{self.port}",)  # browsers leave out port 80
        self._hosts = {f"{name}{end}".encode() for name in NAMES for end in ends}
        self._event = b""
        self._fetched = 0
        self.viewers = 0
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._changed = self._loop.create_future()
        self._task = self._loop.create_task(self._accept())
        self.thread = threading.Thread(target=self._run, name="web-page", daemon=True)
        self.thread.start()

    def publish(self, event: bytes) -> None:
        """Show a new state to all who watch, without waiting for them. Any thread may call it."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._take, event)

    def hand_out(self, event: bytes, report: bytes | None, stopped: Callable[[], bool]) -> None:
        """Publish the last state, and wait a limited time until all viewers have fetched the report
        and have gone."""
        wanted = 0
        if report is not None:
            wanted = self.viewers
            self._files[b"report"] = Answer(HTTPStatus.OK, report, HTML, REPORT_POLICY)
        self.publish(event)
        until_s = time.monotonic() + LINGER_S
        while (self.viewers or self._fetched < wanted) and time.monotonic() < until_s:
            if stopped():
                return
            time.sleep(POLL_S)

    def keep_to(self, cpus: Iterable[int]) -> None:
        """Run on these CPUs alone."""
        if self.thread.native_id is not None:
            with contextlib.suppress(OSError):  # it has ended
                os.sched_setaffinity(self.thread.native_id, cpus)

    def close(self) -> None:
        """End all connections, in bounded time."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._task.cancel)
        self.thread.join(CLOSE_S)
        self._listener.close()

    def _run(self) -> None:
        with self._runner:
            self._runner.run(asyncio.wait({self._task}))

    def _take(self, event: bytes) -> None:
        self._event = event
        changed, self._changed = self._changed, self._loop.create_future()
        changed.set_result(None)

    async def _accept(self) -> None:
        free = asyncio.Semaphore(CONNECTIONS_MAX)
        async with asyncio.TaskGroup() as connections:
            while True:
                await free.acquire()
                try:
                    connection, _ = await self._loop.sock_accept(self._listener)
                except OSError:  # it has gone, or no descriptor is left
                    free.release()
                else:
                    task = connections.create_task(self._serve(connection))
                    task.add_done_callback(lambda _: free.release())
                await asyncio.sleep(BETWEEN_S)

    async def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        reader, writer = await asyncio.open_connection(sock=connection, limit=HEAD_BYTES_MAX)
        writer.transport.set_write_buffer_limits(high=0)
        try:
            with contextlib.suppress(OSError):  # the peer has gone, or takes too long
                if (answer := await self._answer(reader)) is not None:
                    await self._send(answer, reader, writer)
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> Answer | None:
        """Read a request, and find its answer; None if there is no request."""
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        try:
            async with asyncio.timeout(HEAD_S):
                while (event := parser.next_event()) is h11.NEED_DATA:
                    parser.receive_data(await reader.read(HEAD_BYTES_MAX))
        except TimeoutError:
            return Answer(HTTPStatus.REQUEST_TIMEOUT, b"The request took too long to arrive.\n")
        except h11.RemoteProtocolError as error:
            return Answer(HTTPStatus(error.error_status_hint), b"This is no request of HTTP.\n")
        return self._find(event) if isinstance(event, h11.Request) else None

    def _find(self, request: h11.Request) -> Answer:
        if dict(request.headers).get(b"host", b"").lower() not in self._hosts:
            return Answer(HTTPStatus.FORBIDDEN, b"The Host header does not name this server.\n")
        if request.method != b"GET":
            why = b"" if request.method == b"HEAD" else b"Only GET is answered.\n"
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, why)
        before, _, path = request.target.partition(b"/")
        token, slash, name = path.partition(b"/")
        known = hmac.compare_digest(token, self._token.encode())
        if before or not known or not slash:
            return Answer(HTTPStatus.NOT_FOUND, b"Use the whole URL that trueload has printed.\n")
        if name == b"events":
            return EVENTS if self.viewers < VIEWERS_MAX else CROWDED
        return self._files.get(name, Answer(HTTPStatus.NOT_FOUND, b"There is no such page.\n"))

    async def _send(
        self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(answer.head() + answer.body)
        if answer is EVENTS:
            await self._follow(reader, writer)
            return
        async with asyncio.timeout(STALLED_S):
            await writer.drain()
            writer.write_eof()
            # To close with bytes unread would reset the connection, and the answer with it.
            for _ in range(READS_MAX):
                if not await reader.read(HEAD_BYTES_MAX):
                    break
        self._fetched += answer is self._files.get(b"report")

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the newest state whenever there is one, until the viewer goes."""
        self.viewers += 1
        gone = asyncio.ensure_future(reader.read(1))
        try:
            while not gone.done():
                changed = self._changed
                writer.write(self._event)
                async with asyncio.timeout(STALLED_S):
                    await writer.drain()
                await asyncio.wait({gone, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.viewers -= 1
            gone.cancel()


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this port of 127.0.0.1. Raises ``UserError``."""
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=CONNECTIONS_MAX)
    except OSError as error:
        hint = "name another port, or none for a free one"
        if error.errno == errno.EACCES:
            hint = f"ports below 1024 are the system's: {hint}"
        why = os.strerror(error.errno or 0)
        raise UserError(f"--web {port}: {why}", hint) from error
    listener.setblocking(False)
    return listener
