"""Which repetitions are owed, because the machine spoiled others.

How: a cell is owed as many repetitions as it lacks of those planned, once the ones that are unlike
the rest of the run are left out. Each cell gets at most as many more as were planned, so that a
machine that never holds still does not go on for ever. Pure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from trueload.suites.plan import SuitePlan, Trial
from trueload.suites.summary import CellRows, has_own_fault

IN_VAIN = 2


def owed(plan: SuitePlan, cells: Sequence[CellRows]) -> list[Trial]:
    """The next repetition of each cell that lacks one, shuffled by the plan's seed."""
    if not plan.takes_again:
        return []
    found = [
        Trial(rows.cell, taken(rows) + 1)
        for rows in cells
        if _lacks(rows) and taken(rows) < 2 * rows.planned
    ]
    number = max((trial.repetition for trial in found), default=0)
    random.Random(f"{plan.seed}/{number}").shuffle(found)
    return found


def still_disturbed(cells: Sequence[CellRows]) -> bool:
    """Whether each cell that lacks a repetition had two more in vain, one after the other."""
    lacking = [rows for rows in cells if _lacks(rows)]
    return bool(lacking) and all(
        taken(rows) >= rows.planned + IN_VAIN
        and all(each.unlike for each in rows.measured[-IN_VAIN:])
        for rows in lacking
    )


def taken(rows: CellRows) -> int:
    """How many repetitions of a cell there have been."""
    return len(rows.measured) + len(rows.failed)


def _lacks(rows: CellRows) -> bool:
    """Whether the machine spoiled some, and nothing else would make the row invalid anyway."""
    alike = [each for each in rows.measured if not each.unlike]
    spoiled = len(rows.measured) > len(alike)
    faulty = any(map(has_own_fault, rows.measured)) or bool(rows.failed)
    return spoiled and not faulty and len(alike) < rows.planned
