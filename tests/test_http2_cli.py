"""``trueload http --http 2`` as a user runs it, against correct and broken servers."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from harness import Trueload, start_server, statuses
from scripted_http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    OK,
    RST_STREAM,
    Http2Peer,
    answer,
    frame,
    settings,
)
from targets_files import write

FEW = ("--http", "2", "--requests", "100", "-c", "2", "--streams", "5", "--json", "-")


def measured(trueload: Trueload, peer: Http2Peer, *more: str) -> Any:
    return trueload.run("http", peer.url, *FEW, *more).json()


@pytest.mark.parametrize("more", [(), ("--rate", "1k/s"), ("--driver", "epoll"), ("--close",)])
def test_every_request_is_answered_on_a_stream_of_its_own(
    trueload: Trueload, more: tuple[str, ...]
) -> None:
    peer = Http2Peer(lambda _, stream: answer(stream))
    streams = ("--streams", "1") if "--close" in more else ()
    record = measured(trueload, peer, *more, *streams)
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (100, {})
    assert (peer.seen.requests, peer.seen.resets) == (100, 0)
    assert peer.seen.connections == (100 if "--close" in more else 2)
    assert record["plan"]["generate"]["http2"] == {
        "stream_window": 6 * 2**20,
        "connection_window": 15 * 2**20,
    }


@pytest.mark.parametrize("body", [(), ("--body", "x" * 2_000)])
def test_what_goaway_excludes_is_asked_again_on_another_connection(
    trueload: Trueload, body: tuple[str, ...]
) -> None:
    def answers(number: int, stream: int) -> bytes:
        if number == 10:
            return answer(stream) + frame(GOAWAY, 0, 0, stream.to_bytes(4, "big") + bytes(4))
        return answer(stream) if number < 10 else b""

    peer = Http2Peer(answers)
    record = measured(trueload, peer, "--streams", "8", *body)
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (100, {})
    assert peer.seen.connections >= 10
    assert record["counts"]["stale"] > 0


def push(_number: int, stream: int) -> bytes:
    """A PUSH_PROMISE."""
    return frame(5, END_HEADERS, stream, (2).to_bytes(4, "big") + b"\x82")


def elsewhere(_number: int, stream: int) -> bytes:
    """An answer on a stream that the client has not opened."""
    return answer(stream + 40)


def of_the_server(_number: int, _stream: int) -> bytes:
    """An answer on a stream with a server's number."""
    return answer(2)


def data_elsewhere(_number: int, stream: int) -> bytes:
    """DATA on a stream that the client has not opened."""
    return frame(DATA, 0, stream + 40, b"x")


@pytest.mark.parametrize("answers", [push, elsewhere, of_the_server, data_elsewhere])
def test_what_comes_in_place_of_an_answer_is_charged_to_the_request_in_flight(
    trueload: Trueload, answers: Callable[[int, int], bytes]
) -> None:
    peer = Http2Peer(answers)
    one = ("--requests", "1", "-c", "1", "--streams", "1")
    counts = measured(trueload, peer, *one)["counts"]
    assert (counts["issued"], counts["failed"]) == (1, {"unsolicited": 1})
    assert (peer.seen.requests, counts["scheduled"]) == (1, 1)


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_a_server_that_ignores_the_window_is_found_out(trueload: Trueload, driver: str) -> None:
    def answers(_number: int, stream: int) -> bytes:
        bodies = 64 * frame(DATA, 0, stream, bytes(16_384))
        head = frame(HEADERS, END_HEADERS, stream, OK)
        return head + bodies + frame(DATA, END_STREAM, stream, b"x")

    window = ("--window", "65535", "--connection-window", "65535")
    one = ("--requests", "10", "-c", "1", "--streams", "1", "--driver", driver)
    counts = measured(trueload, Http2Peer(answers), *one, *window)["counts"]
    # What comes so slowly that each part is read alone may have kept to the windows.
    assert set(counts["failed"]) == {"h2.flow"}, counts


