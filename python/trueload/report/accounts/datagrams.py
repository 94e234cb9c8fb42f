"""Datagrams that settled no request, or came out of turn."""

from __future__ import annotations

from trueload.record.schema import Record
from trueload.report.account import AccountView
from trueload.units import format_count


def datagrams_text(record: Record) -> str:
    """A text: ``3 lost, 1 late, 2 duplicated, 0 reordered``; empty for other protocols.

    Counts that are not about a request's outcome are shown only if they are not 0.
    """
    found = record.datagrams
    if found is None:
        return ""
    lost = record.counts.failed.get("lost", 0)
    counts = {"lost": lost, **found.model_dump()}
    always = ("lost", "late", "duplicated", "reordered")
    shown = [name for name in counts if name in always or counts[name]]
    return ", ".join(f"{format_count(counts[name])} {name}" for name in shown)


DATAGRAMS = AccountView(
    name="datagrams",
    after="failures",
    lines=lambda record: [("datagrams", datagrams_text(record))],
)
