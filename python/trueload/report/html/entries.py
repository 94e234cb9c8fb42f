"""What a report shows of a run, and how programs under the same load are ranked and compared.

How: an *entry* is a `Summary`, a *section* a `LoadTable`, as a suite has them; what is no suite is
made into the same. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from trueload.compare.difference import Ratio, lower_bound, of_pairs, of_trials, too_few_trials
from trueload.grouping import grouped
from trueload.suites.load_tables import (
    LoadTable,
    in_order_of_figures,
    scored_alike,
    too_few_repetitions,
)
from trueload.suites.ranks import known_above, places
from trueload.suites.summary import Summary


def in_order(entries: Iterable[Summary]) -> tuple[Summary, ...]:
    """Ranked, the best first, then what is invalid, the traps and what was not measured; with the
    ranks that each may have among these."""
    entries = list(entries)
    able = in_order_of_figures([entry for entry in entries if entry.can_rank])
    rest = [replace(entry, places=None) for entry in entries if not entry.can_rank]
    groups = (
        [e for e in rest if e.outcome == "measured" and not e.trap],
        [e for e in rest if e.outcome == "measured" and e.trap],
        [e for e in rest if e.outcome != "measured"],
    )
    return (*_placed(able), *(entry for group in groups for entry in sorted(group, key=_by_score)))


def _placed(able: Sequence[Summary]) -> Iterator[Summary]:
    """The same with the ranks that each may have; with none where a suite repeated too little."""
    if too_few_repetitions(able) is not None:
        yield from (replace(entry, places=None) for entry in able)
        return
    above = {
        (at, below)
        for at, below in permutations(range(len(able)), 2)
        if not _is_of_one_suite(able[at], able[below]) and is_better(able[at], able[below])
    }
    of_suites = [at for at, entry in enumerate(able) if entry.planned is not None]
    for some in grouped(of_suites, lambda at: able[at].run).values():
        known = known_above(scored_alike([able[at] for at in some]))
        above |= {(some[higher], some[lower]) for higher, lower in known}
    for entry, found in zip(able, places(len(able), above), strict=True):
        yield replace(entry, places=found)


def is_better(one: Summary, other: Summary) -> bool:
    """Whether the first of two entries that are not of one suite is better than the other."""
    if other.lower_bound:
        return False
    if one.side:
        return ratio_of(other, one).word == "better"
    lower, higher = ([each.score for each in some.trials] for some in (other, one))
    if too_few_trials(len(lower), len(higher)) or (one.score or 0.0) <= (other.score or 0.0):
        return False
    # An interval takes some 5 ms, and most of many entries do not overlap anyway.
    return min(higher) > max(lower) or ratio_of(other, one).word == "better"


def ratio_of(base: Summary, new: Summary) -> Ratio:
    """The score of one entry to that of another, with what it allows to say."""
    olds, news = ({each.pair: each.score for each in some.trials} for some in (base, new))
    both = [pair for pair in olds if pair is not None and pair in news and base.run == new.run]
    old, now = ([each.score for each in some.trials] for some in (base, new))
    if both:
        old, now = ([scores[pair] for pair in both] for scores in (olds, news))
    bounds = (
        lower_bound(base.name, old) if base.lower_bound else None,
        lower_bound(new.name, now) if new.lower_bound else None,
    )
    if both:
        return of_pairs("throughput", list(zip(old, now, strict=True)), bounds=bounds)
    return of_trials("throughput", old, now, bounds=bounds)


def why_tied(one: Summary, other: Summary) -> str:
    """Why two entries share a rank."""
    bounds = [each.name for each in (one, other) if each.lower_bound]
    if bounds:
        return f"{' and '.join(bounds)} may carry more than was measured"
    if _is_of_one_suite(one, other):
        return "they differ no more than by chance"
    return ratio_of(one, other).why or "trials of each differ as much"


def sides_of(entries: Sequence[Summary]) -> tuple[Summary, Summary] | None:
    """Sides A and B, where the entries are both sides of one `trueload compare`."""
    sides = {each.side: each for each in entries}
    if len(entries) != 2 or set(sides) != {"a", "b"} or sides["a"].run != sides["b"].run:
        return None
    return sides["a"], sides["b"]


def _is_of_one_suite(one: Summary, other: Summary) -> bool:
    return one.run == other.run and one.planned is not None and other.planned is not None


def _by_score(entry: Summary) -> tuple[float, str]:
    return (-(entry.score or 0.0), entry.name)


def with_own_names(entries: Sequence[Summary]) -> tuple[Summary, ...]:
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


def merged(found: Iterable[LoadTable]) -> tuple[LoadTable, ...]:
    """The sections of several runs: those of the same load become one, ranked again."""
    together = grouped(found, lambda section: (section.title, section.unit, section.broadcast))
    return tuple(
        LoadTable(
            title=title,
            unit=unit,
            everything=with_own_names(in_order(e for s in sections for e in s.everything)),
            searches=tuple(search for section in sections for search in section.searches),
            published=sections[0].published,
            broadcast=broadcast,
        )
        for (title, unit, broadcast), sections in together.items()
    )
