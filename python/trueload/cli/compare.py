"""``trueload runs diff BASE NEW``: is the new run better, worse or the same?"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

from trueload.commands.declarations import with_options
from trueload.commands.measure_options import RatioOptions
from trueload.commands.options import OutputOption, check_writable
from trueload.commands.stored_runs import run_argument
from trueload.errors import ExitCode, UserError, unsaved
from trueload.files.outputs import write_text
from trueload.store.runs import Store
from trueload.text import plain

if TYPE_CHECKING:
    from trueload.compare.trials import Comparison

BaseArgument = Annotated[
    str, run_argument("BASE", "Run to compare with: a stored run, or a JSON file of one.")
]
NewArgument = Annotated[
    str, run_argument("NEW", "Run to judge: a stored run, or a JSON file of one.")
]


@with_options(RatioOptions)
def compare_runs(
    base: BaseArgument, new: NewArgument, given: RatioOptions, output: OutputOption = None
) -> int:
    """Compare two runs by the ratio of each figure, with the interval in which it lies.

    The ratio is new to base, and is called better, worse, the same or unclear. A run is one of the
    store, or a file of `runs export --format json`.

    Example: trueload runs diff baseline.json last --fail-on 'throughput<0.95'
    """
    from trueload.compare.run_records import read_side
    from trueload.compare.trials import compare
    from trueload.record.thresholds import RATIO, parse_condition
    from trueload.report.compare import ShownComparison, render, threshold_lines

    conditions = tuple(parse_condition(text, RATIO) for text in given.fail_on)
    check_writable(output, "-o")
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(Store.open())
        before, after = read_side(base, store), read_side(new, store)
    comparison = compare(before.rows, after.rows, conditions)
    if not comparison.rows:
        one, other = (
            f"'{plain(names[0])}'" if names[0] else "one row without a name"
            for names in (comparison.only_base, comparison.only_new)
        )
        raise UserError(
            f"{base} and {new} have no row in common: the first has {one}, the second {other}",
            "compare the same subjects under the same loads",
        )
    if conditions:
        _refuse_too_few(comparison)
    code = exit_code(comparison)
    text = render(ShownComparison(before.name, after.name, comparison), given.format)
    if given.format != "text" or output is not None:
        sys.stderr.writelines(f"{line}\n" for line in threshold_lines(comparison))
    try:
        write_text(output, text)
    except UserError as error:
        raise UserError(error.message, error.hint, unsaved(code)) from error
    return code


def _refuse_too_few(comparison: Comparison) -> None:
    """Raise ``UserError`` for a condition that cannot be judged: it must not look as if it held."""
    from trueload.compare.difference import MORE_TRIALS, too_few_trials

    for row in comparison.rows:
        if why := too_few_trials(row.base_trials, row.new_trials):
            of = f" of {plain(row.name)}" if row.name else ""
            raise UserError(f"--fail-on cannot be judged{of}: {why}", MORE_TRIALS)


def exit_code(comparison: Comparison) -> ExitCode:
    """Return 4 if a condition is undecided, 1 if one is crossed, else 0. Pure.

    Without conditions it is 4 if a row lost its validity, or none is valid.
    """
    states = {each.ruling.state for each in comparison.rulings}
    if "undecided" in states or (comparison.spoiled and not states):
        return ExitCode.INVALID
    return ExitCode.THRESHOLD if "crossed" in states else ExitCode.OK
