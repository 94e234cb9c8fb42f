"""A result as Markdown of at most 15 lines, for the summary of a job in CI. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trueload.report.export.markdown import markdown_cell
from trueload.units import counted

LINES = 15
TABLE_LINES = 10


def summary(title: str, told: Iterable[str], table: Iterable[str]) -> str:
    """A title, a table, and what else is to be told; what there is no room for is counted."""
    sentences, rows = list(told), [line.rstrip("\n") for line in table]
    if (left := len(rows) - TABLE_LINES) > 0:
        sentences.insert(0, counted(left, "more row"))
    head = [f"### {markdown_cell(title)}", "", *rows[:TABLE_LINES], *([""] if rows else [])]
    room = LINES - len(head)
    if len(sentences) > room:
        sentences[room - 1 :] = [f"{len(sentences) - room + 1} more"]
    return "\n".join([*head, *(f"- {markdown_cell(each)}" for each in sentences)]) + "\n"
