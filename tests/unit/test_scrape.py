"""The server of metrics against untrusted clients, on real sockets."""

from __future__ import annotations

import contextlib
import gzip
import re
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from trueload.metrics.exports import exporting
from trueload.metrics.options import MetricsOptions, ScrapeAt
from trueload.metrics.scrape import Handler, ScrapeOutlet
from trueload.metrics.tally import Tally
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.spec import TrialSpec

SPEC = TrialSpec(
    url="http://h/", addresses=("127.0.0.1:1",), traffic=Traffic(request=Request(host="h"))
)
TALLIES = (Tally.of(SPEC, (("trial", "1"),), (("version", "1"),), 5),)


@pytest.fixture
def outlet() -> Iterator[ScrapeOutlet]:
    made = ScrapeOutlet(ScrapeAt("127.0.0.1", 0), lambda: TALLIES, 0)
    yield made
    closed_in_the_end(made)


def closed_in_the_end(outlet: ScrapeOutlet) -> None:
    """Close the outlet, and check that its thread ends, even on a busy machine."""
    outlet.close()
    outlet.thread.join(60)
    assert not outlet.thread.is_alive()


def port_of(outlet: ScrapeOutlet) -> int:
    return int(outlet.url.rsplit(":", 1)[1].partition("/")[0])


def ask(outlet: ScrapeOutlet, raw: bytes) -> bytes:
    """Return everything that is answered to these bytes."""
    with socket.create_connection(("127.0.0.1", port_of(outlet)), timeout=30) as connection:
        connection.sendall(raw)
        answer = b""
        try:
            while more := connection.recv(65_536):
                answer += more
        except ConnectionResetError:
            pass  # it did not read the rest of a long request
        return answer


