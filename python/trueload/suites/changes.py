"""What the command line says other than a suite: its options, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar, cast

from trueload.errors import UserError
from trueload.protocol.engine_options import ENGINE_DEFAULTS, EngineOptions
from trueload.protocol.load_options import (
    LOAD_DEFAULTS,
    LoadOptions,
    RepeatOptions,
    parse_seed,
    positive_rate,
)
from trueload.protocol.option import FLAG, Unit, counts_to, flag_of, option
from trueload.units import parse_duration

if TYPE_CHECKING:
    from trueload.subjects.manifest import Cores
    from trueload.suites.definition import Suite

PORT_MAX = 65_535
NUMBERS_MAX = 1_000_000
SEARCH = "Search, thresholds and repetitions"
SUBJECTS = "Subjects"
Value = TypeVar("Value")


def _list_of(parse: Callable[[str], Value]) -> Callable[[str], tuple[Value, ...]]:
    """A parser of lists such as ``8,64``, whose values are different."""

    def parse_list(text: str) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(parse(part.strip()) for part in text.split(",")))

    return parse_list


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) <= NUMBERS_MAX):
        raise ValueError(f"'{text}' is not from 1 to {NUMBERS_MAX}: write for example 8,64")
    return int(text)


def _cores(text: str) -> Cores:
    if text not in ("single", "multi"):
        raise ValueError(f"'{text}' is neither single nor multi")
    return cast("Cores", text)


_NUMBERS = Unit("LIST", _list_of(_number), keyword="Numbers")
_RATES = Unit("LIST", _list_of(positive_rate), keyword="Rates")


class Changes(RepeatOptions, group="Load"):
    """What is other than in the suite. A list replaces that axis of it."""

    cores: tuple[Cores, ...] | None = option(
        Unit("single|multi", _list_of(_cores), keyword=""),
        "CPUs of the subject: one (single), or all that the load generator leaves (multi).",
        "CPUs of the subject: single or multi",
        group=SUBJECTS,
    )
    port: int | None = option(
        Unit("N", counts_to(PORT_MAX).parse, keyword="Number"),
        "Port for the subjects to listen on, instead of a free one.",
        group=SUBJECTS,
    )
    share_cpus: bool = option(
        FLAG, "Measure even if subject and load generator must share CPUs.", group=SUBJECTS
    )
    connections: tuple[int, ...] | None = option(
        _NUMBERS,
        "Numbers of connections to measure with, such as 8,64.",
        "Numbers of connections, such as 8,64",
        short="-c",
    )
    rate_per_s: tuple[float, ...] | None = option(
        _RATES,
        "Rates to measure at (open loops), such as 1k/s,20k/s.",
        "Rates to measure at, such as 1k/s,20k/s",
    )
    pipeline: tuple[int, ...] | None = option(
        _NUMBERS,
        "Numbers of requests in flight on each connection, such as 1,16.",
        "In flight on each connection, such as 1,16",
    )
    streams: tuple[int, ...] | None = option(
        _NUMBERS, "Numbers of requests in flight on each connection, for suites over HTTP/2."
    )
    close: bool | None = option(
        FLAG,
        "Open a new connection for each request, or keep connections open.",
        off="--no-close",
    )
    pools: tuple[int, ...] | None = option(
        _NUMBERS, "Numbers of connection pools, for suites of clients."
    )
    pool_size: tuple[int, ...] | None = option(
        _NUMBERS, "Numbers of connections in each pool, for suites of clients."
    )
    concurrency: tuple[int, ...] | None = option(
        _NUMBERS, "Numbers of requests under way at once, for suites of clients."
    )
    full: bool = option(FLAG, "Measure the larger, published grid of loads, if the suite has one.")
    seed: int | None = option(
        Unit("N", parse_seed, keyword="Number"),
        "Seed for the order of the trials, and for poisson arrivals.",
    )
    patience_ns: int | None = option(
        Unit("TIME", parse_duration, keyword="Duration"),
        "Longest time to spend on repeating trials that the machine disturbed; 0s for none.",
        group=SEARCH,
    )
    window: LoadOptions = LOAD_DEFAULTS
    engine: EngineOptions = ENGINE_DEFAULTS

    @property
    def are_some(self) -> bool:
        """Whether anything is other than in the suite."""
        return bool(self.given or self.window.given or self.engine.given)

    def of_role(self, *, clients: bool) -> Iterator[str]:
        """The options given that are for suites of clients only, or of servers only."""
        yield from map(flag_of, filter(self.gave, OF_CLIENTS if clients else OF_SERVERS))
        if not clients:
            yield from map(flag_of, filter(self.window.gave, WINDOW_OF_SERVERS))


OF_SERVERS = ("connections", "pipeline", "rate_per_s", "close", "port")
WINDOW_OF_SERVERS = ("requests", "arrivals", "stages", "stages_of")
OF_CLIENTS = ("pools", "pool_size", "concurrency")


def check_role(suite: Suite, changes: Changes) -> None:
    """Raises ``UserError`` for an option that is not for what the suite measures."""
    clients = suite.clients is not None
    what, other = ("clients", "servers") if clients else ("servers", "clients")
    for flag in changes.of_role(clients=not clients):
        raise UserError(
            f"{flag} is for suites of {other}, and this one measures {what}",
            "`trueload suite run --help` says what each option is for",
        )
    http2 = suite.http2 is not None
    if not clients and (changes.pipeline if http2 else changes.streams) is not None:
        wrong, right = ("--pipeline", "--streams") if http2 else ("--streams", "--pipeline")
        raise UserError(
            f"{wrong} is of HTTP/{'1.1' if http2 else '2'}, and this suite is not", f"use {right}"
        )
    if changes.full and not suite.full:
        raise UserError("--full: this suite has no larger grid", "leave --full out")
