"""The settings of a load, each declared once: how many connections, when they send, and how long.

``commands.load_flags`` combines them.
"""

from typing import Literal, get_args

from trueload.protocol.engine_options import PIPELINE_MAX
from trueload.protocol.option import SPAN, Settings, Unit, any_span, counts_to, one_of, option
from trueload.protocol.option import show_span as span
from trueload.units import NS_PER_S, SEED_MAX, Ramp, parse_count, parse_rate, parse_stages

CONNECTIONS_MAX = 1_000_000
RATE_MAX = 1_000_000_000
REQUESTS_MAX = 10**12
REPEAT_MAX = 10_000

Arrivals = Literal["constant", "poisson"]
StagesOf = Literal["rate", "connections"]


def positive_rate(text: str) -> float:
    """Parse a rate that is above 0 and that an engine can count. Raises ``ValueError``."""
    rate = parse_rate(text)
    if not 0 < rate <= RATE_MAX:
        raise ValueError(f"'{text}' is not a rate above 0, up to {RATE_MAX:,}/s")
    return rate


def staged(text: str, of: StagesOf) -> tuple[Ramp, ...]:
    """Parse ``--stages``. Raises ``ValueError`` that points at the wrong character."""
    return parse_stages(text, _connections if of == "connections" else _rate)


def _rate(text: str) -> float:
    rate = parse_rate(text)
    if rate > RATE_MAX:
        raise ValueError(f"'{text}' is more than {RATE_MAX:,}/s")
    return rate


def _connections(text: str) -> float:
    count = parse_count(text)
    if count > CONNECTIONS_MAX:
        raise ValueError(f"'{text}' is more than {CONNECTIONS_MAX:,} connections")
    return float(count)


def parse_seed(text: str) -> int:
    """Parse a seed. Raises ``ValueError``."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and int(digits[:20]) <= SEED_MAX):
        raise ValueError(f"'{text}' is not a whole number from 0 to {SEED_MAX:,}")
    return int(digits)


RATE = Unit("RATE", positive_rate, keyword="Rate")


class LoadOptions(Settings, group="Load"):
    """The load on a server. Of settings that cannot be used together only one is given."""

    connections: int = option(
        counts_to(CONNECTIONS_MAX),
        "Connections to hold open.",
        "Connections to hold open",
        short="-c",
        default=64,
        texts={"udp": "Sockets to send from."},
    )
    duration_ns: int = option(
        SPAN,
        "How long to measure, like 500ms, 10s, 2m.",
        "How long to measure",
        short="-d",
        default=10 * NS_PER_S,
    )
    rate_per_s: float | None = option(
        RATE,
        "Send requests at this rate, such as 20k/s, whether or not earlier ones are answered (an"
        " open loop).",
        "Rate to send at (an open loop), such as 20k/s",
        texts={
            **dict.fromkeys(
                ("tcp", "ws"),
                "Send messages at this rate, such as 20k/s, whether or not earlier ones have come"
                " back (an open loop).",
            ),
            "udp": "Send datagrams at this rate, such as 20k/s, whether or not earlier ones have"
            " come back (an open loop).",
        },
    )
    requests: int | None = option(
        counts_to(REQUESTS_MAX),
        "Number of requests to send in all, instead of --duration.",
        "Number to send in all, instead of --duration",
        texts={
            "http": "Number of requests to send in all, instead of --duration; with --scenario, of"
            " sessions.",
            "tcp": "Number of messages to send in all, instead of --duration.",
            "udp": "Number of datagrams to send in all, instead of --duration.",
            "ws": "Number of messages to send in all, instead of --duration. Echo only.",
        },
    )
    warmup_ns: int | None = option(
        Unit("TIME", any_span, span, keyword="Duration"),
        "Time under load before the measured window; it is left out of the figures.",
        "Time under load before measuring",
        unset="1s; 0 with --requests",
    )
    pipeline: int = option(
        counts_to(PIPELINE_MAX),
        "Requests in flight on each HTTP/1.1 connection.",
        "In flight on each connection",
        default=1,
        texts={
            **dict.fromkeys(("tcp", "ws"), "Messages in flight on each connection."),
            "udp": "Datagrams in flight from each socket.",
        },
    )
    stages: str | None = option(
        Unit("STAGES"),
        "Load over time, instead of --rate and --duration: '10s@1k,30s@1k..20k,10s@20k'.",
        "Load over time: '10s@1k,30s@1k..20k'",
    )
    stages_of: StagesOf = option(
        one_of(*get_args(StagesOf)),
        "What the values of --stages are: requests per second, or connections.",
        default="rate",
        texts={
            **dict.fromkeys(
                ("tcp", "ws"),
                "What the values of --stages are: messages per second, or connections.",
            ),
            "udp": "What the values of --stages are: datagrams per second, or sockets.",
        },
    )
    arrivals: Arrivals = option(
        one_of(*get_args(Arrivals)),
        "Spacing of what an open loop sends: even (constant) or random (poisson).",
        default="constant",
    )
    idle: int | None = option(
        counts_to(CONNECTIONS_MAX),
        "Hold this many more connections open that never send, and report the server memory that"
        " each costs.",
    )
    seed: int = option(
        Unit("N", parse_seed, keyword="Number"),
        "Seed of the random arrivals of --arrivals poisson.",
        default=1,
        texts={
            "http": "Seed for everything random: arrivals, {random} in requests and shuffled data.",
            "compare": "Seed for everything random: the order of the trials, arrivals, {random} in"
            " requests and shuffled data.",
        },
    )


class RepeatOptions(Settings, group="Search, thresholds and repetitions"):
    """How often is measured."""

    repeat: int | None = option(
        counts_to(REPEAT_MAX),
        "Number of times to measure; the median counts.",
        "Times to measure; the median counts",
        texts={
            "compare": "Number of pairs of trials.",
            "suite run": "Number of times to measure each row; the median counts.",
        },
    )


LOAD_DEFAULTS = LoadOptions()
"""The defaults: nothing was given."""
WINDOW_KEYS = ("duration", "requests", "stages", "stages_of", "warmup", "arrivals")
"""The settings of all loads of a suite; the others are the axes of its loads."""