GET = b"GET /metrics HTTP/1.1\r\nHost: h\r\n"


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (GET + b"\r\n", 200),
        (b"GET /metrics?name[]=trueload_info HTTP/1.1\r\n\r\n", 200),
        (b"GET http://127.0.0.1/metrics HTTP/1.1\r\n\r\n", 200),
        (GET + b"Accept: \xff\xfe\r\n\r\n", 200),
        (GET + b"Accept: application/openmetrics-text;version=x;escaping==\r\n\r\n", None),
        (GET + b"Accept: text/plain;version=99999999999999999999.1\r\n\r\n", None),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", 405),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"GET http://[::1/metrics HTTP/1.1\r\n\r\n", None),
        (GET + b"A: 1\r\n" * 200 + b"\r\n", 431),
        (GET + b"A: " + b"x" * 100_000 + b"\r\n\r\n", 431),
    ],
)
def test_whatever_is_asked_gets_an_answer_and_the_next_one_is_served(
    raw: bytes, status: int | None, outlet: ScrapeOutlet, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = ask(outlet, raw)
    found = int(answer.split()[1])
    assert found == status or (status is None and found in (200, 500)), answer
    head, _, body = answer.partition(b"\r\n\r\n")
    if found == 200:
        assert f"Content-Length: {len(body)}".encode() in head
    assert b"trueload_info{" in ask(outlet, GET + b"\r\n")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("raw", [b"GET /metrics HTTP/2.0\r\n\r\n", b"\xff\x00\r\n\r\n", b"\r\n"])
def test_what_is_no_request_gets_no_metrics(
    raw: bytes, outlet: ScrapeOutlet, capfd: pytest.CaptureFixture[str]
) -> None:
    assert b"trueload" not in ask(outlet, raw)
    assert capfd.readouterr() == ("", "")


def test_a_scrape_has_what_is_new() -> None:
    tallies = [TALLIES]
    outlet = ScrapeOutlet(ScrapeAt("127.0.0.1", 0), lambda: tallies[-1], 0)
    first = ask(outlet, GET + b"\r\n")
    tallies.append((TALLIES[0].over(),))
    assert ask(outlet, GET + b"\r\n") != first
    closed_in_the_end(outlet)


def test_a_compressed_answer_is_given_to_whoever_takes_it(outlet: ScrapeOutlet) -> None:
    answer = ask(outlet, GET + b"Accept-Encoding: gzip\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"gzip" in head
    assert b"trueload_info{" in gzip.decompress(body)


def test_clients_that_are_silent_or_gone_hold_up_nobody(
    outlet: ScrapeOutlet, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Handler, "timeout", 0.2)
    address = ("127.0.0.1", port_of(outlet))
    held = [socket.create_connection(address) for _ in range(40)]
    for number, connection in enumerate(held):
        connection.sendall((b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\nA: ")[number % 3])
        if number % 4 == 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
    assert b"trueload_info{" in ask(outlet, GET + b"\r\n")
    for connection in held:
        with connection, contextlib.suppress(OSError):  # one was closed above
            assert connection.recv(1) == b"", "it is dropped"
    assert capfd.readouterr() == ("", "")


def test_it_ends_though_clients_hold_on_to_it() -> None:
    outlet = ScrapeOutlet(ScrapeAt("127.0.0.1", 0), lambda: TALLIES, 0)
    address = ("127.0.0.1", port_of(outlet))
    held = [socket.create_connection(address) for _ in range(8)]
    assert b"200 OK" in ask(outlet, GET + b"\r\n")
    closed_in_the_end(outlet)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    for connection in held:
        connection.close()


def test_lingering_ends_with_a_scrape_that_has_the_end_of_the_run_or_with_the_user() -> None:
    hour_ns = 3_600 * 10**9
    outlet = ScrapeOutlet(ScrapeAt("127.0.0.1", 0), lambda: TALLIES, hour_ns)
    notes: list[str] = []
    waiting = threading.Thread(target=outlet.finish, args=(lambda: False, notes.append))
    waiting.start()
    ask(outlet, b"HEAD /metrics HTTP/1.1\r\n\r\n")
    assert waiting.is_alive()
    while waiting.is_alive():
        ask(outlet, GET + b"\r\n")
    assert notes == ["waiting up to 3600 s for the last scrape"]
    outlet.finish(lambda: False, notes.append)
    assert len(notes) == 1, "all there is has been scraped"
    outlet.close()
    stopped = ScrapeOutlet(ScrapeAt("127.0.0.1", 0), lambda: TALLIES, hour_ns)
    stopped.finish(lambda: True, notes.append)
    stopped.close()


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    outlet = ScrapeOutlet(ScrapeAt("::1", 0), lambda: TALLIES, 0)
    assert outlet.url.startswith("http://[::1]:")
    outlet.close()


class Stopped:
    requested = False


def test_a_mistake_within_closes_what_was_open(free_port: int) -> None:
    notes: list[str] = []
    wanted = MetricsOptions(prometheus=ScrapeAt("127.0.0.1", free_port))

    def fail() -> None:
        with exporting(wanted, {}, Stopped(), notes.append):
            raise RuntimeError("of the run")

    with pytest.raises(RuntimeError, match="of the run"):
        fail()
    assert notes == [f"metrics at http://127.0.0.1:{free_port}/metrics"]
    socket.create_server(("127.0.0.1", free_port)).close()


def test_an_answer_that_has_begun_is_whole_when_the_outlet_has_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, closing = threading.Event(), threading.Event()

    def tallies() -> tuple[Tally, ...]:
        asked.set()
        assert closing.wait(10)
        return TALLIES

    outlet = ScrapeOutlet(ScrapeAt("127.0.0.1", 0), tallies, 0)
    close = outlet._server.server_close

    def go_on() -> None:
        close()
        threading.Timer(0, closing.set).start()

    monkeypatch.setattr(outlet._server, "server_close", go_on)
    with socket.create_connection(("127.0.0.1", port_of(outlet)), timeout=10) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert asked.wait(10)
        outlet.close()
        client.setblocking(False)  # all of it has arrived by now
        head, _, body = client.recv(1_000_000).partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    assert length is not None
    assert int(length[1]) == len(body)
