"""An HTTP server that treats each connection as its script says. Run as a process.

    python scripted_http.py BEHAVIOUR [HOST PORT]

One thread does everything, so that the server uses at most one CPU and can be pinned. It prints its
port, and a second line once UNDER_LOAD requests have come. A request is identified by the number of
its connection and by its own number on it, both from 0. Only the standard library is used.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

UNDER_LOAD = 50
BODY = b"Hello, World!"
HEAD = b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\n"
OK = HEAD % b"200 OK" + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
NOT_FOUND = HEAD % b"404 Not Found" + b"Content-Length: 0\r\n\r\n"
# Chunks of one byte: cheap to send, expensive to read.
CRUMBS = HEAD % b"200 OK" + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 40_000
CRUMBS += b"0\r\n\r\n"


@dataclass(frozen=True)
class Behaviour:
    """The way in which a server treats its clients."""

    delay_s: Callable[[int, int], float | None]
    """By connection and request: how late the answer comes; None for never."""
    answer: bytes = OK
    work: int = 0
    """Numbers to add up for each answer, so that the server is busier than its client."""


BEHAVIOURS = {
    "honest": Behaviour(lambda _, __: 0.0),
    "hard-working": Behaviour(lambda _, __: 0.0, work=5_000),
    "slow": Behaviour(lambda _, __: 0.02),
    "very slow": Behaviour(lambda _, __: 0.1),
    "two speeds": Behaviour(lambda _, request: 0.03 if request % 2 else 0.001),
    "favours one in four": Behaviour(lambda connection, _: 0.05 if connection % 4 else 0.0),
    "ignores the first": Behaviour(lambda connection, _: 0.002 if connection else None),
    "ignores half": Behaviour(lambda connection, _: 0.002 if connection % 2 else None),
    "crumbles": Behaviour(lambda _, __: 0.0, CRUMBS),
}


class Connection(asyncio.Protocol):
    """The server's side of one connection; ``received`` counts the requests of all connections."""

    def __init__(self, behaviour: Behaviour, number: int, received: Iterator[int]) -> None:
        self._behaviour = behaviour
        self._number = number
        self._received = received
        self._requests = itertools.count()
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._pending = (self._pending + data).split(b"\r\n\r\n")
        for head in heads:
            sum(range(self._behaviour.work))
            delay_s = self._behaviour.delay_s(self._number, next(self._requests))
            if next(self._received) == UNDER_LOAD:
                print("under load", flush=True)
            answer = self._behaviour.answer if head.split(b" ")[1] == b"/" else NOT_FOUND
            if delay_s:
                asyncio.get_running_loop().call_later(delay_s, self._transport.write, answer)
            elif delay_s is not None:
                self._transport.write(answer)


async def serve(behaviour: Behaviour, host: str, port: int) -> None:
    """Listen, print the port, and serve until killed."""
    numbers, received = itertools.count(), itertools.count(1)
    listening = await asyncio.get_running_loop().create_server(
        lambda: Connection(behaviour, next(numbers), received), host, port, backlog=1024
    )
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    name, host, port = (*sys.argv[1:], "127.0.0.1", "0")[:3]
    asyncio.run(serve(BEHAVIOURS[name], host, int(port)))
