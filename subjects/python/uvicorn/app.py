"""A bare ASGI application for uvicorn.

It uses no framework, because uvicorn itself is measured. uvicorn adds Server and Date.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

PLAIN = b"Hello, World!"
PERF = b'{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}'
WAIT = "/wait/"
WAIT_MS_MAX = 60_000

# Brings the plain response to 192 bytes, see subjects/README.md.
PAD = b"..................................................."

Answer = tuple[int, bytes, bytes]


async def answer(path: str) -> Answer:
    """Return status, content type and body for a path."""
    if path == "/":
        return 200, b"text/plain", PLAIN
    if path == "/perf":
        return 200, b"application/json", PERF
    if path.startswith(WAIT):
        return await wait(path.removeprefix(WAIT))
    return 404, b"text/plain", b"not found"


async def wait(text: str) -> Answer:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= WAIT_MS_MAX):
        return 400, b"text/plain", b"not a number of milliseconds up to a minute"
    end = time.monotonic() + int(text) / 1000
    # uvloop counts whole milliseconds from the start of a loop iteration, so a sleep may end early.
    while (left := end - time.monotonic()) > 0:
        await asyncio.sleep(left)
    return 200, b"text/plain", b"ok"


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The application."""
    if scope["type"] != "http":
        return
    status, content_type, body = await answer(scope["path"])
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    if body is PLAIN:
        headers.append((b"x-pad", PAD))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
