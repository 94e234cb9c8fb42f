"""The hosts of a run as text: how closely together they began, and what each did. Pure.

Must not know: terminals or files.
"""

from __future__ import annotations

from trueload.record.schema import Host, Record
from trueload.report.times import quantile_text
from trueload.text import plain
from trueload.units import format_count, format_duration, format_share

HOSTS_SHOWN = 16


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
    # Those that were lost come first, so that they are shown however many there are.
    shown = sorted(record.hosts, key=lambda host: host.lost is None)[:HOSTS_SHOWN]
    width = max(len(plain(host.place)) for host in shown)
    lines = [", ".join(words), *(host_line(host, width) for host in shown)]
    if len(record.hosts) > len(shown):
        lines.append(f"and {len(record.hosts) - len(shown)} more, in the record")
    return lines


def host_line(host: Host, width: int = 0) -> str:
    """Return a line on what one host did."""
    words = []
    if host.ok is not None:
        words.append(f"{format_count(host.ok)} ok on {format_count(host.connections or 0)}")
    if host.latency_ns is not None and host.latency_ns.p50 is not None:
        times = [f"{name} {quantile_text(host.latency_ns.at(name))}" for name in ("p50", "p99")]
        words.append(", ".join(times))
    if host.generator.saturation is not None:
        words.append(f"{format_share(host.generator.saturation)} busy")
    if host.lost is not None:
        words.append(f"lost: {plain(host.lost)}")
    return f"{plain(host.place):<{width}}  {'   '.join(words)}"
