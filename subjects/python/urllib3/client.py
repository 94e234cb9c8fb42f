"""HTTP client on urllib3: a thread for each request that is open at once.

Several threads share a pool, as urllib3 intends, and each thread uses one pool only. A pool without
a free connection blocks.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import urllib3
from talk import Setup, Tally, class_of, hear_orders, hear_setup, say_tally
from urllib3.exceptions import HTTPError, ProtocolError


class Client:
    def __init__(self, setup: Setup) -> None:
        parts = urlsplit(setup.url)
        self.path = parts.path or "/"
        self.keep_alive = setup.keep_alive
        # With block=True a pool has at most maxsize connections. The wait for one has no time-out,
        # because it is part of the latency.
        self.pools = [
            urllib3.HTTPConnectionPool(
                parts.hostname or "",
                parts.port,
                maxsize=setup.pool_size,
                block=True,
                retries=False,
                timeout=urllib3.Timeout(total=setup.timeout_ms / 1000),
            )
            for _ in range(setup.pools)
        ]
        self.threads = ThreadPoolExecutor(setup.concurrency)
        self.concurrency = setup.concurrency

    def go(self, number: int) -> list[Tally]:
        left = iter(range(number))
        lock = threading.Lock()
        pools = (self.pools[i % len(self.pools)] for i in range(self.concurrency))
        return list(self.threads.map(lambda pool: self.work(pool, left, lock), pools))

    def work(
        self, pool: urllib3.HTTPConnectionPool, left: Iterator[int], lock: threading.Lock
    ) -> Tally:
        tally = Tally()
        headers = None if self.keep_alive else {"Connection": "close"}
        while True:
            with lock:
                if next(left, None) is None:
                    return tally
            begun_ns = time.perf_counter_ns()
            try:
                response = pool.request("GET", self.path, headers=headers)
            except HTTPError as error:
                tally.failed[name_of(error)] += 1
                continue
            if response.status == 200:
                tally.latencies_ns.append(time.perf_counter_ns() - begun_ns)
            else:
                tally.failed["status"] += 1


def name_of(error: HTTPError) -> str:
    if isinstance(error, urllib3.exceptions.ReadTimeoutError):
        return "timeout.first_byte"
    name = class_of(error)
    if name == "timeout.total" and isinstance(error, urllib3.exceptions.ConnectTimeoutError):
        return "connect.timeout"
    return "empty" if name == "other" and isinstance(error, ProtocolError) else name


def main() -> None:
    client = Client(hear_setup())
    for number in hear_orders():
        begun_ns = time.perf_counter_ns()
        tallies = client.go(number)
        elapsed_ns = time.perf_counter_ns() - begun_ns
        total = Tally()
        for tally in tallies:
            total.latencies_ns += tally.latencies_ns
            total.failed += tally.failed
        say_tally(total, elapsed_ns)


if __name__ == "__main__":
    sys.exit(main())
