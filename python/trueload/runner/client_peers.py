"""The servers that a client is verified against, and what each of them counted.

How: the reference server, which reports what it served, and makes errors on purpose if asked to.
For a peer that nobody listens at, a socket holds the port without listening. All are on loopback,
and all end with the context.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trueload.engines.engine import Engine, await_listening, seen_since_mark
from trueload.protocol.client import Peer, ServerCounts
from trueload.protocol.exchange import ServeHttp, ServeHttp2
from trueload.protocol.faults import Faults
from trueload.protocol.plan import Serve
from trueload.protocol.tls import ServeSelfSigned, ServeTlsPlan

SELF_SIGNED = ServeSelfSigned(names=("127.0.0.1",))
READY_S = 10.0
COUNT_S = 10.0
WRONG: Mapping[Peer, Faults] = {
    "error": Faults(error_share=1.0),
    "mixed": Faults(error_share=0.5),
    "reset": Faults(reset_share=1.0),
    "silent": Faults(stall_share=1.0),
    "refuse-streams": Faults(refuse_share=0.2),
    "go-away": Faults(goaway_after=5),
}
"""The faults of each peer; peers that are not listed have none."""


@dataclass(frozen=True)
class PeerServer:
    """A running server: its address, and a function that returns its counts.

    The counts are asked for once, when the client has ended.
    """

    authority: str
    count: Callable[[], ServerCounts]


@contextlib.contextmanager
def opened(
    peer: Peer, http2: ServeHttp2 | None = None, tls: ServeTlsPlan | None = None
) -> Iterator[PeerServer]:
    """Run the server for a kind of peer; with ``http2`` it speaks HTTP/2, too. Raises
    ``EngineError``, ``UserError``."""
    if peer == "refuse":
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
            yield PeerServer(f"127.0.0.1:{port}", lambda: ServerCounts(0, 0, 0, 0, 0))
            return
    with Engine.start() as engine:
        service = ServeHttp(record=True, faults=WRONG.get(peer), http2=http2)
        listen = "127.0.0.1:0"
        engine.send(Serve(listen=listen, threads=1, cpus=(), service=service, tls=tls))
        yield PeerServer(await_listening(engine, READY_S), lambda: _count(engine))


def _count(engine: Engine) -> ServerCounts:
    seen = seen_since_mark(engine, "end", COUNT_S)
    return ServerCounts(
        requests=seen.requests,
        ok=seen.ok,
        accepted=seen.accepted,
        open_peak=seen.connections.peak,
        at_once=seen.open_requests.peak,
    )
