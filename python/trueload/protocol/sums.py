"""Adds up what several engines say: counts and histograms are summed, never averaged. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from trueload import hdr
from trueload.protocol.model import Model

Key = TypeVar("Key", str, int)
Whole = TypeVar("Whole", bound=Model)


def sums(parts: Sequence[object], *names: str) -> dict[str, Any]:
    """The named fields, each summed over all parts; counts by name are summed name by name."""
    found = {name: [getattr(part, name) for part in parts] for name in names}
    return {
        name: add_counts(each) if isinstance(each[0], Mapping) else sum(each)
        for name, each in found.items()
    }


def add_up(parts: Sequence[Whole], **rest: Any) -> Whole:
    """The sum of each field over parts of one kind, except for the fields given in ``rest``."""
    kind = type(parts[0])
    return kind(**sums(parts, *(name for name in kind.model_fields if name not in rest)), **rest)


def add_counts(parts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Sum counts by name, or by the index of sparse histograms."""
    total: dict[Key, int] = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items()))


def add_histograms(parts: Sequence[Whole]) -> Whole:
    """Sum each histogram of a set of them, and each count beside them. Raises ``ValueError`` for
    junk."""
    kind = type(parts[0])
    found = {name: tuple(getattr(part, name) for part in parts) for name in kind.model_fields}
    # In a closed loop several are the same.
    sums = {
        each: sum(each) if isinstance(each[0], int) else hdr.added(each)
        for each in set(found.values())
    }
    return kind(**{name: sums[each] for name, each in found.items()})
