"""What the clients in Python have in common: the lines that they hear and say.

How: the first line is the setup, each further one an order, `go N`; the client of a library performs
it and gives back a tally, which is said in one line. Everything else ends the program with an error.

The same text stands in the folder of each of them; it must not know a library.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Setup:
    """`concurrency` requests at once, over `pools` client objects with `pool_size` connections each."""

    url: str
    concurrency: int
    pools: int
    pool_size: int
    timeout_ms: int
    pipelining: int
    keep_alive: bool


@dataclass
class Tally:
    """What came of one order. Latencies are of what was answered, in nanoseconds."""

    latencies_ns: list[int] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)


def hear_setup(*, streams: bool = False) -> Setup:
    """The first line; ends the program if it is no setup. To a client of HTTP/2 `pipelining` is how many
    `streams` a connection may have."""
    try:
        given = json.loads(sys.stdin.readline())
        setup = Setup(**given)
        for each in fields(Setup):
            kind = {"str": str, "bool": bool, "int": int}[str(each.type)]
            if type(getattr(setup, each.name)) is not kind:
                raise ValueError(f"{each.name} is no {each.type}")
    except (ValueError, TypeError) as error:
        sys.exit(f"no setup: {error}")
    if setup.pipelining > 1 and not streams:
        say({"unsupported": "it does not pipeline"})
        sys.exit(0)
    return setup


def hear_orders() -> Iterator[int]:
    """The number of requests of each order, until the end of the input."""
    say({"ready": True})
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word != "go" or not number.isdecimal():
            sys.exit(f"no order: {line[:80]!r}")
        yield int(number)


def say_tally(tally: Tally, elapsed_ns: int) -> None:
    """The answer to an order."""
    sorted_ns = sorted(tally.latencies_ns)

    def at(share: float) -> float:
        return sorted_ns[math.ceil(share * len(sorted_ns)) - 1] / 1000

    latency_us = {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)} if sorted_ns else None
    say(
        {
            "ok": len(sorted_ns),
            "failed": dict(tally.failed),
            "elapsed_s": elapsed_ns / 1e9,
            "latency_us": latency_us,
        }
    )


def say(line: object) -> None:
    """One line of JSON."""
    print(json.dumps(line), flush=True)


def class_of(error: BaseException | None) -> str:
    """The failure class by what lies at the bottom of a library's exception."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return "connect.refused"
        if isinstance(error, (ConnectionResetError, BrokenPipeError)):
            return "reset"
        if isinstance(error, TimeoutError):
            return "timeout.total"
        error = error.__cause__ or error.__context__
    return "other"
