"""One connection of HTTP/2 for exchanges, as ``verify`` has for HTTP/1.1.

How: the library h2 writes and reads the frames. It is not the code that measures, so a mistake in
one is seen by the other. Several requests may be in flight; their answers are kept by stream until
they are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from trueload.subjects.contracts import Exchange, Reply


class Http2Error(ConnectionError):
    """What the peer did instead of answering; one line."""


@dataclass
class _Answer:
    """The answer on a stream so far."""

    headers: tuple[tuple[str, str], ...] = ()
    body: bytearray = field(default_factory=bytearray)
    wire_bytes: int = 0
    ended: bool = False
    reset: str = ""


class Http2Talk:
    """A client of HTTP/2 over bytes that the caller transports.

    ``send`` takes the bytes to send, and ``receive`` returns the bytes that came, empty at the end.
    """

    def __init__(
        self,
        authority: str,
        scheme: str,
        send: Callable[[bytes], None],
        receive: Callable[[], bytes],
    ) -> None:
        self.authority, self.scheme = authority, scheme
        self._send, self._receive = send, receive
        config = h2.config.H2Configuration(client_side=True, header_encoding="latin-1")
        self._machine = h2.connection.H2Connection(config)
        self._machine.initiate_connection()
        self._answers: dict[int, _Answer] = {}
        self._asked: list[int] = []  # streams whose answers were not taken yet
        self._received = False
        self._sent_s = time.monotonic()

    def requests(self, exchanges: Sequence[Exchange]) -> bytes:
        for exchange in exchanges:
            stream = self._machine.get_next_available_stream_id()
            fields = [
                (":method", exchange.method),
                (":scheme", self.scheme),
                (":authority", self.authority),
                (":path", exchange.path),
            ]
            self._machine.send_headers(stream, fields, end_stream=True)
            self._answers[stream] = _Answer()
            self._asked.append(stream)
        self._sent_s = time.monotonic()
        return self._machine.data_to_send()

    def reply(self, bytes_max: int) -> Reply:
        """Return the whole answer to the oldest request without one. Raises ``Http2Error``."""
        stream = self._asked.pop(0)
        answer = self._answers[stream]
        while not answer.ended:
            if answer.reset:
                raise Http2Error(answer.reset)
            if len(answer.body) > bytes_max:
                raise Http2Error(f"no HTTP answer: longer than {bytes_max} bytes")
            data = self._receive()
            if not data:
                raise Http2Error("the connection was closed without a whole answer")
            self._take(data)
        del self._answers[stream]
        status = next((value for name, value in answer.headers if name == ":status"), "")
        if not status.isdigit():
            raise Http2Error(f"no HTTP answer: :status {status!a}")
        return Reply(
            status=int(status),
            headers=tuple(each for each in answer.headers if not each[0].startswith(":")),
            body=bytes(answer.body),
            wire_bytes=answer.wire_bytes,
            wait_ms=(time.monotonic() - self._sent_s) * 1000,
            raw_head="\n".join(map(": ".join, answer.headers)).encode("latin-1"),
        )

    def _take(self, data: bytes) -> None:
        # Read as a frame this would be one of 4.7 MB, and we would wait for its end.
        if not self._received and data.startswith(b"HTTP/"):
            raise Http2Error("the peer answers in HTTP/1")
        self._received = True
        try:
            for event in self._machine.receive_data(data):
                self._note(event)
        except h2.exceptions.ProtocolError as error:
            raise Http2Error(f"no HTTP/2: {str(error)[:200]!a}") from None
        if more := self._machine.data_to_send():
            self._send(more)

    def _note(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ConnectionTerminated):
            # h2 reports nothing more of a connection after this.
            for answer in self._answers.values():
                answer.reset = f"GOAWAY with {_code(event.error_code)}"
            return
        found = self._answers.get(getattr(event, "stream_id", 0) or 0)
        if found is not None:
            self._note_on(found, event)

    def _note_on(self, answer: _Answer, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived):
            answer.headers = tuple((str(name), str(value)) for name, value in event.headers or ())
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data or b""
            answer.wire_bytes += len(event.data or b"")
            if event.flow_controlled_length and event.stream_id:
                self._machine.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id
                )
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = f"the stream was reset with {_code(event.error_code)}"


def _code(code: int | h2.errors.ErrorCodes | None) -> str:
    return code.name if isinstance(code, h2.errors.ErrorCodes) else str(code)
