"""What a run has to show under an attack. Pure.

A demand is a function of the observed run: it compares one thing with the truth. A row of the table
is right if all its demands are met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redteam.truth import Truth

CLOSE = 0.02
"""A figure may differ from the truth by this share of it."""
LATE_MS = 0.2
"""The network and the wake-up of a process may add this to a time."""
UNSEEN = 0.1
"""An upper bound may be so much more too long than it says: short stalls are not seen."""
CROSSED = ("warn", "fail")


@dataclass(frozen=True)
class Seen:
    """An ended command: its exit code, its summary in text, its result as JSON."""

    code: int
    summary: str
    result: Mapping[str, Any]
    truth: Truth | None = None
    others: Mapping[str, Any] = field(default_factory=dict)
    """In a suite: the row of the honest subject."""
    served_ms: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """How long the server took for each request of a step, and for each whole session."""

    @property
    def verdict(self) -> str:
        """The verdict in the result."""
        return str(self.result.get("verdict"))

    @property
    def checks(self) -> dict[str, str]:
        """The status of each check."""
        return {check["name"]: check["status"] for check in self.result.get("checks", ())}

    @property
    def crossed(self) -> list[str]:
        """The checks that warn or fail."""
        return [name for name, status in self.checks.items() if status in CROSSED]


@dataclass(frozen=True)
class Answer:
    """One demand, answered: the truth, what trueload said, and whether that is right."""

    right: bool
    truth: str = ""
    shown: str = ""
    wanted: str = ""
    """What is missing where it is not right, unless `truth` and `shown` tell it."""


Demand = Callable[[Seen], Answer]


def is_close(reported: float | None, true: float, within: float = CLOSE) -> bool:
    """Tell whether a figure is within this share of the true one."""
    return reported is not None and abs(reported - true) <= within * true


def throughput(true_per_s: float | None = None, within: float = CLOSE) -> Demand:
    """Requests per second: against a known rate, else against the server's log."""

    def demand(seen: Seen) -> Answer:
        reported = seen.result["throughput"]["ok_per_s"]
        true = true_per_s if true_per_s is not None else _truth(seen).per_s
        shown = "none" if reported is None else f"{reported:,.4g}/s"
        return Answer(is_close(reported, true, within), f"{true:,.4g}/s", shown)

    return demand


def percentile(name: str, true_ms: float | None = None, within: float = 0.05) -> Demand:
    """A percentile of latency: against a known time, else against the server's log."""

    def demand(seen: Seen) -> Answer:
        part = float(f"0.{name.removeprefix('p').removesuffix('+')}")
        reported_ns = seen.result["latency_ns"][name]
        true = true_ms if true_ms is not None else _truth(seen).percentile_ms(part)
        if reported_ns is None:
            return Answer(False, f"{name} {true:.4g} ms", f"{name} none")
        reported_ms = reported_ns / 1e6
        least, most = (true, true) if true_ms is not None else _touched(_truth(seen), part)
        late_ns = seen.result["latency_ns"]["overstated_ns"].get(name)
        late_ms = LATE_MS if late_ns is None else late_ns / 1e6 + UNSEEN * reported_ms
        right = least * (1 - within) <= reported_ms <= most * (1 + within) + late_ms
        sign = "" if late_ns is None else "≤ "
        return Answer(right, f"{name} {true:.4g} ms", f"{sign}{reported_ms:.4g} ms")

    return demand


def _touched(truth: Truth, part: float) -> tuple[float, float]:
    """Between which times a percentile may lie that the verdict lets pass.

    Our stalls may have touched (1 - q)/4 of the answers before percentile q is suspect (`hiccup` in
    docs/verdicts.md).
    """
    share = (1 - part) / 4
    return truth.percentile_ms(part - share), truth.percentile_ms(part + share)


def by_schedule(within: float) -> Demand:
    """Require that the p99 which an open loop would have shown is told, against the log."""

    def demand(seen: Seen) -> Answer:
        true_ms = _truth(seen).scheduled_ms(0.99)
        found = re.search(
            r"a p99 of about ([\d.,]+) (m?s) \(coordinated", " ".join(seen.summary.split())
        )
        told_ms = (
            float(found[1].replace(",", "")) * (1 if found[2] == "ms" else 1e3) if found else None
        )
        shown = "none" if told_ms is None else f"{told_ms:.4g} ms"
        truth = f"p99 {true_ms:.4g} ms by a schedule"
        return Answer(is_close(told_ms, true_ms, within), truth, f"open loop {shown}")

    return demand


