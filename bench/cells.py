"""What is measured: the cells of the benchmark, and the targets that they are held to. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

CONNECTIONS = (64, 256)
DEPTHS = (1, 16)
MANY_CONNECTIONS = 10_000
MANY_ROUNDS = 3

OURS = "trueload"
# ab cannot pipeline.
TOOLS = {1: (OURS, "wrk", "ab", "h2load"), 16: (OURS, "wrk", "h2load")}
SERVERS = ("reference", "nginx")


@dataclass(frozen=True)
class Cell:
    """One generator at one load against one server."""

    server: str
    connections: int
    depth: int
    tool: str
    memory: bool = False
    """Peak memory is what this cell is for: it is sampled, and CPU time is not reported."""

    @property
    def load(self) -> tuple[str, int, int]:
        """What it shares with the cells that it is compared with."""
        return (self.server, self.connections, self.depth)


@dataclass(frozen=True)
class Turn:
    """A cell's turn in a round."""

    round: int
    cell: Cell


def schedule(rounds: int, seed: int) -> list[Turn]:
    """Every cell once in each round, in an order that the seed shuffles anew each time."""
    shuffle = Random(seed)
    turns = []
    for number in range(rounds):
        cells = cpu_cells() + (memory_cells() if number < MANY_ROUNDS else [])
        shuffle.shuffle(cells)
        turns += [Turn(number, cell) for cell in cells]
    return turns


def cpu_cells() -> list[Cell]:
    """The cells for CPU time and throughput."""
    return [
        Cell(server, connections, depth, tool)
        for server in SERVERS
        for depth in DEPTHS
        for connections in CONNECTIONS
        for tool in TOOLS[depth]
    ]


def memory_cells() -> list[Cell]:
    """The cells for peak memory."""
    return [Cell("reference", MANY_CONNECTIONS, 1, tool, memory=True) for tool in (OURS, "wrk")]


@dataclass(frozen=True)
class Target:
    """A ratio that must not be passed."""

    what: str
    kind: str
    """`generator` CPU per request, `memory`, or `server` CPU per request."""
    cell: Cell
    against: Cell
    most: float


def targets() -> list[Target]:
    """What has been promised, each with its bound."""
    listed = []
    for depth, most in ((1, 0.85), (16, 0.60)):
        for connections in CONNECTIONS:
            one = Cell("reference", connections, depth, OURS)
            two = Cell("reference", connections, depth, "wrk")
            what = f"CPU per request / wrk's, {connections} connections, depth {depth}"
            listed.append(Target(what, "generator", one, two, most))
    ours, wrk = memory_cells()
    what = f"peak memory / wrk's, {MANY_CONNECTIONS} connections"
    listed.append(Target(what, "memory", ours, wrk, 0.20))
    for tool in (OURS, "wrk"):
        for connections in CONNECTIONS:
            one = Cell("reference", connections, 1, tool)
            two = Cell("nginx", connections, 1, tool)
            what = f"reference server's CPU per request / nginx's, {tool} at {connections}"
            listed.append(Target(what, "server", one, two, 0.85))
    return listed