def test_an_answer_shorter_than_its_length_is_no_question_of_tls(trueload: Trueload) -> None:
    length = b"\x0f\x0d\x0210"  # content-length: 10, with the name from the static table

    def answers(_number: int, stream: int) -> bytes:
        head = frame(HEADERS, END_HEADERS, stream, OK + length)
        return head + frame(DATA, END_STREAM, stream, b"hello")

    record = measured(trueload, Http2Peer(answers))
    assert record["counts"]["failed"] == {"framing": 100}
    (why,) = [check["why"] for check in record["checks"] if check["name"] == "errors"]
    assert "https://" not in why


@pytest.mark.parametrize("code", [0, 8])
def test_a_reset_in_mid_body_is_a_failure_whatever_its_code(trueload: Trueload, code: int) -> None:
    def answers(_: int, stream: int) -> bytes:
        begun = frame(HEADERS, END_HEADERS, stream, OK) + frame(DATA, 0, stream, b"half")
        return begun + frame(RST_STREAM, 0, stream, code.to_bytes(4, "big"))

    peer = Http2Peer(answers)
    record = measured(trueload, peer)
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (0, {"h2.stream": 100})
    assert peer.seen.connections == 2, "the connections live"


def test_a_stream_that_never_ends_is_out_of_time_once_and_reset(trueload: Trueload) -> None:
    def answers(_: int, stream: int) -> bytes:
        return frame(HEADERS, END_HEADERS, stream, OK)

    peer = Http2Peer(answers)
    record = measured(trueload, peer, "--requests", "20", "--timeout", "200ms")
    assert record["counts"]["failed"] == {"timeout.total": 20}
    assert (peer.seen.connections, peer.seen.resets) == (2, 20)


def test_a_server_that_permits_one_stream_is_obeyed_and_the_wait_counts(
    trueload: Trueload,
) -> None:
    peer = Http2Peer(lambda _, stream: answer(stream), begins=settings(streams=1))
    record = measured(trueload, peer)
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (100, {})


def test_a_server_that_permits_no_stream_lets_all_run_out_of_time(trueload: Trueload) -> None:
    peer = Http2Peer(lambda _, stream: answer(stream), begins=settings(streams=0))
    record = measured(trueload, peer, "--requests", "10", "--timeout", "200ms")
    assert record["counts"]["failed"] == {"timeout.first_byte": 10}
    assert peer.seen.requests == 0


def test_a_body_is_sent_as_far_as_the_window_goes(trueload: Trueload) -> None:
    def answers(_: int, stream: int) -> bytes:
        return answer(stream)

    peer = Http2Peer(answers, begins=settings(window=1000))
    words = ("--requests", "10", "--body", "x" * 1000, "--method", "POST")
    record = measured(trueload, peer, *words)
    assert record["counts"]["ok"] == 10
    assert peer.seen.body_bytes == 10_000


def test_the_server_is_told_how_much_it_may_remember_of_headers(trueload: Trueload) -> None:
    peer = Http2Peer(lambda _, stream: answer(stream))
    record = measured(trueload, peer, "--header-table-size", "64KiB")
    assert (record["counts"]["ok"], peer.seen.header_table) == (100, 65_536)
    assert record["plan"]["generate"]["http2"]["header_table_bytes"] == 65_536


OF_A_WINDOW = ("-d", "300ms", "--warmup", "0")
STREAMS = ("--http", "2", "-c", "2", "--streams", "5", *OF_A_WINDOW, "--json", "-")


def test_a_limit_of_streams_is_told_with_what_it_costs(trueload: Trueload) -> None:
    server = start_server(trueload, "--http", "2", "--max-streams", "1")
    record = trueload.run("http", server.url, *STREAMS).json()
    found = record["http2"]
    assert found["max_concurrent_streams"] == {"least": 1, "most": 1}
    assert (found["connections"], found["http1"], found["resets"]) == (2, 0, 0)
    assert found["streams"] <= 2.1, "one on each connection, but for the edges of the window"
    assert found["waited"]["stream"] >= 0.7, "four of five wait"
    assert found["headers_out"]["plain"] > found["headers_out"]["coded"] > 0
    checks = statuses(record)
    names = ("protocol", "streams", "flow-control", "goaway")
    assert [checks[name] for name in names] == ["pass", "warn", "pass", "pass"]


