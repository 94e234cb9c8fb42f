"""HTTP client on httpx: an AsyncClient for each pool, and a task for each request that is open.

With the argument http2 it speaks HTTP/2 in plain text, and a semaphore limits the streams.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
from talk import Setup, Tally, class_of, hear_orders, hear_setup, say_tally


OVER_HTTP2 = sys.argv[1:] == ["http2"]


@dataclass(frozen=True)
class Pool:
    """A client, and the semaphore that limits the streams of its connections."""

    client: httpx.AsyncClient
    room: contextlib.AbstractAsyncContextManager[None]


def new_pool(setup: Setup) -> Pool:
    streams = asyncio.Semaphore(setup.pool_size * setup.pipelining)
    return Pool(new_client(setup), streams if OVER_HTTP2 else contextlib.nullcontext())


def new_client(setup: Setup) -> httpx.AsyncClient:
    kept = setup.pool_size if setup.keep_alive else 0
    return httpx.AsyncClient(
        http1=not OVER_HTTP2,
        http2=OVER_HTTP2,
        limits=httpx.Limits(max_connections=setup.pool_size, max_keepalive_connections=kept),
        # The wait for a connection has no time-out, because it is part of the latency.
        timeout=httpx.Timeout(setup.timeout_ms / 1000, pool=None),
    )


async def work(pool: Pool, url: str, left: Iterator[int], tally: Tally) -> None:
    while next(left, None) is not None:
        begun_ns = time.perf_counter_ns()
        try:
            async with pool.room:
                response = await pool.client.get(url)
        except httpx.HTTPError as error:
            tally.failed[name_of(error)] += 1
            continue
        if response.status_code == 200:
            tally.latencies_ns.append(time.perf_counter_ns() - begun_ns)
        else:
            tally.failed["status"] += 1


def name_of(error: httpx.HTTPError) -> str:
    # For HTTP/2, httpx passes on the text of the library h2.
    if OVER_HTTP2 and "StreamReset" in str(error):
        return "h2.stream"
    # httpx also keeps sending on a connection that the server has closed.
    if OVER_HTTP2 and ("ConnectionTerminated" in str(error) or isinstance(error, httpx.LocalProtocolError)):
        return "h2.goaway"
    if isinstance(error, httpx.ConnectTimeout):
        return "connect.timeout"
    if isinstance(error, httpx.TimeoutException):
        return "timeout.first_byte"
    name = class_of(error)
    if name != "other":
        return name
    if isinstance(error, httpx.ConnectError):
        return "connect.refused"  # anyio keeps no more details
    return "empty" if isinstance(error, httpx.RemoteProtocolError) else "other"


async def go(pools: list[Pool], setup: Setup, number: int) -> tuple[Tally, int]:
    tally, left = Tally(), iter(range(number))
    begun_ns = time.perf_counter_ns()
    await asyncio.gather(
        *(
            work(pools[i % len(pools)], setup.url, left, tally)
            for i in range(setup.concurrency)
        )
    )
    return tally, time.perf_counter_ns() - begun_ns


async def close(pools: list[Pool]) -> None:
    for pool in pools:
        await pool.client.aclose()


def main() -> None:
    setup = hear_setup(streams=OVER_HTTP2)
    with asyncio.Runner() as runner:
        pools = [new_pool(setup) for _ in range(setup.pools)]
        for number in hear_orders():
            say_tally(*runner.run(go(pools, setup, number)))
        runner.run(close(pools))


if __name__ == "__main__":
    main()
