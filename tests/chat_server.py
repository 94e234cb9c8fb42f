"""A chat of its own: a log-in over HTTP, then rooms over WebSocket. It logs what it saw."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Barrier, Lock, Thread

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve


@dataclass
class Chat:
    """How it behaves, and what it saw: messages by type, and connections by how they closed."""

    forgets: bool = False
    """It never answers what is said."""
    chatters: bool = False
    """It tells news before each answer."""
    closes: bool = False
    """It closes instead of answering what is said."""
    seen: Counter[str] = field(default_factory=Counter)
    closed: Counter[int | None] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)
    room: set[ServerConnection] = field(default_factory=set)
    """The connections that each message is sent to."""
    together: Barrier = field(default_factory=lambda: Barrier(4, timeout=20))
    """Messages are sent on once so many connections are in the room."""

    def note(self, what: str) -> None:
        """Log one message."""
        with self.lock:
            self.seen[what] += 1

    def greet(self, _: ServerConnection, request: Request) -> Response | None:
        """Answer a request that is not for an upgrade."""
        if request.path == "/login":
            self.note("login")
            headers = Headers({"Set-Cookie": "sid=s; Path=/", "Content-Length": "2"})
            return Response(HTTPStatus.OK, "OK", headers, b"{}")
        if request.path == "/guarded" and request.headers.get("Cookie") != "sid=s":
            return Response(HTTPStatus.FORBIDDEN, "No", Headers({"Content-Length": "0"}), b"")
        return None

    def talk(self, connection: ServerConnection) -> None:
        """Serve one client. One that has said good-bye may be gone before it is answered."""
        with suppress(ConnectionClosed):
            self.answer(connection)
        with self.lock:
            self.closed[connection.protocol.close_code] += 1

    def answer(self, connection: ServerConnection) -> None:
        """Answer what one client says, until it ends."""
        if connection.request is not None and connection.request.path == "/room":
            self.hold_room(connection)
            return
        connection.send("welcome")
        for message in connection:
            if isinstance(message, bytes):
                self.note("binary")
                connection.send(message[::-1])
                continue
            told = json.loads(message)
            self.note(told["type"])
            if told["type"] == "say":
                if self.forgets:
                    continue
                if self.closes:
                    connection.close(1008, "be quiet")
                    break
                if self.chatters:
                    connection.send('{"type":"news"}')
            connection.send(json.dumps({**told, "type": f"{told['type']} ok"}))

    def hold_room(self, connection: ServerConnection) -> None:
        """Tell everybody in the room what one client says, from when all four are there."""
        with self.lock:
            self.room.add(connection)
        self.together.wait()
        try:
            for message in connection:
                self.note(json.loads(message)["type"])
                with self.lock:
                    for each in self.room:
                        with suppress(ConnectionClosed):
                            each.send(message)
        finally:
            with self.lock:
                self.room.discard(connection)


@contextmanager
def chatting(chat: Chat) -> Iterator[str]:
    """Serve it on a port of its own; gives host and port."""
    with serve(chat.talk, "127.0.0.1", 0, process_request=chat.greet, compression=None) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()
