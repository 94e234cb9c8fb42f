"""How much of the latency was spent in the generator itself."""

from __future__ import annotations

from trueload.protocol.model import Model
from trueload.record.account import Account, TrialFacts
from trueload.record.sample import complete


class GeneratorTime(Model):
    """One part of the time that the generator itself spent on requests, in ns."""

    count: int
    """The number of requests that were timed."""
    p50: int
    p99: int
    max: int


class GeneratorTimes(Model):
    """How much of the latency was spent in the generator; each part is null if it was not timed.
    Both histograms are in ``histograms``, as ``send_lag`` and ``receive_lag``."""

    send: GeneratorTime | None = None
    """From when a request could be sent (it was due, and a connection was free) to when it was
    handed to the kernel."""
    receive: GeneratorTime | None = None
    """From the kernel's receive time of an answer's last bytes to when they were read; timed on one
    connection in sixteen."""


def make_generator_times(_: None, facts: TrialFacts) -> GeneratorTimes:
    """What the record keeps of the window."""
    found = facts.window.histograms
    return GeneratorTimes(
        send=_generator_time(found.send_lag), receive=_generator_time(found.receive_lag)
    )


def _generator_time(encoded: str | None) -> GeneratorTime | None:
    found = complete(encoded)
    p50, p99, longest = (found.percentile(share).value for share in (0.5, 0.99, 1))
    if p50 is None or p99 is None or longest is None:
        return None
    return GeneratorTime(count=found.count, p50=p50, p99=p99, max=longest)


GENERATOR_TIMES = Account("client_ns", None, make_generator_times)
