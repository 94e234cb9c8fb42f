"""Targets and whether they were met: the table that every report of bench/ ends with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """A bound on a figure: a maximum, or a minimum with `at_least`."""

    value: float
    at_least: bool = False
    unit: str = ""

    def is_kept_by(self, figure: float) -> bool:
        """Tell whether the figure keeps to the bound; equality does."""
        return figure >= self.value if self.at_least else figure <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:g}{self.unit}"


@dataclass(frozen=True)
class Mark:
    """A target with what was measured; `met` is None when nothing was, and `measured` says why."""

    what: str
    limit: str
    measured: str
    met: bool | None

    @property
    def word(self) -> str:
        """`met`, `missed` or `not measured`."""
        return "not measured" if self.met is None else "met" if self.met else "missed"


def mark(what: str, limit: Limit, figure: float | None, shown: str) -> Mark:
    """Judge a figure; without one, `shown` is the reason."""
    return Mark(what, str(limit), shown, None if figure is None else limit.is_kept_by(figure))


def mark_table(marked: Sequence[Mark]) -> list[str]:
    """A Markdown table with one row per target, and a line that counts them."""
    lines = ["| target | limit | measured | |", "|---|---|---|---|"]
    for each in marked:
        word = each.word if each.met else f"**{each.word}**"
        lines.append(f"| {each.what} | {each.limit} | {each.measured} | {word} |")
    words = [each.word for each in marked]
    counted = [f"{words.count(word)} {word}" for word in ("met", "missed", "not measured")]
    targets = f"{len(marked)} target{'' if len(marked) == 1 else 's'}"
    return [*lines, "", f"{targets}: {', '.join(counted)}."]


def exit_code(marked: Sequence[Mark]) -> int:
    """Return 1 when a target is missed or nothing was measured at all, else 0."""
    missed = any(each.met is False for each in marked)
    return int(missed or not any(each.met for each in marked))
