"""The hosts of a run as text and as tables: how closely they began, what each did. Pure."""

from __future__ import annotations

from trueload.protocol.tick import Counts
from trueload.record.accounts.deliveries import Deliveries, across_text
from trueload.record.accounts.generator_times import GeneratorTimes
from trueload.record.figures import BRIEF
from trueload.record.schema import Host, Record
from trueload.report.account import AccountView, Lines
from trueload.report.grid import Grid
from trueload.report.quantile import quantile_text
from trueload.report.times import brief_text
from trueload.stats import Distribution
from trueload.text import plain
from trueload.units import counted, format_count, format_duration, format_share

HOSTS_SHOWN = 16
HEADER = (
    *("host", "connections", "ok", "failed", "unsent", *BRIEF, "max of answers", "busy"),
    *("send p99", "receive p99", "clock ±", "weight", "joined at", "group", "lost"),
)
OF_BROADCAST = ("deliveries", "their p50", "their p95", "lost or twice", "between hosts ±")


def host_lines(record: Record) -> list[str]:
    """Return no lines for one host; else a summary and a line for each host.

    The summary says how closely together they began, and how well their clocks are known.
    """
    if len(record.hosts) < 2:
        return []
    starts = [host.start_ns for host in record.hosts if host.start_ns is not None]
    bounds = [host.clock_bound_ns for host in record.hosts if host.clock_bound_ns is not None]
    words = [format_count(len(record.hosts))]
    if starts:
        words.append(f"began within {format_duration(max(starts))}")
    if bounds:
        words.append(f"clocks known to within {format_duration(max(bounds))}")
    # Lost hosts come first, so that they are shown even where not all hosts are.
    shown = sorted(record.hosts, key=lambda host: host.lost is None)[:HOSTS_SHOWN]
    width = max(len(plain(host.place)) for host in shown)
    lines = [", ".join(words)]
    if record.deliveries is not None and (across := across_text(record.deliveries)):
        lines.append(across)
    lines += group_lines(record)
    lines += [host_line(host, width) for host in shown]
    if len(record.hosts) > len(shown):
        lines.append(f"and {len(record.hosts) - len(shown)} more, in the record")
    return lines


def group_lines(record: Record) -> list[str]:
    """Return a line on what the hosts of each group did together."""
    lines = []
    for group in record.groups:
        times = brief_text(group.latency_ns)
        rate = "" if group.ok_per_s is None else f"   {format_count(group.ok_per_s)}/s"
        failed = f"   {format_count(group.failed)} failed" if group.failed else ""
        lost = f"   {group.lost} lost" if group.lost else ""
        name = "no group" if group.name is None else f"group {plain(group.name)}"
        lines.append(
            f"{name}: {counted(group.hosts, 'host')}   {format_count(group.ok)} ok on"
            f" {format_count(group.connections)}{rate}{failed}   {times}{lost}"
        )
    return lines


def host_line(host: Host, width: int = 0) -> str:
    """Return a line on what one host did."""
    words = []
    if host.ok is not None:
        words.append(f"{format_count(host.ok)} ok on {format_count(host.connections or 0)}")
    if host.weight != 1:
        words.append(f"weight {host.weight}")
    if host.joined_s is not None:
        words.append(f"joined at {host.joined_s} s")
    if host.counts is not None and host.counts.failed:
        words.append(f"{failed_text(host.counts)} failed")
    if host.counts is not None and host.counts.unsent:
        words.append(f"{format_count(host.counts.unsent)} unsent")
    if host.latency_ns is not None and host.latency_ns.p50 is not None:
        words.append(brief_text(host.latency_ns))
    if host.deliveries is not None:
        words.append(deliveries_text(host.deliveries))
    if host.generator.saturation is not None:
        words.append(f"{format_share(host.generator.saturation)} busy")
    if host.lost is not None:
        # The cause is named once where it is no host's own.
        words.append("lost with its connection" if host.way_lost else f"lost: {plain(host.lost)}")
    return f"{plain(host.place):<{width}}  {'   '.join(words)}"


def deliveries_text(found: Deliveries) -> str:
    """Return what one host had of a broadcast."""
    times = brief_text(found.delivery_ns, ("p50", "p95"))
    lost = f", {format_count(found.lost)} lost" if found.lost else ""
    return f"{counted(found.delivered, 'delivery', 'deliveries')}, {times}{lost}"


def failed_text(counts: Counts) -> str:
    """Return the failed requests by class: ``3 reset, 1 status``."""
    return ", ".join(
        f"{format_count(count)} {plain(name)}" for name, count in sorted(counts.failed.items())
    )


def host_grid(record: Record) -> Grid | None:
    """Return a table with a host per row; None for a single host."""
    if len(record.hosts) < 2:
        return None
    left = frozenset(("host", "failed", "group", "lost"))
    if record.deliveries is None:
        return Grid(HEADER, tuple(map(_cells, record.hosts)), left=left)
    rows = tuple((*_cells(host), *_delivery_cells(host.deliveries)) for host in record.hosts)
    return Grid((*HEADER, *OF_BROADCAST), rows, left=left)


def _delivery_cells(found: Deliveries | None) -> tuple[str, ...]:
    if found is None:
        return ("",) * len(OF_BROADCAST)
    bound_ns = found.clock_bound_ns
    return (
        format_count(found.delivered),
        *(quantile_text(found.delivery_ns.at(name)) for name in ("p50", "p95")),
        format_count(found.lost + found.duplicate),
        "" if bound_ns is None else format_duration(bound_ns),
    )


def _cells(host: Host) -> tuple[str, ...]:
    counts, latency = host.counts, host.latency_ns or Distribution()
    parts = host.client_ns or GeneratorTimes()
    ours = (each.p99 if each is not None else None for each in (parts.send, parts.receive))
    times = (*ours, host.clock_bound_ns)
    return (
        plain(host.place),
        _count(host.connections),
        _count(host.ok),
        "" if counts is None else failed_text(counts),
        _count(None if counts is None else counts.unsent),
        *(quantile_text(latency.at(name)) for name in (*BRIEF, "max")),
        "" if host.generator.saturation is None else format_share(host.generator.saturation),
        *("" if ns is None else format_duration(ns) for ns in times),
        str(host.weight),
        "" if host.joined_s is None else f"{host.joined_s} s",
        plain(host.group or ""),
        plain(host.lost or ""),
    )


def _count(number: int | None) -> str:
    return "" if number is None else format_count(number)


def _lines(record: Record) -> Lines:
    lines = enumerate(host_lines(record))
    return [("" if number else "hosts", text) for number, text in lines]


HOSTS = AccountView(
    name="hosts", after="moved", order=3, lines=_lines, grid=host_grid, grid_of="host"
)
