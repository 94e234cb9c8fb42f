"""Writes a result into the files of ``-o``, each in the form that its ending names.

How: a command hands over what differs from kind to kind, and everything else is made of the trials.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueload.commands.job import RunWriter
from trueload.commands.measure_options import ResultOptions
from trueload.commands.output import write_json
from trueload.errors import UserError
from trueload.files.outputs import text_output
from trueload.record.certainty import Ruling
from trueload.store.rows import DamagedRow, Row
from trueload.store.runs import Store

if TYPE_CHECKING:
    from trueload.report.export.junit import Case


@dataclass(frozen=True, kw_only=True)
class Written:
    """What is written of a result: ``told`` and ``table`` into a summary, ``cases`` into JUnit."""

    title: str
    told: Sequence[str]
    table: Sequence[str]
    cases: Sequence[Case]
    whole: Callable[[], Iterable[str]]
    rows: Callable[[], Iterable[Row | DamagedRow]]
    run_id: str | None


def write_files(paths: Iterable[Path], result: Written) -> list[UserError]:
    """Write each file; return the errors, which are reported after the result."""
    failed = []
    for path in paths:
        try:
            _write(path, result)
        except UserError as error:
            failed.append(error)
    return failed


def _write(path: Path, result: Written) -> None:
    # Imported late, as below: most results are only shown.
    from trueload.report.export.csv import csv_lines
    from trueload.report.export.junit import junit
    from trueload.report.export.parquet import write_parquet
    from trueload.report.export.summary import summary
    from trueload.report.sheets import trials_sheet

    sheet, ending = trials_sheet(result.run_id, result.rows()), path.suffix.lower()
    if ending == ".parquet":
        return write_parquet(sheet, path)
    with text_output(path, newline="") as file:
        match ending:
            case ".html":
                file.write(_page(result.run_id))
            case ".xml":
                file.write(junit(result.cases))
            case ".md":
                file.write(summary(result.title, result.told, result.table))
            case ".csv":
                file.writelines(csv_lines(sheet))
            case _:
                file.writelines(result.whole())
    return None


def _page(run_id: str | None) -> str:
    from trueload.report.html import make

    if run_id is None:
        raise UserError("there is no report of a run that was not saved", "see the error below")
    with Store.open() as store:
        return make.page(make.make(store, [store.find_run(run_id)]))


def write_result(
    given: ResultOptions,
    saved: RunWriter,
    name: str,
    whole: Mapping[str, Any],
    rows: Sequence[Row],
    rulings: Sequence[Ruling],
    *,
    told: Sequence[str] = (),
    table: Iterable[str] | None = None,
    goal: tuple[str, bool] | None = None,
) -> list[UserError | None]:
    """Write a result whose trials are in memory into all files that were asked for.

    ``table`` is shown instead of the trials. ``goal`` is a further test case, and whether it was
    reached; ``told`` says why. Returns the errors, which are reported after the result.
    """
    errors = [write_json(given.json_path, whole)]
    if not given.output:
        return errors
    from trueload.report.export.junit import Case, verdict_cases
    from trueload.report.export.markdown import trials_markdown

    verdict = str(whole["verdict"])
    doubted = [check for check in whole["checks"] if check["status"] in ("fail", "warn")]
    why = "; ".join(f"{check['name']}: {check['why']}" for check in doubted)
    cases = list(verdict_cases(name, verdict, why, rulings, strict=given.strict))
    if goal is not None:
        cases.append(Case(name, goal[0], None if goal[1] else "failure", told[0], told[0]))
    result = Written(
        title=f"{name}: {verdict}",
        told=[*told, *(f"threshold {each.state}: {each.why}" for each in rulings if each.why)],
        table=list(trials_markdown(rows) if table is None else table),
        cases=cases,
        whole=lambda: [json.dumps(whole) + "\n"],
        rows=lambda: rows,
        run_id=saved.run_id,
    )
    return [*errors, *write_files(given.output, result)]
