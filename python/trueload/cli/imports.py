"""``trueload import``: makes a file of trueload's own out of what other programs have recorded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from trueload.commands.options import OutputOption, check_writable
from trueload.files.inputs import read_input
from trueload.files.outputs import write_text
from trueload.request.har import parse_har
from trueload.request.har_scenario import scenario_of
from trueload.request.recording import HAR_BYTES_MAX
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

    Example: trueload import har session.har -o scenario.toml
    """
    check_writable(output, "-o")
    shown = "the HAR file on stdin" if str(file) == "-" else f"the HAR file {str(file)!r}"
    content = read_input(file, HAR_BYTES_MAX, shown, "at most {} MiB")
    text, steps = scenario_of(parse_har(content, shown), shown, host)
    write_text(output, text)
    if output is None:
        return
    sys.stderr.write(f"wrote {output}: {counted(steps, 'step')}\n")
    sys.stderr.write(f"next: trueload http --scenario {output} URL\n")
