"""HTTP/2 server: Hypercorn, based on the library h2, with a bare ASGI application.

Usage: main.py SCHEME HOST PORT CPUS.
"""

from __future__ import annotations

import sys
from typing import Any

from hypercorn.config import Config
from hypercorn.run import run

BODIES = {f"/bytes/{size}": b"x" * size for size in (1024, 65536)}


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body = BODIES.get(scope["path"])
    shown = b"not found" if body is None else body
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(shown))]
    status = 404 if body is None else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": shown})


if __name__ == "__main__":
    scheme, host, port, cpus = sys.argv[1:]
    config = Config()
    config.application_path = "main:application"
    config.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    config.backlog = 4096
    config.workers = int(cpus)
    config.keep_alive_timeout = 3600  # only the client ends a connection
    config.keep_alive_max_requests = 10**9
    config.loglevel = "ERROR"
    if scheme == "https":
        config.certfile, config.keyfile = "cert.pem", "key.pem"
        config.alpn_protocols = ["h2"]
    run(config)