def test_a_server_that_ends_connections_is_told_by_the_requests_it_gave_back(
    trueload: Trueload,
) -> None:
    server = start_server(trueload, "--http", "2", "--goaway-after", "7")
    done = trueload.run("http", server.url, *STREAMS)
    record = done.json()
    assert record["counts"]["failed"] == {}
    assert record["http2"]["goaways"] >= 1
    assert 1 <= record["http2"]["returned"] <= record["counts"]["stale"]
    assert statuses(record)["goaway"] == "warn"
    assert "by the server (GOAWAY)" in done.err, "for people"


def test_a_window_that_is_never_opened_is_the_servers(trueload: Trueload) -> None:
    server = start_server(trueload, "--http", "2", "--stall-window")
    body = ("--method", "POST", "--body", "x" * 100_000, "--timeout", "200ms")
    record = trueload.run("http", server.url, *STREAMS, *body).json()
    assert set(record["counts"]["failed"]) == {"timeout.total"}
    assert record["http2"]["resets"] == record["counts"]["failed"]["timeout.total"]
    check = next(each for each in record["checks"] if each["name"] == "flow-control")
    assert check["status"] == "warn"
    assert "the server's window" in check["why"]


def closes_at_once(connection: socket.socket) -> None:
    connection.recv(1000)  # all of it, or its kernel sends a reset


def speaks_http1(connection: socket.socket) -> None:
    connection.recv(1000)  # all of it, or its kernel sends a reset
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def stay_silent(connection: socket.socket) -> None:
    while connection.recv(1000):
        pass


@pytest.mark.parametrize(
    ("behaves", "error"),
    [
        (closes_at_once, "closed the connection before it sent the SETTINGS"),
        (speaks_http1, "h2.protocol: the peer answers in HTTP/1"),
        (stay_silent, "timeout.first_byte: the SETTINGS that HTTP/2 begins with did not come"),
    ],
)
def test_a_server_that_does_not_speak_it_is_told_with_a_hint(
    trueload: Trueload, behaves: Any, error: str
) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            connection, _ = server.accept()
            with connection:
                behaves(connection)

    threading.Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{server.getsockname()[1]}/"
    done = trueload.run("http", url, *FEW, "-c", "1", "--timeout", "300ms")
    assert done.code == 3, done
    assert error in done.err
    assert "does not speak HTTP/2 to us; try --http 1.1" in done.err


def test_over_tls_another_protocol_than_h2_is_refused(trueload: Trueload) -> None:
    server = start_server(trueload, "--tls")
    url = server.url.replace("http://", "https://")
    done = trueload.run("http", url, *FEW, "--insecure")
    assert done.code == 3, done
    assert "tls.alpn" in done.err
    assert set(done.json()["counts"]["failed"]) == {"tls.alpn"}


AUTO = ("--http", "auto", "--insecure")


@pytest.mark.parametrize("server", [("--http", "2"), ()])
def test_a_connection_speaks_what_its_server_chose(
    trueload: Trueload, server: tuple[str, ...]
) -> None:
    url = start_server(trueload, "--tls", *server).url.replace("http://", "https://")
    record = trueload.run("http", url + "/{counter}", *FEW, *AUTO).json()
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (0, {"status": 100})
    found = record["http2"]
    assert (found["connections"], found["http1"]) == ((2, 0) if server else (0, 2))
    assert statuses(record)["protocol"] == "pass"


@pytest.mark.parametrize("more", [(), ("--close", "--streams", "1"), ("--rate", "1k/s")])
def test_of_two_connections_each_may_speak_another_version(
    trueload: Trueload, more: tuple[str, ...]
) -> None:
    peer = Http2Peer(lambda _, stream: answer(stream), secure=(offering("h2"), offering()))
    record = measured(trueload, peer, *AUTO, *more)
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (100, {})
    seen = peer.seen
    assert (seen.requests + seen.over_http1, seen.pipelined) == (100, False)
    assert min(seen.requests, seen.over_http1) > 0
    found = record["http2"]
    both = (50, 50) if "--close" in more else (1, 1)
    assert (found["connections"], found["http1"]) == both


