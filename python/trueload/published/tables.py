"""Published tables as rows, each with the subject of ours that is the same, if there is one.

``http-servers.csv``: http_bench (wrk from another machine, 30 s, servers on two CPUs, May 2022);
times in ms, bytes per second. ``http-clients.csv``: gamache/httpc_bench, 2019-05-15, what clients
said of themselves; ``files`` is the limit of open files, 0 for a high one. ``c10k.csv``: the second
run of ``ab -c 10000 -n 20000`` of Node.js 8.1.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

BROADCASTS = "ws-broadcast"
"""The suite that reproduces the comparison of broadcasts."""
# Which subject is what a published curve of broadcasts was of; the others have none. Of two curves
# that differ in the number of threads only the one of a single thread is here.
OF_BROADCASTS = {
    "clojure/http-kit": "Clojure",
    "cpp/crow": "C++ / Crow / RapidJSON -- 1 thread",
    "cpp/uwebsockets": "C++ / uWebSockets / RapidJSON -- 1 thread",
    "cpp/websocketpp": "C++ / WebsocketPP / jsoncpp -- 1 thread",
    "elixir/cowboy": "Elixir / Plug",
    "elixir/phoenix": "Elixir / Phoenix",
    "go/gorilla": "Go / Gorilla",
    "go/x-net-websocket": "Go / Websocket",
    "haskell/warp": "Haskell",
    "haskell/warp:plain": "Haskell - no chan",
    "java/netty-websocket": "Java / Netty",
    "java/undertow": "Java / Undertow",
    "javascript/faye": "Javascript / Node / Faye",
    "javascript/faye:clustered": "Javascript / Node / Faye - clustered",
    "javascript/uws": "Javascript / Node / uws",
    "javascript/uws:clustered": "Javascript / Node / uws - clustered",
    "javascript/ws": "Javascript / Node / ws",
    "javascript/ws:clustered": "Javascript / Node / ws - clustered",
    "ruby/actioncable": "Rails / MRI",
    "ruby/actioncable:jruby": "Ruby / Rails / JRuby",
    "ruby/eventmachine": "Ruby / Eventmachine / MRI",
    "ruby/eventmachine:jruby": "Ruby / Eventmachine / JRuby",
    "rust/ws": "Rust - ws",
    "rust/ws:scopedpool": "Rust - scopedpool-ws",
    "rust/ws:threadpool": "Rust - threadpool-ws",
}


@dataclass(frozen=True)
class ServerRow:
    """A row of the comparison of HTTP servers; ``cells`` by column."""

    connections: int
    pipeline: int
    subject: str
    cells: dict[str, str]


@dataclass(frozen=True)
class ClientRow:
    """A row of the comparison of HTTP clients; ``cells`` are its six columns."""

    files: int
    subject: str
    pools: int
    pool_size: int
    concurrency: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """Clients of a broadcast, and of its receipts p95, min, median and max in ms."""

    clients: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class PublishedCurve:
    """One server: the p95 of the receipts of a broadcast, in ms, by number of clients."""

    name: str
    p95_ms: tuple[tuple[int, float], ...]


def server_rows() -> list[ServerRow]:
    """The comparison of HTTP servers."""
    return [
        ServerRow(int(row["connections"]), int(row["pipeline"]), row["subject"], row)
        for row in _read("http-servers.csv")
    ]


def client_rows() -> list[ClientRow]:
    """The comparison of HTTP clients."""
    names = ("client", "pools", "pool_size", "concurrency", "ok_per_s", "errors_percent")
    return [
        ClientRow(
            int(row["files"]),
            row["subject"],
            int(row["pools"]),
            int(row["pool_size"]),
            int(row["concurrency"]),
            tuple(row[name] for name in names),
        )
        for row in _read("http-clients.csv")
    ]


def broadcast_steps() -> dict[str, list[Step]]:
    """The steps of each server of the comparison of broadcasts."""
    found: dict[str, list[Step]] = {}
    for row in _read("ws-broadcast.csv"):
        cells = tuple(row[name] for name in ("p95_ms", "min_ms", "median_ms", "max_ms"))
        found.setdefault(row["server"], []).append(Step(int(row["clients"]), cells))
    return found


def broadcast_curves() -> tuple[PublishedCurve, ...]:
    """Every server of the comparison of broadcasts, in its order."""
    return tuple(
        PublishedCurve(name, tuple((step.clients, float(step.cells[0])) for step in steps))
        for name, steps in broadcast_steps().items()
    )


def c10k_figures() -> dict[str, str]:
    """What was published of ten thousand connections, by figure."""
    return {row["figure"]: row["published"] for row in _read("c10k.csv")}


def _read(name: str) -> Iterator[dict[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())
