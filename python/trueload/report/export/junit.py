"""Results as JUnit XML, for CI: one test suite of cases. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from trueload.record.certainty import Ruling
from trueload.text import plain

Kind = Literal["failure", "error", "skipped"]
RULED: dict[str, Kind | None] = {"crossed": "failure", "undecided": "error", "kept": None}
"""What becomes of a condition, by the state of its ruling."""
_TOTALS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


@dataclass(frozen=True)
class Case:
    """A test case: what it belongs to, its name, what became of it, and a text about it."""

    group: str
    name: str
    kind: Kind | None = None
    why: str = ""
    text: str = ""


def verdict_cases(
    group: str, verdict: str, why: str, rulings: Sequence[Ruling], *, strict: bool = False
) -> Iterator[Case]:
    """Yield a case for a verdict, and one for each condition.

    An invalid result is an error; but where all conditions are decided, it is skipped, as the exit
    code has it.
    """
    bad = verdict == "invalid" or (strict and verdict == "suspect")
    decided = rulings and not strict
    yield Case(group, "verdict", ("skipped" if decided else "error") if bad else None, why, verdict)
    for each in rulings:
        kind = RULED[each.state]
        text = "" if kind else each.why
        yield Case(group, f"--fail-on {each.condition.text}", kind, each.why, text)


def junit(cases: Iterable[Case]) -> str:
    suite = ElementTree.Element("testsuite", name="trueload")
    totals = {"tests": 0, **dict.fromkeys(_TOTALS.values(), 0)}
    for case in cases:
        names = {"classname": plain(case.group) or "trueload", "name": plain(case.name)}
        one = ElementTree.SubElement(suite, "testcase", names)
        totals["tests"] += 1
        if case.kind is not None:
            ElementTree.SubElement(one, case.kind, message=plain(case.why))
            totals[_TOTALS[case.kind]] += 1
        if case.text:
            ElementTree.SubElement(one, "system-out").text = plain(case.text)
    suite.attrib.update({name: str(number) for name, number in totals.items()})
    ElementTree.indent(suite)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return head + ElementTree.tostring(suite, encoding="unicode") + "\n"
