"""What came of it, in sentences: who is ahead, what ties, what does not count and why. Pure.

Each sentence is made of the same figures as the tables. Quoted text is plain: whoever shows it
escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from trueload.grouping import grouped
from trueload.record.core_latency import moved_text
from trueload.report.compare import ratio_cells
from trueload.report.html.entries import ratio_of, sides_of, why_tied
from trueload.report.html.gather import CheckTally, RunReport
from trueload.report.times import figure_text
from trueload.store.rows import Run
from trueload.suites.figures import Figures
from trueload.suites.load_tables import LoadTable
from trueload.suites.ranks import REPETITIONS_MIN
from trueload.suites.summary import Summary, Unit
from trueload.text import listed as names_listed
from trueload.units import format_count, format_share

NAMES_MAX = 4
REASONS_MAX = 6


def results(section: LoadTable) -> list[str]:
    """What came of one load: a sentence or more. Of what is invalid the reason, and no figure."""
    ranked, invalid = section.ranked, section.invalid
    sentences = [f"{each.name}: {each.sentence}." for each in section.searches[:REASONS_MAX]]
    if not section.measured:
        sentences.append("Nothing was measured.")
    elif len(section.everything) == 1:
        sentences += alone(section.everything[0], section.unit) if not invalid else []
    elif (sides := sides_of(ranked)) is not None:
        sentences += in_turns(*sides)
    elif not ranked:
        sentences.append("No row can be ranked: every one that was measured is invalid.")
    else:
        sentences += ahead(ranked, section.unit, section.too_few)
    return sentences + apart("invalid, so its figures mean nothing", invalid)


def remarks(section: LoadTable) -> list[str]:
    """What is to know about these results: doubts, bounds, traps and what is missing."""
    ranked = section.ranked
    sentences = apart("suspect", [entry for entry in ranked if entry.verdict == "suspect"])
    sentences += apart(
        "a lower bound", [e for e in ranked if e.verdict == "valid" and e.lower_bound]
    )
    sentences += [
        f"{entry.name}: {entry.why}."
        for entry in ranked
        if entry.verdict == "valid" and not entry.lower_bound and entry.why
    ]
    sentences += apart("a trap, measured to show what a check catches", section.traps)
    for outcome in dict.fromkeys(entry.outcome for entry in section.unmeasured):
        sentences += absent(outcome, [e for e in section.unmeasured if e.outcome == outcome])
    return sentences


def alone(entry: Summary, unit: Unit) -> list[str]:
    """One program by itself."""
    text = f"{entry.name} came to {score_text(entry, unit)}{_within(entry)}"
    figures = entry.figures
    if figures is not None and figures.latency.p50 is not None:
        text += f"; {_share_text(figures, 'p50', 'half')}"
        if "p50" not in figures.latency_at_least and "p99" not in figures.latency_too_few:
            text += f", {_share_text(figures, 'p99', '99 %')}"
        text += f", the slowest answer {figure_text(figures, 'max')}"
    if figures is not None and figures.errors:
        share = format_share(figures.errors / figures.requests) if figures.requests else "all"
        text += f"; {format_count(figures.errors)} failed ({share})"
    return [f"{text}."]


def in_turns(a: Summary, b: Summary) -> list[str]:
    """Side B of `trueload compare` against side A, by the ratio of its table."""
    found = ratio_of(a, b)
    _, old, new, ratio, within, _ = ratio_cells(found)
    figures = f"throughput {new} against {old}, ratio {ratio}{f', {within}' if within else ''}"
    if found.word in ("better", "worse"):
        return [f"{b.name} is {found.word} than {a.name}: {figures}."]
    why = f" ({found.why})" if found.why else ""
    return [f"{a.name} and {b.name} cannot be told apart{why}: {figures}."]


def ahead(ranked: Sequence[Summary], unit: Unit, too_few: int | None = None) -> list[str]:
    """Sentences on which entry leads, by how much, and which cannot be told apart. ``too_few`` is
    the number of repetitions of a row, if they are too few to rank."""
    leader = ranked[0]
    first = [entry for entry in ranked if entry.rank == 1]
    rest = [entry for entry in ranked if entry.rank != 1]
    most = f"The most is {score_text(leader, unit)}, of {leader.name}."
    if len(ranked) == 1:
        return [
            f"{leader.name} is the only row that can be ranked, with"
            f" {score_text(leader, unit)}{_within(leader)}."
        ]
    if too_few is not None:
        repetitions = _count(too_few, "repetition is", "repetitions are")
        return [f"{repetitions} too few to rank: it takes {REPETITIONS_MIN}. {most}"]
    if len(first) == 1:
        sentences = [f"{leader.name} is ahead with {score_text(leader, unit)}{_within(leader)}."]
    elif not rest:
        sentences = [f"{listed(ranked)} cannot be told apart: {why_tied(*ranked[:2])}. {most}"]
    else:
        sentences = [
            f"{listed(first)} may each be the first: {why_tied(*first[:2])}, so that what was"
            f" measured cannot tell them apart. {most}"
        ]
    if rest and rest[0].score and leader.score:
        share = format_share(rest[0].score / leader.score)
        share = f"at most {share}" if leader.lower_bound else share
        sentences.append(
            f"Next is {rest[0].name} with {score_text(rest[0], unit)}, {share} of that."
        )
    return sentences + ties(rest)


def ties(rest: Sequence[Summary]) -> list[str]:
    """A sentence on the entries below the first that may have the same ranks."""
    by_places = grouped(rest, attrgetter("places")).items()
    shared = [(places, some) for places, some in by_places if len(some) > 1]
    if not shared:
        return []
    parts = [f"{listed(some)} (rank {places})" for places, some in shared[:NAMES_MAX]]
    more = f", and {len(shared) - NAMES_MAX} more ranks" if len(shared) > NAMES_MAX else ""
    return [f"Not told apart either: {'; '.join(parts)}{more}."]


def apart(what: str, entries: Sequence[Summary]) -> list[str]:
    """Each with its reason, up to a few."""
    sentences = [
        f"{entry.name} is {what}: {entry.why or 'no reason is given'}"
        for entry in entries[:REASONS_MAX]
    ]
    sentences = [text if text.endswith(".") else f"{text}." for text in sentences]
    if len(entries) > REASONS_MAX:
        sentences.append(
            f"{len(entries) - REASONS_MAX} more are {what}; the table has their reasons."
        )
    return sentences


def absent(outcome: str, entries: Sequence[Summary]) -> list[str]:
    """What was not measured: each reason once, with those that it is of, up to a few."""
    shown = list(grouped(entries, attrgetter("why")).items())[:REASONS_MAX]
    sentences = []
    for why, some in shown:
        are = "is" if len(some) == 1 else "are"
        reason = (why or "no reason is given").removesuffix(".")
        sentences.append(f"{listed(some)} {are} {outcome}: {reason}.")
    left = len(entries) - sum(len(some) for _, some in shown)
    if left:
        sentences.append(f"{left} more are {outcome}; the table has their reasons.")
    return sentences


def checks_words(checks: Sequence[CheckTally]) -> str:
    """How many of the checks say something."""
    fails = list(dict.fromkeys(check.name for check in checks if check.status == "fail"))
    warns = list(dict.fromkeys(check.name for check in checks if check.status == "warn"))
    bound = any(check.status == "bound" for check in checks)
    if not checks:
        return "There is no record, so nothing was checked."
    if not fails and not warns:
        return "A throughput is a lower bound." if bound else "No check found anything."
    parts = []
    if fails:
        parts.append(f"{_count(len(fails), 'check fails', 'checks fail')}: {', '.join(fails)}")
    if warns:
        parts.append(f"{_count(len(warns), 'check warns', 'checks warn')}: {', '.join(warns)}")
    return "; ".join(parts) + "."


_HOW_IT_ENDED = {
    "interrupted": "was interrupted",
    "partial": "measured less than was planned",
}


def run_words(report: RunReport) -> list[str]:
    """What is to know of a run as a whole."""
    sentences = []
    if report.run.state != "finished":
        why = _HOW_IT_ENDED.get(report.run.state, "has not ended")
        sentences.append(f"Run {report.run.id} {why}: what was measured until then is here.")
    if report.damaged:
        rows = _count(len(report.damaged), "row", "rows")
        sentences.append(f"{rows} of run {report.run.id} cannot be read: {report.damaged[0]}.")
    if moved := moved_text(report.core_latencies):
        sentences.append(f"In run {report.run.id} {moved}.")
    if not report.rows:
        sentences.append(f"Run {report.run.id} has no rows.")
    return sentences


def across_words(runs: Sequence[Run]) -> str:
    """A warning that belongs to every comparison over time."""
    return (
        f"{len(runs)} runs are shown side by side. They were measured at different times, so that a"
        " difference may be the machine's: `trueload compare` measures two in turns."
    )


def title_of(reports: Sequence[RunReport]) -> str:
    """What the page is called."""
    if len(reports) != 1:
        return f"{len(reports)} runs compared"
    return reports[0].run.title or reports[0].run.kind


def score_text(entry: Summary, unit: Unit) -> str:
    """``45,123 requests/s``."""
    if entry.score is None:
        return "no figure"
    return f"{'at least ' if entry.lower_bound else ''}{format_count(entry.score)} {unit}"


def _within(entry: Summary) -> str:
    interval = entry.interval
    if interval is None or interval.low == interval.high:
        return ""
    low, high = format_count(interval.low), format_count(interval.high)
    return f" ({interval.kind} {low} to {high})"


def _share_text(figures: Figures, name: str, share: str) -> str:
    """``half of the requests took at most 1.00 ms``."""
    if name in figures.latency_at_least:
        return f"fewer than {share} of the requests were answered well"
    text = figure_text(figures, name)
    return f"{share} of the requests took {text if text.startswith('≤') else f'at most {text}'}"


def listed(entries: Sequence[Summary]) -> str:
    """``a, b and c``, or ``a, b, c, d and 3 more``."""
    return names_listed([entry.name for entry in entries], NAMES_MAX)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