def offering(*protocols: str) -> ssl.SSLContext:
    """A server's TLS context that offers these protocols by ALPN."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


@pytest.mark.parametrize(
    ("flags", "error", "hint"),
    [
        (("--streams", "4"), "--streams needs HTTP/2, but requests go over HTTP/1.1", "--http 2"),
        (("--http", "1.1", "--window", "1MiB"), "--window needs HTTP/2", "--http 2"),
        (("--header-table-size", "0"), "--header-table-size needs HTTP/2", "--http 2"),
        (("--http", "2", "--header-table-size", "2MiB"), "is not from 0 to 1 MiB", "--help"),
        (("--http", "auto"), "--http auto is for https://", "use --http 2"),
        (("--http", "2", "--streams", "0"), "'0' is not from 1 to", "--help"),
        (("--http", "2", "--pipeline", "4"), "--pipeline is for HTTP/1.1", "--streams N"),
        (("--http", "2", "--streams", "4", "--close"), "cannot be used together", "keep one"),
        (("--http", "2", "--window", "0"), "'0' is not from 1 B", "--help"),
        (("--http", "2", "--connection-window", "1KiB"), "is not from 65,535 B", "--help"),
        (("--http", "2", "--window", "firefox"), "neither a size nor rfc", "--help"),
        (("-m", "4"), "'4' is not a method", "--http 2 --streams 4"),
    ],
)
def test_what_does_not_go_together_is_one_line_and_a_hint(
    trueload: Trueload, flags: tuple[str, ...], error: str, hint: str
) -> None:
    done = trueload.run("http", "http://127.0.0.1:1/", *flags)
    assert done.code == 2, done
    lines = done.err.strip().splitlines()
    assert (len(lines), error in lines[0], hint in lines[1]) == (2, True, True), done


@pytest.mark.parametrize(
    ("flags", "offered"),
    [
        (("--http", "2"), ((), ())),
        (("--http", "2", "--insecure"), (("h2",), ())),
        (("--http", "auto", "--insecure"), (("h2",), ("http/1.1",))),
    ],
)
def test_several_origins_each_get_their_share_over_the_version_that_was_asked_for(
    trueload: Trueload,
    tmp_path: Path,
    flags: tuple[str, ...],
    offered: tuple[tuple[str, ...], ...],
) -> None:
    peers = [
        Http2Peer(lambda _, stream: answer(stream), secure=(offering(*names),) if names else ())
        for names in offered
    ]
    file = write(tmp_path, *({"url": peer.url, "weight": 3 - n} for n, peer in enumerate(peers)))
    load = ("--requests", "100", "-c", "5", "--threads", "2", "--json", "-")
    record = trueload.run("http", "--targets", file, *flags, *load).json()
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (100, {})
    assert [peer.seen.connections for peer in peers] == [3, 2]
    assert [each["counts"]["ok"] for each in record["origins"]] == [60, 40]
    asked = [peer.seen.requests + peer.seen.over_http1 for peer in peers]
    assert asked == [60, 40]
    over_http1 = 2 if ("http/1.1",) in offered else 0
    assert record["http2"]["connections"] + over_http1 == 5


def test_what_one_origin_cannot_have_is_refused(trueload: Trueload, tmp_path: Path) -> None:
    file = write(tmp_path, {"url": "https://127.0.0.1:1/"}, {"url": "http://127.0.0.1:2/"})
    done = trueload.run("http", "--targets", file, "--insecure", "--http=auto")
    assert (done.code, done.out) == (2, "")
    assert "--http auto is for https://" in done.err.splitlines()[0]


@pytest.mark.parametrize("more", [(), ("--http", "2"), ("--targets", "none.jsonl")])
def test_the_upgrade_from_http_1_is_no_option_any_longer(
    trueload: Trueload, more: tuple[str, ...]
) -> None:
    done = trueload.run("http", "http://127.0.0.1:1/", "--h2c-upgrade", *more)
    assert (done.code, done.out) == (2, ""), done
    error, hint = done.err.splitlines()
    assert error == "error: trueload http has no option --h2c-upgrade"
    assert hint.startswith("hint: use --http 2: ")
    assert "prior knowledge" in hint
    assert "ALPN" in hint
