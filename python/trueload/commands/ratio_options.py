"""Options of a comparison, for both commands that compare, each defined once.

Must not know what is compared.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class CompareFormat(StrEnum):
    """Formats of a comparison."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    JSON = "json"


FormatOption = Annotated[CompareFormat, typer.Option("--format", help="The format.")]
FailOnRatioOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="End with 1 if it holds of a row's ratio, new to base: 'throughput<0.95',"
        " 'p99>1.2'; repeatable. Needs several trials a side; an unclear row crosses nothing.",
    ),
]
