"""Times by name: ``p99``, ``min``, ``percentile("p99.95")``, each a ``Time``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from trueload.api.results.quantities import Time
from trueload.errors import UserError
from trueload.stats import parse_percentile


class Percentiles:
    """A class with percentiles; a subclass finds a time by its name."""

    @abstractmethod
    def _time(self, name: str) -> Time: ...

    def percentile(self, name: str) -> Time:
        """Return any percentile, such as ``"p99.95"``. Raises ``UserError`` for any other text."""
        if parse_percentile(name) is None:
            raise UserError(f"'{name}' is no percentile", "write for example 'p99.9'")
        return self._time(name)

    @property
    def p25(self) -> Time:
        """The 25th percentile."""
        return self._time("p25")

    @property
    def p50(self) -> Time:
        """The 50th percentile."""
        return self._time("p50")

    @property
    def p75(self) -> Time:
        """The 75th percentile."""
        return self._time("p75")

    @property
    def p90(self) -> Time:
        """The 90th percentile."""
        return self._time("p90")

    @property
    def p95(self) -> Time:
        """The 95th percentile."""
        return self._time("p95")

    @property
    def p99(self) -> Time:
        """The 99th percentile."""
        return self._time("p99")

    @property
    def p999(self) -> Time:
        """The 99.9th percentile."""
        return self._time("p99.9")


class Times(Percentiles):
    """One kind of time over all requests: percentiles, minimum, mean and maximum."""

    def __init__(self, of: Callable[[str], Time]) -> None:
        self._of = of

    def _time(self, name: str) -> Time:
        return self._of(name)

    def __repr__(self) -> str:
        return f"<p50 {self.p50}, p99 {self.p99}, max {self.max}>"

    @property
    def min(self) -> Time:
        """The shortest time of an answer."""
        return self._time("min")

    @property
    def mean(self) -> Time:
        """The mean over answers only: a request that failed or never ended has no time."""
        return self._time("mean")

    @property
    def max(self) -> Time:
        """The longest time of an answer: a request that failed or never ended has no time."""
        return self._time("max")
