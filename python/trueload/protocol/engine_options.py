"""The settings of an engine, each declared once.

The plans inherit them, and every surface offers them automatically, so a new setting is one field
here.
"""

from typing import Literal, get_args

from trueload.protocol.option import (
    CPUS,
    SPAN,
    Settings,
    Unit,
    any_span,
    counts_to,
    one_of,
    option,
    options_of,
    show_span,
    within,
)
from trueload.units import NS_PER_S, format_size, format_span, parse_rate, parse_size

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
    wrong = f"not from 1/s to {CONNECT_RATE_MAX:,}/s"
    return int(within(parse_rate, 1, CONNECT_RATE_MAX, wrong)(text))


def _byte_rate(text: str) -> int:
    return parse_size(text.strip().removesuffix("/s"))


def show_byte_rate(per_s: float) -> str:
    """``64.0 KiB/s``."""
    return f"{format_size(per_s)}/s"


_BYTE_RATE = Unit(
    "RATE",
    within(_byte_rate, 1, BYTE_RATE_MAX, f"not from 1/s to {BYTE_RATE_MAX // 2**20} MiB/s"),
    show_byte_rate,
    keyword="Rate",
)
_CONNECT_RATE = Unit("RATE", _connect_rate, "{}/s".format, keyword="Rate")
_CONNECTIONS = "Connections"


def _span_to(most_ns: int, why: str) -> Unit:
    parse = within(any_span, 0, most_ns, f"more than {format_span(most_ns)}, {why}")
    return Unit("TIME", parse, show_span, keyword="Duration")


class ThreadOptions(Settings, group="Engine"):
    """How an engine runs, whether it generates load or serves."""

    threads: int = option(
        counts_to(THREADS_MAX),
        "Threads of the engine, which sends the load or serves.",
        "Threads of the engine",
        default=1,
    )
    cpus: tuple[int, ...] | None = option(CPUS, "CPUs to pin the threads to, like 1 or 0-1,3.")
    """Used in turn. None leaves them to whoever starts the engine; an empty tuple pins nothing."""
    driver: DriverName = option(
        one_of(*get_args(DriverName)),
        "Kernel interface for socket I/O; auto prefers io_uring. Where that is not available, epoll"
        " is used.",
        default="auto",
    )
    spin_ns: int = option(
        _span_to(SPIN_NS_MAX, "and saves nothing beyond"),
        "Poll this long, such as 50us, before a thread sleeps. Helps only with very few"
        " connections.",
        default=0,
    )


class EngineOptions(ThreadOptions, group="Engine"):
    """How an engine generates load, whatever the protocol."""

    coalesce_ns: int = option(
        _span_to(COALESCE_NS_MAX, "and answers would be late"),
        "Longest time that answers of a closed loop, or parts of streams, wait for each other; 0"
        " turns this off. It applies where a thread is busy, or has several requests on a"
        " connection.",
        default=COALESCE_NS,
    )
    refill: int | None = option(
        counts_to(PIPELINE_MAX),
        "Free places in a pipeline at which it is filled again; 1 fills it at once.",
        unset="half of --pipeline",
    )
    read_rate_per_s: int | None = option(
        _BYTE_RATE,
        "Slow clients: bytes that each connection reads per second, such as 64KiB/s.",
        group=_CONNECTIONS,
        omitted=True,
    )
    write_rate_per_s: int | None = option(
        _BYTE_RATE,
        "Slow clients: bytes that each connection writes per second.",
        group=_CONNECTIONS,
        omitted=True,
    )
    timeout_ns: int = option(
        SPAN,
        "Time limit for opening a connection, and for the answer to each request.",
        "Longest wait for a connection or an answer",
        default=5 * NS_PER_S,
        group=_CONNECTIONS,
        texts={
            "tcp": "Time limit for opening a connection, and for each message to come back.",
            "udp": "Time after which a datagram without an answer is lost.",
            "ws": "Time limit for opening a connection, and for each message to come back.",
        },
    )
    connect_rate_per_s: int = option(
        _CONNECT_RATE,
        "Highest rate of connection attempts, such as 500/s or 20k/s.",
        default=CONNECT_RATE_PER_S,
        group=_CONNECTIONS,
    )

    @property
    def engine(self) -> "EngineOptions":
        """Only the engine's settings of a plan that has more."""
        return EngineOptions(**{name: getattr(self, name) for name in options_of(EngineOptions)})


ENGINE_DEFAULTS = EngineOptions()
"""The defaults: nothing was given."""
