"""Sheets, the tables that are exported: their typed columns, and the rows of trials and of hosts.

CSV, Parquet and data frames have the same columns. Accounts bring their own (``report/accounts``),
and a suite has those of its table (``report/columns``). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from trueload.protocol.plan import Open
from trueload.record import figures
from trueload.record.figures import BRIEF, PERCENTILES, SHOWN
from trueload.record.schema import REPORTED_STATUSES, Host, Record
from trueload.report.account import Column, Type, times_columns
from trueload.report.accounts import ACCOUNTS
from trueload.report.accounts.deliveries import DELIVERIES
from trueload.report.grid import Grid
from trueload.stats import Distribution
from trueload.store.rows import DamagedRow, Row
from trueload.verdict import offered_per_s


@dataclass(frozen=True)
class Sheet:
    """Rows under typed columns; a row has its values by column, and may lack some."""

    columns: Sequence[Column]
    rows: Iterable[Mapping[str, object]]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


COUNTS = ("scheduled", "unsent", "issued", "ok", "stale")
RATES = ("ok_per_s", "bytes_in_per_s", "bytes_out_per_s")


def at(path: str) -> Callable[[Any], Any]:
    """Read ``server.cpu_s``; None if there is no server."""

    def read(found: Any) -> Any:
        for name in path.split("."):
            found = None if found is None else getattr(found, name)
        return found

    return read


def _columns(paths: Mapping[str, str] | Iterable[str], type_: Type = "int") -> tuple[Column, ...]:
    """Columns of fields by their paths, or with the names of the fields."""
    named = paths if isinstance(paths, Mapping) else {path.split(".")[-1]: path for path in paths}
    return tuple(Column(name, at(path), type_) for name, path in named.items())


def _by_class(counts: Mapping[str, int] | None) -> str:
    return "; ".join(f"{name}={n}" for name, n in sorted((counts or {}).items()))


def _latency(of: Record | Host) -> Distribution:
    if isinstance(of, Host):
        return of.latency_ns or Distribution()
    return figures.latency(of).figures


def _few(names: Callable[[Distribution], Iterable[str]]) -> Callable[[Record], str]:
    return lambda record: "; ".join(names(_latency(record)))


def _checks(of: Record | Host) -> str:
    told = (each for each in of.checks if each.status in REPORTED_STATUSES)
    return "; ".join(f"{each.status} {each.name}: {each.why}" for each in told)


FAILED = (
    Column("failed", lambda of: None if of.counts is None else figures.failed(of.counts)),
    Column("failed_by_class", lambda of: _by_class(of.counts and of.counts.failed), "text"),
)
CHECKS = Column("checks", _checks, "text")
OF_ROW = (
    *_columns(("run",), "text"),
    *_columns(("number",)),
    *_columns(("key", "labels", "outcome", "reason"), "text"),
)
OF_TRIAL = (
    *_columns(("verdict",), "text"),
    *_columns(("partial",), "bool"),
    *_columns(("started_at", "plan.url"), "text"),
    *_columns(("plan.generate.connections", "plan.generate.pipeline")),
    *_columns({name: f"throughput.{name}" for name in RATES}, "float"),
    *_columns({name: f"counts.{name}" for name in (*COUNTS, "stale_resets", "cancelled")}),
    *FAILED,
    *times_columns("latency", _latency, ("min",)),
    Column("latency_mean_ns", lambda record: _latency(record).mean, "float"),
    *times_columns("latency", _latency, (*(each.name for each in PERCENTILES), "max")),
    Column("latency_at_least", _few(lambda found: found.at_least), "text"),
    Column(
        "rate_per_s",
        lambda record: offered_per_s(record) if isinstance(record.plan.window.load, Open) else None,
        "float",
    ),
    Column("arrivals", lambda record: getattr(record.plan.window.load, "arrivals", None), "text"),
    *times_columns("service", lambda record: figures.service(record).figures, (*BRIEF, "max")),
    Column(
        "service_at_least",
        lambda record: "; ".join(
            name for name in figures.service(record).figures.at_least if name in BRIEF
        ),
        "text",
    ),
    *_columns(("generator.send_lag_p99_ns",)),
    *_columns(
        {
            f"client_{part}_{n}_ns": f"client_ns.{part}.{n}"
            for part in ("send", "receive")
            for n in BRIEF
        }
    ),
    *times_columns("round_trip", lambda record: record.round_trip_ns),
    *_columns(
        {
            f"{end}_{name}": f"{end}.{name}"
            for end in ("generator", "server")
            for name in ("cpu_s", "saturation")
        },
        "float",
    ),
    *_columns({"server_peak_rss_bytes": "server.peak_rss_bytes"}),
    CHECKS,
    *_columns(("lower_bound",), "bool"),
    Column("latency_at_most", _few(lambda found: found.overstated_ns), "text"),
    Column(
        "latency_too_few",
        _few(lambda found: [e.name for e in PERCENTILES if found.at(e.name).too_few]),
        "text",
    ),
)
TRIALS = (*OF_ROW, *OF_TRIAL, *(column for each in ACCOUNTS for column in each.columns))
"""The columns of a run: a row for each trial."""
OF_HOST = (
    *_columns(("place", "group"), "text"),
    *_columns(("weight", "joined_s")),
    *_columns(("lost",), "text"),
    *_columns(("requested", "connections")),
    Column("connect_failed", lambda host: _by_class(host.connect_failed), "text"),
    *_columns({name: f"counts.{name}" for name in (*COUNTS, "cancelled")}),
    *FAILED,
    *_columns(("ok_per_s",), "float"),
    *times_columns("latency", _latency, ("min", *(each.name for each in SHOWN), "max")),
    *_columns({f"client_{part}_p99_ns": f"client_ns.{part}.p99" for part in ("send", "receive")}),
    *_columns(
        {f"generator_{name}": f"generator.{name}" for name in ("cpu_s", "saturation")}, "float"
    ),
    *_columns({"generator_peak_rss_bytes": "generator.peak_rss_bytes"}),
    *_columns(("start_ns", "clock_offset_ns", "clock_bound_ns")),
    CHECKS,
)
HOSTS = (*OF_ROW[:3], *OF_HOST, *DELIVERIES.columns)
"""The columns of the hosts of a run: a row for each host of each trial that several sent."""


def record_values(record: Record) -> dict[str, object]:
    """Return the figures of a record, by column; of accounts only those that it has."""
    values = {
        **record.throughput.model_dump(),
        **record.counts.model_dump(exclude={"failed", "statuses"}),
        **{column.name: column.read(record) for column in OF_TRIAL},
    }
    for each in ACCOUNTS:
        kept = getattr(record, each.name) if each.columns else None
        if kept is not None:
            values |= {column.name: column.read(kept) for column in each.columns}
    return values


def host_values(host: Host) -> dict[str, object]:
    """Return the figures of a host, by column."""
    values = {column.name: column.read(host) for column in OF_HOST}
    if host.deliveries is not None:
        values |= {column.name: column.read(host.deliveries) for column in DELIVERIES.columns}
    return values


def trials_sheet(run_id: str | None, rows: Iterable[Row | DamagedRow]) -> Sheet:
    return Sheet(TRIALS, (_row_values(run_id, row) for row in rows))


def _row_values(run_id: str | None, row: Row | DamagedRow) -> dict[str, object]:
    known: dict[str, object] = {"run": run_id, "number": row.number}
    if isinstance(row, DamagedRow):
        return {**known, "outcome": "damaged", "reason": row.why}
    known["key"] = row.key
    known["labels"] = "; ".join(f"{name}={value}" for name, value in row.labels.items())
    known |= {"outcome": row.outcome, "reason": row.reason}
    return known if row.record is None else {**known, **record_values(row.record)}


def hosts_sheet(run_id: str | None, rows: Iterable[Row | DamagedRow]) -> Sheet:
    """Return the sheet of a run's hosts: a row for each host of a trial that several sent."""
    return Sheet(HOSTS, (host for row in rows for host in _host_rows(run_id, row)))


def _host_rows(run_id: str | None, row: Row | DamagedRow) -> list[dict[str, object]]:
    if isinstance(row, DamagedRow) or row.record is None or len(row.record.hosts) < 2:
        return []
    known = {"run": run_id, "number": row.number, "key": row.key}
    return [{**known, **host_values(host)} for host in row.record.hosts]


def grid_sheet(grid: Grid) -> Sheet:
    columns = [Column(name, itemgetter(name), "text") for name in grid.header]
    return Sheet(columns, (dict(zip(grid.header, row, strict=True)) for row in grid.rows))
