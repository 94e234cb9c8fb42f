"""A server with log-ins, which knows what each session may ask. Tests check sessions at the peer.

`POST /login` gives a token (JSON), a number (`X-Id`) and a cookie; `GET /items` and `POST /cart`
want the token and the cookie of the same log-in. `POST /sign-in` gives the cookie, and leads to
`GET /welcome`, which gives the token and the number to the owner of a cookie. `GET /form` gives a
hidden field and a cookie, which `POST /form` wants back. Every n-th log-in fails, if so wanted.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Seen:
    """One request as the server read it, with its connection and the status of its answer."""

    connection: int
    method: str
    path: str
    body: str
    cookie: str
    status: int


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has closed its connection before its answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Sessions:
    """What the server knows and answers, whatever carries it.

    With ``fail_every`` every so many-th log-in gets 401, with ``bare_every`` one without a token.
    """

    def __init__(self, *, fail_every: int = 0, bare_every: int = 0) -> None:
        self.seen: list[Seen] = []
        self.log_ins = 0
        self._lock = threading.Lock()
        self._fail_every, self._bare_every = fail_every, bare_every

    def note(self, seen: Seen) -> None:
        """Keep a request."""
        with self._lock:
            self.seen.append(seen)

    def reply(
        self, method: str, path: str, headers: dict[str, str], body: str
    ) -> tuple[int, list[tuple[str, str]], str]:
        """Return status, headers and body of the answer to a request."""
        route, cookie = path.partition("?")[0], headers.get("Cookie", "")
        if (method, route) == ("POST", "/login"):
            return self._log_in(body)
        if (method, route) == ("POST", "/sign-in"):
            status, fields, text = self._log_in(body)
            moved = [field for field in fields if field[0] == "Set-Cookie"]
            moved.append(("Location", "/welcome"))
            return (302, moved, "") if status == 200 else (status, [], text)
        if (method, route) == ("GET", "/welcome"):
            number = cookie.removeprefix("sid=")
            return 200, [("X-Id", number)], json.dumps({"token": f"token-{number}"})
        if (method, route) == ("GET", "/form"):
            page = '<form><input name="csrf" value="f-77"></form>'
            return 200, [("Set-Cookie", "form=open; Path=/form")], page
        if (method, route) == ("POST", "/form"):
            good = body == "csrf=f-77" and cookie == "form=open"
            return (303, [("Location", "/done")], "") if good else (403, [], "no")
        number = headers.get("X-Id", "")
        own = headers.get("Authorization") == f"Bearer token-{number}"
        return (200, [], "items") if own and cookie == f"sid={number}" else (403, [], "no")

    def _log_in(self, body: str) -> tuple[int, list[tuple[str, str]], str]:
        with self._lock:
            self.log_ins += 1
            number = self.log_ins
        json.loads(body)
        if self._fail_every and number % self._fail_every == 0:
            return 401, [], "{}"
        fields = [("X-Id", str(number)), ("Set-Cookie", f"sid={number}; Path=/; HttpOnly")]
        bare = bool(self._bare_every) and number % self._bare_every == 0
        return 200, fields, json.dumps({} if bare else {"token": f"token-{number}"})

    def counted(self) -> Counter[tuple[str, str, int]]:
        """The requests by method, path without query, and status of the answer."""
        return Counter((one.method, one.path.partition("?")[0], one.status) for one in self.seen)


class SessionServer(Sessions):
    """The server over HTTP/1.1; it listens while its block runs.

    With ``close`` each answer ends its connection.
    """

    def __init__(self, *, fail_every: int = 0, bare_every: int = 0, close: bool = False) -> None:
        super().__init__(fail_every=fail_every, bare_every=bare_every)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
                status, fields, text = owner.reply(
                    self.command, self.path, dict(self.headers.items()), body
                )
                port = self.client_address[1]
                cookie = self.headers.get("Cookie", "")
                owner.note(Seen(port, self.command, self.path, body, cookie, status))
                self.send_response(status)
                for name, value in fields:
                    self.send_header(name, value)
                if close:
                    self.send_header("Connection", "close")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args: Any) -> None:
                pass

        for method in ("GET", "POST"):
            setattr(Handler, f"do_{method}", Handler.answer)
        self._server = _Server(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> SessionServer:
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
