"""Which side of which pair a trial belongs to, and how a stored row says so. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Letter = Literal["a", "b"]


@dataclass(frozen=True)
class Turn:
    """The side that is measured, and its pair (from 1)."""

    pair: int
    letter: Letter


def read_turn(labels: Mapping[str, str]) -> Turn | None:
    """The turn of a stored trial; None if it is not a trial of a pair."""
    side, pair = labels.get("side", ""), labels.get("pair", "")
    if side not in ("a", "b") or not pair.isdecimal():
        return None
    return Turn(int(pair), "a" if side == "a" else "b")
