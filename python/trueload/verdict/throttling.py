"""Checks of CPU limits: how long a cgroup's quota kept generator or server from running.

Our own limit makes figures wrong. The server's leaves them true, and is mentioned because it
explains them. Pure functions of a record.
"""

from __future__ import annotations

from trueload.record.client import ClientEnd
from trueload.record.schema import Record
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
NOBODY_COUNTS = "no cgroup of {whose} reports how long a CPU limit stopped it"


def throttled_text(whose: str, share: float) -> str:
    """A text: ``the server was throttled for 12 % of the window by its CPU limit``."""
    return f"{whose} was throttled for {format_share(share)} of the window by its CPU limit"


def check_cpu_limit(record: Record) -> Finding:
    """Grade our own limit."""
    return _ours("the generator", record.generator.throttled_share)


def check_client_cpu_limit(record: Record, client: ClientEnd) -> Finding:
    """Grade the reference server's limit, if a client is measured."""
    del client
    found = record.server.throttled_share if record.server is not None else None
    return _ours("the reference server", found)


def _ours(whose: str, share: float | None) -> Finding:
    if share is None:
        return not_applicable(NOBODY_COUNTS.format(whose=whose))
    status, limit = graded_beyond(share, STOOD_WARN, STOOD_FAIL)
    return Finding(status, throttled_text(whose, share), share, limit)


CPU_LIMIT = Definition(
    name="cpu-limit",
    order=152,
    compute=check_cpu_limit,
    of_client=check_client_cpu_limit,
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
    """Report the server's limit, which is no fault."""
    found = record.server.throttled_share if record.server is not None else None
    return _finding("the server", found)


def check_client_subject_cpu_limit(record: Record, client: ClientEnd) -> Finding:
    """Report the client's limit, which is no fault."""
    del client
    return _finding("the client", record.generator.throttled_share)


def _finding(whose: str, share: float | None) -> Finding:
    if share is None:
        return not_applicable(NOBODY_COUNTS.format(whose=whose))
    return Finding("pass", throttled_text(whose, share), share)


SUBJECT_CPU_LIMIT = Definition(
    name="subject-cpu-limit",
    order=154,
    compute=check_subject_cpu_limit,
    of_client=check_client_subject_cpu_limit,
    fault="subject",
    moves=NOTHING,
    meaning=(
        "A server that is stopped by its CPU limit answers late for that reason alone, and"
        " its p99 is real."
    ),
    remedy="Raise the server's CPU limit, if it is not the limit that you want to measure.",
)
