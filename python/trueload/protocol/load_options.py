"""The settings of a load, each declared once: how many connections, when they send, and how long.

Must not know what any surface does with them, or how they combine (``trial.load``).
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from trueload.protocol.engine_options import PIPELINE_MAX
from trueload.protocol.option import SPAN, Option, Settings, Unit, any_span, counts_to, one_of
from trueload.protocol.option import show_span as span
from trueload.units import NS_PER_S, SEED_MAX, Ramp, parse_count, parse_rate, parse_stages

CONNECTIONS_MAX = 1_000_000
RATE_MAX = 1_000_000_000
REQUESTS_MAX = 10**12

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


class LoadOptions(Settings):
    """The load on a server. Of settings that exclude each other only one is given."""

    connections: Annotated[
        int, Option(counts_to(CONNECTIONS_MAX), "Connections to hold open.", short="-c")
    ] = 64
    idle: Annotated[
        int | None,
        Option(
            counts_to(CONNECTIONS_MAX),
            (
                "Hold this many more connections open that never send, and report the server"
                " memory that each costs."
            ),
        ),
    ] = None
    duration_ns: Annotated[
        int, Option(SPAN, "How long to measure, like 500ms, 10s, 2m.", short="-d")
    ] = 10 * NS_PER_S
    requests: Annotated[
        int | None,
        Option(
            counts_to(REQUESTS_MAX),
            (
                "Number of requests to send in all, instead of --duration; with --scenario, of"
                " sessions."
            ),
        ),
    ] = None
    rate_per_s: Annotated[
        float | None,
        Option(
            Unit("RATE", positive_rate),
            (
                "Send requests at this rate, such as 20k/s, whether or not earlier ones are"
                " answered (an open loop)."
            ),
        ),
    ] = None
    arrivals: Annotated[
        Arrivals,
        Option(
            one_of(*get_args(Arrivals)),
            ("Spacing of the requests of an open loop: even (constant) or random (poisson)."),
        ),
    ] = "constant"
    seed: Annotated[
        int,
        Option(
            Unit("N", parse_seed),
            (
                "Seed for everything random: arrivals, {random} in requests, shuffled data,"
                " and the order of trials in ab."
            ),
        ),
    ] = 1
    stages: Annotated[
        str | None,
        Option(
            Unit("STAGES", str),
            "Load over time, instead of --rate and --duration: '10s@1k,30s@1k..20k,10s@20k'.",
        ),
    ] = None
    stages_of: Annotated[
        StagesOf,
        Option(
            one_of(*get_args(StagesOf)),
            ("What the values of --stages are: requests per second, or connections."),
        ),
    ] = "rate"
    pipeline: Annotated[
        int,
        Option(counts_to(PIPELINE_MAX), "Requests, or messages, in flight per connection."),
    ] = 1
    warmup_ns: Annotated[
        int | None,
        Option(
            Unit("TIME", any_span, span),
            "Time under load before the measured window; it is left out of the figures.",
            unset="1s; 0 with --requests",
        ),
    ] = None

    def gave(self, field: str) -> bool:
        """Whether a setting was given."""
        return field in self.model_fields_set


LOAD_DEFAULTS = LoadOptions()
"""The defaults: nothing was given."""
