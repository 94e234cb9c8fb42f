"""The message about an HTTP/2 peer that breaks a contract."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from scripted_http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    RST_STREAM,
    Http2Peer,
    frame,
    settings,
)
from trueload.runner.verify import HttpVariant, ask
from trueload.subjects.contracts import Exchange

OVER = HttpVariant(http2=True)
SETTINGS_FIRST = settings()
OK, NOT_FOUND = b"\x88", b"\x8d"  # from the static table


def exchange(form: str = "plain", **more: object) -> Exchange:
    fields = {"what": "it", "form": form, "path": "/", "status": 200, "body_bytes": 5, **more}
    return Exchange.model_validate(fields)


def answered(stream: int, body: bytes = b"hello", head: bytes = OK) -> bytes:
    return frame(HEADERS, END_HEADERS, stream, head) + frame(DATA, END_STREAM, stream, body)


def fault_of(
    answers: Callable[[int, int], bytes | None], asked: Exchange, begins: bytes = SETTINGS_FIRST
) -> str | None:
    """The fault found with a peer that answers each request with ``answers``."""
    peer = Http2Peer(answers, begins)
    host, port = peer.url.removeprefix("http://").rstrip("/").split(":")
    return ask(asked, [], (host, int(port)), means=OVER).fault


def reset(stream: int) -> bytes:
    return frame(RST_STREAM, 0, stream, struct.pack(">I", 2))


def goaway(last: int) -> bytes:
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, 0))


@pytest.mark.parametrize("form", ["plain", "twice", "split"])
def test_a_right_answer_has_no_fault(form: str) -> None:
    assert fault_of(lambda _, stream: answered(stream), exchange(form)) is None


def test_answers_may_come_in_any_order() -> None:
    def backwards(number: int, stream: int) -> bytes:
        turn = (answered(each) for each in range(stream, 0, -2))
        return b"".join(turn) if number == 3 else b""

    assert fault_of(backwards, exchange("pipelined")) is None


FAULTS: list[tuple[Callable[[int, int], bytes | None], str]] = [
    (lambda _, stream: answered(stream, b"hello!"), "a body of 6 bytes instead of 5"),
    (lambda _, stream: answered(stream, head=NOT_FOUND), "status 404 instead of 200"),
    (lambda _, stream: reset(stream), "the stream was reset with INTERNAL_ERROR"),
    (lambda _, stream: goaway(0), "GOAWAY with NO_ERROR"),
    (lambda number, stream: None, "the connection was closed without a whole answer"),
    (lambda _, stream: frame(DATA, END_STREAM, stream, b"hello"), "no HTTP/2"),
]


@pytest.mark.parametrize(("answers", "fault"), FAULTS, ids=[fault for _, fault in FAULTS])
def test_a_wrong_answer_is_told_in_a_line(
    answers: Callable[[int, int], bytes | None], fault: str
) -> None:
    found = fault_of(answers, exchange())
    assert found is not None
    # Closing a socket with our SETTINGS unread resets the connection.
    assert found.startswith((fault, "the connection broke") if "closed" in fault else fault)
    assert found.isprintable()


def test_a_server_of_http1_is_told_as_one() -> None:
    found = fault_of(lambda _, stream: b"", exchange(), begins=b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert found == "the peer answers in HTTP/1"
