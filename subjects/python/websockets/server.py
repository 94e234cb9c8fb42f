"""WebSocket echo and broadcast on the library websockets with asyncio.

Each client has a coroutine. Broadcasts use the library's broadcast().
"""

import argparse
import asyncio
import contextlib
import http
import json
import os
import signal
import sys

from websockets.asyncio.server import Request, Response, ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

PATH = "/ws"
BACKLOG = 4096
MESSAGE_BYTES_MAX = 16 * 1024 * 1024

clients: set[ServerConnection] = set()


async def talk(client: ServerConnection) -> None:
    """Answer one client until it disconnects."""
    clients.add(client)
    try:
        with contextlib.suppress(ConnectionClosed):
            async for text in client:
                try:
                    await answer(client, json.loads(text))
                except (ValueError, LookupError, TypeError):
                    await client.close(CloseCode.INVALID_DATA)
    finally:
        clients.discard(client)


async def answer(client: ServerConnection, message: dict[str, object]) -> None:
    payload = message["payload"]
    if message["type"] == "echo":
        await client.send(json.dumps({"type": "echo", "payload": payload}))
    elif message["type"] == "broadcast":
        broadcast(clients, json.dumps({"type": "broadcast", "payload": payload}))
        count = len(clients)
        await client.send(json.dumps({"type": "broadcastResult", "payload": payload, "listenerCount": count}))


def route(client: ServerConnection, request: Request) -> Response | None:
    return None if request.path == PATH else client.respond(http.HTTPStatus.NOT_FOUND, "not found\n")


async def main(host: str, port: int) -> None:
    # Exit at once, because a closing handshake with ten thousand clients would take seconds.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    settings = {"process_request": route, "max_size": MESSAGE_BYTES_MAX, "backlog": BACKLOG}
    async with serve(talk, host, port, **settings) as server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--uvloop", action="store_true")
    chosen = parser.parse_args()
    if chosen.uvloop:
        import uvloop

        runner = uvloop.run
    else:
        runner = asyncio.run
    sys.exit(runner(main(chosen.host, chosen.port)))
