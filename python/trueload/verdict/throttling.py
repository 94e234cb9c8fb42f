"""Checks of CPU limits: how long a cgroup's quota kept generator or server from running.

Our own limit makes figures wrong. The server's leaves them true, and is mentioned because it
explains them. Pure functions of a record.
"""

from __future__ import annotations

from dataclasses import replace

from trueload.record.schema import Generator, Record, Server
from trueload.units import format_share
from trueload.verdict.common import (
    DELAYS,
    NOTHING,
    Definition,
    Finding,
    graded_beyond,
    not_applicable,
)

STOOD_WARN, STOOD_FAIL = 0.02, 0.05
"""Shares of the window in which the generator was paused.

A closed loop's throughput is too low by at most this share. Two equal runs differ by some 2 %; 5 %
would change the order of servers.
"""
TURN_NS = 4_000_000  # a turn of the scheduler, which any thread on any machine may wait for


def throttled_text(whose: str, share: float) -> str:
    """A text: ``the server was throttled for 12 % of the window by its CPU limit``."""
    return f"{whose} was throttled for {format_share(share)} of the window by its CPU limit"


def check_cpu_limit(record: Record) -> Finding:
    """Grade our own limit: the generator's or, where a client is measured, our server's."""
    if record.client is None:
        found = _finding("the generator", record.generator)
    else:
        found = _finding("the reference server", record.server)
    if found.value is None:
        return found
    status, limit = graded_beyond(found.value, STOOD_WARN, STOOD_FAIL)
    return replace(found, status=status, limit=limit)


def _finding(whose: str, end: Generator | Server | None) -> Finding:
    share = end.throttled_share if end is not None else None
    if share is None:
        return not_applicable(f"no cgroup of {whose} reports how long a CPU limit stopped it")
    return Finding("pass", throttled_text(whose, share), share)


CPU_LIMIT = Definition(
    name="cpu-limit",
    order=152,
    compute=check_cpu_limit,
    fault="generator",
    moves=DELAYS,
    meaning="While a CPU limit holds the generator it neither sends nor reads.",
    remedy=(
        "Raise the CPU limit of the container or unit that trueload runs in (cpu.max, CPUQuota,"
        " --cpus), or take it away."
    ),
    spoiled="a CPU limit held the generator",
    per_host=True,
)


def check_subject_cpu_limit(record: Record) -> Finding:
    """Report the limit of the program under test, which is no fault."""
    if record.client is None:
        return _finding("the server", record.server)
    return _finding("the client", record.generator)


SUBJECT_CPU_LIMIT = Definition(
    name="subject-cpu-limit",
    order=154,
    compute=check_subject_cpu_limit,
    fault="subject",
    moves=NOTHING,
    meaning=(
        "A server that is stopped by its CPU limit answers late for that reason alone, and"
        " its p99 is real."
    ),
    remedy="Raise the server's CPU limit, if it is not the limit that you want to measure.",
)
