"""The hosts of a run as CSV: a row for each host of each trial that several hosts sent. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from trueload.record import figures
from trueload.record.accounts.client_times import ClientTimes
from trueload.record.accounts.deliveries import Deliveries
from trueload.record.schema import REPORTED_STATUSES, Host
from trueload.report.grid import csv_rows
from trueload.stats import Distribution
from trueload.store.runs import Damaged, Row

PERCENTILES = ("min", "p50", "p90", "p95", "p99", "p999", "max")
DELIVERY_COLUMNS = (
    *("deliveries_expected", "deliveries_delivered", "deliveries_lost", "deliveries_duplicate"),
    *("deliveries_out_of_order", "deliveries_untimed", "deliveries_negative"),
    *("deliveries_negative_max_ns", "deliveries_clock_bound_ns", "delivery_min_ns"),
    *("delivery_p50_ns", "delivery_p95_ns", "delivery_p99_ns", "delivery_max_ns"),
)
COLUMNS = (
    *(
        "run",
        "number",
        "key",
        "place",
        "group",
        "weight",
        "joined_s",
        "lost",
        "requested",
        "connections",
        "connect_failed",
    ),
    *("scheduled", "unsent", "issued", "ok", "stale", "cancelled", "failed", "failed_by_class"),
    *("ok_per_s", *(f"latency_{name}_ns" for name in PERCENTILES), "client_send_p99_ns"),
    *("client_receive_p99_ns", "generator_cpu_s", "generator_saturation"),
    *("generator_peak_rss_bytes", "start_ns", "clock_offset_ns", "clock_bound_ns", "checks"),
    *DELIVERY_COLUMNS,
)


def host_rows(run_id: str | None, row: Row | Damaged) -> Iterator[str]:
    """Yield the lines of one trial; none if one host sent it."""
    if isinstance(row, Damaged) or row.record is None or len(row.record.hosts) < 2:
        return
    known = {"run": run_id, "number": row.number, "key": row.key}
    for host in row.record.hosts:
        values = {**known, **host_values(host)}
        yield csv_rows([[values.get(column) for column in COLUMNS]])


def host_values(host: Host) -> dict[str, object]:
    """Return the figures of a host, by column."""
    latency, client = host.latency_ns or Distribution(), host.client_ns or ClientTimes()
    counts = host.counts
    return {
        "place": host.place,
        "group": host.group,
        "weight": host.weight,
        "joined_s": host.joined_s,
        "lost": host.lost,
        "requested": host.requested,
        "connections": host.connections,
        "connect_failed": _by_class(host.connect_failed),
        **({} if counts is None else counts.model_dump(exclude={"failed", "statuses"})),
        "failed": None if counts is None else figures.failed(counts),
        "failed_by_class": "" if counts is None else _by_class(counts.failed),
        "ok_per_s": host.ok_per_s,
        **{f"latency_{name}_ns": getattr(latency, name) for name in PERCENTILES},
        "client_send_p99_ns": client.send.p99 if client.send else None,
        "client_receive_p99_ns": client.receive.p99 if client.receive else None,
        "generator_cpu_s": host.generator.cpu_s,
        "generator_saturation": host.generator.saturation,
        "generator_peak_rss_bytes": host.generator.peak_rss_bytes,
        "start_ns": host.start_ns,
        "clock_offset_ns": host.clock_offset_ns,
        "clock_bound_ns": host.clock_bound_ns,
        "checks": "; ".join(
            f"{check.status} {check.name}: {check.why}"
            for check in host.checks
            if check.status in REPORTED_STATUSES
        ),
        **delivery_values(host.deliveries),
    }


def delivery_values(found: Deliveries | None) -> dict[str, object]:
    """Return the figures of a broadcast's deliveries, by column; none if nothing is broadcast."""
    if found is None:
        return {}
    named = {**found.model_dump(exclude={"histograms"}), **_delivery_times(found.delivery_ns)}
    return {column: named[column.removeprefix("deliveries_")] for column in DELIVERY_COLUMNS}


def _delivery_times(found: Distribution) -> dict[str, int | None]:
    return {f"delivery_{name}_ns": getattr(found, name) for name in PERCENTILES}


def _by_class(counts: dict[str, int]) -> str:
    return "; ".join(f"{name}={count}" for name, count in sorted(counts.items()))
