"""``trueload import``: makes a file of trueload's own out of what other programs have recorded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from trueload.commands.options import OutputOption, check_writable
from trueload.errors import UserError
from trueload.files.inputs import read_input
from trueload.files.outputs import output as open_output
from trueload.files.outputs import write_text
from trueload.units import counted

HarArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="HAR file of a browser; - for stdin.")
]
HostOption = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="HOST",
        help="Of a file with several hosts, take only the requests to this one.",
    ),
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Make a scenario of recorded traffic.")
    group.command("har")(import_har)
    app.add_typer(group, name="import")


def import_har(file: HarArgument, host: HostOption = None, output: OutputOption = None) -> None:
    """Make a scenario of a HAR file, for --scenario: its requests as steps, in their order, with
    the pauses of whoever was recorded. Cookies are left out, as each virtual user keeps its own.
    Secrets are left out too: the scenario reads them from variables of the environment.

    Example: trueload import har session.har -o scenario.toml
    """
    # imported late: a help needs none of it
    from trueload.request.har import parse_har
    from trueload.request.har_scenario import scenario_of
    from trueload.request.recording import HAR_BYTES_MAX

    check_writable(output, "-o")
    to_file = output is not None and str(output) != "-"
    shown = "the HAR file on stdin" if str(file) == "-" else f"the HAR file {str(file)!r}"
    content = read_input(file, HAR_BYTES_MAX, shown, "at most {} MiB", packed=True)
    name = output.stem if to_file and output is not None else "scenario"
    made = scenario_of(parse_har(content, shown), shown, host, name)
    if made.files and not to_file:
        raise UserError(
            f"{shown} has bodies that are not text: {len(made.files)}",
            "write the scenario to a file, and they are put beside it: -o scenario.toml",
        )
    write_text(output, made.text)
    if output is None or not to_file:
        return
    for beside, body in made.files.items():
        with open_output(output.with_name(beside)) as opened:
            opened.write(body)
    also = f" and {counted(len(made.files), 'file')} with bodies" if made.files else ""
    sys.stderr.write(f"wrote {output}: {counted(made.steps, 'step')}{also}\n")
    if made.secrets:
        sys.stderr.write(f"export its secrets first: {', '.join(made.secrets)}\n")
    sys.stderr.write(f"next: trueload http --scenario {output} URL\n")
