"""Times by name: ``p99``, ``min``, ``percentile("p99.95")``, each a ``Time``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from trueload.api.results.quantities import Time
from trueload.errors import UserError
from trueload.stats import parse_percentile


class NamedTime:
    """An attribute: the time of a name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__doc__ = f"The {name} of the times."

    def __get__(self, of: Percentiles | None, owner: object = None) -> Time:
        if of is None:
            return self  # type: ignore[return-value]  # of the class, as a property is
        return of._time(self._name)


class Percentiles:
    """A class with percentiles; a subclass finds a time by its name."""

    p25 = NamedTime("p25")
    p50 = NamedTime("p50")
    p75 = NamedTime("p75")
    p90 = NamedTime("p90")
    p95 = NamedTime("p95")
    p99 = NamedTime("p99")
    p999 = NamedTime("p99.9")

    @abstractmethod
    def _time(self, name: str) -> Time: ...

    def percentile(self, name: str) -> Time:
        """Return any percentile, such as ``"p99.95"``. Raises ``UserError`` for any other text."""
        if parse_percentile(name) is None:
            raise UserError(f"'{name}' is not a percentile", "write for example 'p99.9'")
        return self._time(name)


class Times(Percentiles):
    """One kind of time over all requests: percentiles, and those of answers: the shortest, the
    mean and the longest. A request that failed or never ended has no time."""

    min = NamedTime("min")
    mean = NamedTime("mean")
    max = NamedTime("max")

    def __init__(self, of: Callable[[str], Time]) -> None:
        self._of = of

    def _time(self, name: str) -> Time:
        return self._of(name)

    def __repr__(self) -> str:
        return f"<p50 {self.p50}, p99 {self.p99}, max {self.max}>"
