"""The head of a live view: title, number of the trial, and notes on earlier trials. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueload.report.phases import progress_rows
from trueload.report.rows import Row, Span, Tone, flow
from trueload.text import plain
from trueload.units import format_count

if TYPE_CHECKING:
    from trueload.search.decide import Try
    from trueload.search.execute import SearchPlan, StepResult


@dataclass(frozen=True)
class Heading:
    """The head of the view of one trial.

    It is trial ``number`` of ``of``, if there are several. ``left`` says how long the others will
    take. ``notes`` are about earlier trials.
    """

    title: str
    number: int = 1
    of: int = 1
    left: str = ""
    notes: tuple[Row, ...] = ()

    @property
    def is_alone(self) -> bool:
        """Whether no line about other trials stands above the view."""
        return self.of == 1 and not self.notes


def heading_rows(heading: Heading, width: int) -> list[Row]:
    """Return the rows below the title; none for a single trial without notes."""
    rows = []
    if heading.of > 1:
        share = (heading.number - 1) / heading.of
        text = f"{format_count(heading.number)} of {format_count(heading.of)}{heading.left}"
        rows += progress_rows("trial", share, text, width)
    return rows + flow(heading.notes, width)


def search_heading(plan: SearchPlan, taken: Sequence[StepResult], following: Try) -> Heading:
    """Return the head of a search step.

    It has the load that is tried, the largest earlier load that kept to the limit, and the smallest
    that did not.
    """
    from trueload.search.result import load_text

    load = load_text(plan, following.load)
    notes = [_note("limit", plain(plan.limit.text), "text")]
    kept = [each.next.load for each in taken if each.judgement.outcome == "kept"]
    if kept:
        notes.append(_note("kept", load_text(plan, max(kept)), "good"))
    above = [each.next.load for each in taken if each.judgement.outcome == "exceeded"]
    if above:
        notes.append(_note("exceeded", load_text(plan, min(above)), "bad"))
    spoiled = [each for each in taken if each.judgement.outcome in ("limited", "short")]
    if spoiled:
        last = load_text(plan, spoiled[-1].next.load)
        notes.append(_note("not judged", last, "warn"))
    step = f"step {len(taken) + 1}, {following.purpose}: {load}"
    return Heading(step, notes=tuple(notes))


def _note(label: str, text: str, tone: Tone) -> Row:
    return (Span(f"{label} ", "label"), Span(text, tone))
