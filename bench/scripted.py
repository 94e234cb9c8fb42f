"""A small server whose delays are known: each request's follows from its number. Run as a process.

    python scripted.py PORT '{"least_s": 0.05, "most_s": 0.15, …}'

`delay_s` is what both the server and the truth are computed from. A sleeping process is woken late
by tenths of a ms, which would be taken for an error of the generators: so the server sleeps only
until shortly before something is due, and then looks at the clock until it is.
"""

from __future__ import annotations

import asyncio
import gc
import json
import selectors
import sys
import time
from dataclasses import dataclass
from random import Random

# Longer than a wake takes; the kernel's millisecond, to which waits are rounded, is in it.
LOOK_S = 0.0015
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(frozen=True)
class Delays:
    """How long requests take, in s."""

    least_s: float
    most_s: float
    stall_every: int = 0
    """One request in so many takes `stall_s`; 0 for none."""
    stall_s: float = 1.0
    freeze_at_s: float = 0.0
    """Since the first request: the whole server does nothing for `freeze_s`."""
    freeze_s: float = 0.0

    def delay_s(self, number: int) -> float:
        """Of the request that came as this number, from 0."""
        if self.stall_every and number % self.stall_every == self.stall_every // 2:
            return self.stall_s
        return Random(number).uniform(self.least_s, self.most_s)

    def done_s(self, number: int, at_s: float) -> float:
        """When a request that came at `at_s` since the first is answered."""
        thawed_s = self.freeze_at_s + self.freeze_s
        frozen = self.freeze_s > 0
        if frozen and self.freeze_at_s <= at_s < thawed_s:
            at_s = thawed_s
        done_s = at_s + self.delay_s(number)
        if frozen and self.freeze_at_s <= done_s < thawed_s:
            return thawed_s
        return done_s


class _Server:
    def __init__(self, delays: Delays) -> None:
        self.delays = delays
        self.seen = 0

    def next_delay_s(self) -> float:
        if self.seen == 0 and self.delays.freeze_s:
            loop = asyncio.get_running_loop()
            loop.call_later(self.delays.freeze_at_s, time.sleep, self.delays.freeze_s)
        self.seen += 1
        return self.delays.delay_s(self.seen - 1)


class _Connection(asyncio.Protocol):
    def __init__(self, server: _Server) -> None:
        self._server = server
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._head += data
        while b"\r\n\r\n" in self._head:
            self._head = self._head.partition(b"\r\n\r\n")[2]
            delay_s = self._server.next_delay_s()
            asyncio.get_running_loop().call_later(delay_s, self._transport.write, ANSWER)


async def _serve(port: int, delays: Delays) -> None:
    server = _Server(delays)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(
        lambda: _Connection(server), "127.0.0.1", port, backlog=1024
    )
    await listening.serve_forever()


class _PunctualSelector(selectors.EpollSelector):
    """Returns when a wait is over, and not some time after."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        end_s = time.monotonic() + timeout
        # To whole milliseconds downwards, because it is rounded up to them.
        ready = super().select(max(0, int((timeout - LOOK_S) * 1000)) / 1000)
        while not ready and time.monotonic() < end_s:
            ready = super().select(0)
        return ready


if __name__ == "__main__":
    gc.disable()
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(_PunctualSelector())
    ) as runner:
        runner.run(_serve(int(sys.argv[1]), Delays(**json.loads(sys.argv[2]))))
