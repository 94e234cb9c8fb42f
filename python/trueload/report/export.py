"""A run as JSON, JSON Lines, CSV or Markdown, row by row, so that a large one fits into memory.

JSON has one object with the run, its verdict and checks, and its rows with their whole records.
JSON Lines has one row per line. CSV and Markdown have the figures that tables show; a second form
of CSV has a row per host. Rows that were not measured, or can no longer be read, are included with
their reason. A ``.hgrm`` file has one histogram of latency. Pure: it takes the run and yields
pieces of text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from trueload.errors import UserError
from trueload.protocol.plan import Open
from trueload.record import figures
from trueload.record.accounts.client_times import ClientTimes
from trueload.record.accounts.openings import Openings
from trueload.record.accounts.redirects import Redirects
from trueload.record.accounts.streams import Streams
from trueload.record.bound import at_least
from trueload.record.schema import REPORTED_STATUSES, Record
from trueload.report.grid import csv_rows, markdown_cell, markdown_rows
from trueload.report.hgrm import hgrm
from trueload.report.hosts_csv import COLUMNS, DELIVERY_COLUMNS, delivery_values, host_rows
from trueload.report.times import quantile_text
from trueload.request.redact import redact_command
from trueload.stats import RANKED
from trueload.store.runs import Damaged, Row, Run
from trueload.units import format_count
from trueload.verdict import offered_per_s

Format = Literal["json", "jsonl", "csv", "hosts", "markdown", "hgrm"]
Rows = Iterable[Row | Damaged]

CSV_COLUMNS = (
    *("run", "number", "key", "labels", "outcome", "reason", "verdict", "partial", "started_at"),
    *("url", "connections", "pipeline", "ok_per_s", "bytes_in_per_s", "bytes_out_per_s"),
    *("scheduled", "unsent", "issued", "ok", "stale", "stale_resets", "cancelled"),
    *("failed", "failed_by_class"),
    *("latency_min_ns", "latency_mean_ns", "latency_p25_ns", "latency_p50_ns", "latency_p75_ns"),
    *("latency_p90_ns", "latency_p95_ns", "latency_p99_ns", "latency_p999_ns", "latency_max_ns"),
    *("latency_at_least", "rate_per_s", "arrivals", "service_p50_ns", "service_p99_ns"),
    *("service_max_ns", "service_at_least", "send_lag_p99_ns"),
    *("client_send_p50_ns", "client_send_p99_ns"),
    *("client_receive_p50_ns", "client_receive_p99_ns", "round_trip_p50_ns", "round_trip_p99_ns"),
    *("generator_cpu_s", "generator_saturation", "server_cpu_s", "server_saturation"),
    *("server_peak_rss_bytes", "checks", "lower_bound", "latency_at_most", "latency_too_few"),
    *("streams_whole", "stream_parts", "stream_parts_together"),
    *("first_part_p50_ns", "first_part_p99_ns", "gap_p50_ns", "gap_p99_ns", "gap_max_ns"),
    *("opening_connect_p50_ns", "opening_connect_p99_ns"),
    *("opening_full_handshake_p50_ns", "opening_full_handshake_p99_ns"),
    *("opening_resumed_handshake_p50_ns", "opening_resumed_handshake_p99_ns"),
    *("opening_first_byte_p50_ns", "opening_first_byte_p99_ns"),
    *("redirects", "redirects_mean", "redirect_p50_ns", "redirect_p99_ns", "redirect_max_ns"),
    *DELIVERY_COLUMNS,
)


def export(run: Run, rows: Rows, format_: Format) -> Iterator[str]:
    """Yield the run in one of the formats, in pieces."""
    return EXPORTERS[format_](run, rows)


def run_json(run: Run) -> dict[str, Any]:
    """Return the fields that a run has in every list of runs."""
    return {
        "id": run.id,
        "kind": run.kind,
        "title": run.title,
        "command": list(redact_command(run.command)),  # an older store may hold secrets in it
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "state": run.state,
        "seed": run.seed,
        "row_count": run.row_count,
    }


def row_json(row: Row | Damaged) -> dict[str, Any]:
    """Return one row with its whole record; a damaged one has the outcome ``damaged``."""
    if isinstance(row, Damaged):
        return {"number": row.number, "outcome": "damaged", "reason": row.why, "record": None}
    return {
        "number": row.number,
        "key": row.key,
        "labels": row.labels,
        "outcome": row.outcome,
        "reason": row.reason,
        "detail": row.detail,
        "added_at": row.added_at,
        "record": None if row.record is None else row.record.model_dump(mode="json"),
    }


def whole_json(run: Run, rows: Rows, more: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the run as one object with every row; ``more`` has further fields for it."""
    head = json.dumps({**run_json(run), "plan": run.plan, **(more or {})})
    yield head[:-1] + ', "rows": ['
    for number, row in enumerate(rows):
        yield (",\n" if number else "\n") + json.dumps(row_json(row))
    yield "\n]}\n"


