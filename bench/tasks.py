"""A client of broadcasts with a task of asyncio for each connection, on the library `websockets`.

`tasks.py PORT CLIENTS MESSAGES PADDING CONCURRENT`: as bare_receive, with CONCURRENT messages in
flight, each until its receipt; the end is reached when every client has had every message.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from websockets.asyncio.client import ClientConnection, connect

CONNECTING_MOST = 100


class Count:
    """What all tasks have heard."""

    def __init__(self, expected: int) -> None:
        self.left = expected
        self.all_had = asyncio.Event()
        self.receipts: asyncio.Queue[float] = asyncio.Queue()


async def receive(client: ClientConnection, count: Count) -> None:
    """The task of one connection."""
    async for message in client:
        heard = json.loads(message)
        if heard["type"] == "broadcast":
            count.left -= 1
            if count.left == 0:
                count.all_had.set()
        elif heard["type"] == "broadcastResult":
            count.receipts.put_nowait(time.monotonic())


async def main(port: int, clients: int, messages: int, padding: int, concurrent: int) -> None:
    """Connects, broadcasts, prints."""
    few = asyncio.Semaphore(CONNECTING_MOST)

    async def opened() -> ClientConnection:
        async with few:
            url = f"ws://127.0.0.1:{port}/ws"
            return await connect(url, compression=None, ping_interval=None, proxy=None)

    connections = await asyncio.gather(*(opened() for _ in range(clients)))
    count = Count(clients * messages)
    tasks = [asyncio.create_task(receive(one, count)) for one in connections]
    began_s, before_s = time.monotonic(), time.process_time()
    for number in range(messages):
        if number >= concurrent:
            await count.receipts.get()
        payload = {"sender": number % clients, "sequence": number, "padding": "x" * padding}
        message = {"type": "broadcast", "payload": payload}
        await connections[number % clients].send(json.dumps(message))
    await count.all_had.wait()
    used_s, wall_s = time.process_time() - before_s, time.monotonic() - began_s
    cost = {"deliveries": clients * messages, "cpu_ns": used_s * 1e9, "wall_ns": wall_s * 1e9}
    print(json.dumps(cost), flush=True)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
