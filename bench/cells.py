"""The cells of the comparison with other generators, and the targets they must meet. Pure.

A *group* is one load against one server, with the generators that are compared under it. Each round
runs every group, and within a group every generator, in random order, so that drift of the machine
affects both sides of a pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from marks import Limit

CONNECTIONS = (64, 256)
CONNECTIONS_QUICK = (64,)
MANY_CONNECTIONS = 10_000
DEPTH = 16

OURS = "trueload"
PEERS = ("wrk", "h2load", "ab", "oha", "hey", "k6")
# The other generators cannot pipeline.
PIPELINERS = ("wrk", "h2load")

REFERENCE, NGINX, EPOLL, TLS = "reference", "nginx", "c/epoll", "reference, TLS"
SERVERS = (REFERENCE, NGINX, EPOLL, TLS)


@dataclass(frozen=True)
class Cell:
    """One generator at one load against one server."""

    server: str
    connections: int
    depth: int
    tool: str
    memory: bool = False
    """Peak memory is what this cell is for: it is sampled, and CPU time is not reported."""

    def by(self, tool: str) -> Cell:
        """Return the same load from another generator."""
        return Cell(self.server, self.connections, self.depth, tool, self.memory)

    def of(self, server: str) -> Cell:
        """Return the same load against another server."""
        return Cell(server, self.connections, self.depth, self.tool, self.memory)

    def __str__(self) -> str:
        return f"{self.tool} on {self.server}, {self.connections} connections, depth {self.depth}"


@dataclass(frozen=True)
class Turn:
    """One measurement of a cell, in one round."""

    round: int
    cell: Cell


def groups(connections: Sequence[int] = CONNECTIONS) -> list[list[Cell]]:
    """List every group that is measured in rounds."""
    everyone = (OURS, *PEERS)
    listed = []
    for count in connections:
        listed += [
            _group(REFERENCE, count, 1, everyone),
            _group(REFERENCE, count, DEPTH, (OURS, *PIPELINERS)),
            _group(NGINX, count, 1, everyone),
            _group(NGINX, count, DEPTH, (OURS,)),
            _group(EPOLL, count, 1, (OURS,)),
            _group(EPOLL, count, DEPTH, (OURS,)),
            _group(TLS, count, 1, (OURS, "wrk")),
        ]
    memory = [Cell(REFERENCE, MANY_CONNECTIONS, 1, tool, memory=True) for tool in (OURS, "wrk")]
    return [*listed, memory]


def _group(server: str, connections: int, depth: int, tools: Sequence[str]) -> list[Cell]:
    return [Cell(server, connections, depth, tool) for tool in tools]


def without(listed: Sequence[Sequence[Cell]], absent: Mapping[str, str]) -> list[list[Cell]]:
    """Drop the cells whose server or generator is in `absent`."""
    return [
        [cell for cell in group if cell.server not in absent and cell.tool not in absent]
        for group in listed
    ]


def schedule(listed: Sequence[Sequence[Cell]], rounds: int, seed: int) -> list[Turn]:
    """Put every cell once into each round, in an order shuffled again from the seed."""
    chance = Random(seed)
    turns = []
    for number in range(rounds):
        for group in chance.sample(listed, len(listed)):
            turns += [Turn(number, cell) for cell in chance.sample(group, len(group))]
    return turns


@dataclass(frozen=True)
class Target:
    """A ratio of two cells that must keep to a limit."""

    what: str
    kind: str
    """`generator` CPU per request, `throughput`, `memory`, or `server` CPU per request."""
    cell: Cell
    against: Cell
    limit: Limit


# CPU per request, ours / theirs: at depth 1, at depth 16, and against nginx at depth 1.
CPU_MOST: Mapping[str, tuple[float, float | None, float]] = {
    "wrk": (0.75, 0.52, 0.90),
    "h2load": (0.66, 0.45, 0.82),
    "ab": (0.86, None, 0.95),
    "oha": (0.54, None, 0.72),
    "hey": (0.22, None, 0.30),
    "k6": (0.10, None, 0.12),
}
THROUGHPUT_LEAST = 1.8
MEMORY_MOST = 0.12
NGINX_MOST, NGINX_PIPELINED_MOST = 0.75, 0.10
EPOLL_MOST = 1.0
TLS_MOST = 1.0


def targets(connections: Sequence[int] = CONNECTIONS) -> list[Target]:
    """List the promised ratios with their limits, in the order of the report."""
    listed = []
    for peer in PEERS:
        for count in connections:
            listed += _peer_targets(peer, count)
    ours = Cell(REFERENCE, MANY_CONNECTIONS, 1, OURS, memory=True)
    what = f"peak memory / wrk's, {MANY_CONNECTIONS:,} connections"
    listed.append(Target(what, "memory", ours, ours.by("wrk"), Limit(MEMORY_MOST)))
    for count in connections:
        listed += _server_targets(count)
        cell = Cell(TLS, count, 1, OURS)
        what = f"CPU per request / wrk's, HTTPS, {count} connections"
        listed.append(Target(what, "generator", cell, cell.by("wrk"), Limit(TLS_MOST)))
    return listed


def _peer_targets(peer: str, count: int) -> list[Target]:
    plain, pipelined, nginx = CPU_MOST[peer]
    limits = [(REFERENCE, 1, plain), (REFERENCE, DEPTH, pipelined), (NGINX, 1, nginx)]
    listed = []
    for server, depth, most in limits:
        if most is not None:
            cell = Cell(server, count, depth, OURS)
            what = f"CPU per request / {peer}'s, {server}, {count} connections, depth {depth}"
            listed.append(Target(what, "generator", cell, cell.by(peer), Limit(most)))
    if peer == "wrk":
        cell = Cell(REFERENCE, count, DEPTH, OURS)
        what = f"throughput / {peer}'s, {REFERENCE}, {count} connections, depth {DEPTH}"
        limit = Limit(THROUGHPUT_LEAST, at_least=True)
        listed.append(Target(what, "throughput", cell, cell.by(peer), limit))
    return listed


def _server_targets(count: int) -> list[Target]:
    limits = [
        (NGINX, 1, NGINX_MOST),
        (NGINX, DEPTH, NGINX_PIPELINED_MOST),
        (EPOLL, 1, EPOLL_MOST),
        (EPOLL, DEPTH, EPOLL_MOST),
    ]
    listed = []
    for server, depth, most in limits:
        cell = Cell(REFERENCE, count, depth, OURS)
        what = f"reference server's CPU per request / {server}'s, {count} connections"
        what += f", depth {depth}"
        listed.append(Target(what, "server", cell, cell.of(server), Limit(most)))
    return listed
