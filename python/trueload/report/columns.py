"""The columns of a suite's tables, each declared once: its heading, its figure, how that is shown.

How: a `Kind` is the table of servers, of broadcasts or of clients; text, Markdown, CSV and HTML are
made of the same columns. JSON has all `Figures` by their own names. To add a column, add its figure
to `suites/figures.py` and a `Column` here. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueload import repetitions
from trueload.record.bound import at_least, verdict_text
from trueload.report.grid import Grid
from trueload.report.sheets import Sheet, at, grid_sheet
from trueload.suites.figures import SHOWN_RANKS, Figures
from trueload.suites.plan import PlannedLoad
from trueload.suites.summary import Summary
from trueload.units import TOO_FEW, format_cell, format_size, largest_text


@dataclass(frozen=True)
class Row:
    """A row of a table: a summary, and those of its figures that are shown. ``marked``: a time that
    is only a lower bound has a mark before it."""

    summary: Summary
    figures: Figures | None
    which: str = "median"
    marked: bool = True


@dataclass(frozen=True)
class Column:
    """One column. ``read`` takes its figure off a row, in the unit that the heading or the legend
    says; None is an empty cell. ``always``: also where nothing was measured; ``optional``: left out
    of a table where no row has it."""

    heading: str
    read: Callable[[Row], Any]
    show: Callable[[Any], str] = str
    left: bool = False
    always: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Kind:
    """The columns of one kind of suite, and ``has``, whether figures have what they show.

    The first ``published`` of them are those of the source that the suite is of; ``named`` is the
    one that names a row. A CSV file has ``csv``, too, as its lines have no title above them. Text
    and Markdown have those of ``brief``; where they are wider than ``width``, text leaves out those
    of ``spare``, one after the other.
    """

    columns: tuple[Column, ...]
    brief: tuple[Column, ...]
    spare: tuple[str, ...]
    csv: tuple[Column, ...]
    published: int
    named: int
    legend: str = ""
    width: int = 100
    has: Callable[[Figures], bool] = lambda figures: True

    def cells(self, row: Row, columns: tuple[Column, ...]) -> tuple[str, ...]:
        known = row.figures is not None and self.has(row.figures)
        return tuple(_cell(row, column) if known or column.always else "" for column in columns)

    def grid(self, rows: Sequence[Row], columns: tuple[Column, ...] | None = None) -> Grid:
        shown = tuple(
            column
            for column in columns or self.columns
            if not column.optional or any(column.read(row) is not None for row in rows)
        )
        return Grid(
            header=tuple(column.heading for column in shown),
            rows=tuple(self.cells(row, shown) for row in rows),
            left=frozenset(column.heading for column in shown if column.left),
            marks=tuple(row.summary.verdict or row.summary.outcome for row in rows),
        )

    def sheet(self, rows: Sequence[Row]) -> Sheet:
        """All columns and those of a CSV file."""
        required = tuple(column for column in self.columns if not column.optional)
        return grid_sheet(self.grid(rows, (*required, *self.csv)))


def _cell(row: Row, column: Column) -> str:
    value = column.read(row)
    return "" if value is None else column.show(value)


def verdict_of(summary: Summary) -> str:
    """The verdict, or why there is none."""
    return verdict_text(summary.verdict or summary.outcome, summary.lower_bound)


def _figure(path: str) -> Callable[[Row], Any]:
    """A field of the figures, or of one of their parts."""
    return at(f"figures.{path}")


def _score(path: str) -> Callable[[Row], str | None]:
    """A figure that may be a lower bound, marked so."""
    read = _figure(path)

    def show(row: Row) -> str | None:
        found = read(row)
        lower_bound = row.marked and row.summary.lower_bound
        return None if found is None else at_least(format_cell(found), lower_bound)

    return show


def _time(name: str, decimals: int = 3) -> Callable[[Row], str | None]:
    def read(row: Row) -> str | None:
        ms = None if row.figures is None else row.figures.ms(name)
        if row.figures is None or ms is None:
            return None
        if row.marked and name in row.figures.latency_too_few:
            return TOO_FEW
        above, at_most = row.figures.latency_at_least, row.figures.latency_at_most
        sign = "> " if name in above else "≤ " if name in at_most else ""
        text = f"{sign if row.marked else ''}{ms:.{decimals}f}"
        is_max = name == "max" and row.marked
        return largest_text(text, row.figures.largest_of if is_max else None)

    return read


def _name(heading: str, field: str) -> Column:
    return Column(
        heading, lambda row: getattr(row.summary.cell.subject, field), left=True, always=True
    )


def _load(
    heading: str, read: Callable[[PlannedLoad], Any], show: Callable[[Any], str] = str
) -> Column:
    return Column(heading, lambda row: read(row.summary.cell.load), show, always=True)


def _optional(
    heading: str, read: Callable[[PlannedLoad], Any], show: Callable[[Any], str] = str
) -> Column:
    """Left out of a table where no load has it."""
    return replace(_load(heading, read, show), optional=True)


def _pools(heading: str, field: str) -> Column:
    return _load(heading, lambda load: getattr(load.pools, field, None))


def _connections(row: Row) -> int | None:
    """The most that were open at once, of a load with streams: there they are no requests."""
    pools = row.summary.cell.load.pools
    if pools is None or not pools.streams:
        return None
    found: int | None = _figure("client.connections_open_peak")(row)
    return found


def _within(row: Row) -> str | None:
    interval = row.summary.interval
    if interval is None:
        return None
    label = " (range)" if interval.kind == "range" and not row.summary.cell.load.broadcast else ""
    return f"{format_cell(interval.low)}-{format_cell(interval.high)}{label}"


def _ratio(row: Row) -> str | None:
    """The median ratio to the reference, with its interval."""
    ratios = row.summary.ratios if row.which == "median" else ()
    middle, within = repetitions.median(ratios), repetitions.interval(ratios)
    if middle is None or within is None:
        return None
    return f"{middle:.3f} ({within.low:.3f}-{within.high:.3f})"


def _most_clients(row: Row) -> str | None:
    found = row.figures.carried if row.figures is not None else None
    if found is None:
        return None
    bounded = found.above is not None and not (row.marked and row.summary.lower_bound)
    return f"{found.clients:.0f}{'' if bounded or not found.clients else '+'}"


def _verdict(row: Row) -> str:
    return verdict_of(row.summary) if row.marked else row.summary.verdict or row.summary.outcome


def _percent(share: float) -> str:
    return f"{share * 100:.0f}%"


def _rate(per_s: float) -> str:
    return f"{per_s:.10g}"


SUBJECT = Column("subject", lambda row: row.summary.cell.subject.name, left=True, always=True)
NAMES = (
    _name("Language", "language"),
    _name("Framework", "framework"),
    _name("Category", "category"),
    _name("Name", "variant"),
)
# Exactly the published columns, in their order; times in ms.
PUBLISHED = (
    *NAMES,
    Column("Res[B]", _figure("response_bytes"), format_cell),
    Column("Req", _figure("requests"), format_cell),
    Column("Err", _figure("errors"), format_cell),
    Column("RPS", _score("ok_per_s")),
    Column("BPS", _figure("bytes_per_s"), format_cell),
    Column("min", _time("min")),
    *(
        Column(heading, _time(rank))
        for heading, rank in zip(("25%", "50%", "75%", "99%"), SHOWN_RANKS, strict=True)
    ),
    Column("max", _time("max")),
)
RANK = Column("rank", lambda row: row.summary.places, optional=True)
# In a file as two numbers.
RANKS = (
    Column("rank", lambda row: row.summary.rank),
    Column("rank_last", lambda row: row.summary.places and row.summary.places.last),
)
INTERVAL = Column("interval", _within, left=True)
ESTIMATE = Column("estimate", _figure("estimate_per_s"), format_cell, optional=True)
RATIO = Column("ratio", _ratio, left=True, optional=True)
CPU = Column("CPU", _figure("cpu_share"), _percent)
MEMORY = Column("memory", _figure("peak_rss_bytes"), format_size)
VERDICT = Column("verdict", _verdict, left=True, always=True)
# Where another column marks a lower bound.
WORD = Column(
    "verdict", lambda row: row.summary.verdict or row.summary.outcome, left=True, always=True
)
WHY = Column("why", lambda row: row.summary.why, always=True)
LOWER_BOUND = Column(
    "lower_bound", lambda row: row.summary.lower_bound, lambda bound: str(bound).lower()
)
CORES = _load("cores", lambda load: load.cores)
OURS = (
    RANK,
    INTERVAL,
    ESTIMATE,
    RATIO,
    CPU,
    Column("memory", _figure("peak_rss_bytes"), lambda size: f"{size / 1024 / 1024:.1f}MiB"),
    VERDICT,
)
# Beside a rate an RPS says whether a subject kept up.
RATE = Column(
    "rate",
    lambda row: row.summary.cell.load.rate_per_s,
    lambda per_s: f"{_rate(per_s)}/s",
    always=True,
    optional=True,
)
_BY_HEADING = {column.heading: column for column in (*PUBLISHED, *OURS)}
SERVERS = Kind(
    columns=(*PUBLISHED, RATE, *OURS),
    brief=(
        *(SUBJECT, _BY_HEADING["RPS"], RATE, RANK, INTERVAL, RATIO, ESTIMATE),
        *(_BY_HEADING[name] for name in ("50%", "99%", "Err", "CPU", "memory")),
        WORD,
    ),
    spare=("memory", "estimate", "interval", "50%", "CPU", "Err"),
    csv=(
        *RANKS,
        _load("connections", lambda load: load.connections),
        _load("pipeline", lambda load: load.pipeline),
        _optional("streams", lambda load: load.http and load.http.streams),
        _optional("tls", lambda load: load.over_tls or None, lambda tls: "yes"),
        _optional("path", lambda load: (load.http and load.http.path) or None),
        _load("rate_per_s", lambda load: load.rate_per_s, _rate),
        _optional("stages", lambda load: load.stages and load.stages.title),
        CORES,
        Column("figures", lambda row: row.which),
        Column("latency_at_least", _figure("latency_at_least"), "; ".join),
        Column("latency_at_most", _figure("latency_at_most"), "; ".join),
        Column("latency_too_few", _figure("latency_too_few"), "; ".join),
        LOWER_BOUND,
        Column("estimate_per_s", _figure("estimate_per_s"), format_cell),
        Column("ratio", _figure("ratio")),
        WHY,
    ),
    published=len(PUBLISHED),
    named=len(NAMES) - 1,
)
MOST_CLIENTS = Column("clients", _most_clients)
MEDIAN, P95 = (Column(name, _time(rank, 1)) for name, rank in (("median", "p50"), ("p95", "p95")))
LOST = Column("lost", _figure("carried.lost"), format_cell)
BROADCASTS = Kind(
    columns=(
        *(*NAMES, MOST_CLIENTS, INTERVAL, MEDIAN, P95),
        Column("deliveries/s", _figure("carried.deliveries_per_s"), format_cell),
        LOST,
        Column("memory/client", _figure("carried.bytes_per_connection"), format_size),
        *(RANK, CPU, MEMORY, VERDICT),
    ),
    brief=(SUBJECT, MOST_CLIENTS, RANK, INTERVAL, MEDIAN, P95, LOST, CPU, MEMORY, WORD),
    spare=("memory", "median", "interval", "CPU"),
    width=80,
    csv=(*RANKS, _load("step", lambda load: load.connections), CORES, LOWER_BOUND, WHY),
    published=0,
    named=len(NAMES) - 1,
    legend=(
        "clients: the most that keep to the limit, confirmed; +: larger loads were not tried, or"
        " our side was the limit. interval: where that lies; over several repetitions, their"
        " spread. median and p95 of the senders' receipts with so many clients, in ms."
    ),
    has=lambda figures: figures.carried is not None,
)
# Left out over HTTP/1.1.
OF_STREAMS = (
    _optional("streams", lambda load: (load.pools and load.pools.streams) or None),
    _optional("permitted", lambda load: (load.pools and load.pools.max_streams) or None),
)
RATE_OF_CLIENT = (
    Column("Req/sec", _figure("client.goodput_per_s"), format_cell),
    Column("Error %", _figure("client.error_share"), lambda share: f"{share * 100:.1f}"),
)
COST = Column("CPU/req", _figure("client.cpu_us_per_request"), lambda us: f"{us:.1f} us")
SHARE = Column("share", _figure("client.ceiling_share"), _percent)
CLIENTS = Kind(
    columns=(
        replace(SUBJECT, heading="Client"),
        _pools("Pool Count", "pools"),
        _pools("Pool Size", "pool_size"),
        _pools("Concurrency", "concurrency"),
        *RATE_OF_CLIENT,
        *OF_STREAMS,
        RANK,
        INTERVAL,
        COST,
        MEMORY,
        Column("peak", _figure("client.requests_open_peak")),
        Column("mean", _figure("client.requests_open_mean"), format_cell),
        Column("opened", _figure("client.opened")),
        Column("connections", _connections, optional=True),
        Column("pool ceiling", _figure("client.pool_ceiling_per_s"), format_cell),
        Column("ceiling", _figure("client.ceiling_per_s"), format_cell),
        SHARE,
        VERDICT,
    ),
    brief=(
        replace(SUBJECT, heading="client"),
        *(_pools("pools", "pools"), _pools("size", "pool_size"), _pools("at once", "concurrency")),
        *(*RATE_OF_CLIENT, *OF_STREAMS, RANK, INTERVAL, SHARE, COST, MEMORY, VERDICT),
    ),
    spare=("interval", "memory", "permitted", "CPU/req"),
    csv=(
        *RANKS,
        *OF_STREAMS,
        _load("files", lambda load: (load.pools and load.pools.files) or None),
        WHY,
    ),
    published=6,
    named=0,
    legend=(
        "Req/sec: answers with status 200 that both ends have, from the order to the claim. share:"
        " of the most that Little's law allows (pool count x pool size, or concurrency if that is"
        " less, / the server's time for an answer). CPU/req: of the client's process tree. The"
        " repetitions of a row are orders to as many processes as there are rounds."
    ),
    has=lambda figures: figures.client is not None,
)


def kind_of(load: PlannedLoad) -> Kind:
    """The table that the rows of a load stand in."""
    if load.pools:
        return CLIENTS
    return BROADCASTS if load.broadcast else SERVERS


def rows_of(summaries: Iterable[Summary]) -> list[Row]:
    return [Row(summary, summary.figures) for summary in summaries]
