"""Hosts of a lab with weights: what they exclude, and how the load is divided. Pure."""

from __future__ import annotations

from math import gcd

from trueload.errors import UserError
from trueload.places.names import Placement
from trueload.text import plain

HINT = "leave weight out of the lab's file"


def check_weights(
    placement: Placement, *, broadcast: bool = False, origins: int = 1, replay: bool = False
) -> None:
    """Refuse loads that hosts share only in equal parts. Raises ``UserError``."""
    if not placement.weights:
        return
    if broadcast:
        raise UserError("hosts with different weights cannot share a broadcast", HINT)
    if replay:
        raise UserError("hosts with different weights cannot share a replay", HINT)
    if origins > 1:
        raise UserError(
            "hosts with different weights cannot share targets of several servers",
            f"{HINT}, or load one server at a time",
        )


def division_lines(placement: Placement) -> list[str]:
    """Return lines on how the load is divided; none if all hosts get the same."""
    if not placement.weights:
        return []
    common = gcd(*(weight for _, weight in placement.weights))
    return [
        "hosts, by weight:",
        *(f"  {plain(name)}: {weight // common}" for name, weight in placement.weights),
    ]
