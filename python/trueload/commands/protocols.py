"""The protocols: their names, and the texts of the commands that load and serve them.

`trueload --help` reads this, so nothing heavy is imported. A protocol's flags are in the module of
its name beside this one, as ``read_job``. Its server is a row of ``serve_flags.OPTIONS`` and of
``serve.SERVERS`` (docs/contributors/adding-a-protocol.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Server:
    """The texts of `trueload serve` about a reference server.

    ``path`` is the path of the URL to load. ``done`` is the final text about the counts in
    ``protocol.plan.Served``.
    """

    of: str
    what: str
    example: str
    path: str
    done: str
    has_connections: bool = True


@dataclass(frozen=True)
class Protocol:
    """One protocol, by the name of its commands: ``about`` is its line, ``help`` the whole help."""

    about: str
    help: str
    server: Server


PROTOCOLS: dict[str, Protocol] = {
    "http": Protocol(
        about="Load an HTTP server, and report its throughput and latency.",
        help="""Load an HTTP/1.1 or HTTP/2 server; report what it carried, and whether that can be
trusted.

Each connection sends its next request as soon as the last answer has arrived (a closed loop). With
--rate, or --stages of a rate, requests follow a schedule, and latency counts from the scheduled
time (an open loop). Redirects are followed only with --follow. With a body and no --method, the
method is POST. {counter} and {random} in path, header values and body are filled in for each
request. With --limit, trueload searches for the largest load that keeps to the limit, and confirms
it in a run of its own.

Example: trueload http http://127.0.0.1:8080/ -c 64 -d 10s --fail-on 'p99>20ms'

At a rate: trueload http http://127.0.0.1:8080/ --rate 20k/s

The largest rate: trueload http http://127.0.0.1:8080/ --limit 'p99<10ms'

A POST: trueload http http://127.0.0.1:8080/item -H 'Content-Type: text/plain' --body hello

Several requests: trueload http http://127.0.0.1:8080/ --targets requests.jsonl

Sessions of several steps: trueload http http://127.0.0.1:8080/ --scenario shop.toml

Recorded traffic: trueload http http://127.0.0.1:8080/ --replay access.log --speed 2x

Streamed answers: trueload http http://127.0.0.1:8080/stream/20/10 --stream sse

Over HTTP/2: trueload http http://127.0.0.1:8080/ --http 2 --streams 10

For a program: trueload http http://127.0.0.1:8080/ --quiet --json -
""",
        server=Server(
            of="HTTP",
            what=(
                "`/` answers `Hello, World!`, `/perf` an 84-byte JSON body,"
                " `/bytes/1024` and `/bytes/65536` that many bytes. `/wait/MS` answers"
                " `ok` after MS milliseconds, `/stream/N/MS` N server-sent events, one every"
                " MS milliseconds (`/stream/N/MS/jsonl`: lines). `/redirect/N` leads to `/` in N"
                " redirects, `/redirect/N/307` with that status. `/item/N` answers an item; a"
                " POST to `/item` creates one (201). The documents' sessions get `/login`,"
                " `/items`, `/cart` and `/form`, always the same."
            ),
            example="--listen 127.0.0.1:8080 --threads 1",
            path="/",
            done="served {responses:response} to {requests:request}",
        ),
    ),
    "tcp": Protocol(
        about="Load a TCP echo server, and report its throughput and latency.",
        help="""Load a TCP echo server; report what it carried, and whether that can be trusted.

Each connection sends a message, and the next one as soon as all of it has come back; every byte is
compared. With --pipeline, several messages are on their way at once. A message takes the place of a
request: --requests, --rate and --limit apply to messages.

Example: trueload tcp 127.0.0.1:9000 --size 64 -c 128 -d 10s
""",
        server=Server(
            of="TCP",
            what=(
                "It sends every byte back, in order. When a client closes its sending"
                " side, the server closes its own after the last byte."
            ),
            example="--listen 127.0.0.1:9000",
            path="",
            done="sent back {bytes_out} of {bytes_in:byte}",
        ),
    ),
    "udp": Protocol(
        about="Load a UDP echo server, and report its throughput and losses.",
        help="""Load a UDP echo server; report what it carried, and whether that can be trusted.

Each socket sends a datagram, and the next one as soon as it has come back; every byte is compared.
With --pipeline, several datagrams are on their way at once, and answers may come in any order. A
datagram without an answer within --timeout is lost, and only that datagram fails. Late, duplicated
and reordered answers are counted separately. A datagram takes the place of a request: --requests,
--rate and --limit apply to datagrams, and -c is the number of sockets.

Example: trueload udp 127.0.0.1:9000 --size 64 -c 128 -d 10s
""",
        server=Server(
            of="UDP",
            what="It sends every datagram back to its sender.",
            example="--listen 127.0.0.1:9000",
            path="",
            done="sent back {responses} of {requests:datagram}",
            has_connections=False,
        ),
    ),
    "ws": Protocol(
        about="Load a WebSocket server with echoes or broadcasts.",
        help="""Load a WebSocket server; report what it carried, and whether that can be trusted.

With --mode echo, each connection sends a message, and the next one as soon as it has come back. A
message takes the place of a request. With --mode broadcast, clients join step by step. Each message
goes to all of them, and its sender waits for a receipt. Receipts and deliveries are timed, and
every delivery is accounted for. trueload bisects to the largest number of clients that keeps to
--limit, and confirms it. --dialect sets how messages are wrapped.

Example: trueload ws ws://127.0.0.1:8080/ws --mode broadcast --step 1000 --limit 'p95<500ms'

Echoes: trueload ws ws://127.0.0.1:8080/ws -c 64 -d 10s
""",
        server=Server(
            of="WebSocket",
            what=(
                "At `/ws` it echoes and broadcasts in the dialect; at `/echo` it sends"
                " every message back unchanged."
            ),
            example="--listen 127.0.0.1:8080 --dialect json",
            path="/ws",
            done="served {responses:answer} to {requests:message}",
        ),
    ),
}


def reader_of_job(name: str) -> Callable[..., Any]:
    """Return the function that parses the flags of the command of that name into a ``job.Job``."""
    read: Callable[..., Any] = importlib.import_module(f"trueload.commands.{name}").read_job
    return read
