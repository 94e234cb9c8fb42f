"""How an account of a result is shown, as one value: lines, tables, columns and metrics.

To add one, declare a `AccountView` in a module of `report/accounts`; the account itself is in
`record/accounts`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from trueload.record.figures import BRIEF
from trueload.record.schema import Record
from trueload.report.grid import Grid
from trueload.stats import Distribution

Lines = Sequence[tuple[str, str]]
"""Labels and texts; an empty text is left out."""
Type = Literal["text", "int", "float", "bool"]
Kind = Literal["counter", "gauge", "histogram", "info"]

# opentelemetry.io, Prometheus and OpenMetrics compatibility, "Metric Metadata": units.
_UNITS = {"s": "seconds", "By": "bytes", "1": "ratio"}


@dataclass(frozen=True)
class Metric:
    """One line of the table.

    Counters only grow. An info has the value 1, and its labels carry the information.
    """

    name: str
    kind: Kind
    unit: str
    about: str

    @property
    def prometheus_unit(self) -> str:
        """The unit as a word; empty for counted things."""
        return _UNITS.get(self.unit, "")

    @property
    def prometheus_name(self) -> str:
        """The name without the suffix of a kind of sample (``_total``, ``_bucket``, ``_info``)."""
        name = self.name.replace(".", "_")
        if self.kind == "info":
            return name.removesuffix("_info")
        if self.unit.endswith("/s"):
            return f"{name}_per_second"
        return f"{name}_{self.prometheus_unit}" if self.prometheus_unit else name


@dataclass(frozen=True)
class Column:
    """A column of exported rows: its name, how a row's value is read, and its type in Parquet."""

    name: str
    read: Callable[[Any], object]
    type: Type = "int"


def times_columns(
    of: str, read: Callable[[Any], Distribution], names: Sequence[str] = BRIEF
) -> tuple[Column, ...]:
    """Columns of some times: ``of_p50_ns``, ``of_p99_ns``."""
    return tuple(Column(f"{of}_{name}_ns", partial(_time, read, name)) for name in names)


def _time(read: Callable[[Any], Distribution], name: str, found: Any) -> object:
    return getattr(read(found), name)


@dataclass(frozen=True, kw_only=True)
class AccountView:
    """One account. ``name`` is its field of the record, ``after`` what its lines follow: the label
    of another line, or another account. ``order`` is that of its columns and tables."""

    name: str
    after: str
    order: int = 100
    texts: Callable[[Any], Lines] = lambda kept: ()
    """Lines on what the record keeps: the same labels every time."""
    lines: Callable[[Record], Lines] | None = None
    """Lines that need more of the record than that."""
    block: Callable[[Record], Sequence[str]] = lambda record: ()
    """Whole lines, such as a table."""
    grid: Callable[[Record], Grid | None] = lambda record: None
    grid_of: str = ""
    """What each row of the grid is: ``request``."""
    figures: Callable[[Any], Lines] = lambda kept: ()
    """Short figures for pages: tiles of a program by itself, columns of a table of several."""
    title: str = ""
    """The title of the table that shows the account of each program in a suite."""
    columns: tuple[Column, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """Totals at the end of a trial, by the field that has the number."""

    def shown(self, record: Record) -> Lines:
        """The lines about a record that say something."""
        kept = getattr(record, self.name) if self.lines is None else None
        found = self.lines(record) if self.lines else () if kept is None else self.texts(kept)
        return [(label, text) for label, text in found if text]

    def total(self, name: str) -> str:
        """The name of a field with a metric among those of all accounts."""
        return f"{self.name}.{name}"
