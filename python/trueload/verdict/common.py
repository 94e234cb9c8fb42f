"""The parts of every check: its definition, its finding, and grading against two limits.

A check is one `Definition`, declared below its compute function; the package collects them.
Thresholds are beside the check that uses them, each with its source; where none is named it is
design.md's section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from trueload.protocol.plan import Closed, Generate, Open
from trueload.record.client import ClientEnd
from trueload.record.schema import Check, Direction, Record, Status
from trueload.units import counted, format_duration

ONLY_OF_CLIENTS = "this check is for HTTP clients under test, and here a server is under test"
MEANINGFUL_WINDOW_NS = 100_000_000  # a share of fewer than some ten scheduler ticks tells nothing

Fault = Literal["subject", "generator", "machine", "either", "load", "hosts", "trueload"]
"""The cause of a check's warning or failure.

It is the program under test, the generator, its machine, any of these three (``either``), the load
that was asked for, one of several hosts, or trueload itself.
"""


@dataclass(frozen=True)
class Finding:
    """The finding of a check; ``why`` is one line with the figures that decided."""

    status: Status
    why: str
    value: float | None = None
    limit: float | None = None


def not_applicable(why: str) -> Finding:
    """Return the finding of a check that does not apply, or cannot tell."""
    return Finding("n/a", why)


@dataclass(frozen=True)
class Moves:
    """How a check's fault can move each kind of figure, seen from the figure.

    ``at_most``: the fault only makes it larger, so the truth is at most the figure. ``unknown``: it
    can move it either way. What is only added by our own side, or by the machine, is a bound for a
    load that was sent as scheduled. In a closed loop a generator that is paused also skips the
    pauses of the server, so that its latencies are no bound there (``delays``). ``by_delays``: such
    a disturbance alone makes the check fail, so that beside one it says nothing more.
    """

    latency: Direction = "unknown"
    throughput: Direction = "unknown"
    errors: Direction = "unknown"
    delays: bool = False
    by_delays: bool = False


ANYTHING = Moves()
"""The fault can move every figure both ways. An answer that belongs to no request does so."""
NOTHING = Moves("exact", "exact", "exact")
"""The fault is the server's, and every figure shows it. Failed requests are an example."""
DELAYS = Moves("at_most", "at_least", "at_most", delays=True)
"""The fault adds to waits, takes from the throughput, and may cause timeouts."""
HIDDEN_WAITS = Moves("at_least", "exact", "exact")
"""The percentiles hide some waits."""
SERVES_MORE = Moves("exact", "at_least", "exact")
"""The server may carry more than the throughput shows."""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One check, with all that is known of it.

    Checks are listed by ``order``, the smallest first. ``compute`` judges a trial of a server, and
    ``of_client`` one of a client: None if both are judged alike. Either may be a text instead: the
    reason why the check does not apply there. ``meaning`` is the purpose, and ``remedy`` says what
    to do when it warns or fails, unless ``remedy_where`` returns something better for a record.
    ``spoiled`` says in a few words what a failure on our side did to a step of a search.
    ``per_host``: a single host can fail the check while the sum of all looks well. ``moves``: what
    a failure leaves certain.
    """

    name: str
    order: int
    compute: Callable[[Record], Finding] | str
    of_client: Callable[[Record, ClientEnd], Finding] | str | None = None
    fault: Fault
    meaning: str
    remedy: str
    remedy_where: Callable[[Record], str | None] | None = None
    spoiled: str = ""
    per_host: bool = False
    moves: Moves = ANYTHING

    def check(self, record: Record) -> Check:
        """Return the check of this record."""
        return Check(name=self.name, **vars(self._find(record)))

    def remedy_for(self, record: Record) -> str:
        """Return what to do about this check's warning or failure in this record."""
        special = self.remedy_where(record) if self.remedy_where is not None else None
        return special or self.remedy

    def _find(self, record: Record) -> Finding:
        if record.client is None or self.of_client is None:
            compute = self.compute
            return not_applicable(compute) if isinstance(compute, str) else compute(record)
        if isinstance(self.of_client, str):
            return not_applicable(self.of_client)
        return self.of_client(record, record.client)


def graded(value: float, warn: float, fail: float) -> tuple[Status, float]:
    """Return the status of a value that should be small, and the limit that decided."""
    if value >= fail:
        return "fail", fail
    return ("warn", warn) if value >= warn else ("pass", warn)


def graded_beyond(value: float, warn: float, fail: float) -> tuple[Status, float]:
    """Grade like ``graded``, but a value equal to a limit is still within it."""
    if value > fail:
        return "fail", fail
    return ("warn", warn) if value > warn else ("pass", warn)


def is_open(record: Record) -> bool:
    """Whether requests were sent by a schedule."""
    return isinstance(record.plan.window.load, Open)


def is_closed(record: Record) -> bool:
    """Whether each free slot sent at once."""
    return isinstance(record.plan.window.load, Closed)


def has_slow_connections(record: Record) -> bool:
    """Whether connections read slowly on purpose, so that bytes wait for them."""
    return record.plan.generate.read_rate_per_s is not None


def is_http(record: Record) -> bool:
    """Whether all requests and answers were HTTP."""
    generate = record.plan.generate
    return generate.exchange is None and not any(step.upgrade for step in generate.scenario)


def listening_at_end(record: Record) -> int:
    """Return how many requests at the end were those of users that only listen, and go on until
    the load ends: nothing was to end them."""
    steps = record.plan.generate.scenario
    return sum(
        target.counts.cancelled
        for step, target in zip(steps, record.targets or (), strict=False)
        if step.messages is not None and step.messages.endless
    )


def is_staged(record: Record) -> bool:
    """Whether the load changed in the window."""
    load = record.plan.window.load
    if not isinstance(load, Open | Closed):
        return False
    stages = load.stages if isinstance(load, Open) else load.active
    return len({value for stage in stages for value in (stage.from_, stage.to)}) > 1


def too_short(record: Record, least_ns: int = MEANINGFUL_WINDOW_NS) -> str | None:
    """Return why the window is too short to tell, if it is shorter than ``least_ns``."""
    if record.window.window_ns >= least_ns:
        return None
    window, least = format_duration(record.window.window_ns), format_duration(least_ns)
    return f"a window of {window} is too short to tell; it must be at least {least}"


def in_one_line(reasons: Iterable[str]) -> str:
    """Join the non-empty reasons with "; "."""
    return "; ".join(reason for reason in reasons if reason)


times = counted


def in_flight(generate: Generate) -> list[str]:
    """Return a connection's requests in flight, as parts of a sentence.

    Such parts are ``HTTP/2, 10 streams`` and ``pipeline 4``. Empty for one request over HTTP/1.1.
    """
    http2 = generate.http2
    if http2 is None:
        return [f"pipeline {generate.pipeline}"] if generate.pipeline > 1 else []
    streams = times(generate.pipeline, "stream")
    if http2.http1_pipeline is None:
        return [f"HTTP/2, {streams}"]
    own = f", pipeline {http2.http1_pipeline}" if http2.http1_pipeline > 1 else ""
    return [f"HTTP/2 ({streams}) or HTTP/1.1{own}"]
