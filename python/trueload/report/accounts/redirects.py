"""Redirects: how many were followed, how many a request had, how long they took."""

from __future__ import annotations

from trueload.record.accounts.redirects import Redirects
from trueload.record.figures import BRIEF
from trueload.report.account import AccountView, Column, Lines, times_columns
from trueload.report.times import times_text
from trueload.units import format_count


def counts_text(found: Redirects) -> str:
    """A text: ``3,000 followed (302: 3,000); 3 before each answer``."""
    if not found.followed:
        return "none came"
    by_status = ", ".join(f"{code}: {format_count(n)}" for code, n in found.statuses.items())
    text = f"{format_count(found.followed)} followed ({by_status})"
    hops = sorted(int(count) for count in found.hops)
    if len(hops) == 1:
        return f"{text}; {hops[0]} before each answer"
    if hops and found.hops_mean is not None:
        return f"{text}; {hops[0]} to {hops[-1]} before an answer, {found.hops_mean:.1f} on average"
    return text


def _texts(found: Redirects) -> Lines:
    return [
        ("redirects", counts_text(found)),
        ("each took", times_text(found.redirect_ns, "(part of the latency)")),
    ]


REDIRECTS = AccountView(
    name="redirects",
    after="streams",
    order=3,
    texts=_texts,
    title="Redirects that were followed",
    columns=(
        Column("redirects", lambda found: found.followed),
        Column("redirects_mean", lambda found: found.hops_mean, "float"),
        *times_columns("redirect", lambda found: found.redirect_ns, (*BRIEF, "max")),
    ),
)
