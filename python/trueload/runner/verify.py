"""Asks a subject what its contract asks, over real sockets, before it is measured.

How: h11 or h2 writes the request and reads the answer, over a socket with one deadline for the
whole exchange and a cap on what is read, so that a peer that drips or never ends costs a bounded
time. Over TLS any certificate does: it was made for the run.
The judgement is the contract's.

It never raises for what a peer does: it says what was wrong.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass

import h11

from trueload.closeable import Closing
from trueload.extras import require
from trueload.runner.verify_echo import ask_echo, verify_echo
from trueload.subjects.contracts import (
    AnyContract,
    Contract,
    EchoContract,
    Exchange,
    Reply,
    ShootoutContract,
    asked_of,
    exchange_of,
    judge,
)

EXCHANGE_TIMEOUT_S = 5.0
REPLY_BYTES_MAX = 1024 * 1024
SPLIT_PAUSE_S = 0.02  # long enough for the first part to be read by itself
PIECE_BYTES = 64 * 1024
PIPELINED = 3


class PeerError(Exception):
    """What the peer did instead of answering; one line."""


@dataclass(frozen=True)
class Over:
    """What an exchange of HTTP goes over: a version, and TLS or not."""

    http2: bool = False
    tls: bool = False


PLAIN = Over()


def over(contract: AnyContract, *, tls: bool) -> Over:
    """As the contract has it."""
    return Over(http2=isinstance(contract, Contract) and contract.http == "2", tls=tls)


def require_library(contract: object) -> None:
    """Raises ``UserError`` where what asks such a contract is not installed."""
    if isinstance(contract, Contract) and contract.http == "2":
        require("http2", "a contract over HTTP/2", "h2")
    if isinstance(contract, ShootoutContract):
        require("websocket", "a contract over WebSocket", "websockets")


def verify(
    contract: AnyContract,
    category: str,
    address: tuple[str, int],
    *,
    pipelined: bool,
    tls: bool = False,
) -> str | None:
    """The first exchange that the subject fails, in one line; None if it masters all."""
    if isinstance(contract, EchoContract):
        return verify_echo(contract, address)
    if isinstance(contract, ShootoutContract):
        from trueload.runner.verify_shootout import verify_shootout

        return verify_shootout(contract, address)
    means = over(contract, tls=tls)
    # Over HTTP/2 whatever answers can answer several at once.
    asked = asked_of(contract, category, pipelined or means.http2)
    for exchange in asked:
        if fault := ask(exchange, asked, address, means=means).fault:
            return f"{exchange.what} ({exchange.method} {exchange.path}): {fault}"
    return None


@dataclass(frozen=True)
class Sample:
    """The answer to an exchange of a contract: its size, if it was right."""

    wire_bytes: int
    fault: str | None


def sample(
    contract: AnyContract, address: tuple[str, int], *, path: str | None = None, tls: bool = False
) -> Sample:
    """Asks the contract's first exchange, or that of a ``path``."""
    if isinstance(contract, EchoContract):
        first = contract.echoes[0]
        return Sample(first.size_bytes, ask_echo(first, address))
    if isinstance(contract, ShootoutContract):
        message = contract.messages[0]
        from trueload.runner.verify_shootout import ask_message

        return Sample(message.padding_bytes, ask_message(contract, message, address, 1))
    answer = ask(exchange_of(contract, path), (), address, means=over(contract, tls=tls))
    return Sample(answer.reply.wire_bytes if answer.reply else 0, answer.fault)


@dataclass(frozen=True)
class Answer:
    """What came of an exchange: the last reply, if there was one, and what was wrong."""

    reply: Reply | None
    fault: str | None


def ask(
    exchange: Exchange,
    asked: Sequence[Exchange],
    address: tuple[str, int],
    before: Sequence[Exchange] = (),
    means: Over = PLAIN,
) -> Answer:
    """One exchange in its form, on a connection where those `before` it were answered rightly.
    `asked` gives pipelined requests one that differs."""
    try:
        with connect(address, means) as connection:
            for each in before:
                connection.send(each)
                reply = connection.receive(each)
                if fault := judge(each, reply):
                    return Answer(reply, fault)
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


def connect(address: tuple[str, int], means: Over) -> _Connection:
    """A connection to ask a server on. Raises ``PeerError``."""
    return _Http2Connection(address, means) if means.http2 else _Connection(address, means)


