"""Whether the trials of a suite are paired with a reference, and with which."""

from __future__ import annotations

from trueload.commands.folders import find_folder
from trueload.commands.suite_options import Pair
from trueload.errors import UserError
from trueload.machine.facts import is_virtual_machine
from trueload.protocol.option import refuse_beside
from trueload.subjects.manifest import Subject
from trueload.subjects.selection import parse_selects, select_subjects
from trueload.suites.ranks import REPETITIONS_MIN


def find_reference(pair: Pair | None, name: str, repeat: int) -> Subject | None:
    """Return the subject that trials are paired with, or None.

    By default they are where there are repetitions enough to rank, and the machine is a virtual
    one, whose CPUs its host moves and slows down. Raises ``UserError`` if they are to be paired and
    the suite names no reference, or one that is not there.
    """
    if pair == "none":
        return None
    if pair is None and not (name and repeat >= REPETITIONS_MIN and is_virtual_machine()):
        return None
    if not name:
        raise UserError(
            "--pair reference: this suite names no reference",
            "leave --pair out, or give the suite a key reference",
        )
    try:
        return select_subjects(find_folder("subjects"), parse_selects([name]))[0]
    except UserError:
        if pair is None:
            return None
        raise


def check_paired(pair: Pair | None, *, paired: bool) -> None:
    """Refuse a pairing that was asked for and that the plan cannot have. Raises ``UserError``."""
    why = "short trials of the reference would only cover the beginning"
    is_impossible = pair == "reference" and not paired
    refuse_beside("--pair reference", {"stages": is_impossible}, "leave --pair out", why)
