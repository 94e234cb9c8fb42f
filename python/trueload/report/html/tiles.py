"""The figures at the top: the best, the worst, their distance, and the verdict.

How: one program has the figures of its trial, and the best and worst of its repetitions. Several
programs under one load have their first and their last. Several loads have the best of each, and
one comparison has its ratio. The last tile counts the verdicts. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trueload.compare.difference import Ratio
from trueload.record.bound import at_least, verdict_text
from trueload.record.figures import BRIEF, label
from trueload.report.compare import ratio_cells, value_text
from trueload.report.html.comparisons import MetricRatios
from trueload.report.times import figure_text
from trueload.suites.load_tables import LoadTable
from trueload.suites.summary import Summary
from trueload.units import counted, format_count, format_share, format_size

LOADS_MAX = 5
VERDICTS = ("valid", "suspect", "invalid")


@dataclass(frozen=True)
class Tile:
    """One large figure. ``mark`` is a word with a colour; ``void``: the figure means nothing."""

    value: str
    label: str
    mark: str = ""
    void: bool = False


def tiles(
    sections: Sequence[LoadTable], compared: Sequence[MetricRatios], connection_bytes: float | None
) -> Iterator[Tile]:
    """Yield all tiles of a page.

    ``connection_bytes`` is the memory per connection of the server of a single entry.
    """
    measured = [entry for section in sections for entry in section.measured]
    everything = [entry for section in sections for entry in section.everything]
    if len(compared) == 1 and compared[0].ratios:
        yield from _of_ratio(compared[0], void=not any(s.ranked for s in sections))
    elif len(measured) == 1:
        yield from _of_one(measured[0], next(s for s in sections if s.measured))
        if connection_bytes is not None and connection_bytes > 0:
            yield Tile(format_size(connection_bytes), "memory per connection")
    elif len(sections) == 1:
        yield from _of_several(sections[0])
    else:
        yield from _of_loads(sections)
    if everything:
        yield _verdict(everything)


def _of_ratio(found: MetricRatios, *, void: bool) -> Iterator[Tile]:
    """Yield the tiles of the metric that was named beforehand."""
    first: Ratio = next((r for r in found.ratios if r.metric == found.primary), found.ratios[0])
    *_, ratio, within, _ = ratio_cells(first)
    name = label(first.metric)
    mark = first.word if first.word in ("better", "worse") else ""
    yield Tile(first.word, f"{found.new} against {found.base}, by {name}", mark, void)
    yield Tile(ratio or "none", f"ratio of {name}{f', {within}' if within else ''}", void=void)
    if not first.too_few:
        for value, side in ((first.new, found.new), (first.base, found.base)):
            yield Tile(value_text(first.metric, value), f"{name} of {side}", void=void)


def _of_one(entry: Summary, section: LoadTable) -> Iterator[Tile]:
    figures, void = entry.figures, not entry.can_rank
    for search in section.searches:
        bound = "≥ " if search.bound else ""
        value = "none" if search.largest is None else f"{bound}{format_count(search.largest)}"
        yield Tile(value, f"{search.unit} with {search.limit}", void=void)
    if figures is None:
        return
    if not section.searches or section.unit != "requests/s":
        score = "none" if entry.score is None else format_count(entry.score)
        yield Tile(at_least(score, entry.lower_bound), section.unit, void=void)
    scores = [trial.score for trial in entry.trials]
    if len(scores) > 1:
        best, worst = max(scores), min(scores)
        yield Tile(format_count(best), f"best of {len(scores)}, {section.unit}", void=void)
        yield Tile(format_count(worst), f"worst of {len(scores)}, {section.unit}", void=void)
        if entry.score:
            spread = format_share((best - worst) / entry.score)
            yield Tile(spread, "spread, from worst to best", void=void)
    few = figures.largest_of
    slowest = "slowest answer" if few is None else f"slowest of {counted(few, 'answer')}"
    for name, tile_label in (*((name, name) for name in BRIEF), ("max", slowest)):
        if text := figure_text(figures, name).partition(" (")[0]:
            yield Tile(text, tile_label, void=void)
    yield Tile(format_count(figures.errors), "failed", "failed" if figures.errors else "")
    whose = "client" if figures.client is not None else "server"
    if figures.cpu_share is not None:
        yield Tile(format_share(figures.cpu_share), f"CPU of the {whose}", void=void)
    if figures.peak_rss_bytes is not None:
        yield Tile(format_size(figures.peak_rss_bytes), f"peak memory of the {whose}", void=void)


def _of_several(section: LoadTable) -> Iterator[Tile]:
    ranked = section.ranked
    if not ranked:
        return
    best, worst = ranked[0], ranked[-1]
    distinct = worst.rank not in (None, 1)
    first, last = ("best", "worst") if distinct else ("most", "least")
    yield _score(best, f"{first}, {section.unit}: {best.name}")
    if worst is not best:
        yield _score(worst, f"{last}, {section.unit}: {worst.name}")
        if worst.score:
            times = (best.score or 0.0) / worst.score
            spread = f"spread, from {last} to {first}"
            yield Tile(f"{times:,.3g} x", spread if distinct else f"{spread}: not told apart")


def _of_loads(sections: Sequence[LoadTable]) -> Iterator[Tile]:
    for section in sections[:LOADS_MAX]:
        if section.ranked:
            best = section.ranked[0]
            yield _score(best, f"best, {section.unit}: {best.name}, {section.title}")


def _score(entry: Summary, label: str) -> Tile:
    return Tile(at_least(format_count(entry.score or 0.0), entry.lower_bound), label)


def _verdict(entries: Sequence[Summary]) -> Tile:
    """Return the number of entries by verdict, or the verdict of a single one."""
    if len(entries) == 1 and (verdict := entries[0].verdict) is not None:
        return Tile(verdict_text(verdict, entries[0].lower_bound), "verdict", verdict)
    counted = [entry for entry in entries if entry.verdict is not None and not entry.trap]
    counts = {name: sum(e.verdict == name for e in counted) for name in VERDICTS}
    parts = [f"{count} {name}" for name, count in counts.items() if count and name != "valid"]
    bounds = sum(entry.lower_bound for entry in counted if entry.verdict == "valid")
    parts += [f"{bounds} of them lower bounds"] if bounds else []
    traps = sum(entry.trap and entry.outcome == "measured" for entry in entries)
    parts += [f"{traps} {'trap' if traps == 1 else 'traps'}"] if traps else []
    for outcome in dict.fromkeys(e.outcome for e in entries if e.outcome != "measured"):
        parts.append(f"{sum(e.outcome == outcome for e in entries)} {outcome}")
    mark = next((name for name in reversed(VERDICTS) if counts[name]), "")
    label_ = ", ".join(parts) or "verdict"
    return Tile(f"{counts['valid']} of {len(counted)} valid", label_, mark)
