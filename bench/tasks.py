"""A broadcast client with an asyncio task per connection, using the library `websockets`.

`tasks.py PORT CLIENTS MESSAGES PADDING CONCURRENT`: like bare_receive, but with CONCURRENT messages
in flight, each until its receipt. It ends when every client has received every message.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from websockets.asyncio.client import ClientConnection, connect

CONNECTING_MOST = 100


class Count:
    """What all tasks together have received."""

    def __init__(self, expected: int) -> None:
        self.left = expected
        self.all_had = asyncio.Event()
        self.receipts: asyncio.Queue[float] = asyncio.Queue()


async def receive(client: ClientConnection, count: Count) -> None:
    """Receive the messages of one connection."""
    async for message in client:
        received = json.loads(message)
        if received["type"] == "broadcast":
            count.left -= 1
            if count.left == 0:
                count.all_had.set()
        elif received["type"] == "broadcastResult":
            count.receipts.put_nowait(time.monotonic())


async def main(port: int, clients: int, messages: int, padding: int, concurrent: int) -> None:
    """Connect, broadcast, and print the cost."""
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
