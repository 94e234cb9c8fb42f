"""The server of ``session_server`` over HTTP/2, in plain text or over TLS, and HTTP/1.1 in turns.

The library h2 writes and reads the frames, so that a mistake of the client under test is seen.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import threading
from dataclasses import dataclass, field
from types import TracebackType

import h2.config
import h2.connection
import h2.events
import trustme
from session_server import Seen, Sessions


@dataclass
class _Asked:
    """A request as far as it has come."""

    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)


class Http2SessionServer(Sessions):
    """The server; it listens while its block runs.

    ``streams`` has the numbers of streams that were open at once. With ``goaway_every`` a
    connection announces its end at its so many-th answer. With ``turns`` every second connection
    over TLS speaks HTTP/1.1.
    """

    def __init__(
        self,
        *,
        secure: bool = False,
        turns: bool = False,
        goaway_every: int = 0,
        fail_every: int = 0,
    ) -> None:
        super().__init__(fail_every=fail_every)
        self.streams = set[int]()
        self._goaway_every = goaway_every
        versions = ("h2", "http/1.1") if turns else ("h2",)
        self._contexts = itertools.cycle(map(_context, versions)) if secure else None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._open = set[socket.socket]()

    @property
    def url(self) -> str:
        scheme = "http" if self._contexts is None else "https"
        return f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted = self._listener.accept()[0]
                self._open.add(accepted)
                context = None if self._contexts is None else next(self._contexts)
                threading.Thread(target=self._serve, args=(accepted, context), daemon=True).start()

    def _serve(self, accepted: socket.socket, context: ssl.SSLContext | None) -> None:
        with contextlib.suppress(OSError):
            port = accepted.getpeername()[1]
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is None:
                self._talk(accepted, port)
            else:
                with context.wrap_socket(accepted, server_side=True) as secured:
                    over_http2 = secured.selected_alpn_protocol() == "h2"
                    (self._talk if over_http2 else self._talk_http1)(secured, port)
        accepted.close()

    def _talk_http1(self, peer: socket.socket, port: int) -> None:
        read, answers = peer.makefile("rb"), 0
        while line := read.readline():
            method, path, _ = line.decode().split()
            headers = dict[str, str]()
            while field := read.readline().strip().decode():
                name, _, value = field.partition(": ")
                headers[name.title()] = value
            body = read.read(int(headers.get("Content-Length", "0"))).decode()
            status, fields, text = self.reply(method, path, headers, body)
            self.note(Seen(port, method, path, body, headers.get("Cookie", ""), status))
            answers += 1
            closes = bool(self._goaway_every) and answers % self._goaway_every == 0
            fields = [*fields, ("Content-Length", str(len(text)))]
            fields += [("Connection", "close")] if closes else []
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
            peer.sendall(f"HTTP/1.1 {status} X\r\n{lines}\r\n{text}".encode())
            if closes:
                return

    def _talk(self, peer: socket.socket, port: int) -> None:
        machine = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        )
        machine.initiate_connection()
        peer.sendall(machine.data_to_send())
        asked, answers = dict[int, _Asked](), 0
        while received := peer.recv(1 << 16):
            for event in machine.receive_data(received):
                if isinstance(event, h2.events.RequestReceived):
                    asked[event.stream_id] = _Asked(dict(event.headers))  # type: ignore[arg-type]
                    self.streams.add(len(asked))
                elif isinstance(event, h2.events.DataReceived):
                    asked[event.stream_id].body += event.data
                    machine.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    self._answer(machine, event.stream_id, asked.pop(event.stream_id), port)
                    answers += 1
                    if self._goaway_every and answers % self._goaway_every == 0:
                        machine.close_connection(last_stream_id=event.stream_id)
                        peer.sendall(machine.data_to_send())
                        return
            peer.sendall(machine.data_to_send())

    def _answer(
        self, machine: h2.connection.H2Connection, stream: int, asked: _Asked, port: int
    ) -> None:
        method, path = asked.headers[":method"], asked.headers[":path"]
        headers = {name.title(): value for name, value in asked.headers.items()}
        body = asked.body.decode()
        status, fields, text = self.reply(method, path, headers, body)
        self.note(Seen(port, method, path, body, headers.get("Cookie", ""), status))
        lower = [(name.lower(), value) for name, value in fields]
        machine.send_headers(stream, [(":status", str(status)), *lower])
        # In two parts, so that a value may be cut.
        cut = len(text) // 2
        machine.send_data(stream, text[:cut].encode())
        machine.send_data(stream, text[cut:].encode(), end_stream=True)

    def __enter__(self) -> Http2SessionServer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _context(version: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols([version])
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context
