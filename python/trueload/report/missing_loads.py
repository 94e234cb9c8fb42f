"""What was not measured: each reason once per subject, for all the loads it applies to. Pure.

A subject that cannot be built, or lacks a tool, is a row with the same reason under every load. A
reader wants to see it once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trueload.grouping import grouped
from trueload.store.rows import Outcome
from trueload.suites.load_tables import LoadTable
from trueload.suites.summary import Summary
from trueload.text import plain

NO_REASON = "no reason given"
NAMED_MAX = 2  # this many loads are named by their titles; of more, the number is given


@dataclass(frozen=True)
class MissingLoads:
    """The reason why a subject was not measured under ``loads``, out of ``of`` loads."""

    subject: str
    outcome: Outcome
    why: str
    loads: tuple[str, ...]
    of: int

    def line(self) -> str:
        where = ""
        if len(self.loads) < self.of:
            few = len(self.loads) <= NAMED_MAX
            named = " and ".join(self.loads) if few else f"{len(self.loads)} of {self.of} loads"
            where = f", {named}"
        return f"{plain(self.subject)}{where}: {plain(self.why) or NO_REASON}"


def reasons_once(summaries: Iterable[Summary], everything: Sequence[Summary]) -> list[MissingLoads]:
    """Return each subject and reason once, in their order.

    ``everything`` has all rows of the subjects.
    """
    of = Counter(each.cell.subject.name for each in everything)
    alike = grouped(summaries, lambda each: (each.cell.subject.name, each.outcome, each.why))
    return [
        MissingLoads(name, outcome, why, tuple(row.cell.load.title for row in rows), of[name])
        for (name, outcome, why), rows in alike.items()
    ]


def under_no_load(tables: Sequence[LoadTable]) -> list[MissingLoads]:
    """Return subjects that were not measured under any of several loads, for a single reason."""
    everything = [row for table in tables for row in table.everything]
    unmeasured = [row for table in tables for row in table.unmeasured]
    found = reasons_once(unmeasured, everything)
    return [each for each in found if len(each.loads) == each.of > 1] if len(tables) > 1 else []


def titled(absent: Sequence[MissingLoads]) -> list[tuple[str, list[str]]]:
    """Return subjects that were not measured, under a title for each outcome."""
    outcomes = dict.fromkeys(each.outcome for each in absent)
    return [
        (
            f"{outcome.capitalize()} under every load:",
            [each.line() for each in absent if each.outcome == outcome],
        )
        for outcome in outcomes
    ]