def measured_row(number: int, record: Record, labels: Mapping[str, str] | None = None) -> Row:
    """Return a trial in the form of a stored row."""
    return Row(
        seq=number,
        number=number,
        key="",
        labels=dict(labels or {}),
        outcome="measured",
        reason=None,
        detail=None,
        added_at="",
        record=record,
    )


def printed(format_: str, whole: Mapping[str, Any], run_id: str | None, rows: Rows) -> str:
    """Return a result in a format that is printed at once.

    ``whole`` is for JSON, and ``rows`` are for CSV and Markdown. Empty for the text format.
    """
    match format_:
        case "json":
            return json.dumps(whole) + "\n"
        case "csv":
            return "".join(_csv_of(run_id, rows))
        case "markdown":
            return "".join(_markdown_table(rows))
    return ""


def _jsonl(run: Run, rows: Rows) -> Iterator[str]:
    for row in rows:
        yield json.dumps({"run": run.id, **row_json(row)}) + "\n"


def _csv(run: Run, rows: Rows) -> Iterator[str]:
    return _csv_of(run.id, rows)


def _hosts(run: Run, rows: Rows) -> Iterator[str]:
    yield csv_rows([COLUMNS])
    for row in rows:
        yield from host_rows(run.id, row)


def _csv_of(run_id: str | None, rows: Rows) -> Iterator[str]:
    yield csv_rows([CSV_COLUMNS])
    for row in rows:
        values = {"run": run_id, **row_values(row)}
        yield csv_rows([[values.get(column) for column in CSV_COLUMNS]])


def row_values(row: Row | Damaged) -> dict[str, object]:
    """Return the figures of a stored row, by column."""
    if isinstance(row, Damaged):
        return {"number": row.number, "outcome": "damaged", "reason": row.why}
    values: dict[str, object] = {
        "number": row.number,
        "key": row.key,
        "labels": "; ".join(f"{name}={value}" for name, value in row.labels.items()),
        "outcome": row.outcome,
        "reason": row.reason,
    }
    return values if row.record is None else {**values, **record_values(row.record)}


def record_values(record: Record) -> dict[str, object]:
    """Return the figures of a record, by column."""
    counts, server = record.counts, record.server
    latency, service = figures.latency(record).figures, figures.service(record).figures
    load = record.plan.window.load
    names = ("min", "mean", "p25", "p50", "p75", "p90", "p95", "p99", "p999", "max")
    return {
        "verdict": record.verdict,
        "lower_bound": record.lower_bound,
        "partial": record.partial,
        "started_at": record.started_at,
        "url": record.plan.url,
        "connections": record.plan.generate.connections,
        "pipeline": record.plan.generate.pipeline,
        **record.throughput.model_dump(),
        **counts.model_dump(exclude={"failed", "statuses"}),
        "failed": figures.failed(counts),
        "failed_by_class": "; ".join(f"{name}={n}" for name, n in sorted(counts.failed.items())),
        **{f"latency_{name}_ns": getattr(latency, name) for name in names},
        "latency_at_least": "; ".join(latency.at_least),
        "latency_at_most": "; ".join(latency.overstated_ns),
        "latency_too_few": "; ".join(name for name in RANKED if latency.at(name).too_few),
        "rate_per_s": offered_per_s(record) if isinstance(load, Open) else None,
        "arrivals": load.arrivals if isinstance(load, Open) else None,
        "service_p50_ns": service.p50,
        "service_p99_ns": service.p99,
        "service_max_ns": service.max,
        "service_at_least": "; ".join(name for name in service.at_least if name in ("p50", "p99")),
        "send_lag_p99_ns": record.generator.send_lag_p99_ns,
        **_client_times(record.client_ns),
        **_streams(record.streams),
        **_openings(record.openings),
        **_redirects(record.redirects),
        **delivery_values(record.deliveries),
        "round_trip_p50_ns": record.round_trip_ns.p50,
        "round_trip_p99_ns": record.round_trip_ns.p99,
        "generator_cpu_s": record.generator.cpu_s,
        "generator_saturation": record.generator.saturation,
        "server_cpu_s": server.cpu_s if server else None,
        "server_saturation": server.saturation if server else None,
        "server_peak_rss_bytes": server.peak_rss_bytes if server else None,
        "checks": "; ".join(
            f"{check.status} {check.name}: {check.why}"
            for check in record.checks
            if check.status in REPORTED_STATUSES
        ),
    }


