"""Options of a comparison, for both commands that compare, each defined once.

Must not know: what is compared.
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


FormatOption = Annotated[
    CompareFormat, typer.Option("--format", help=("Output format of the comparison."))
]
FailOnRatioOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help=(
            "Exit with code 1 if the condition holds for a row's ratio, new to base:"
            " 'throughput<0.95', 'p99>1.2'; repeatable. Needs several trials on each side; an"
            " unclear row never crosses it."
        ),
    ),
]
