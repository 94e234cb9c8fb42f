"""A small server with known delays: each follows from the request's number. Run as a process.

    python scripted.py PORT '{"least_s": 0.05, "most_s": 0.15, …}'

`delay_s` is the source of both the server's delays and the truth. A sleeping process wakes late by
tenths of a ms, which would look like an error of the generators. So the server sleeps only until
shortly before something is due, and then polls the clock until it is.
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

# Longer than a wake-up takes; includes the millisecond to which the kernel rounds waits.
LOOK_S = 0.0015
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(frozen=True)
class Delays:
    """The delays of requests, in s."""

    least_s: float
    most_s: float
    stall_every: int = 0
    """One request in so many takes `stall_s`; 0 for none."""
    stall_s: float = 1.0
    freeze_at_s: float = 0.0
    """Since the first request: the whole server does nothing for `freeze_s`."""
    freeze_s: float = 0.0

    def delay_s(self, number: int) -> float:
        """The delay of the request with this number, from 0."""
        if self.stall_every and number % self.stall_every == self.stall_every // 2:
            return self.stall_s
        return Random(number).uniform(self.least_s, self.most_s)

    def done_s(self, number: int, at_s: float) -> float:
        """The time at which a request that came at `at_s` is answered.

        Both count from the first request.
        """
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
    """Returns at the moment a wait is over, not some time after."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        end_s = time.monotonic() + timeout
        # Round down to whole milliseconds, because the timeout is rounded up to them.
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
