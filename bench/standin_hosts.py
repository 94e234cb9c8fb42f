"""Many stand-ins in one process: `standin_hosts.py SOCKET RECORDING...` plays one per connection.

How: it listens on a Unix socket with asyncio, and has a buffer and a timer per host. The first line
of a connection is the host's number, from which everything else follows. When its standard input
ends, it prints one line of JSON about the traffic and exits.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from recording import load
from standin import Lines, Nature, StandIn, lines_of

NS_PER_S = 1_000_000_000
LINE_BYTES_MAX = 2**24


def nature_of(number: int) -> Nature:
    """Derive a host's clock and delays from its number, reproducibly.

    Clocks are up to hours apart, delays up to a millisecond.
    """
    hours_ns = (number * 7_919 % 1_000 - 500) * 36_000_000_000
    return Nature(
        ahead_ns=hours_ns + number * 1_003,
        there_ns=number * 37 % 500 * 1_000,
        back_ns=number * 61 % 500 * 1_000,
    )


def variant_of(number: int, variants: int) -> int:
    """Tell which of several recordings a host replays."""
    return number % variants


class Traffic:
    """The traffic of all hosts in bytes, and when the last `phase_done` was sent."""

    def __init__(self) -> None:
        self.said_bytes = 0
        self.heard_bytes = 0
        self.done_ns = 0


class Host(asyncio.Protocol):
    """One connection, which plays one host."""

    def __init__(self, variants: Sequence[Lines], traffic: Traffic) -> None:
        self._variants = variants
        self._traffic = traffic
        self._pending = b""
        self._machine: StandIn | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._traffic.heard_bytes += len(data)
        *lines, self._pending = (self._pending + data).split(b"\n")
        now_ns = time.monotonic_ns()
        for line in lines:
            if self._machine is None:
                number = int(line)
                found = self._variants[variant_of(number, len(self._variants))]
                self._machine = StandIn(found, nature_of(number))
                self._machine.handle_start(now_ns)
            else:
                self._machine.handle_line(now_ns, line)
        self._send()

    def _send(self) -> None:
        assert self._machine is not None
        assert self._transport is not None
        now_ns = time.monotonic_ns()
        while (line := self._machine.poll_output(now_ns)) is not None:
            self._transport.write(line)
            self._traffic.said_bytes += len(line)
            if b'"phase_done"' in line[:32]:
                self._traffic.done_ns = time.monotonic_ns()
        if self._timer is not None:
            self._timer.cancel()
        due_ns = self._machine.poll_timeout_ns()
        if due_ns is not None:
            delay_s = max(0, due_ns - now_ns) / NS_PER_S
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._send)


async def serve(path: str, variants: Sequence[Lines]) -> Traffic:
    """Serve until standard input ends; return the traffic."""
    loop = asyncio.get_running_loop()
    traffic = Traffic()
    server = await loop.create_unix_server(lambda: Host(variants, traffic), path, backlog=1_024)
    print("listening", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    return traffic


def main() -> None:
    """Serve, then print the traffic."""
    path, *recordings = sys.argv[1:]
    variants = [lines_of(load(Path(each))) for each in recordings]
    traffic = asyncio.run(serve(path, variants))
    print(json.dumps({**vars(traffic), "cpu_s": time.process_time()}))


if __name__ == "__main__":
    main()
