"""A forward proxy for tests: absolute-form requests and CONNECT, on a thread of its own.

It counts what it was asked, and can answer CONNECT in another way than by a tunnel.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType

_ABSOLUTE = re.compile(rb"(\S+) http://([^/ ]+?)(?::(\d+))?(/\S*) HTTP/1.1\r\n")
_CONNECT = re.compile(rb"CONNECT (\S+):(\d+) HTTP/1.1\r\n")
_OPENED = b"HTTP/1.1 200 OK\r\n\r\n"


@dataclass
class HttpProxy:
    """Listens on ``port`` while it is entered. ``answers`` replace its answers to CONNECT, piece
    by piece; an empty list holds the connection, None closes it."""

    answers: list[bytes] | None = field(default_factory=lambda: [_OPENED])
    asked: list[bytes] = field(default_factory=list)
    port: int = 0

    def __enter__(self) -> HttpProxy:
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def url(self) -> str:
        """What ``--proxy`` takes."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def heads(self) -> Iterator[bytes]:
        """What was asked, without repetitions."""
        return iter(dict.fromkeys(self.asked))

    def _serve(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)

        async def listen() -> None:
            server = await asyncio.start_server(self._take, "127.0.0.1", 0, limit=1 << 20)
            self.port = server.sockets[0].getsockname()[1]
            started.set()

        self._loop.run_until_complete(listen())
        self._loop.run_forever()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head)
            if (connect := _CONNECT.match(head)) is not None:
                await self._tunnel(connect, reader, writer)
            elif (absolute := _ABSOLUTE.match(head)) is not None:
                await self._forward(head, absolute, reader, writer)
        writer.close()

    async def _tunnel(
        self,
        asked: re.Match[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if self.answers is None:
            return
        for piece in self.answers:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if b"".join(self.answers)[9:10] != b"2":
            await reader.read()
            return
        up, down = await asyncio.open_connection(asked[1].decode(), int(asked[2]))
        await asyncio.gather(_copy(reader, down), _copy(up, writer))

    async def _forward(
        self,
        head: bytes,
        asked: re.Match[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        up, down = await asyncio.open_connection(asked[2].decode(), int(asked[3] or b"80"))
        answers = asyncio.ensure_future(_copy(up, writer))
        while head:
            own = _ABSOLUTE.match(head)
            assert own is not None, head
            down.write(head.replace(own[0], b"%s %s HTTP/1.1\r\n" % (own[1], own[4]), 1))
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            self.asked.append(head)
        down.write_eof()
        await answers


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
        sink.write_eof()