def _streams(found: Streams | None) -> dict[str, object]:
    """Return the figures of streamed answers; none without streams."""
    if found is None:
        return {}
    return {
        "streams_whole": found.whole,
        "stream_parts": found.parts,
        "stream_parts_together": found.together,
        "first_part_p50_ns": found.first_part_ns.p50,
        "first_part_p99_ns": found.first_part_ns.p99,
        "gap_p50_ns": found.gap_ns.p50,
        "gap_p99_ns": found.gap_ns.p99,
        "gap_max_ns": found.gap_ns.max,
    }


def _openings(found: Openings | None) -> dict[str, object]:
    """Return the steps of connections that the load opened; none if it opened none."""
    steps = {} if found is None else found.model_dump(include={"histograms"})["histograms"]
    return {
        f"opening_{step}_{name}_ns": getattr(getattr(found, f"{step}_ns"), name)
        for step in steps
        for name in ("p50", "p99")
    }


def _redirects(found: Redirects | None) -> dict[str, object]:
    """Return the figures of redirects; none if they are not followed."""
    if found is None:
        return {}
    return {
        "redirects": found.followed,
        "redirects_mean": found.hops_mean,
        "redirect_p50_ns": found.redirect_ns.p50,
        "redirect_p99_ns": found.redirect_ns.p99,
        "redirect_max_ns": found.redirect_ns.max,
    }


def _client_times(found: ClientTimes) -> dict[str, object]:
    """Return the generator's own times, without a part that was not timed."""
    return {
        f"client_{part}_{name}_ns": getattr(times, name)
        for part, times in (("send", found.send), ("receive", found.receive))
        if times is not None
        for name in ("p50", "p99")
    }


def _markdown(run: Run, rows: Rows) -> Iterator[str]:
    yield f"# {markdown_cell(run.title)}\n\nRun {run.id}, {run.started_at}, {run.state}.\n\n"
    yield from _markdown_table(rows)


def _markdown_table(rows: Rows) -> Iterator[str]:
    columns = (
        *("row", "what", "requests/s", "ok", "failed", "p50", "p99", "max of answers", "verdict"),
    )
    yield from (f"{line}\n" for line in markdown_rows(columns, map(_markdown_cells, rows)))


def _markdown_cells(row: Row | Damaged) -> tuple[str, ...]:
    if isinstance(row, Damaged):
        return (str(row.number), "damaged", *[""] * 6, row.why)
    what = row.key or " ".join(row.labels.values())
    if row.record is None:
        return (str(row.number), what, *[""] * 6, f"{row.outcome}: {row.reason}")
    record, latency = row.record, figures.latency(row.record).figures
    crossed = [c for c in record.checks if c.status in REPORTED_STATUSES]
    why = "".join(f"; {check.name}: {check.why}" for check in crossed)
    per_s = record.throughput.ok_per_s
    return (
        str(row.number),
        what or record.plan.url,
        "" if per_s is None else at_least(format_count(per_s), record.lower_bound),
        format_count(record.counts.ok),
        format_count(figures.failed(record.counts)),
        *(quantile_text(latency.at(name)) for name in ("p50", "p99", "max")),
        record.verdict_text + why,
    )


def _hgrm(run: Run, rows: Rows) -> Iterator[str]:
    """Yield the histogram of the run's one trial. Raises ``UserError`` if it has several."""
    timed = [each.record for each in rows if isinstance(each, Row) and each.record is not None]
    timed = [record for record in timed if record.histograms.latency is not None]
    if len(timed) != 1:
        has = f"{len(timed)} trials" if timed else "no trial"
        raise UserError(
            f"run {run.id} has {has} with answers, and a .hgrm file holds one histogram",
            "name a run of one trial; --format json has the histograms of all",
        )
    yield from hgrm(timed[0])


EXPORTERS: dict[Format, Callable[[Run, Rows], Iterator[str]]] = {
    "json": whole_json,
    "jsonl": _jsonl,
    "csv": _csv,
    "hosts": _hosts,
    "markdown": _markdown,
    "hgrm": _hgrm,
}
