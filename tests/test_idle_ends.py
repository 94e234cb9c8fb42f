"""A server that ends idle connections, with or without a 408, on real sockets: not its fault."""

from __future__ import annotations

import pytest
from harness import Trueload, statuses
from trap_runs import OK, Talk, TrapServer

IDLE_S = 0.3
FLAGS = ("-c", "16", "--rate", "20/s", "--warmup", "0s", "--json", "-", "--no-save")
TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
UNTIL_END = b"HTTP/1.0 408 Request Time-out\r\nConnection: close\r\n\r\nslow"


def ends_idle(talk: Talk, last_words: bytes) -> None:
    """Answer requests, and end a connection that has been idle for a while."""
    talk.socket.settimeout(IDLE_S)
    try:
        talk.answer_all()
    except TimeoutError:
        talk.socket.sendall(last_words)


@pytest.mark.parametrize("last_words", [b"", TIMEOUT, UNTIL_END])
def test_a_server_may_end_idle_connections(trueload: Trueload, last_words: bytes) -> None:
    with TrapServer(lambda talk: ends_idle(talk, last_words)) as server:
        found = trueload.run("http", server.url, *FLAGS, "-d", "2s").json()
    by_check = statuses(found)
    assert found["counts"]["failed"] == {}
    assert (by_check["connections"], by_check["unsolicited"]) == ("pass", "pass")
    assert found["connections"]["idle_closed"] > 16
    assert found["connections"]["dropped"] == 0
    why = next(each["why"] for each in found["checks"] if each["name"] == "connections")
    assert "the server ends connections that are idle for 0." in why


def test_an_answer_that_nobody_asked_for_is_no_end(trueload: Trueload) -> None:
    with TrapServer(lambda talk: ends_idle(talk, OK)) as server:
        found = trueload.run("http", server.url, *FLAGS, "-d", "1s").json()
    assert statuses(found)["unsolicited"] == "fail"
