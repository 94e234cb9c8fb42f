"""The protocols: what each is called, and what the commands that load and serve it say.

`trueload --help` reads this, so nothing heavy is imported. A protocol's flags are in the module of
its name beside this one, as ``read_job``; its server is a row of ``serve.SERVERS``
(docs/adding-a-protocol.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Server:
    """What `trueload serve` says of the reference server. ``path`` of its URL is what is loaded;
    ``done`` is what it says at its end of the counts in ``protocol.plan.Served``."""

    of: str
    what: str
    example: str
    path: str
    done: str
    has_connections: bool = True


@dataclass(frozen=True)
class Protocol:
    """One protocol, by the name of its commands: ``about`` in the list of all, ``help`` whole."""

    about: str
    help: str
    server: Server


PROTOCOLS: dict[str, Protocol] = {
    "http": Protocol(
        about="Load an HTTP server and say what it carried.",
        help="""Load an HTTP/1.1 server and say what it carried, and whether that can be trusted.

Each connection sends its next request as soon as its answer is there (a closed loop); with --rate
or --stages requests are sent by a schedule, and latency counts from it (an open loop). No redirects
are followed: an answer counts as it comes. With --body and no --method, the method is POST;
{counter} and {random} in path, header values and body are filled in for each request. With
--limit the largest load that keeps to it is searched, and confirmed by a run of its own.

Example: trueload http http://127.0.0.1:8080/ -c 64 -d 10s --fail-on 'p99>20ms'
""",
        server=Server(
            of="HTTP",
            what=(
                "`/` answers `Hello, World!`, `/perf` an 84-byte JSON body, `/bytes/1024` and "
                "`/bytes/65536` so many bytes, `/wait/MS` `ok` after MS milliseconds, `/item/N` an "
                "item; a POST to `/item` creates one (201)."
            ),
            example="--listen 127.0.0.1:8080 --threads 1",
            path="/",
            done="served {responses:,} responses to {requests:,} requests",
        ),
    ),
    "tcp": Protocol(
        about="Load a TCP echo server and say what it carried.",
        help="""Load a TCP echo server and say what it carried, and whether that can be trusted.

Each connection sends a message, and the next one as soon as all of it has come back, compared byte
by byte; with --pipeline, several are on their way at once. A message counts as what a request is
of HTTP: --requests, --rate and --limit are of messages.

Example: trueload tcp 127.0.0.1:9000 --size 64 -c 128 -d 10s
""",
        server=Server(
            of="TCP",
            what=(
                "Every byte comes back, in order; when a client ends its side, so does the "
                "server, behind the last byte."
            ),
            example="--listen 127.0.0.1:9000",
            path="",
            done="sent back {bytes_out:,} of {bytes_in:,} bytes",
        ),
    ),
    "udp": Protocol(
        about="Load a UDP echo server and say what it carried.",
        help="""Load a UDP echo server and say what it carried, and whether that can be trusted.

Each socket sends a datagram, and the next one as soon as it has come back, compared byte by byte;
with --pipeline, several are on their way at once, and answers may come in any order. A datagram
without an answer within --timeout is lost, and fails alone; late, duplicated and reordered answers
are counted apart. A datagram counts as what a request is of HTTP: --requests, --rate and --limit
are of datagrams, and -c is a number of sockets.

Example: trueload udp 127.0.0.1:9000 --size 64 -c 128 -d 10s
""",
        server=Server(
            of="UDP",
            what="Every datagram comes back to where it came from.",
            example="--listen 127.0.0.1:9000",
            path="",
            done="sent back {responses:,} of {requests:,} datagrams",
            has_connections=False,
        ),
    ),
    "ws": Protocol(
        about="Load a WebSocket server, by echoes or broadcasts.",
        help="""Load a WebSocket server and say what it carried, and whether that can be trusted.

With --mode echo each connection sends a message, and the next one as soon as it has come back; a
message counts as what a request is of HTTP. With --mode broadcast clients join step by step, each
message goes to all of them, and its sender waits for its receipt; beside the receipts every
delivery is timed and settled. The largest number of clients that keeps to --limit is bisected and
confirmed. --dialect says how the server wants its messages wrapped.

Example: trueload ws ws://127.0.0.1:8080/ws --mode broadcast --step 1000 --limit 'p95<500ms'
""",
        server=Server(
            of="WebSocket",
            what=(
                "At `/ws` it echoes and broadcasts in the dialect, at `/echo` every message "
                "comes back as it came."
            ),
            example="--listen 127.0.0.1:8080 --dialect json",
            path="/ws",
            done="served {responses:,} answers to {requests:,} messages",
        ),
    ),
}


def reader_of_job(name: str) -> Callable[..., Any]:
    """What understands the flags of the command of that name, as a ``job.Job``."""
    read: Callable[..., Any] = importlib.import_module(f"trueload.commands.{name}").read_job
    return read