def refused_unless(*demands: Demand) -> Demand:
    """Require right figures unless the verdict refuses the run."""

    def demand(seen: Seen) -> Answer:
        answers = [each(seen) for each in demands]
        right = is_refused(seen) or all(answer.right for answer in answers)
        truth = ", ".join(answer.truth for answer in answers)
        return Answer(right, truth, ", ".join(answer.shown for answer in answers))

    return demand


def is_refused(seen: Seen) -> bool:
    """Tell whether the run is not valid for another reason than that the server could do more."""
    return seen.verdict != "valid" and seen.crossed != ["server-idle"]


def valid(seen: Seen) -> Answer:
    """Require a valid run, as the figures are right."""
    return Answer(seen.verdict == "valid", wanted="valid")


def suspect(seen: Seen) -> Answer:
    """Require that the run is not valid, as its figures are or may be wrong."""
    return Answer(is_refused(seen), wanted="suspect or invalid")


def not_invalid(seen: Seen) -> Answer:
    """Forbid an invalid run: the figures are right, though there may be a reason to warn."""
    return Answer(seen.verdict != "invalid", wanted="not invalid")


def crossed(*names: str) -> Demand:
    """Require that one of these checks warns or fails."""
    wanted = f"{_either(names)} warns or fails"
    return lambda seen: Answer(bool(set(names) & set(seen.crossed)), wanted=wanted)


def failed(*names: str) -> Demand:
    """Require that one of these checks fails."""
    wanted = f"{_either(names)} fails"
    return lambda seen: Answer(
        any(seen.checks.get(name) == "fail" for name in names), wanted=wanted
    )


def quiet(*names: str) -> Demand:
    """Require that none of these checks warns or fails."""
    wanted = f"{_either(names)} passes"
    return lambda seen: Answer(not set(names) & set(seen.crossed), wanted=wanted)


def ended(code: int) -> Demand:
    """Require this exit code."""
    return lambda seen: Answer(seen.code == code, f"exit {code}", f"exit {seen.code}")


def prints(pattern: str) -> Demand:
    """Require that the summary matches a regular expression."""

    def demand(seen: Seen) -> Answer:
        found = re.search(pattern, seen.summary)
        shown = f"“{found[0]}”" if found else ""
        return Answer(found is not None, shown=shown, wanted=f"“{pattern}” in the summary")

    return demand


def never_prints(pattern: str) -> Demand:
    """Require that the summary does not match a regular expression."""

    def demand(seen: Seen) -> Answer:
        found = re.search(pattern, seen.summary)
        shown = f"“{found[0]}”" if found else ""
        return Answer(found is None, shown=shown, wanted=f"no “{pattern}” in the summary")

    return demand


def _either(names: Sequence[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _truth(seen: Seen) -> Truth:
    assert seen.truth is not None, "the server of this attack has no log"
    return seen.truth


@dataclass(frozen=True)
class Row:
    """An attack and its outcome; `right` is None when it could not be made on this machine."""

    key: str
    name: str
    truth: str
    said: str
    right: bool | None

    @property
    def word(self) -> str:
        """`right`, `wrong` or `not made`."""
        return "not made" if self.right is None else "right" if self.right else "wrong"


def judge(key: str, name: str, seen: Seen, demands: Sequence[Demand]) -> Row:
    """Judge an attack that was made; without a result its row is wrong."""
    if not seen.result:
        last_lines = "; ".join(seen.summary.strip().splitlines()[-2:]) or "it says nothing"
        return Row(key, name, "", f"exit {seen.code}: {last_lines}", False)
    answers = [demand(seen) for demand in demands]
    by = f" by {', '.join(f'`{each}`' for each in seen.crossed)}" if seen.crossed else ""
    verdict = f"{seen.verdict}{by}" if "verdict" in seen.result else ""
    missing = [answer.wanted for answer in answers if answer.wanted and not answer.right]
    wanted = f"wanted: {', '.join(missing)}" if missing else ""
    return Row(
        key,
        name,
        "; ".join(filter(None, (answer.truth for answer in answers))),
        "; ".join(filter(None, (*(answer.shown for answer in answers), verdict, wanted))),
        all(answer.right for answer in answers),
    )


def table(rows: Sequence[Row]) -> list[str]:
    """A Markdown table with a row per attack, and a line that counts them."""
    lines = ["| attack | truth | what trueload says | |", "|---|---|---|---|"]
    for row in rows:
        word = row.word if row.right else f"**{row.word}**"
        # A pattern may have a bar, which would end its cell.
        shown = row.said.replace("|", "¦")
        lines.append(f"| {row.name} | {row.truth} | {shown} | {word} |")
    words = [row.word for row in rows]
    counted = ", ".join(f"{words.count(word)} {word}" for word in ("right", "wrong", "not made"))
    return [*lines, "", f"{len(rows)} attacks: {counted}."]
