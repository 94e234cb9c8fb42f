"""ApacheBench's output for each subject of a suite, and then what it does not report.

How: each row has one block. It shows the repetition with the middle requests per second, so that
its figures belong together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trueload.record.accounts.idle import Idle
from trueload.report.accounts.idle import step_text
from trueload.report.columns import verdict_of
from trueload.suites.load_tables import LoadTable
from trueload.suites.summary import Summary
from trueload.text import plain
from trueload.units import TOO_FEW, format_count, format_duration, format_rate, format_size
from trueload.verdict.apachebench import ApacheBench, Percentile, Times

_WIDTH = 24


def report_text(tables: Iterable[LoadTable]) -> str:
    """Return a block for every row that has figures of ab; empty if none has."""
    rows = (summary for table in tables for summary in table.everything)
    blocks = [block for summary in rows if (block := summary_block(summary))]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n" if blocks else ""


def summary_block(summary: Summary) -> list[str]:
    """Return the block of one row; empty if it has no figures of ab."""
    figures = summary.figures
    if figures is None or figures.apachebench is None:
        return []
    return _block(summary, figures.apachebench, figures.accounts.get("idle"))


def _block(summary: Summary, found: ApacheBench, idle: Idle | None) -> list[str]:
    lines = [f"== {plain(summary.cell.subject.name)}: {summary.cell.load.title}", ""]
    if summary.repetitions > 1:
        lines += [_which(summary), ""]
    lines += [*result_lines(found), "", *times_lines(found), "", *percentile_lines(found), ""]
    return [*lines, *our_lines(found, idle), *_verdict(summary)]


def _which(summary: Summary) -> str:
    counted = summary.counted
    if counted < 2:
        return f"The one repetition of {summary.repetitions} that counts:"
    return f"The repetition in the middle, by requests per second, of {counted} that count:"


def _verdict(summary: Summary) -> list[str]:
    lines = _line("Verdict", verdict_of(summary))
    return [*lines, f"  {plain(summary.why)}"] if summary.why else lines


def result_lines(found: ApacheBench) -> list[str]:
    """Return the lines from the document to the transfer rate."""
    lines = _line("Document Path", plain(found.path))
    if found.document_bytes is not None:
        lines += _line("Document Length", f"{found.document_bytes} bytes")
    lines += ["", *_line("Concurrency Level", str(found.concurrency))]
    lines += _line("Time taken for tests", f"{found.taken_s:.3f} seconds")
    lines += _line("Complete requests", str(found.complete))
    lines += _line("Failed requests", str(found.failed_count))
    if not found.close:
        lines += _line("Keep-Alive requests", str(found.complete - found.failed_count))
    lines += _line("Total transferred", f"{found.transferred_bytes} bytes")
    if found.html_bytes is not None:
        lines += _line("HTML transferred", f"{found.html_bytes} bytes")
    lines += _line("Requests per second", _of(found.per_s, 2, "[#/sec] (mean)"))
    lines += _line("Time per request", _of(found.per_request_ms, 3, "[ms] (mean)"))
    across = "[ms] (mean, across all concurrent requests)"
    lines += _line("Time per request", _of(found.across_all_ms, 3, across))
    return [
        *lines,
        *_line("Transfer rate", _of(found.received_kib_per_s, 2, "[Kbytes/sec] received")),
    ]


def times_lines(found: ApacheBench) -> list[str]:
    """Return the table of connect, processing, waiting and total."""
    lines = ["Connection Times (ms)", "              min  mean[+/-sd] median   max"]
    for name, times in found.parts:
        lines.append(f"{f'{name}:':<12}{_row(times)}".rstrip())
    of = found.total.largest_of
    return lines if of is None else [*lines, f"max: the largest of {format_count(of)}"]


def _row(times: Times) -> str:
    if times.min is None or times.mean is None or times.sd is None or times.median is None:
        return "    (no request ended well)"
    most = times.max if times.max is not None else 0.0
    median = f"{'> ' if times.median_above else ''}{times.median:.0f}"
    median = TOO_FEW if times.median_too_few else median
    return f"{times.min:>5.0f} {times.mean:>4.0f} {times.sd:>5.1f} {median:>6} {most:>7.0f}"


def percentile_lines(found: ApacheBench) -> list[str]:
    """Return the percentages.

    One is ``> X`` if its rank falls among requests that failed or never ended.
    """
    lines = ["Percentage of the requests served within a certain time (ms)"]
    return [*lines, *(_percentile(each) for each in found.percentiles)]


def _percentile(each: Percentile) -> str:
    if each.ms is None:
        return f" {each.percent:>3}%       -"
    shown = TOO_FEW if each.too_few else f"{'> ' if each.above else ''}{each.ms:.0f}"
    longest = " (longest request)" if each.percent == 100 and not each.above else ""
    return f" {each.percent:>3}% {shown:>7}{longest}"


def our_lines(found: ApacheBench, idle: Idle | None) -> list[str]:
    """Return the lines that ab does not have."""
    lines = _line("Server CPU", _server_cpu(found))
    if found.server_peak_rss_bytes is not None:
        peak = format_size(found.server_peak_rss_bytes)
        lines += _line("Server peak memory", f"{peak}, priming included")
    lines += _line("Priming run", _priming(found))
    if found.connect_per_s is not None:
        rate = format_rate(found.connect_per_s)
        lines += _line("Connections opened", f"{format_count(found.connects)}, at {rate}")
    failed = ", ".join(f"{plain(name)} {format_count(n)}" for name, n in found.failed.items())
    lines += _line("Failures by class", failed or "none")
    return lines + idle_block(idle)


def _server_cpu(found: ApacheBench) -> str:
    if found.server_user_s is None or found.server_system_s is None:
        return ""
    return f"{found.server_user_s:.2f} s user, {found.server_system_s:.2f} s system, from its start"


def _priming(found: ApacheBench) -> str:
    primed = found.priming
    if primed is None:
        return ""
    failed = sum(primed.failed.values())
    classes = ", ".join(f"{plain(name)} {format_count(n)}" for name, n in primed.failed.items())
    wrong = f"{format_count(failed)} failed ({classes})" if failed else "none failed"
    took = format_duration(round(primed.taken_s * 1e9))
    return f"{format_count(primed.complete)} complete, {wrong}, {took}"


def idle_block(idle: Idle | None) -> list[str]:
    """Return the steps of idle connections, one per line."""
    if idle is None:
        return []
    each = idle.server_bytes_per_connection
    cost = "not known" if each is None else format_size(each)
    lines = _line("Per idle connection", f"{cost} of the server's memory")
    for step in idle.steps:
        shown = step_text(step) or f"{format_count(step.idle)} idle: memory not seen"
        failed = ", ".join(f"{plain(name)} {format_count(n)}" for name, n in step.failed.items())
        lines.append(f"  {shown}{f'; failed: {failed}' if failed else ''}")
    return lines


def _of(value: float | None, digits: int, unit: str) -> str:
    return "-" if value is None else f"{value:.{digits}f} {unit}"


def _line(label: str, text: str) -> list[str]:
    return [f"{label + ':':<{_WIDTH}}{text}"] if text else []


def markdown_text(tables: Sequence[LoadTable]) -> str:
    """Return the same text as Markdown code blocks."""
    text = report_text(tables).replace("```", "'''")
    return f"\n```\n{text}```\n" if text else ""
