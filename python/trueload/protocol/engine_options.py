"""The settings of an engine, each declared once.

The plans inherit them, and every surface offers them automatically, so a new setting is one field
here. Must not know what any surface does with them.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field

from trueload.protocol.option import (
    CPUS,
    SPAN,
    Option,
    Settings,
    Unit,
    counts_to,
    one_of,
    show_span,
    span_up_to,
)
from trueload.units import NS_PER_S, format_size, parse_rate, parse_size

CONNECT_RATE_PER_S = 5_000
"""Default rate of connection attempts; if the accept queue overflows, an attempt costs a second."""
COALESCE_NS = 400_000
"""How long answers may wait for each other by default: less than the delays that a scheduler causes
now and then. The engine limits it further by the mean service time."""
PIPELINE_MAX = 10_000
THREADS_MAX = 1_024
CONNECT_RATE_MAX = 10_000_000
SPIN_NS_MAX = 10_000_000
COALESCE_NS_MAX = 1_000_000
BYTE_RATE_MAX = 2**30

DriverName = Literal["auto", "io_uring", "epoll"]
"""What carries the sockets; ``auto`` is the fastest that the kernel allows."""


def _connect_rate(text: str) -> int:
    rate = parse_rate(text)
    if not 1 <= rate <= CONNECT_RATE_MAX:
        raise ValueError(f"'{text}' is not from 1/s to {CONNECT_RATE_MAX:,}/s")
    return int(rate)


def _byte_rate(text: str) -> int:
    rate = parse_size(text.strip().removesuffix("/s"))
    if not 1 <= rate <= BYTE_RATE_MAX:
        raise ValueError(f"'{text}' is not from 1/s to {BYTE_RATE_MAX // 2**20} MiB/s")
    return rate


def show_byte_rate(per_s: int) -> str:
    """``64.0 KiB/s``."""
    return f"{format_size(per_s)}/s"


_BYTE_RATE = Unit("RATE", _byte_rate, show_byte_rate)


class ThreadOptions(Settings):
    """How an engine runs, whether it generates load or serves."""

    threads: Annotated[
        int,
        Option(counts_to(THREADS_MAX), ("Threads of the engine, which sends the load or serves.")),
    ] = 1
    cpus: Annotated[
        tuple[int, ...] | None, Option(CPUS, "CPUs to pin the threads to, like 1 or 0-1,3.")
    ] = None
    """Used in turn. None leaves them to whoever starts the engine; an empty tuple pins nothing."""
    driver: Annotated[
        DriverName,
        Option(
            one_of(*get_args(DriverName)),
            (
                "Kernel interface for socket I/O; auto prefers io_uring. Where that is not"
                " available, epoll is used."
            ),
        ),
    ] = "auto"
    spin_ns: Annotated[
        int,
        Option(
            Unit("TIME", span_up_to(SPIN_NS_MAX, "and saves nothing beyond"), show_span),
            (
                "Poll this long, such as 50us, before a thread sleeps. Helps only with very"
                " few connections."
            ),
        ),
    ] = 0


class EngineOptions(ThreadOptions):
    """How an engine generates load, whatever the protocol."""

    coalesce_ns: Annotated[
        int,
        Option(
            Unit("TIME", span_up_to(COALESCE_NS_MAX, "and answers would be late"), show_span),
            (
                "Longest time that answers of a closed loop, or parts of streams, wait for"
                " each other; 0 turns this off. It applies where a thread is busy, or has"
                " several requests on a connection."
            ),
        ),
    ] = COALESCE_NS
    refill: Annotated[
        int | None,
        Option(
            counts_to(PIPELINE_MAX),
            "Free places in a pipeline at which it is filled again; 1 fills it at once.",
            unset="half of --pipeline",
        ),
    ] = None
    read_rate_per_s: Annotated[
        int | None,
        Option(
            _BYTE_RATE,
            "Slow clients: bytes that each connection reads per second, such as 64KiB/s.",
        ),
    ] = Field(default=None, exclude_if=lambda value: value is None)
    write_rate_per_s: Annotated[
        int | None,
        Option(_BYTE_RATE, "Slow clients: bytes that each connection writes per second."),
    ] = Field(default=None, exclude_if=lambda value: value is None)
    timeout_ns: Annotated[
        int,
        Option(SPAN, "Time limit for opening a connection, and for the answer to each request."),
    ] = 5 * NS_PER_S
    connect_rate_per_s: Annotated[
        int,
        Option(
            Unit("RATE", _connect_rate, "{}/s".format),
            "Highest rate of connection attempts, such as 500/s or 20k/s.",
        ),
    ] = CONNECT_RATE_PER_S

    @property
    def engine(self) -> EngineOptions:
        """Only the engine's settings of a plan that has more."""
        return EngineOptions(**{name: getattr(self, name) for name in EngineOptions.model_fields})

    def with_cpus(self, cpus: tuple[int, ...] | None) -> Self:
        """The same on these CPUs."""
        return self.model_copy(update={"cpus": cpus})


ENGINE_DEFAULTS = EngineOptions()
"""The defaults: nothing was given."""
