"""Memory that hostile clients can take of the reference server, beside honest ones that are served.

For each way of being hostile and each driver, a new server gets 1,000 connections that send what
they can and read nothing. Then 64 honest connections are measured beside them, one request each at
a time. They are slow while the server still answers the hostile ones. The memory is its peak
beyond what it had before, for each hostile connection, without the kernel's buffers.

Targets: at most 1 MiB for each hostile connection, and no honest request fails.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conversation import converse
from engine import Work, serving
from machine import describe
from marks import Limit, exit_code, mark, mark_table
from process import BenchError, vm_hwm_bytes
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.protocol.engine_options import DriverName
from trueload.protocol.exchange import ServeHttp, ServeHttp2, ServeTcpEcho, ServeWs, ServicePlan
from trueload.request.exchange import Exchange, TcpEcho, WsEcho
from trueload.request.message import make_messages
from trueload.request.values import Request
from trueload.trial.spec import CLOSED

HOSTILE, HONEST = 1000, 64
SEND_S = 4.0
CHUNK = 64 * 1024
MIB = 1024 * 1024
TABLE_HEAD = (
    "| clients that | driver | MiB for each | sent by each, KiB | honest requests/s |\n"
    "|---|---|--:|--:|--:|"
)
DRIVERS: tuple[DriverName, ...] = ("epoll", "io_uring")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def begun(window: int) -> bytes:
    """The preface, SETTINGS with this window of streams, and all of the connection's window."""
    settings = frame(4, 0, 0, struct.pack(">HI", 4, window))
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + frame(8, 0, 0, struct.pack(">I", 2**30))


def asked(path: bytes, *, resets: bool, window: int) -> bytes:
    """Streams that ask for this, perhaps each reset at once."""
    block = b"\x82\x86\x04" + bytes([len(path)]) + path
    out = begun(window)
    for stream in range(1, 8_000, 2):
        out += frame(1, 5, stream, block)
        out += frame(3, 0, stream, struct.pack(">I", 8)) if resets else b""
    return out


def get(path: str) -> bytes:
    """Requests of HTTP/1.1, pipelined."""
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode() * 1000


