"""``trueload http`` over a socket file, and ``--resolve``: the real command and real servers."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Finished, Server, Trueload

OK_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
DRIVERS = pytest.mark.parametrize("driver", ["epoll", "auto"])
FIFTY = ("--requests", "50", "-c", "4", "--json", "-")


class SocketFile:
    """A server on a socket file that sends one answer per read, and keeps what it received."""

    def __init__(self, path: Path, backlog: int = 64) -> None:
        self.path = path
        self.received = b""
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen(backlog)

    def serve(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65_536):
                self.received += data
                connection.sendall(OK_ANSWER)


@pytest.fixture
def socket_file(tmp_path: Path) -> Iterator[SocketFile]:
    server = SocketFile(tmp_path / "a b.sock", backlog=0)
    yield server
    server.listening.close()


def measure(trueload: Trueload, *words: str | Path, code: int = 0) -> Any:
    done = trueload.run("http", *words, *FIFTY)
    if code == 0:
        return done.measured()
    assert done.code == code, done
    return done.json()


def test_a_server_on_a_socket_file_is_measured_and_accounted_for(
    trueload: Trueload, socket_file: SocketFile
) -> None:
    socket_file.serve()
    url = "http://example.org/path"
    record = measure(trueload, url, "--unix", socket_file.path)
    assert record["counts"]["ok"] == 50
    assert record["connections"]["family"] == "unix"
    assert record["connections"]["address"] == f"unix:{socket_file.path}"
    assert record["plan"]["url"] == url
    assert record["server"]["source"] == "found"
    assert os.getpid() in record["server"]["pids"]
    same_host = next(check for check in record["checks"] if check["name"] == "same-host")
    assert "loopback" not in same_host["why"]
    # The kernel stamps no arrival times on a Unix socket.
    assert record["client_ns"]["receive"] is None
    share = next(check for check in record["checks"] if check["name"] == "client-share")
    assert (share["status"], "unix socket" in share["why"]) == ("n/a", True)
    assert socket_file.received.startswith(b"GET /path HTTP/1.1\r\nHost: example.org\r\n")


@DRIVERS
def test_a_full_queue_of_a_socket_file_is_waited_for(
    trueload: Trueload, socket_file: SocketFile, driver: str
) -> None:
    # With a backlog of 0 the kernel queues one connection and refuses the others for now.
    flags = ("--unix", socket_file.path, "--driver", driver, *FIFTY)
    process = trueload.start("http", "http://a/", *flags)
    select.select([socket_file.listening], [], [], 30)
    socket_file.serve()
    out, err = process.communicate(timeout=60)
    record = Finished(process.returncode, out, err).measured()
    assert record["connections"]["established"] == 4


@DRIVERS
def test_a_queue_that_stays_full_is_a_timeout(
    trueload: Trueload, socket_file: SocketFile, driver: str
) -> None:
    flags = ("--unix", socket_file.path, "--driver", driver, "--timeout", "300ms")
    record = measure(trueload, "http://a/", *flags, code=4)
    assert set(record["connections"]["failed"]) == {"connect.timeout"}
    assert record["connections"]["established"] == 1


@DRIVERS
def test_the_reference_server_listens_on_a_socket_file_and_removes_it_at_its_end(
    trueload: Trueload, tmp_path: Path, driver: str
) -> None:
    path = tmp_path / "ours.sock"
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(path))
    process = trueload.start("serve", "http", "--listen", f"unix:{path}", "--driver", driver)
    assert process.stderr is not None
    assert process.stderr.readline() == f"listening on unix:{path}\n"
    record = measure(trueload, "http://a/", "--unix", path, "--driver", driver)
    assert record["counts"]["ok"] == 50
    taken = trueload.run("serve", "http", "--listen", f"unix:{path}")
    assert taken.code == 2
    error, hint = taken.err.splitlines()
    assert error == f"error: cannot listen on unix:{path}: Address already in use (os error 98)"
    assert "--listen unix:PATH" in hint
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert "served 50 responses to 50 requests" in process.stderr.read()
    assert not path.exists()


@pytest.mark.parametrize("left_over", [False, True])
def test_a_socket_file_that_nobody_listens_on_refuses(
    trueload: Trueload, tmp_path: Path, left_over: bool
) -> None:
    path = tmp_path / "gone.sock"
    if left_over:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    done = trueload.run("http", "http://a/", "--unix", path, *FIFTY)
    assert done.code == 3
    assert done.json()["counts"]["failed"] == {"connect.refused": 50}
    assert f"hint: is a server listening on {path}?" in done.err


def test_resolve_names_the_address_of_a_host_that_has_none(
    trueload: Trueload, server: Server
) -> None:
    url = f"http://nowhere.invalid:{server.port}/"
    record = measure(trueload, url, "--resolve", f"nowhere.invalid:{server.port}:127.0.0.1")
    assert record["counts"]["ok"] == 50
    assert record["plan"]["generate"]["addresses"] == [f"127.0.0.1:{server.port}"]
    headers = record["plan"]["generate"]["request"]["headers"]
    assert headers == [["Host", f"nowhere.invalid:{server.port}"]]


@pytest.mark.parametrize(
    "flags",
    [
        ("--resolve", "a:80"),
        ("--unix", ""),
        ("--unix", "/a", "--resolve", "a:80:127.0.0.1"),
        ("--unix", "/a", "--local-address", "127.0.0.1"),
    ],
)
def test_a_mistake_in_where_to_connect_is_one_line_and_a_hint(
    trueload: Trueload, flags: tuple[str, ...]
) -> None:
    done = trueload.run("http", "http://a/", *flags)
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert error.startswith("error: --")
    assert hint.startswith("hint: ")
