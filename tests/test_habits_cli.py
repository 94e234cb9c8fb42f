"""Command lines as users of other tools type them, against a server that treats them as servers do.

Nothing is sent in unit/test_habits.py, so this has what only a run can tell: the error of a server
that is not there, and the first line about answers that are not what was meant.
"""

from __future__ import annotations

import gzip
import shlex
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from harness import Trueload, start_server

pytestmark = pytest.mark.engine

OVER = threading.Event()
"""No request has to wait any more."""


class Server(BaseHTTPRequestHandler):
    """A server as people write them: it has a front page, an echo, a log-in and some faults."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/slow":
            OVER.wait(8)
        match path:
            case "/redir":
                self._answer(302, b"", Location="/")
            case "/401" | "/500":
                self._answer(int(path[1:]), b"no")
            case "/gzip":
                self._answer(200, gzip.compress(b"hello " * 100), **{"Content-Encoding": "gzip"})
            case "/big":
                self._answer(200, b"x" * 2_000_000)
            case "/" | "/%C3%BC/%E6%96%87":
                self._answer(200, b"hello")
            case _:
                self._answer(404, b"no such page")

    def do_POST(self) -> None:
        self._answer(200, self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def there() -> Iterator[str]:
    """The address of that server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        OVER.set()
        server.shutdown()


# Line, then its exit code, and a part of what it prints. THERE is the server, GONE a port that
# nobody listens on.
MEASURED = [
    ("http -n 1 http://THERE/", 0, "1 ok"),
    ("http THERE/ -n 10", 0, "10 ok"),
    ("THERE -n 10", 0, "10 ok"),
    ("http http://THERE/?a=1&b=2 -n 10", 0, "10 ok"),
    ("http 'http://THERE/#x' -n 10", 0, "10 ok"),
    ("http 'http://u:p@THERE/' -n 10", 0, "10 ok"),
    ("http 'http://THERE/?q={a}' -n 10", 0, "10 ok"),
    ("http 'http://THERE/ü/文' -n 10", 0, "10 ok"),
    ("http -H 'X: ü' -n 10 http://THERE/", 0, "10 ok"),
    ("http http://THERE/gzip -n 10", 0, "10 ok"),
    ("http http://THERE/big -c 2 -n 4", 0, "4 ok"),
    ("http --body-file BIG http://THERE/echo -c 4 -n 10", 0, "10 ok"),
    ("http --targets - --rate 100 -d 500ms", 0, "50 ok"),
    ("http -o x.json -n 10 http://THERE/", 0, "10 ok"),
    ("http --fail-on 'p95<10s' -n 10 http://THERE/", 1, "10 ok"),
    ("http http://THERE/redir -n 10", 4, "a redirect to /: load that URL, or use --follow"),
    ("http http://THERE/401 -n 10", 4, "mostly status 401"),
    ("http http://THERE/nosuch -n 10", 4, "mostly status 404"),
    ("http http://THERE/500 -n 10", 4, "mostly status 500"),
    ("http 'http://THERE/slow?s=8' -c 2 -n 2 --timeout 300ms", 4, "mostly timeout.first_byte"),
    ("http http://THERE/ --stream sse -n 10", 4, "does the request ask for a stream?"),
    ("http http://GONE/ -n 10", 3, "is a server listening on GONE?"),
    ("http http://localhost:PORT/ -n 10", 3, "is a server listening on localhost:PORT?"),
    ("http http://nosuchhost.invalid/ -n 10", 3, "look for a mistake in the name"),
    ("http http://münchen.invalid/ -n 10", 3, "look for a mistake in the name"),
    ("http --json /nosuch/x.json -n 10 http://THERE/", 2, "name another file"),
]


@pytest.mark.parametrize(("line", "code", "part"), MEASURED, ids=[row[0] for row in MEASURED])
def test_a_habit_does_what_it_must(
    trueload: Trueload,
    there: str,
    refusing_port: int,
    tmp_path: Path,
    line: str,
    code: int,
    part: str,
) -> None:
    (tmp_path / "big.txt").write_bytes(b"x" * 200_000)
    places = {"THERE": there, "GONE": f"127.0.0.1:{refusing_port}", "PORT": str(refusing_port)}
    for name, place in (*places.items(), ("BIG", "big.txt")):
        line, part = line.replace(name, place), part.replace(name, place)
    ended = trueload.run(*shlex.split(line), stdin=f"GET http://{there}/\n", cwd=tmp_path)
    # A few requests on a busy machine may be invalid for what else runs there.
    assert ended.code in {code, 4 if code < 2 else code}, ended
    assert part in " ".join((ended.out + ended.err).split()), ended
    assert "Traceback" not in ended.err


def test_both_ends_of_tls_are_told_apart(trueload: Trueload) -> None:
    server = start_server(trueload, "--tls")
    https = f"https://{server.host}:{server.port}/"
    unknown = trueload.run("http", https, "-n", "10")
    assert (unknown.code, "--insecure trusts anybody" in unknown.err) == (3, True), unknown
    assert "10 ok" in trueload.run("http", https, "-n", "10", "--insecure").out
    plain = trueload.run("http", https.replace("https", "http"), "-n", "10")
    assert plain.code == 4, plain
    assert "https" in plain.out, plain


def test_a_server_of_ipv6_alone_is_found_by_its_address(trueload: Trueload) -> None:
    class Six(ThreadingHTTPServer):
        address_family = socket.AF_INET6

    with Six(("::1", 0), Server) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ended = trueload.run("http", f"http://[::1]:{server.server_port}/", "-n", "10")
        assert "10 ok" in ended.out, ended
        server.shutdown()
