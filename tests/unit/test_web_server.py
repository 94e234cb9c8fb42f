"""The server of the page against whoever is on this machine, on real sockets."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from page_viewer import Viewer, ask, connected, get, parted
from trueload.errors import UserError
from trueload.web import server as served
from trueload.web.server import CONNECTIONS_MAX, VIEWERS_MAX, Answer, PageServer
from waiting import wait_until

FILES = {"": Answer(HTTPStatus.OK, b"<p>the page", served.HTML)}


@pytest.fixture
def server(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[PageServer]:
    """A server that ends in the end, and has said nothing."""
    monkeypatch.setattr(served, "BETWEEN_S", 0.001)
    made = PageServer(0, FILES)
    yield made
    made.close()
    assert not made.thread.is_alive()
    assert capfd.readouterr() == ("", "")


def token_of(server: PageServer) -> str:
    return urlsplit(server.url).path.strip("/")


def filled(server: PageServer, raw: str) -> bytes:
    """Fill port and token into a request; a line of it ends at each |."""
    text = raw.replace("PORT", str(server.port)).replace("TOKEN", token_of(server))
    return text.replace("|", "\r\n").encode("latin-1")


GOOD = "GET /TOKEN/ HTTP/1.1|Host: 127.0.0.1:PORT||"
HERE = "Host: 127.0.0.1:PORT||"
REQUESTS = [
    (GOOD, 200),
    ("GET /TOKEN/ HTTP/1.1|Host: localhost:PORT||", 200),
    ("GET /TOKEN/ HTTP/1.1|Host: LocalHost:PORT||", 200),
    ("GET /TOKEN/ HTTP/1.1|Host: [::1]:PORT||", 200),
    ("GET /TOKEN/ HTTP/1.0|Host: 127.0.0.1:PORT||", 200),
    # Names that other sites make lead here.
    ("GET /TOKEN/ HTTP/1.1|Host: evil.example||", 403),
    ("GET /TOKEN/ HTTP/1.1|Host: evil.example:PORT||", 403),
    ("GET /TOKEN/ HTTP/1.1|Host: 127.0.0.1.evil.example:PORT||", 403),
    ("GET /TOKEN/ HTTP/1.1|Host: evil.example@127.0.0.1:PORT||", 403),
    ("GET /TOKEN/ HTTP/1.1|Host: 127.0.0.1||", 403),
    ("GET /TOKEN/ HTTP/1.1|Host: 127.0.0.1:1||", 403),
    ("GET /TOKEN/ HTTP/1.1|Host: localhost.:PORT||", 403),
    ("GET /TOKEN/ HTTP/1.1|Host: ||", 403),
    ("GET /TOKEN/ HTTP/1.0||", 403),
    ("GET /TOKEN/ HTTP/1.1||", 400),
    ("GET /TOKEN/ HTTP/1.1|Host: 127.0.0.1:PORT|Host: evil.example||", 400),
    ("GET http://127.0.0.1:PORT/TOKEN/ HTTP/1.1|Host: evil.example||", 403),
    # The token.
    ("GET / HTTP/1.1|" + HERE, 404),
    ("GET /TOKEN HTTP/1.1|" + HERE, 404),
    ("GET /TOKENx/ HTTP/1.1|" + HERE, 404),
    ("GET /xTOKEN/ HTTP/1.1|" + HERE, 404),
    ("GET //TOKEN/ HTTP/1.1|" + HERE, 404),
    ("GET /?TOKEN/ HTTP/1.1|" + HERE, 404),
    ("GET /events HTTP/1.1|" + HERE, 404),
    ("GET /guess/events HTTP/1.1|Referer: http://127.0.0.1:PORT/TOKEN/|" + HERE, 404),
    ("GET /gu\u00e9ss/ HTTP/1.1|" + HERE, 400),
    ("GET http://127.0.0.1:PORT/TOKEN/ HTTP/1.1|" + HERE, 404),
    ("GET * HTTP/1.1|" + HERE, 404),
    # Files that are not there.
    ("GET /TOKEN/report HTTP/1.1|" + HERE, 404),
    ("GET /TOKEN/server.py HTTP/1.1|" + HERE, 404),
    ("GET /TOKEN/../server.py HTTP/1.1|" + HERE, 404),
    ("GET /TOKEN/%2e%2e/server.py HTTP/1.1|" + HERE, 404),
    ("GET /TOKEN//etc/passwd HTTP/1.1|" + HERE, 404),
    # Other methods, with the token and without.
    ("HEAD /TOKEN/ HTTP/1.1|" + HERE, 405),
    ("POST /TOKEN/ HTTP/1.1|Content-Length: 5|Host: 127.0.0.1:PORT||hello", 405),
    ("POST /TOKEN/events HTTP/1.1|Transfer-Encoding: chunked|" + HERE, 405),
    ("PUT / HTTP/1.1|" + HERE, 405),
    ("DELETE /TOKEN/report HTTP/1.1|" + HERE, 405),
    ("OPTIONS * HTTP/1.1|" + HERE, 405),
    ("CONNECT 127.0.0.1:PORT HTTP/1.1|" + HERE, 405),
    ("get /TOKEN/ HTTP/1.1|" + HERE, 405),
    # Heads that are too long, or none.
    ("GET /TOKEN/ HTTP/1.1|A: " + "x" * 20_000 + "|" + HERE, 431),
    ("GET /TOKEN/ HTTP/1.1|" + "A: x|" * 3_000 + HERE, 431),
    ("GET /" + "x" * 100_000 + " HTTP/1.1|" + HERE, 431),
    ("GET /TOKEN/ HTTP/1.1|A: " + "x" * 100_000, 431),
    ("GET /TOKEN/ HTTP/1.1|Host : 127.0.0.1:PORT||", 400),
    ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03|", 400),
    ("hello||", 400),
]


@pytest.mark.parametrize(("raw", "status"), REQUESTS)
def test_each_request_gets_its_status_and_the_next_one_the_page(
    server: PageServer, raw: str, status: int
) -> None:
    found, headers, body = parted(ask(server.port, filled(server, raw)))
    assert found == status, body
    assert token_of(server).encode() not in body
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; "), policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert not any(name.startswith("Access-Control") for name in headers)
    assert (headers.get("Allow") == "GET") == (status == 405)
    if status == 200:
        assert (headers["Content-Type"], body) == (served.HTML, b"<p>the page")
    else:
        is_head = raw.startswith("HEAD")
        assert not (is_head and body)
        assert body.decode().endswith("" if is_head else ".\n"), "it is told in a sentence"
        assert headers["Content-Type"] == served.TEXT
    assert get(server.url)[0] == 200


@pytest.mark.parametrize(
    ("raw", "ends", "status"),
    [
        ("GET /TOKEN/ HTTP/1.1|Host: 127.0.0.1:PO", True, 400),
        ("GET /TOKEN/ HTTP/1.1|Host: 127.0.0.1:PO", False, 408),
        ("", False, 408),
    ],
)
def test_a_head_that_never_comes_to_its_end_is_given_up(
    server: PageServer, monkeypatch: pytest.MonkeyPatch, raw: str, ends: bool, status: int
) -> None:
    monkeypatch.setattr(served, "HEAD_S", 0.05)
    assert parted(ask(server.port, filled(server, raw), ends=ends))[0] == status
    assert ask(server.port, b"", ends=True) == b"", "whoever asks nothing is told nothing"
    monkeypatch.undo()
    assert get(server.url)[0] == 200


def test_a_head_in_pieces_is_read_and_its_time_does_not_begin_anew_with_each(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sent(count: int) -> bytes:
        with connected(server.port) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answer = b""
            for byte in filled(server, GOOD)[:count]:
                connection.sendall(bytes([byte]))
            while more := connection.recv(65_536):
                answer += more
            return answer

    assert parted(sent(10_000))[0] == 200
    monkeypatch.setattr(served, "HEAD_S", 0.05)
    assert parted(sent(20))[0] == 408


def test_the_ninth_viewer_is_told_why_and_gets_the_place_of_one_that_goes(
    server: PageServer,
) -> None:
    viewers = [Viewer(server.url) for _ in range(VIEWERS_MAX)]
    server.publish(b'data: {"a": 1}\n\n')
    assert [viewer.state() for viewer in viewers] == [{"a": 1}] * VIEWERS_MAX
    ninth = Viewer(server.url)
    assert ninth.status == 503
    assert ninth.rest() == served.CROWDED.body
    assert get(server.url)[0] == 200, "the page itself tells why it shows nothing"
    viewers.pop().close()
    wait_until(lambda: server.viewers == VIEWERS_MAX - 1, "its place is free")
    late = Viewer(server.url)
    assert late.status == 200
    assert late.state() == {"a": 1}, "the state of now, not the next one"
    for viewer in (*viewers, ninth, late):
        viewer.close()


def test_a_viewer_that_reads_nothing_misses_states_and_is_dropped_while_others_see_all(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "STALLED_S", 0.5)
    slow, quick = Viewer(server.url), Viewer(server.url)
    wait_until(lambda: server.viewers == 2, "both watch")
    padding = "x" * 400_000
    for number in range(60):
        server.publish(f'data: ["{padding}", {number}]\n\n'.encode())
        state = quick.state()
        while state[1] != number:
            state = quick.state()
    wait_until(lambda: server.viewers == 1, "the slow one is dropped")
    assert slow.rest().count(b"data: ") < 60
    slow.close()
    quick.close()
    wait_until(lambda: server.viewers == 0, "both have gone")


def test_many_silent_connections_delay_a_viewer_for_a_limited_time(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HEAD_S", "STALLED_S"):
        monkeypatch.setattr(served, name, 0.2)
    held = [connected(server.port) for _ in range(2 * CONNECTIONS_MAX)]
    try:
        assert get(server.url)[0] == 200
    finally:
        for connection in held:
            connection.close()


def test_a_report_is_handed_out_to_all_who_watch_and_only_then_it_goes_on(
    server: PageServer,
) -> None:
    viewer = Viewer(server.url)
    wait_until(lambda: server.viewers == 1, "it watches")
    fetched: list[tuple[int, dict[str, str], bytes]] = []

    def fetch() -> bool:
        if not fetched:
            assert viewer.state() == {"end": "report"}
            viewer.close()
            fetched.append(get(server.url, "report"))
        return False

    server.hand_out(b'data: {"end": "report"}\n\n', b"<h1>report", fetch)
    [(status, headers, body)] = fetched
    assert (status, body) == (200, b"<h1>report")
    assert "script-src" not in headers["Content-Security-Policy"]
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")


@pytest.mark.parametrize("stopped", [True, False])
def test_a_viewer_that_never_fetches_the_report_is_waited_for_a_limited_time(
    server: PageServer, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    monkeypatch.setattr(served, "LINGER_S", 60.0 if stopped else 0.1)
    viewer = Viewer(server.url)
    wait_until(lambda: server.viewers == 1, "it watches")
    server.hand_out(b"data: 1\n\n", b"report", lambda: stopped)
    viewer.close()


def test_without_a_viewer_nothing_is_waited_for(server: PageServer) -> None:
    server.hand_out(b"data: 1\n\n", b"report", lambda: False)


def test_whatever_is_published_after_the_end_is_nobodys(server: PageServer) -> None:
    server.close()
    server.publish(b"data: 1\n\n")
    server.keep_to(os.sched_getaffinity(0))
    server.close()


def test_it_ends_while_viewers_and_silent_connections_are_there() -> None:
    made = PageServer(0, FILES)
    viewer, silent = Viewer(made.url), connected(made.port)
    made.close()
    assert not made.thread.is_alive()
    assert viewer.rest() == b""
    viewer.close()
    silent.close()


def test_only_this_machine_can_connect_and_each_run_has_a_token_of_its_own(
    server: PageServer,
) -> None:
    other = PageServer(0, FILES)
    other.close()
    assert server.url.startswith(f"http://127.0.0.1:{server.port}/")
    assert token_of(server) != token_of(other)
    assert len(token_of(server)) >= 32
    listening = [
        line.split()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()
        if line.split()[1].endswith(f":{server.port:04X}") and line.split()[3] == "0A"
    ]
    assert listening == [f"0100007F:{server.port:04X}"]


def test_a_port_that_is_taken_is_told_with_what_to_do(server: PageServer) -> None:
    with pytest.raises(UserError) as error:
        PageServer(server.port, FILES)
    assert error.value.message == f"--web {server.port}: {os.strerror(errno.EADDRINUSE)}"
    assert error.value.hint == "name another port, or none for a free one"


def test_the_thread_runs_on_the_cpus_it_is_told(server: PageServer) -> None:
    one = {min(os.sched_getaffinity(0))}
    server.keep_to(one)
    assert server.thread.native_id is not None
    assert os.sched_getaffinity(server.thread.native_id) == one
    server.keep_to(os.sched_getaffinity(0))
