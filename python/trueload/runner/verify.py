"""Asks a subject what its contract asks, over real sockets, before it is measured.

How: Python's own HTTP reader over a socket with one deadline for the whole exchange and a
cap on what is read, so that a peer that drips or never ends costs a bounded time. The
judgement is the contract's.

Must not know: processes. It never raises for what a peer does: it says what was wrong.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from trueload.closing import Closing
from trueload.runner.verify_echo import ask_echo, verify_echo
from trueload.runner.verify_shootout import ask_message, verify_shootout
from trueload.subjects.contracts import (
    AnyContract,
    EchoContract,
    Exchange,
    Reply,
    ShootoutContract,
    asked_of,
    judge,
)

EXCHANGE_TIMEOUT_S = 5.0
REPLY_BYTES_MAX = 1024 * 1024
SPLIT_PAUSE_S = 0.02  # long enough for the first part to be read by itself
PIPELINED = 3


class PeerError(Exception):
    """What the peer did instead of answering; one line."""


def verify(
    contract: AnyContract, category: str, address: tuple[str, int], *, pipelined: bool
) -> str | None:
    """The first exchange that the subject fails, in one line; None if it masters all."""
    if isinstance(contract, EchoContract):
        return verify_echo(contract, address)
    if isinstance(contract, ShootoutContract):
        return verify_shootout(contract, address)
    asked = asked_of(contract, category, pipelined)
    for exchange in asked:
        if fault := ask(exchange, asked, address).fault:
            return f"{exchange.what} ({exchange.method} {exchange.path}): {fault}"
    return None


@dataclass(frozen=True)
class Sample:
    """The answer to a contract's first exchange: its size, if it was right."""

    wire_bytes: int
    fault: str | None


def sample(contract: AnyContract, address: tuple[str, int]) -> Sample:
    """Asks the contract's first exchange."""
    if isinstance(contract, EchoContract):
        first = contract.echoes[0]
        return Sample(first.size_bytes, ask_echo(first, address))
    if isinstance(contract, ShootoutContract):
        message = contract.messages[0]
        return Sample(message.padding_bytes, ask_message(contract, message, address, 1))
    answer = ask(contract.exchanges[0], (), address)
    return Sample(answer.reply.wire_bytes if answer.reply else 0, answer.fault)


@dataclass(frozen=True)
class Answer:
    """What came of an exchange: the last reply, if there was one, and what was wrong."""

    reply: Reply | None
    fault: str | None


def ask(exchange: Exchange, asked: Sequence[Exchange], address: tuple[str, int]) -> Answer:
    """One exchange in its form. `asked` gives pipelined requests one that differs."""
    try:
        with _Connection(address) as connection:
            if exchange.form == "pipelined":
                return _pipelined(connection, exchange, asked)
            for _ in range(2 if exchange.form == "twice" else 1):
                connection.send(exchange, split=exchange.form == "split")
                reply = connection.receive(exchange)
                if fault := judge(exchange, reply):
                    return Answer(reply, fault)
            return Answer(reply, None)
    except PeerError as error:
        return Answer(None, str(error))


def _pipelined(connection: _Connection, exchange: Exchange, asked: Sequence[Exchange]) -> Answer:
    """Three requests at once; where the subject routes, the one in the middle differs, so
    that answers out of order show."""
    others = (e for e in asked if e.form == "plain" and e.status != exchange.status)
    middle = next(others, exchange)
    order = [exchange, middle, exchange][:PIPELINED]
    connection.send_all(order)
    reply: Reply | None = None
    for number, each in enumerate(order, 1):
        try:
            reply = connection.receive(each)
        except PeerError as error:
            return Answer(reply, f"request {number} of {len(order)}: {error}")
        if fault := judge(each, reply):
            return Answer(reply, f"answer {number} of {len(order)}: {fault}")
    return Answer(reply, None)


