"""Values that belong together. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def grouped(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Return the values by their keys, in the order in which the keys come."""
    found: dict[Key, list[Value]] = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return found
