"""A non-blocking WebSocket client: the sans-I/O protocol of `websockets` over a socket.

How: frames go into a buffer that is written as the socket takes it. Received bytes become messages,
which the client's owner takes. Joining, if the dialect has it, happens automatically. One `poll`
moves several clients.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Sequence

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Origin, Subprotocol
from websockets.uri import parse_uri

from trueload.protocol.shootout import SUBPROTOCOLS, Dialect, Wire, join, joins, opening

CONNECT_TIMEOUT_S = 5.0
MESSAGE_BYTES_MAX = 8 * 1024 * 1024
PIECE_BYTES = 256 * 1024
# Small, so that a client that does not read is noticed before megabytes are in flight.
RECEIVE_BUFFER_BYTES = 64 * 1024


class PeerError(Exception):
    """What the peer did wrong; one line."""


class WsConnection:
    """One connection.

    `joined` is set once it may send, and `ended` once nothing more comes. With `may_go` its owner
    says that the end of the connection is no fault.
    """

    def __init__(self, dialect: Dialect, path: str, address: tuple[str, int]) -> None:
        self.dialect = dialect
        self.joined = False
        self.reading = True
        self.may_go = False
        self.ended = False
        self.pongs: list[bytes] = []
        self.step = "been answered"
        self._out = bytearray()
        self._messages: list[Wire] = []
        self._fragments: list[bytes] = []
        self._text = False
        self._broken = ""
        self.socket = _connected(address)
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        named = SUBPROTOCOLS.get(dialect)
        self.protocol = ClientProtocol(
            parse_uri(f"ws://{host}:{address[1]}{path}"),
            origin=Origin(f"http://{host}:{address[1]}"),
            subprotocols=[Subprotocol(named)] if named else None,
            max_size=MESSAGE_BYTES_MAX,
        )
        self.protocol.send_request(self.protocol.connect())
        self._buffer()

    @property
    def close_code(self) -> int | None:
        """The code of the peer's close, if it has sent one."""
        received = self.protocol.close_rcvd
        return received.code if received is not None else None

    @property
    def why(self) -> str:
        """What is known about the end of the connection, to append to a sentence."""
        if self.protocol.close_rcvd is not None:
            return f" with the code {self.protocol.close_rcvd.code}"
        return f": {self._broken}" if self._broken else ""

    def send(self, whole: Wire) -> None:
        self._require_open()
        if isinstance(whole, str):
            self.protocol.send_text(whole.encode())
        else:
            self.protocol.send_binary(whole)
        self._buffer()

    def send_fragments(self, whole: Wire, ping: bytes | None) -> None:
        """Send a message in three frames, cut anywhere, with a ping after the first if given."""
        self._require_open()
        data = whole.encode() if isinstance(whole, str) else whole
        first, second = len(data) // 3, 2 * len(data) // 3
        if isinstance(whole, str):
            self.protocol.send_text(data[:first], fin=False)
        else:
            self.protocol.send_binary(data[:first], fin=False)
        if ping is not None:
            self.protocol.send_ping(ping)
        self.protocol.send_continuation(data[first:second], fin=False)
        self.protocol.send_continuation(data[second:], fin=True)
        self._buffer()

    def send_split(self, whole: Wire, pause_s: float) -> None:
        """Send a message in one frame, one half of it after a pause."""
        start = len(self._out)
        self.send(whole)
        middle = start + (len(self._out) - start) // 2
        self.socket.setblocking(True)
        self.socket.sendall(self._out[:middle])
        self.socket.setblocking(False)
        del self._out[:middle]
        time.sleep(pause_s)

    def ping(self, data: bytes) -> None:
        self._require_open()
        self.protocol.send_ping(data)
        self._buffer()

    def close(self) -> None:
        """Begin the closing handshake; the peer then has to end the connection."""
        if not self.ended and self.protocol.state is State.OPEN:
            self.protocol.send_close(1000)
            self._buffer()

    def reset(self) -> None:
        """Reset the connection at once, without a closing handshake."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.drop()

    def drop(self) -> None:
        self.ended = True
        self.socket.close()

    def take(self) -> list[Wire]:
        """Return the messages that have come since the last call."""
        taken, self._messages = self._messages, []
        return taken

    def wanted(self) -> int:
        """Return the events to poll the socket for."""
        if self.ended:
            return 0
        return (select.POLLIN if self.reading else 0) | (select.POLLOUT if self._out else 0)

    def move(self, events: int) -> bool:
        """Write and read what the socket is ready for; return whether anything moved."""
        try:
            if events & select.POLLOUT and self._out:
                del self._out[: self.socket.send(self._out[:PIECE_BYTES])]
            if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._read()
        except BlockingIOError:
            return False
        except OSError as error:
            self.ended = True
            self._broken = f"{error.strerror or error}"
        return True

    def _read(self) -> None:
        data = self.socket.recv(PIECE_BYTES)
        if data:
            self.protocol.receive_data(data)
        else:
            self.protocol.receive_eof()
            self.ended = True
        for event in self.protocol.events_received():
            if isinstance(event, Response):
                self._opened()
            elif isinstance(event, Frame):
                self._frame(event)
        if self.protocol.handshake_exc is not None:
            raise PeerError(_handshake_fault(self.protocol.handshake_exc))
        if isinstance(self.protocol.parser_exc, WebSocketException | UnicodeDecodeError):
            raise PeerError(f"a broken frame: {str(self.protocol.parser_exc)!a}")
        if not self.ended:
            self._buffer()

    def _opened(self) -> None:
        if self.protocol.handshake_exc is not None:
            return
        self.joined = not joins(self.dialect)
        self.step = "joined"
        if first := opening(self.dialect):
            self.send(first)

    def _frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.PONG:
            self.pongs.append(bytes(frame.data))
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        if frame.opcode is not Opcode.CONT:
            self._text = frame.opcode is Opcode.TEXT
        self._fragments.append(bytes(frame.data))
        if not frame.fin:
            return
        data = b"".join(self._fragments)
        self._fragments.clear()
        self._message(_text(data) if self._text else data)

    def _message(self, whole: Wire) -> None:
        if self.joined:
            self._messages.append(whole)
            return
        try:
            step = join(self.dialect, whole)
        except ValueError as error:
            raise PeerError(str(error)) from None
        if isinstance(step, bool):
            self.joined = step
        else:
            self.send(step)

    def _require_open(self) -> None:
        if self.protocol.state is not State.OPEN:
            raise PeerError(f"a client was disconnected{self.why}")

    def _buffer(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self._out += data


def poll(clients: Sequence[WsConnection], timeout_s: float) -> bool:
    """Wait up to ``timeout_s``, and move the bytes of all clients that are ready.

    Returns whether any moved.
    """
    waiting = select.poll()
    by_descriptor = {}
    for client in clients:
        if client.wanted():
            waiting.register(client.socket, client.wanted())
            by_descriptor[client.socket.fileno()] = client
    if not by_descriptor:
        time.sleep(min(timeout_s, 0.01))
        return False
    moved = False
    for descriptor, events in waiting.poll(max(timeout_s, 0) * 1000):
        moved |= by_descriptor[descriptor].move(events)
    return moved


def _connected(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(CONNECT_TIMEOUT_S)
        connection.connect(address)
        connection.setblocking(False)
    except OSError as error:
        connection.close()
        raise PeerError(f"no connection: {error.strerror or error}") from None
    return connection


def _handshake_fault(error: Exception) -> str:
    if isinstance(error, InvalidHandshake):
        return f"the upgrade is refused: {str(error)[:200]!a}"
    return f"no answer to the upgrade: {type(error).__name__} {str(error)[:200]!a}"


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise PeerError("a text that is not UTF-8") from None
