"""What a report shows of a run, as plain values: entries, in sections by load.

An *entry* is one program under one load, its repetitions together; a *section* holds the entries
that were put under the same load, and so may be compared. Pure. Must not know the store, charts or
HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from trueload import stats
from trueload.record import Check, Environment, Status, Verdict
from trueload.store import Outcome, Run
from trueload.suite.definition import PublishedTable
from trueload.suite.summary import Figures, Summary

Unit = Literal["requests/s", "messages/s", "clients"]


@dataclass(frozen=True)
class Entry:
    """One program under one load. ``score`` is what it is ranked by, in the section's unit;
    ``middle`` is the stored row of the repetition that stands for all of them in curves, None if
    nothing was measured. ``summary`` is there of a suite."""

    name: str
    run: str
    outcome: Outcome
    verdict: Verdict | None
    why: str
    score: float | None = None
    interval: stats.Interval | None = None
    rank: int | None = None
    trap: bool = False
    repetitions: int = 0
    counted: int = 0
    figures: Figures | None = None
    middle: int | None = None
    summary: Summary | None = None

    @property
    def can_rank(self) -> bool:
        """Whether it may take a place: measured, not invalid, and no trap."""
        return (
            self.outcome == "measured"
            and self.verdict != "invalid"
            and not self.trap
            and self.interval is not None
        )


@dataclass(frozen=True)
class Step:
    """One step of a search: its load, what it came to, and latencies in ns (None where nothing
    ended well). ``decisive`` is what the limit is about, None where that is endless or no time."""

    load: float
    stage: str
    outcome: str
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    decisive_ns: float | None


@dataclass(frozen=True)
class Search:
    """One search: its steps in the order of taking, and what came of it. ``largest`` is the load
    that was confirmed; ``limit_ns`` the limit as a time, None where it is about something else."""

    name: str
    unit: str
    limit: str
    metric: str
    limit_ns: float | None
    largest: float | None
    bound: bool
    sentence: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Section:
    """Entries under the same load. ``title`` names the load; ``ranked`` come first, in order."""

    title: str
    unit: Unit
    entries: tuple[Entry, ...]
    searches: tuple[Search, ...] = ()
    published: tuple[PublishedTable, ...] = ()
    broadcast: bool = False

    @property
    def ranked(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.rank is not None)

    @property
    def invalid(self) -> tuple[Entry, ...]:
        return tuple(
            entry
            for entry in self.entries
            if entry.outcome == "measured" and entry.rank is None and not entry.trap
        )

    @property
    def traps(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.trap and entry.outcome == "measured")

    @property
    def unmeasured(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.outcome != "measured")

    @property
    def measured(self) -> tuple[Entry, ...]:
        return (*self.ranked, *self.invalid, *self.traps)


@dataclass
class CheckTally:
    """One check over all rows: how often it came out how, and the worst of it with its entry."""

    name: str
    counts: dict[Status, int] = field(default_factory=dict)
    worst: Check | None = None
    where: str = ""

    @property
    def status(self) -> Status:
        return self.worst.status if self.worst is not None else "n/a"


@dataclass(frozen=True)
class Told:
    """A run with everything that a report says of it."""

    run: Run
    sections: tuple[Section, ...]
    checks: tuple[CheckTally, ...]
    environments: tuple[Environment, ...]
    generators: tuple[str, ...]
    rows: Mapping[str, int]
    damaged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    moved: str = ""


def in_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Ranked by score, the best first, then what is invalid, the traps and what was not measured;
    with ranks anew: 1 + the number of entries whose interval lies wholly above."""
    entries = list(entries)
    able = sorted((e for e in entries if e.can_rank), key=_by_score)
    ranks = stats.ranks([entry.interval for entry in able if entry.interval is not None])
    ranked = [replace(entry, rank=rank) for entry, rank in zip(able, ranks, strict=True)]
    rest = [replace(entry, rank=None) for entry in entries if not entry.can_rank]
    groups = (
        [e for e in rest if e.outcome == "measured" and not e.trap],
        [e for e in rest if e.outcome == "measured" and e.trap],
        [e for e in rest if e.outcome != "measured"],
    )
    return (*ranked, *(entry for group in groups for entry in sorted(group, key=_by_score)))


def _by_score(entry: Entry) -> tuple[float, str]:
    return (-(entry.score or 0.0), entry.name)


def with_own_names(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The same entries, each with a name that no other has: charts tell them apart by it, and show
    its beginning."""
    runs: dict[str, set[str]] = {}
    for entry in entries:
        runs.setdefault(entry.name, set()).add(entry.run)
    seen: dict[str, int] = {}
    named = []
    for entry in entries:
        name = entry.name if len(runs[entry.name]) == 1 else f"{entry.run} {entry.name}"
        seen[name] = seen.get(name, 0) + 1
        named.append(replace(entry, name=name if seen[name] == 1 else f"{name} ({seen[name]})"))
    return tuple(named)


def merged(told: Sequence[Told]) -> tuple[Section, ...]:
    """The sections of several runs: those of the same load become one, ranked anew."""
    together: dict[tuple[str, Unit, bool], list[Section]] = {}
    for each in told:
        for section in each.sections:
            key = (section.title, section.unit, section.broadcast)
            together.setdefault(key, []).append(section)
    return tuple(
        Section(
            title=title,
            unit=unit,
            entries=with_own_names(in_order(e for s in sections for e in s.entries)),
            searches=tuple(search for section in sections for search in section.searches),
            published=sections[0].published,
            broadcast=broadcast,
        )
        for (title, unit, broadcast), sections in together.items()
    )
