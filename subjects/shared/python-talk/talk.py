"""The protocol between trueload and a client in Python.

The first line of stdin is the setup, and each further line is an order, `go N`. The client performs
the order, and its tally is written to stdout as one line of JSON. Any other input ends the program
with an error.

This file must not use an HTTP library. It lies in subjects/shared, and is copied into the build of
each subject whose manifest names its folder.
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
    """`concurrency` requests at once, over `pools` objects of `pool_size` connections each."""

    url: str
    concurrency: int
    pools: int
    pool_size: int
    timeout_ms: int
    pipelining: int
    keep_alive: bool


@dataclass
class Tally:
    """The results of one order. Only answered requests have latencies."""

    latencies_ns: list[int] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)


def hear_setup(*, streams: bool = False) -> Setup:
    """Read the setup from the first line; end the program if it is invalid.

    With `streams` the client speaks HTTP/2, and `pipelining` is the streams per connection.
    """
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
    """Yield the number of requests of each order until the end of the input."""
    say({"ready": True})
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word != "go" or not number.isdecimal():
            sys.exit(f"no order: {line[:80]!r}")
        yield int(number)


def say_tally(tally: Tally, elapsed_ns: int) -> None:
    """Write the result of an order to stdout."""
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
    """Write one line of JSON to stdout."""
    print(json.dumps(line), flush=True)


def class_of(error: BaseException | None) -> str:
    """Return the failure class of an exception, according to its chain of causes."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return "connect.refused"
        if isinstance(error, (ConnectionResetError, BrokenPipeError)):
            return "reset"
        if isinstance(error, TimeoutError):
            return "timeout.total"
        error = error.__cause__ or error.__context__
    return "other"
