"""What a mistyped name was meant for, if that is plain: a wrong suggestion is worse than none.

How: a word that begins a name is short for it. Else it is a name with at most two mistakes: letters
left out, added, changed or exchanged with the next. A short name allows only one, since it is that
near to others by chance.
"""

from __future__ import annotations

from collections.abc import Iterable

SHOWN_MAX = 4
"""A word that begins more names than this says too little."""
SHORT = 5  # letters


def nearest(word: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that a word may be meant for, in their order; dashes in front count."""
    typed = _folded(word)
    if len(typed.lstrip("-")) < 2:
        return ()
    folded = {name: _folded(name) for name in names}
    begun = tuple(name for name, each in folded.items() if each.startswith(typed))
    if begun:
        return begun if len(begun) <= SHOWN_MAX else ()
    mistakes = {name: edits(typed, each) for name, each in folded.items()}
    close = {
        name: count
        for name, count in mistakes.items()
        if count <= (1 if len(folded[name].lstrip("-")) <= SHORT else 2)
    }
    return tuple(name for name, count in close.items() if count == min(close.values()))


def did_you_mean(word: str, names: Iterable[str]) -> str | None:
    """Return the question for a mistyped name; None if no name is near."""
    near = nearest(word, names)
    *others, last = near or ("",)
    either = f"{', '.join(others)} or " if others else ""
    return f"did you mean {either}{last}?" if near else None


def edits(one: str, other: str) -> int:
    """Count the edits from one word to another (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b)))
            if i > 1 and j > 1 and (a, one[i - 2]) == (other[j - 2], b):
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")
