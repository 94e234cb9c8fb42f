"""A server of the contract ws-shootout in every dialect, and the ways in which it may fail.

The WebSocket part is the library `websockets`, a peer that shares no code with ours.
"""

from __future__ import annotations

import json
import logging
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from trueload.protocol.shootout import CHANNEL, TOPIC, Dialect, Kind
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

logging.getLogger("websockets").setLevel(logging.CRITICAL)


def text(**fields: Any) -> str:
    return json.dumps(fields)


def cable(**fields: Any) -> str:
    return text(identifier=CHANNEL, message=fields)


class Room:
    """The server, with one thread per client, and a flaw if it has one."""

    def __init__(self, dialect: Dialect = "json", flaw: str = "") -> None:
        self.dialect = dialect
        self.flaw = flaw
        self.clients: list[ServerConnection] = []
        self.dropped: ServerConnection | None = None
        self.lock = threading.Lock()
        self.broadcasts = self.ever = 0

    def talk(self, client: ServerConnection) -> None:
        with suppress(ConnectionClosed, OSError):
            self.welcome(client)
            with self.lock:
                self.clients.append(client)
                self.ever += 1
            for wire in client:
                if wire in ("{nonsense", b"\xff"):
                    self.nonsense(client)
                elif self.dialect == "phoenix" and json.loads(wire)["topic"] == "phoenix":
                    self.beat(client, json.loads(wire))
                else:
                    self.answer(client, wire)
        with self.lock:
            # A dropped client stays in the count: this flaw is that its end is not noticed.
            if client in self.clients and client is not self.dropped:
                self.clients.remove(client)

    def nonsense(self, client: ServerConnection) -> None:
        for each in self.clients if self.flaw == "falls over nonsense" else [client]:
            each.socket.shutdown(socket.SHUT_RDWR)

    def welcome(self, client: ServerConnection) -> None:
        if self.flaw == "closes at once":
            client.close(1011)
        if self.dialect == "actioncable":
            client.send(text(type="welcome"))
            assert json.loads(client.recv()) == {"command": "subscribe", "identifier": CHANNEL}
            client.send(text(type="ping", message=1))
            kind = "reject" if self.flaw == "rejects" else "confirm"
            client.send(text(type=f"{kind}_subscription", identifier=CHANNEL))
        if self.dialect == "phoenix":
            client.recv()
            payload = {"status": "ok", "response": {}}
            client.send(text(topic=TOPIC, event="phx_reply", payload=payload, ref="1"))

    def beat(self, client: ServerConnection, heartbeat: Any) -> None:
        """Answer a heartbeat, which Phoenix clients send from time to time."""
        payload = {"status": "ok", "response": {}}
        ref = heartbeat.get("ref")
        client.send(text(topic="phoenix", event="phx_reply", payload=payload, ref=ref))

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        kind, payload = self.decoded(wire)
        if kind == "echo":
            self.echo(client, payload)
            return
        self.broadcasts += 1
        with self.lock:
            if self.flaw == "sends the slow away" and len(wire) > 10_000:
                self.clients[1].socket.shutdown(socket.SHUT_RDWR)
                self.flaw = ""
            chosen = self.clients[: -1 if self.flaw == "forgets one" else None]
            for each in chosen * (2 if self.flaw == "says all twice" else 1):
                with suppress(ConnectionClosed):
                    each.send(self.encoded("broadcast", payload))
            count = len(self.clients) - (self.flaw == "counts the others")
            if self.flaw == "never forgets":
                count = self.ever
            if self.flaw != "gives no receipt":
                client.send(self.encoded("broadcastResult", payload, count))
            if self.flaw == "drops a client" and self.broadcasts >= 3:
                self.dropped = self.clients[-1]
                self.dropped.socket.shutdown(socket.SHUT_RDWR)
                self.flaw = ""

    def echo(self, client: ServerConnection, payload: Any) -> None:
        if self.flaw == "never echoes":
            return
        if self.flaw == "alters the payload" and len(payload["padding"]) > 1000:
            payload["padding"] = payload["padding"].encode("ascii", "replace").decode()
        if self.flaw == "echoes as binary":
            client.send(self.encoded("echo", payload).encode())
            return
        client.send(self.encoded("echo", payload))

    def decoded(self, wire: str | bytes) -> tuple[Kind, Any]:
        if isinstance(wire, bytes):
            return ("echo" if wire[:1] == b"e" else "broadcast"), wire[5:]
        message = json.loads(wire)
        if self.dialect == "actioncable":
            data = json.loads(message["data"])
            return data["action"], data["payload"]
        if self.dialect == "phoenix":
            return message["event"], message["payload"]["body"]
        return message["type"], message["payload"]

    def encoded(self, kind: Kind, payload: Any, count: int | None = None) -> Any:
        if self.dialect == "binary":
            letter = {"echo": b"e", "broadcast": b"b", "broadcastResult": b"r"}[kind]
            return letter + struct.pack(">I", len(payload)) + payload
        if self.dialect == "actioncable":
            return cable(action=kind, payload=payload)
        if self.dialect == "phoenix":
            inner = {"type": kind, "body": payload}
            reply = inner if kind == "broadcast" else {"status": "ok", "response": inner}
            event = "broadcast" if kind == "broadcast" else "phx_reply"
            return text(topic=TOPIC, event=event, payload=reply, ref=None)
        more = {} if count is None else {"listenerCount": count}
        return text(type=kind, payload=payload, **more)


@contextmanager
def peer(room: Room) -> Iterator[tuple[str, int]]:
    named = [Subprotocol("actioncable-v1-json")] if room.dialect == "actioncable" else None
    # By default every send would wait for a client that has gone, so set a short timeout.
    with serve(room.talk, "127.0.0.1", 0, subprotocols=named, close_timeout=0.1) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.socket.getsockname()[:2]
