"""A broadcast server that lets messages pile up before it delivers them.

When `MESSAGES` messages have arrived, it sends all of them to every client in one piece, and then
each sender its receipts. `coalescing.py MESSAGES` prints its port and serves until its standard
input ends. It speaks JSON and is one process; its own cost is not measured.
"""

from __future__ import annotations

import base64
import hashlib
import json
import selectors
import socket
import sys
from dataclasses import dataclass, field
from typing import Any

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 §1.3
READ_BYTES = 1 << 16


@dataclass
class Client:
    """One connection and the bytes it has sent so far."""

    socket: socket.socket
    upgraded: bool = False
    received: bytearray = field(default_factory=bytearray)


def frame(message: dict[str, Any]) -> bytes:
    """Encode an unmasked text frame, as servers send it."""
    payload = json.dumps(message, separators=(",", ":")).encode()
    if len(payload) < 126:
        return bytes([0x81, len(payload)]) + payload
    return bytes([0x81, 126]) + len(payload).to_bytes(2, "big") + payload


def take_frame(received: bytearray) -> bytes | None:
    """Take the first frame out of the buffer; return its payload, or None if it is incomplete."""
    if len(received) < 6:
        return None
    length, at = received[1] & 0x7F, 2
    if length == 126:
        length, at = int.from_bytes(received[2:4], "big"), 4
    whole = at + 4 + length
    if len(received) < whole:
        return None
    mask, payload = received[at : at + 4], received[at + 4 : whole]
    key = int.from_bytes((bytes(mask) * (length // 4 + 1))[:length], "big")
    del received[:whole]
    return (int.from_bytes(payload, "big") ^ key).to_bytes(length, "big")


class Server:
    """The server: holds messages back until there are enough."""

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._selector = selectors.DefaultSelector()
        self._clients: list[Client] = []
        self._held: list[tuple[Client, Any]] = []

    def run(self) -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
            print(listener.getsockname()[1], flush=True)
            self._selector.register(listener, selectors.EVENT_READ)
            self._selector.register(sys.stdin, selectors.EVENT_READ)
            while True:
                for key, _ in self._selector.select():
                    if key.fileobj is listener:
                        self._accept(listener)
                    elif key.data is None:
                        return
                    else:
                        self._read(key.data)

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = Client(connection)
        self._clients.append(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _read(self, client: Client) -> None:
        try:
            came = client.socket.recv(READ_BYTES)
        except OSError:  # _send may have dropped and closed it
            came = b""
        if not came:
            self._drop(client)
            return
        client.received += came
        if not client.upgraded:
            self._upgrade(client)
        while client.upgraded and (payload := take_frame(client.received)) is not None:
            self._answer(client, json.loads(payload))

    def _drop(self, client: Client) -> None:
        if client in self._clients:
            self._selector.unregister(client.socket)
            self._clients.remove(client)
            client.socket.close()

    def _send(self, client: Client, piece: bytes) -> None:
        # A client of the run before may still be connected: io_uring closes its sockets late.
        try:
            client.socket.sendall(piece)
        except OSError:
            self._drop(client)

    def _upgrade(self, client: Client) -> None:
        head, end, rest = bytes(client.received).partition(b"\r\n\r\n")
        if not end:
            return
        name = b"sec-websocket-key:"
        lines = [line for line in head.split(b"\r\n") if line.lower().startswith(name)]
        accept = base64.b64encode(hashlib.sha1(lines[0][len(name) :].strip() + GUID).digest())
        client.socket.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        client.upgraded, client.received = True, bytearray(rest)

    def _answer(self, client: Client, message: dict[str, Any]) -> None:
        if message["type"] == "echo":
            self._send(client, frame(message))
            return
        self._held.append((client, message["payload"]))
        if len(self._held) < self._enough:
            return
        held, self._held = self._held, []
        piece = b"".join(frame({"type": "broadcast", "payload": payload}) for _, payload in held)
        for each in list(self._clients):
            self._send(each, piece)
        for sender, payload in held:
            count = len(self._clients)
            receipt = {"type": "broadcastResult", "payload": payload, "listenerCount": count}
            self._send(sender, frame(receipt))


if __name__ == "__main__":
    Server(int(sys.argv[1])).run()