UPGRADE = (
    b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
ECHOING = ServeWs(dialect="json")
HTTP = ServeHttp(http2=ServeHttp2(max_streams=1000))
WINDOW = 2**31 - 1


@dataclass(frozen=True)
class Attack:
    """A way of being hostile: what is sent at first, and then without end."""

    what: str
    first: bytes
    then: bytes
    service: ServicePlan = HTTP


ATTACKS = (
    Attack("pipeline large answers", b"", get("/bytes/65536")),
    Attack("pipeline small answers", b"", get("/")),
    Attack("pipeline streams", b"", get("/stream/10000/0")),
    Attack("reset streams at once", asked(b"/bytes/65536", resets=True, window=WINDOW), b""),
    Attack("never read streams", asked(b"/bytes/65536", resets=False, window=0), b""),
    Attack("read no large streams", asked(b"/stream/10000/0", resets=False, window=WINDOW), b""),
    Attack("send PING", begun(WINDOW), frame(6, 0, 0, bytes(8)) * 1000),
    Attack("half-send requests", b"GET / HTTP/1.1\r\nX: ", b""),
    Attack("read no TCP echo", b"", bytes(CHUNK), ServeTcpEcho()),
    Attack(
        "read no WebSocket echo",
        UPGRADE,
        (b"\x82\xfe\x10\x00" + bytes(4100)) * 16,
        ECHOING,
    ),
    Attack("send WebSocket pings", UPGRADE, (b"\x89\x80" + bytes(4)) * 4000, ECHOING),
)


def send_all(port: int, attack: Attack) -> tuple[list[socket.socket], int]:
    """Open the hostile connections and send as much as the server takes; return how much."""
    found, sent = [], 0
    with selectors.DefaultSelector() as selector:
        for _ in range(HOSTILE):
            one = socket.create_connection(("127.0.0.1", port))
            one.setblocking(False)
            found.append(one)
            selector.register(one, selectors.EVENT_WRITE, memoryview(attack.first or attack.then))
        until_s = time.monotonic() + SEND_S
        while selector.get_map() and time.monotonic() < until_s:
            for key, _ in selector.select(0.2):
                assert isinstance(key.fileobj, socket.socket)
                sent += _send(selector, key.fileobj, key.data, attack.then)
    return found, sent


def _send(
    selector: selectors.BaseSelector, one: socket.socket, left: memoryview, then: bytes
) -> int:
    try:
        count = one.send(left[:CHUNK])
    except BlockingIOError:
        return 0
    except OSError:  # the server has ended it
        selector.unregister(one)
        return 0
    rest = left[count:] or memoryview(then)
    if rest:
        selector.modify(one, selectors.EVENT_WRITE, rest)
    else:
        selector.unregister(one)
    return count


@dataclass(frozen=True)
class Found:
    """What one way of being hostile came to."""

    attack: Attack
    driver: str
    each_bytes: float
    sent_bytes: float
    per_s: float
    """Requests/s of the honest connections; 0 if one of their requests failed."""

    def row(self) -> str:
        """One row of the table."""
        cells = [self.attack.what, self.driver, f"{self.each_bytes / MIB:.3f}"]
        cells += [f"{self.sent_bytes / 1024:,.0f}", f"{self.per_s:,.0f}"]
        return f"| {' | '.join(cells)} |"


def measure(binary: Path, attack: Attack, driver: DriverName, seconds: float) -> Found:
    """Measure one way of being hostile, over one driver."""
    exchange: Exchange | None = None
    if isinstance(attack.service, ServeTcpEcho):
        exchange = TcpEcho(messages=make_messages(64, None))
    with (
        serving(binary, SERVER_CPU, driver, attack.service) as (port, pid, used),
        closing() as keep,
    ):
        before = vm_hwm_bytes(pid)
        hostile, sent = send_all(port, attack)
        keep(hostile)
        if isinstance(attack.service, ServeWs):
            opening = Request(host=f"127.0.0.1:{port}", path="/echo")
            exchange = WsEcho(opening=opening, messages=make_messages(64, None), text=False)
        work = Work(port, HONEST, 1, seconds, exchange=exchange)
        try:
            per_s = converse(binary, GENERATOR_CPU, work, CLOSED).per_s
        except BenchError as error:
            print(f"{attack.what}, {used}: {error}", file=sys.stderr)
            per_s = 0.0
        each = (vm_hwm_bytes(pid) - before) / HOSTILE
    return Found(attack, used, each, sent / HOSTILE, per_s)


@contextlib.contextmanager
def closing() -> Iterator[Callable[[list[socket.socket]], None]]:
    """Keep sockets open until the end."""
    kept: list[socket.socket] = []
    try:
        yield kept.extend
    finally:
        for one in kept:
            one.close()


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="Memory that hostile clients take of the server.")
    parser.add_argument("--seconds", type=float, default=3.0, help="a run of the honest ones (3)")
    options = parser.parse_args()
    quiet = Quiet()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        binary = prepare_setting()
        done = [
            measure(binary, attack, driver, options.seconds)
            for attack in ATTACKS
            for driver in DRIVERS
        ]
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    worst = max(done, key=lambda found: found.each_bytes)
    failed = sum(not found.per_s for found in done)
    shown = f"{worst.each_bytes / MIB:.2f} MiB: {worst.attack.what}, {worst.driver}"
    marked = [
        mark(
            "memory for each hostile connection",
            Limit(1.0, unit=" MiB"),
            worst.each_bytes / MIB,
            shown,
        ),
        mark("runs in which an honest request failed", Limit(0), failed, f"{failed:,}"),
    ]
    sides = f"{HOSTILE:,} hostile connections, {HONEST} honest ones"
    print(describe(), f"\n{sides}. {quiet}\n", sep="\n")
    print(TABLE_HEAD, *(found.row() for found in done), "", sep="\n")
    print("\n".join(mark_table(marked)))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
