"""Chooses the subjects of a run: the suite's own, or those that the command line names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trueload.errors import UserError
from trueload.subjects.manifest import Subject
from trueload.subjects.selection import (
    Entry,
    Select,
    entries,
    parse_selects,
    select_subjects,
    unless_named,
)
from trueload.suites.definition import Suite


def choose_subjects(
    catalogue: Path,
    suite: Suite,
    selects: Sequence[Select],
    talk: Callable[[str], None],
    *,
    any_contract: bool = False,
) -> list[Subject]:
    """Return the subjects of the run, in the catalogue's order.

    Positive selects replace the suite's list; a select that only excludes narrows it. ``talk`` gets
    a note on a broken subject. Raises ``UserError`` for a meaningless select, for a named subject
    that is broken or lacks the contract, and if no subject is left.
    """

    def report_broken(entry: Entry, why: UserError) -> None:
        talk(f"note: {entry.name} is broken: {why.message}")

    positive = [select for select in selects if not select.exclude]
    own = [] if positive else _known(catalogue, suite, talk)
    found = select_subjects(catalogue, [*own, *selects], unless_named(positive, report_broken))
    named = [select for select in positive if select.variant is not None]
    if suite.variants == "default":
        asked = [s for s in own if s.variant] + named
        found = [s for s in found if not s.variant or any(a.means(s) for a in asked)]
    if any_contract:
        return found
    fitting = [subject for subject in found if suite.contract in subject.manifest.contracts]
    for select in positive:
        if not any(select.means(subject) for subject in fitting):
            raise UserError(
                f"{select.text!r} selects no subject with the contract {suite.contract!r}",
                "`trueload subjects list` shows the contracts of each",
            )
    if not fitting:
        raise UserError("no subject is selected", "`trueload subjects list` shows them")
    return fitting


def _known(catalogue: Path, suite: Suite, talk: Callable[[str], None]) -> list[Select]:
    """Return the suite's own list; notes what this catalogue does not have, and leaves it out."""
    everywhere = entries(catalogue)
    known = []
    for select in parse_selects(suite.subjects):
        if any(entry.is_meant_by([select]) for entry in everywhere):
            known.append(select)
        else:
            talk(f"note: {select.text} is not in {catalogue}")
    if suite.subjects and not known:
        raise UserError(
            f"none of the suite's subjects is in {catalogue}", "name subjects with --subjects"
        )
    return known
