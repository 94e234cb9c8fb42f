"""Attacks over HTTP/2 and UDP: a server that holds streams, and one that invents datagrams.

Both run in a thread of their own, and count what they do.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

from redteam.demands import Answer, Demand, Seen, is_close
from redteam.stage import Stage, command

# RFC 9113: the preface of a client, types of frames, and flags.
PREFACE_BYTES, HEAD_BYTES = 24, 9
HEADERS, SETTINGS, PING = 1, 4, 6
ACK, END_STREAM, END_HEADERS = 1, 1, 4
STATUS_200 = b"\x88"  # RFC 7541: entry 8 of the static table
MAX_CONCURRENT_STREAMS, STREAMS_MOST = 3, 1_000


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame of HTTP/2."""
    return struct.pack("!IBBI", len(payload), kind, flags, stream)[1:] + payload


@dataclass(frozen=True)
class Holding:
    """Which streams are held: `at_once` of them at any time, for so long each, and one in so many
    is slow by chance."""

    held_s: float = 0.0
    at_once: int = 0
    takes_s: float = 0.04
    chance: float = 0.0
    slow_s: float = 0.0


class HoldingServer(asyncio.Protocol):
    """One connection of a server that answers each stream after a time, with no content."""

    held = 0
    held_s = 0.0
    chance = random.Random(53)
    asked_s: ClassVar[list[float]] = []
    """When the first and the last request came."""

    def __init__(self, how: Holding) -> None:
        self._how, self._left = how, bytearray()
        self._greeted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the settings."""
        assert isinstance(transport, asyncio.Transport)
        self._peer = transport
        settings = struct.pack("!HI", MAX_CONCURRENT_STREAMS, STREAMS_MOST)
        transport.write(frame(SETTINGS, 0, 0, settings))

    def data_received(self, data: bytes) -> None:
        """Take the frames that are whole."""
        self._left += data
        if not self._greeted and len(self._left) >= PREFACE_BYTES:
            del self._left[:PREFACE_BYTES]
            self._greeted = True
        while self._greeted and len(self._left) >= HEAD_BYTES:
            end = HEAD_BYTES + int.from_bytes(self._left[:3])
            if len(self._left) < end:
                return
            kind, flags, stream = struct.unpack("!BBI", self._left[3:HEAD_BYTES])
            self._take(kind, flags, stream, bytes(self._left[HEAD_BYTES:end]))
            del self._left[:end]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == HEADERS:
            self.asked_s[1:] = [time.monotonic()]
            asyncio.get_running_loop().call_later(self._service_s(), self._answer, stream)
        elif kind in (SETTINGS, PING) and not flags & ACK:
            self._peer.write(frame(kind, ACK, 0, payload if kind == PING else b""))

    def _service_s(self) -> float:
        kind, how = type(self), self._how
        if kind.held < how.at_once:
            kind.held += 1
            asyncio.get_running_loop().call_later(how.held_s, self._release)
            return how.held_s
        return how.slow_s if self.chance.random() < how.chance else how.takes_s

    def _release(self) -> None:
        kind = type(self)
        kind.held -= 1
        kind.held_s += self._how.held_s

    def _answer(self, stream: int) -> None:
        if not self._peer.is_closing():
            self._peer.write(frame(HEADERS, END_STREAM | END_HEADERS, stream, STATUS_200))


@contextmanager
def holding_server(how: Holding) -> Iterator[str]:
    """Run the server in a thread; yield its URL."""
    HoldingServer.held, HoldingServer.held_s = 0, 0.0
    HoldingServer.asked_s[:] = []
    loop, ready = asyncio.new_event_loop(), threading.Event()
    ports: list[int] = []

    async def serve() -> None:
        server = await loop.create_server(lambda: HoldingServer(how), "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()

    def run() -> None:
        loop.create_task(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield f"http://127.0.0.1:{ports[0]}/"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass(frozen=True)
class Held:
    """`trueload http --http 2` against that server."""

    how: Holding
    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run it."""
        with (
            holding_server(self.how) as url,
            command(stage, "http", url, "--no-save", *self.flags.split()) as running,
        ):
            seen = running.seen()
        first_s, last_s = HoldingServer.asked_s
        return replace(seen, others={"held": HoldingServer.held_s / (last_s - first_s)})


def held_places(places: int) -> Demand:
    """Tell which part of the places in flight the server held, by its own count."""

    def demand(seen: Seen) -> Answer:
        return Answer(True, f"{seen.others['held'] / places:.1%} of the places held")

    return demand


class EchoServer:
    """A UDP echo server that answers every so many-th datagram twice, or invents one beside it."""

    def __init__(self, invents_every: int = 0, doubles_every: int = 0) -> None:
        self.asked = self.invented = self.doubled = 0
        self._invents_every, self._doubles_every = invents_every, doubles_every
        self._chance = random.Random(53)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> EchoServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            data, peer = self._socket.recvfrom(65_536)
            if not data:
                return
            self.asked += 1
            self._socket.sendto(data, peer)
            if self._invents_every and self.asked % self._invents_every == 0:
                self.invented += 1
                self._socket.sendto(self._chance.randbytes(len(data)), peer)
            if self._doubles_every and self.asked % self._doubles_every == 0:
                self.doubled += 1
                self._socket.sendto(data, peer)


@dataclass(frozen=True)
class Echoed:
    """`trueload udp` against that server."""

    flags: str
    invents_every: int = 0
    doubles_every: int = 0

    def play(self, stage: Stage) -> Seen:
        """Run it."""
        with EchoServer(self.invents_every, self.doubles_every) as server:
            words = ("udp", server.address, "--no-save", *self.flags.split())
            with command(stage, *words) as running:
                seen = running.seen()
            counts = {"unsolicited": server.invented, "duplicated": server.doubled}
            return replace(seen, others={**counts, "ok": server.asked})


def counted(name: str) -> Demand:
    """Require that so many datagrams of a kind were seen as the server has sent."""

    def demand(seen: Seen) -> Answer:
        true, found = seen.others[name], seen.result["datagrams"][name]
        return Answer(is_close(found, true), f"{true:,} {name}", f"{found:,} {name}")

    return demand


def all_answered(seen: Seen) -> Answer:
    """Require as many good answers as the server was asked for."""
    true, found = seen.others["ok"], seen.result["counts"]["ok"]
    return Answer(is_close(found, true), f"{true:,} requests", f"{found:,} requests")
