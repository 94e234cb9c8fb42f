"""Writes measured results into the pages of docs/, each report into its own section.

A section lies between two comments that name it; everything outside is written by hand. A page
shows less than the report prints: of the targets those that were missed, and not every column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from setting import ROOT

PERFORMANCE = ROOT / "docs" / "performance.md"
PUBLISHED = ROOT / "docs" / "published.md"
COMPARISON = ROOT / "docs" / "comparison.md"
RELIABILITY = ROOT / "docs" / "contributors" / "reliability.md"
ACCURACY = ROOT / "docs" / "contributors" / "accuracy.md"

TARGETS = "| target | limit | measured | |"
# Their other tables have the figures of targets that were met.
ONLY_MISSED = {
    *("peers", "http2", "truth", "openloop", "wait", "hosts", "ray", "broadcast", "faults_hosts"),
}
# Rows, and the range behind a figure of a column, that only the report prints. Of attacks that are
# alike a page has one, and none of servers that behave.
NO_ROWS = {
    "http2": r"\| a bare loop \|",
    "peers": r"\| 256 \||\| c/epoll \|",
    "redteam": r"(?<!5 ms: )honest|a window of 500 ms \||window of (10|5) s|1,500/s asked"
    r"|for 90 of|9 of every 100|5 of every 10 "
    r"|50 % of each|one of 64 connections always|both halves|have to be alike",
}
NO_RANGE = {"peers": "CPU µs/request", "http2": "CPU µs/request"}
# Columns and tables, by their head.
LEFT_OUT = {
    "peers": {"server CPU µs/request", "our req/s / its"},
    "http2": {"server CPU µs/request", "our req/s / its"},
    "witness": {"requests/s", "one in 16", "ours", "witness"},
    "wait": {"open requests, mean", "generator busy"},
    "truth": {"p90", "req/s"},
    "redteam": {"hey", "k6"},
    "traps2": {"k6 says"},
    "breakdown": {"CPU µs per request (share)", "system calls per request"},
}


def replaced(text: str, name: str, lines: Sequence[str], by: str = "make bench") -> str:
    """Return the page with the section replaced; `ValueError` if it has no such section. Pure."""
    begin, end = f"<!-- {name}: written by {by} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"({re.escape(begin)}\\n).*?({re.escape(end)})", re.DOTALL)
    body = "\n".join(lines).strip("\n")
    written, count = pattern.subn(lambda found: f"{found[1]}\n{body}\n\n{found[2]}", text)
    if count != 1:
        raise ValueError(f"the page has {count} sections called {name}")
    return written


def write_section(page: Path, name: str, lines: Sequence[str], by: str = "make bench") -> None:
    """Write one section, shortened; the others stay as they are."""
    page.write_text(replaced(page.read_text(), name, shortened(name, lines), by))


def shortened(name: str, lines: Sequence[str]) -> list[str]:
    """Return what the page shows of a report. Pure."""
    text = "\n".join(lines)
    tables = re.compile(r"(?:^\|.*(?:\n|\Z))+", re.MULTILINE)
    text = tables.sub(lambda found: _shown(name, found[0].splitlines()), text)
    return re.sub(r"\n{3,}", "\n\n", text).split("\n")


def _shown(name: str, table: Sequence[str]) -> str:
    """Return a table without what the page leaves out; nothing if no row is left."""
    kept = [row for row in table if not re.search(NO_ROWS.get(name, r"\n"), row)]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in kept]
    head, left_out = rows[0], LEFT_OUT.get(name, set())
    if (column := NO_RANGE.get(name)) in head:
        at = head.index(column)
        rows = [[*row[:at], row[at].partition(" (")[0], *row[at + 1 :]] for row in rows]
    if table[0] == TARGETS and name in ONLY_MISSED:
        rows = [*rows[:2], *(row for row in rows[2:] if row[-1] != "met")]
    if head[0] in left_out or len(rows) == 2:
        return ""
    columns = [at for at, cell in enumerate(head) if cell not in left_out]
    return "".join(_row([row[at] for at in columns]) for row in rows).replace("|  |\n", "| |\n")


def _row(cells: Sequence[str]) -> str:
    """Return a row of a table; dashes have no spaces around them."""
    apart = "|" if re.fullmatch(r":?-+:?", cells[0]) else " | "
    return f"{apart.lstrip()}{apart.join(cells)}{apart.rstrip()}\n"
