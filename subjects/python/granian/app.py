"""The application, twice: as plain ASGI, and as RSGI, granian's own interface.

It uses no framework, because granian itself is measured. granian adds Server and Date.
"""

from __future__ import annotations

import asyncio
from typing import Any

PLAIN = b"Hello, World!"
PERF = b'{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}'
WAIT = "/wait/"
WAIT_MS_MAX = 60_000

# Brings the plain response to 192 bytes, see subjects/README.md.
PAD = "..................................................."

Answer = tuple[int, str, bytes]


async def answer(path: str) -> Answer:
    """Return status, content type and body for a path."""
    if path == "/":
        return 200, "text/plain", PLAIN
    if path == "/perf":
        return 200, "application/json", PERF
    if path.startswith(WAIT):
        return await wait(path.removeprefix(WAIT))
    return 404, "text/plain", b"not found"


async def wait(text: str) -> Answer:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= WAIT_MS_MAX):
        return 400, "text/plain", b"not a number of milliseconds up to a minute"
    await asyncio.sleep(int(text) / 1000)
    return 200, "text/plain", b"ok"


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    status, content_type, body = await answer(scope["path"])
    headers = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    if body is PLAIN:
        headers.append((b"x-pad", PAD.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def rsgi(scope: Any, protocol: Any) -> None:
    status, content_type, body = await answer(scope.path)
    headers = [("content-type", content_type), ("content-length", str(len(body)))]
    if body is PLAIN:
        headers.append(("x-pad", PAD))
    protocol.response_bytes(status, headers, body)
