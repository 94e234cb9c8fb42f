"""HTTP client on aiohttp: a session and its connector for each pool, and a task for each request
that is open at once.

The event loop does not run between two orders. If the server closes a connection in that time, the
client notices it in the next order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import aiohttp
from talk import Setup, Tally, class_of, hear_orders, hear_setup, say_tally


def new_session(setup: Setup) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=setup.pool_size, force_close=not setup.keep_alive)
    timeout = aiohttp.ClientTimeout(
        sock_connect=setup.timeout_ms / 1000, sock_read=setup.timeout_ms / 1000
    )
    return aiohttp.ClientSession(connector=connector, timeout=timeout)


async def work(session: aiohttp.ClientSession, url: str, left: Iterator[int], tally: Tally) -> None:
    while next(left, None) is not None:
        begun_ns = time.perf_counter_ns()
        try:
            async with session.get(url) as response:
                await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            tally.failed[name_of(error)] += 1
            continue
        if response.status == 200:
            tally.latencies_ns.append(time.perf_counter_ns() - begun_ns)
        else:
            tally.failed["status"] += 1


def name_of(error: BaseException) -> str:
    if isinstance(error, aiohttp.ServerTimeoutError):
        return "timeout.first_byte"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "empty"
    if isinstance(error, aiohttp.ClientConnectorError):
        return class_of(error.os_error)
    return class_of(error)


async def open_sessions(setup: Setup) -> list[aiohttp.ClientSession]:
    return [new_session(setup) for _ in range(setup.pools)]


async def go(sessions: list[aiohttp.ClientSession], setup: Setup, number: int) -> tuple[Tally, int]:
    tally, left = Tally(), iter(range(number))
    begun_ns = time.perf_counter_ns()
    await asyncio.gather(
        *(
            work(sessions[i % len(sessions)], setup.url, left, tally)
            for i in range(setup.concurrency)
        )
    )
    return tally, time.perf_counter_ns() - begun_ns


async def close(sessions: list[aiohttp.ClientSession]) -> None:
    for session in sessions:
        await session.close()


def main() -> None:
    setup = hear_setup()
    with asyncio.Runner() as runner:
        sessions = runner.run(open_sessions(setup))
        for number in hear_orders():
            say_tally(*runner.run(go(sessions, setup, number)))
        runner.run(close(sessions))


if __name__ == "__main__":
    main()
