"""`trueload suite list`: the suites of the catalogue, and those whose file is broken."""

from __future__ import annotations

import json
import sys

from trueload.commands.folders import find_folder
from trueload.commands.options import AsJsonOption
from trueload.errors import UserError, some_broken
from trueload.report.grid import Grid, text_lines


def list_suites(as_json: AsJsonOption = False) -> None:
    """List the suites of the catalogue.

    Exit codes: 0 all can be read; 2 a suite is broken, and is listed as broken.

    Example: trueload suite list
    """
    from trueload.suites.definition import Suite, load_suite, suite_names  # late, for the help

    folder = find_folder("suites")
    suites: dict[str, Suite] = {}
    broken: dict[str, UserError] = {}
    for name in suite_names(folder):
        try:
            suites[name] = load_suite(folder / f"{name}.toml")
        except UserError as why:
            broken[name] = why
    if as_json:
        shown = [{"name": name, **s.model_dump(mode="json")} for name, s in suites.items()]
        amiss = [{"name": n, "why": why.message, "hint": why.hint} for n, why in broken.items()]
        sys.stdout.write(json.dumps({"suites": shown, "broken": amiss}, indent=1) + "\n")
    else:
        lines = {name: f"{suite.about} ({suite.contract})" for name, suite in suites.items()}
        lines |= {name: f"broken: {why.message}" for name, why in broken.items()}
        listed = text_lines(Grid((), tuple(sorted(lines.items()))))
        sys.stdout.writelines(f"{line}\n" for line in listed)
    if broken:
        raise some_broken("suites", broken)
