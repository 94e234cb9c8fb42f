"""GETs with httpx: an AsyncClient for each pool, a task for each request that is open at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import httpx
from talk import Setup, Tally, class_of, hear_orders, hear_setup, say_tally


def new_client(setup: Setup) -> httpx.AsyncClient:
    kept = setup.pool_size if setup.keep_alive else 0
    return httpx.AsyncClient(
        limits=httpx.Limits(max_connections=setup.pool_size, max_keepalive_connections=kept),
        # The wait for a connection has no limit of its own: the latency counts it.
        timeout=httpx.Timeout(setup.timeout_ms / 1000, pool=None),
    )


async def work(client: httpx.AsyncClient, url: str, left: Iterator[int], tally: Tally) -> None:
    while next(left, None) is not None:
        begun_ns = time.perf_counter_ns()
        try:
            response = await client.get(url)
        except httpx.HTTPError as error:
            tally.failed[name_of(error)] += 1
            continue
        if response.status_code == 200:
            tally.latencies_ns.append(time.perf_counter_ns() - begun_ns)
        else:
            tally.failed["status"] += 1


def name_of(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "connect.timeout"
    if isinstance(error, httpx.TimeoutException):
        return "timeout.first_byte"
    name = class_of(error)
    if name != "other":
        return name
    if isinstance(error, httpx.ConnectError):
        return "connect.refused"  # all that anyio leaves of it
    return "empty" if isinstance(error, httpx.RemoteProtocolError) else "other"


async def go(clients: list[httpx.AsyncClient], setup: Setup, number: int) -> tuple[Tally, int]:
    tally, left = Tally(), iter(range(number))
    begun_ns = time.perf_counter_ns()
    await asyncio.gather(
        *(
            work(clients[i % len(clients)], setup.url, left, tally)
            for i in range(setup.concurrency)
        )
    )
    return tally, time.perf_counter_ns() - begun_ns


async def close(clients: list[httpx.AsyncClient]) -> None:
    for client in clients:
        await client.aclose()


def main() -> None:
    setup = hear_setup()
    with asyncio.Runner() as runner:
        clients = [new_client(setup) for _ in range(setup.pools)]
        for number in hear_orders():
            say_tally(*runner.run(go(clients, setup, number)))
        runner.run(close(clients))


if __name__ == "__main__":
    main()