class _Connection(Closing):
    """A connection with one deadline for all that happens on it."""

    def __init__(self, address: tuple[str, int], means: Over) -> None:
        self.host, self.port = address
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = f"{shown}:{self.port}"
        self.deadline_s = time.monotonic() + EXCHANGE_TIMEOUT_S
        try:
            self.socket = socket.create_connection(address, timeout=EXCHANGE_TIMEOUT_S)
        except OSError as error:
            raise PeerError(f"no connection: {error.strerror or error}") from None
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if means.tls:
            self.socket = _secured(self.socket, "h2" if means.http2 else "http/1.1")
        self.sent_s = time.monotonic()
        self.unread = b""  # the beginning of the next answer

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
        self._send(b"".join(self._asked(exchange)[1] for exchange in exchanges))

    def receive(self, exchange: Exchange) -> Reply:
        parser, _ = self._asked(exchange)
        read, body = bytearray(self.unread), bytearray()
        if read:
            parser.receive_data(self.unread)
        response: h11.Response | None = None
        try:
            while not isinstance(event := parser.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    data = self._read()
                    if not data and not read:
                        raise PeerError("the connection was closed without an answer")
                    read += data
                    if read[:5] != b"HTTP/"[: len(read)]:
                        raise PeerError(f"no HTTP answer: {bytes(read[:40])!a}")
                    if len(read) > REPLY_BYTES_MAX + PIECE_BYTES:
                        raise PeerError(f"no HTTP answer: longer than {REPLY_BYTES_MAX} bytes")
                    parser.receive_data(data)
                elif isinstance(event, h11.Response):
                    response = event
                elif isinstance(event, h11.Data):
                    body += event.data
        except h11.RemoteProtocolError as error:
            raise PeerError(f"no HTTP answer: {str(error)[:200]!a}") from None
        assert response is not None
        self.unread, _ = parser.trailing_data
        whole = bytes(read.removesuffix(self.unread))
        headers = response.headers.raw_items()
        return Reply(
            status=response.status_code,
            headers=tuple((name.decode("latin-1"), at.decode("latin-1")) for name, at in headers),
            body=bytes(body),
            wire_bytes=len(whole),
            wait_ms=(time.monotonic() - self.sent_s) * 1000,
            raw_head=whole.partition(b"\r\n\r\n")[0],
        )

    def read_within(self, wait_s: float) -> bytes:
        """What comes within so long; nothing, too, where the peer closes."""
        self.socket.settimeout(wait_s)
        try:
            return self.socket.recv(PIECE_BYTES)
        except OSError:
            return b""

    def _read(self) -> bytes:
        try:
            self.socket.settimeout(max(self.deadline_s - time.monotonic(), 0.001))
            return self.socket.recv(PIECE_BYTES)
        except TimeoutError:
            raise PeerError(f"no whole answer within {EXCHANGE_TIMEOUT_S:g} s") from None
        except OSError as error:
            raise PeerError(f"the connection broke: {error.strerror or error}") from None

    def _send(self, data: bytes) -> None:
        try:
            self.socket.settimeout(max(self.deadline_s - time.monotonic(), 0.001))
            self.socket.sendall(data)
            self.sent_s = time.monotonic()
        except OSError as error:
            raise PeerError(f"the request could not be sent: {error.strerror or error}") from None

    def _asked(self, exchange: Exchange) -> tuple[h11.Connection, bytes]:
        """What reads the answer to a request, and the request."""
        parser = h11.Connection(h11.CLIENT)
        headers = [("Host", self.authority)]
        asked = h11.Request(method=exchange.method, target=exchange.path, headers=headers)
        return parser, (parser.send(asked) or b"") + (parser.send(h11.EndOfMessage()) or b"")

    def _request(self, exchange: Exchange) -> bytes:
        return self._asked(exchange)[1]


class _Http2Connection(_Connection):
    """The same over HTTP/2: each request on a stream of its own."""

    def __init__(self, address: tuple[str, int], means: Over) -> None:
        super().__init__(address, means)
        # Its library is an extra.
        from trueload.runner.verify_http2 import Http2Talk

        scheme = "https" if means.tls else "http"
        self.talk = Http2Talk(self.authority, scheme, self._send, self._read)

    def send_all(self, exchanges: Sequence[Exchange]) -> None:
        self._send(self.talk.requests(exchanges))

    def receive(self, exchange: Exchange) -> Reply:
        try:
            return self.talk.reply(REPLY_BYTES_MAX)
        except ConnectionError as error:
            raise PeerError(str(error)) from None

    def _request(self, exchange: Exchange) -> bytes:
        return self.talk.requests([exchange])


def _secured(plain: socket.socket, alpn: str) -> socket.socket:
    """Raises ``PeerError``."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    try:
        secured = context.wrap_socket(plain)
    except OSError as error:
        plain.close()
        raise PeerError(f"no TLS: {getattr(error, 'reason', None) or error}") from None
    chosen = secured.selected_alpn_protocol()
    if chosen not in (alpn, None if alpn == "http/1.1" else alpn):
        secured.close()
        raise PeerError(f"ALPN chose {chosen}, not {alpn}")
    return secured
