"""A server that records every request it reads, so that tests count requests at the peer."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request, as the server read it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # With the default queue of 5 the kernel drops further SYNs, which are retried after a second or
    # more.
    request_queue_size = 1024


class Counting:
    """The server; it listens while its block runs.

    Answers ``answer``, and 404 if the path begins with `/missing`.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer = b"ok"
        self.coding = ""
        asked, lock, server = self.asked, threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with lock:
                    asked.append(Asked(self.command, self.path, headers, body))
                self.send_response(404 if self.path.startswith("/missing") else 200)
                self.send_header("Content-Length", str(len(server.answer)))
                if server.coding:
                    self.send_header("Content-Encoding", server.coding)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(server.answer)

            def log_message(self, *args: Any) -> None:
                pass

        for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.answer)
        self._server = _Server(("127.0.0.1", 0), Handler)

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.authority}"

    def __enter__(self) -> Counting:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
