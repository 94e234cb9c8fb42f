"""A client of the contract http-client, on one thread, that may cheat. Run as a subject.

    python client.py [over=COUNT] [late=SECONDS]

`over`: open this many connections more than the pools have. `late`: wait this long after each order
before beginning, and leave the wait out of the claim.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from urllib.parse import urlsplit


class Client:
    """Connections with one request in flight each."""

    def __init__(self, url: str, connections: int) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        where = (address.hostname, address.port or 80)
        self._request = f"GET {address.path or '/'} HTTP/1.1\r\nHost: {where[0]}\r\n\r\n".encode()
        self._selector = selectors.DefaultSelector()
        self._sockets = [socket.create_connection(where) for _ in range(connections)]
        for each in self._sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(each, selectors.EVENT_READ)

    def perform(self, count: int) -> list[float]:
        """Send `count` requests; return the times that they took, sorted, in µs."""
        began: dict[socket.socket, float] = {}
        took: list[float] = []
        left = count
        for each in self._sockets[:count]:
            began[each] = self._ask(each)
            left -= 1
        while len(took) < count:
            for key, _ in self._selector.select():
                asked = key.fileobj
                assert isinstance(asked, socket.socket)
                # An answer is small enough to come in one piece.
                assert asked.recv(4096).startswith(b"HTTP/1.1 200"), "no good answer"
                took.append((time.perf_counter() - began[asked]) * 1e6)
                if left:
                    left -= 1
                    began[asked] = self._ask(asked)
        return sorted(took)

    def _ask(self, to: socket.socket) -> float:
        to.sendall(self._request)
        return time.perf_counter()


def main() -> None:
    """Read the setup, then perform each order and print a claim."""
    how = dict(word.split("=") for word in sys.argv[1:])
    setup = json.loads(sys.stdin.readline())
    places = min(setup["concurrency"], setup["pools"] * setup["pool_size"])
    client = Client(setup["url"], places + int(how.get("over", 0)))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        time.sleep(float(how.get("late", 0)))
        began_s = time.perf_counter()
        took = client.perform(int(line.split()[1]))
        ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
        times = {name: took[max(0, int(part * len(took)) - 1)] for name, part in ranks.items()}
        elapsed_s = time.perf_counter() - began_s
        claim = {"ok": len(took), "failed": {}, "elapsed_s": elapsed_s, "latency_us": times}
        print(json.dumps(claim), flush=True)


if __name__ == "__main__":
    main()