class _Connection(Closing):
    """A connection with one deadline for all that happens on it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.host, self.port = address
        self.deadline_s = time.monotonic() + EXCHANGE_TIMEOUT_S
        try:
            self.socket = socket.create_connection(address, timeout=EXCHANGE_TIMEOUT_S)
        except OSError as error:
            raise PeerError(f"no connection: {error.strerror or error}") from None
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = _Recorder(io.BufferedReader(_Wire(self.socket, self.deadline_s)))
        self.sent_s = time.monotonic()

    def close(self) -> None:
        self.socket.close()

    def send(self, exchange: Exchange, *, split: bool = False) -> None:
        request = self._request(exchange)
        middle = len(request) // 2 if split else 0
        if middle:
            self._send(request[:middle])
            time.sleep(SPLIT_PAUSE_S)
        self._send(request[middle:])

    def send_all(self, exchanges: Sequence[Exchange]) -> None:
        self._send(b"".join(self._request(exchange) for exchange in exchanges))

    def receive(self, exchange: Exchange) -> Reply:
        self.reader.start()
        response = http.client.HTTPResponse(
            cast(socket.socket, self.reader), method=exchange.method
        )
        try:
            response.begin()
            body = response.read()
        except TimeoutError:
            raise PeerError(f"no whole answer within {EXCHANGE_TIMEOUT_S:g} s") from None
        except http.client.RemoteDisconnected:
            raise PeerError("the connection was closed without an answer") from None
        except (http.client.HTTPException, ValueError) as error:
            raise PeerError(f"no HTTP answer: {type(error).__name__} {str(error)!a}") from None
        except OSError as error:
            raise PeerError(f"the connection broke: {error.strerror or error}") from None
        return Reply(
            status=response.status,
            headers=tuple(response.getheaders()),
            body=body,
            wire_bytes=self.reader.seen,
            wait_ms=(time.monotonic() - self.sent_s) * 1000,
            raw_head=self.reader.kept.partition(b"\r\n\r\n")[0],
        )

    def _send(self, data: bytes) -> None:
        try:
            self.socket.settimeout(max(self.deadline_s - time.monotonic(), 0.001))
            self.socket.sendall(data)
            self.sent_s = time.monotonic()
        except OSError as error:
            raise PeerError(f"the request could not be sent: {error.strerror or error}") from None

    def _request(self, exchange: Exchange) -> bytes:
        host = f"[{self.host}]" if ":" in self.host else self.host
        line = f"{exchange.method} {exchange.path} HTTP/1.1\r\n"
        return f"{line}Host: {host}:{self.port}\r\n\r\n".encode("ascii")


class _Wire(io.RawIOBase):
    """A socket as a file that gives up at a deadline."""

    def __init__(self, connection: socket.socket, deadline_s: float) -> None:
        super().__init__()
        self.connection = connection
        self.deadline_s = deadline_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self.connection.settimeout(left_s)
        return self.connection.recv_into(buffer)


class _Recorder(io.RawIOBase):
    """Counts and keeps what one answer takes from the reader; several answers share it.

    It is its own "socket" for ``HTTPResponse``, which asks it for a file and closes that.
    """

    def __init__(self, reader: io.BufferedReader) -> None:
        super().__init__()
        self.reader = reader
        self.start()

    def start(self) -> None:
        self.seen = 0
        self.kept = b""

    def makefile(self, mode: str) -> _Recorder:
        return self

    def close(self) -> None:
        """Not after one answer: the next one comes by the same reader."""

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._count(self.reader.readline(-1 if size is None else size))

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = REPLY_BYTES_MAX + 1 if size is None or size < 0 else size
        return self._count(self.reader.read(min(wanted, REPLY_BYTES_MAX + 1)))

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _count(self, data: bytes) -> bytes:
        self.seen += len(data)
        if self.seen > REPLY_BYTES_MAX:
            raise ValueError(f"longer than {REPLY_BYTES_MAX} bytes")
        if len(self.kept) < 65536:
            self.kept += data
        return data
