"""The scripted peers themselves, tested with plain sockets: they do what they claim."""

from __future__ import annotations

import socket
from random import Random

import faults.peer as peer_module
import pytest
from faults.cases import LIVE_SLOWER, LIVE_TIMEOUT_MS, Between, load, parse_step
from faults.cases import Texts as _Texts
from faults.counters import RequestCounter
from faults.peer import LATE_MS_MOST, Peer, pieces
from waiting import be_late

TEXTS = _Texts({"ok": "HTTP/1.1 200 OK\r\n\r\n", "two": "{ok}{ok}"})
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"


def talk(*script: str, request: bytes = GET) -> tuple[bytes, int]:
    """Run this script with `request`; return what the peer sent and the requests it counted."""
    with Peer((tuple(parse_step(line, TEXTS) for line in script),)) as peer:
        with socket.create_connection((peer.host, peer.port), timeout=10) as sock:
            sock.sendall(request)
            if "hold" in script:
                sock.shutdown(socket.SHUT_WR)
            received = b"".join(iter(lambda: sock.recv(65536), b""))
        peer.settle()
        return received, peer.requests


def test_a_peer_sends_what_its_script_says_and_closes() -> None:
    assert talk("read", "send*2 a{ok}", "send {hex:00ff}{pad:3}", "fin") == (
        b"aHTTP/1.1 200 OK\r\n\r\n" * 2 + b"\x00\xffxxx",
        1,
    )


def test_a_peer_counts_requests_that_come_behind_the_end_of_its_script() -> None:
    assert talk("read", "send x", "hold", request=GET + POST + GET)[1] == 3


def test_a_peer_that_resets_is_heard_as_a_reset() -> None:
    with pytest.raises(ConnectionResetError):
        talk("read", "rst")


def test_a_peer_that_drips_sends_every_byte() -> None:
    assert talk("read", "drip 1 abc", "fin")[0] == b"abc"


def test_a_peer_knows_when_it_was_late_with_what_comes_behind_a_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = lambda delay_s: be_late(delay_s + LATE_MS_MOST / 500)  # noqa: E731
    monkeypatch.setattr(peer_module, "be_late", later)
    script = tuple(parse_step(line, TEXTS) for line in ("send a", "wait 5", "send b", "fin"))
    with Peer((script,)) as peer:
        with socket.create_connection((peer.host, peer.port), timeout=10) as sock:
            assert b"".join(iter(lambda: sock.recv(10), b"")) == b"ab"
        peer.settle()
        assert peer.was_late


def test_a_row_goes_slower_where_its_peer_has_to_speak_in_time() -> None:
    rows = {case.name: case for case in load()}
    dripped = rows["a body dripped past the timeout is a timeout of the whole"]
    slower = dripped.live()
    assert slower.timeout_ms == LIVE_SLOWER * dripped.timeout_ms
    assert [step.ms for step in slower.scripts[0]] == [0, 0, LIVE_SLOWER * 20]
    silent = rows["silence is a timeout before the first byte"]
    assert silent.live() == silent
    assert rows["an answer after a while is ok"].live().timeout_ms == LIVE_TIMEOUT_MS


def test_later_connections_follow_the_last_script() -> None:
    scripts = tuple(
        (parse_step(f"send {letter}", TEXTS), parse_step("fin", TEXTS)) for letter in "ab"
    )
    with Peer(scripts) as peer:
        received = []
        for _ in range(3):
            with socket.create_connection((peer.host, peer.port), timeout=10) as sock:
                received.append(sock.recv(10))
        assert received == [b"a", b"b", b"b"]
        assert peer.accepted == 3


def test_requests_are_counted_however_they_are_cut() -> None:
    wire = GET + POST + GET
    for cut in range(len(wire)):
        counter = RequestCounter()
        counter.feed(wire[:cut])
        counter.feed(wire[cut:])
        assert counter.whole == 3, f"cut at {cut}"


def test_pieces_add_up_to_the_whole() -> None:
    for seed in range(50):
        data = bytes(range(seed))
        assert b"".join(pieces(data, Random(seed))) == data


@pytest.mark.parametrize("line", ["sing {ok}", "rst now", "read many", "send {unknown}"])
def test_what_is_no_step_is_refused(line: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        parse_step(line, TEXTS)


def test_every_row_says_what_must_come_out_and_has_a_name_of_its_own() -> None:
    cases = load()
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        assert case.out.each or case.out.failed or case.out.ok != Between(0, 0), case.name


def test_every_class_of_http_over_tcp_has_a_row() -> None:
    met = set().union(*(case.classes() for case in load()))
    assert met >= {
        "connect.refused", "connect.timeout", "connect.unreachable", "reset", "empty", "truncated",
        "framing", "limit", "unsolicited", "mismatch", "status", "closed_pipelined",
        "timeout.first_byte", "timeout.total",
    }  # fmt: skip
