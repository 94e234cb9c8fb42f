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
from trueload.compare.difference import Ratio, of_pairs, of_trials, too_few_trials
from trueload.compare.pairs import Turn
from trueload.record.schema import Check, Environment, Status, Verdict
from trueload.store.runs import Outcome, Run
from trueload.suites.definition import PublishedTable
from trueload.suites.summary import Figures, Summary

Unit = Literal["requests/s", "messages/s", "clients"]


@dataclass(frozen=True)
class Trial:
    """The score of one trial; its turn where it was measured in pairs."""

    score: float
    turn: Turn | None = None

    @property
    def pair(self) -> int | None:
        return None if self.turn is None else self.turn.pair


@dataclass(frozen=True)
class Entry:
    """One program under one load. ``score`` is what it is ranked by, in the section's unit;
    ``middle`` is the stored row of the repetition that stands for all of them in curves, None if
    nothing was measured. ``summary`` is there of a suite; ``trials`` are those by which it is
    compared with others."""

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
    trials: tuple[Trial, ...] = ()

    @property
    def side(self) -> str:
        """``a`` or ``b``, if all trials are of one side of pairs."""
        sides = {"" if each.turn is None else each.turn.letter for each in self.trials}
        return sides.pop() if len(sides) == 1 else ""

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
    """One step of a search: its load, what it came to, and its latency in ns. ``decisive`` is what
    the limit is about, None where that is endless or no time."""

    load: float
    stage: str
    outcome: str
    latency: stats.Distribution
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
    """Ranked, the best first, then what is invalid, the traps and what was not measured; with ranks
    anew: 1 + the number of entries that are better."""
    entries = list(entries)
    able = [entry for entry in entries if entry.can_rank]
    ranks = [1 + sum(is_better(other, entry) for other in able) for entry in able]
    ranked = [replace(entry, rank=rank) for entry, rank in zip(able, ranks, strict=True)]
    ranked.sort(key=lambda entry: (entry.rank or 0, *_by_score(entry)))
    rest = [replace(entry, rank=None) for entry in entries if not entry.can_rank]
    groups = (
        [e for e in rest if e.outcome == "measured" and not e.trap],
        [e for e in rest if e.outcome == "measured" and e.trap],
        [e for e in rest if e.outcome != "measured"],
    )
    return (*ranked, *(entry for group in groups for entry in sorted(group, key=_by_score)))


def is_better(one: Entry, other: Entry) -> bool:
    """Whether the first entry is better than the other."""
    if _is_of_one_suite(one, other):  # as its own table has it
        assert one.interval is not None, "it can be ranked"
        assert other.interval is not None, "it can be ranked"
        return one.interval.low > other.interval.high
    if one.side:
        return ratio_of(other, one).word == "better"
    lower, higher = ([each.score for each in some.trials] for some in (other, one))
    if too_few_trials(len(lower), len(higher)) or (one.score or 0.0) <= (other.score or 0.0):
        return False
    # An interval takes some 5 ms, and most of many entries do not overlap anyway.
    return min(higher) > max(lower) or ratio_of(other, one).word == "better"


def ratio_of(base: Entry, new: Entry) -> Ratio:
    """The score of one entry to that of another, with what it allows to say."""
    olds, news = ({each.pair: each.score for each in some.trials} for some in (base, new))
    pairs = [(olds[pair], news[pair]) for pair in olds if pair is not None and pair in news]
    if base.run == new.run and pairs:
        return of_pairs("throughput", pairs)
    old, now = ([each.score for each in some.trials] for some in (base, new))
    return of_trials("throughput", old, now)


def why_tied(one: Entry, other: Entry) -> str:
    """Why two entries share a rank."""
    if _is_of_one_suite(one, other):
        return "their intervals overlap"
    return ratio_of(one, other).why or "trials of each differ as much"


def sides_of(entries: Sequence[Entry]) -> tuple[Entry, Entry] | None:
    """Sides A and B, where the entries are both sides of one `trueload ab`."""
    sides = {each.side: each for each in entries}
    if len(entries) != 2 or set(sides) != {"a", "b"} or sides["a"].run != sides["b"].run:
        return None
    return sides["a"], sides["b"]


def _is_of_one_suite(one: Entry, other: Entry) -> bool:
    return one.run == other.run and one.summary is not None and other.summary is not None


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
