#!/usr/bin/env python3
"""Writes into docs/verdicts.md what each check's definition says: its purpose and its remedy.

A check's section shows an example of its line, then what its `Definition` says, then its limits. A
table, also written here, says what a failure leaves certain. The rest is written by hand.
`make options` runs this program; tests/unit/test_verdicts_page.py fails where the page is not
current, or has no section for a check.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from trueload.verdict import CHECKS
from trueload.verdict.common import (
    DELAYS,
    HIDDEN_WAITS,
    NOTHING,
    SERVES_MORE,
    Definition,
    Moves,
)

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "verdicts.md"
COLUMNS = 100
WHY = "**Why:** "
# A heading, an example in a code block, and the paragraph that is written here.
SECTION = r"(^## {name}\n\n```\n(?:(?!```).*\n)+```\n\n)\*\*Why:\*\* (?:(?!\*\*Limits).+\n)+"
TABLE = re.compile(r"(<!-- certain: written by make options -->\n).*?(<!-- end of)", re.DOTALL)
NAMES = re.compile(r"(?<![\w-])(?:--?[a-z][a-z0-9-]*|[a-z]+(?:_[a-z]+)+)")
LATENCY_UNKNOWN = Moves(latency="unknown", throughput="exact", errors="exact")
CERTAIN: tuple[tuple[Moves, str], ...] = (
    (NOTHING, "every figure"),
    (
        DELAYS,
        "latency and errors are at most, throughput at least the figure (in a closed loop nothing"
        " is certain of the latency)",
    ),
    (HIDDEN_WAITS, "latency is at least the figure; all else is exact"),
    (SERVES_MORE, "throughput is at least the figure; all else is exact"),
    (LATENCY_UNKNOWN, "everything but the latency"),
)
"""What a failure leaves certain; any other leaves nothing."""


def page(text: str) -> str:
    """Return the page with the written parts as the definitions have them. Pure."""
    for check in CHECKS.values():
        pattern = re.compile(SECTION.format(name=check.name), re.MULTILINE)
        written = paragraph(check).replace("\\", r"\\")
        text, count = pattern.subn(rf"\g<1>{written}\n", text)
        if count != 1:
            raise ValueError(
                f"docs/verdicts.md needs one section '## {check.name}': an example of its line in"
                f" a code block, a line '{WHY}-', and its limits, '**Limits:** …'"
            )
    return TABLE.sub(lambda at: f"{at[1]}\n{table()}\n\n{at[2]}", text)


def paragraph(check: Definition) -> str:
    """Return the purpose of a check and what to do, wrapped."""
    text = f"{WHY}{check.meaning} **Do:** {sentences(check.remedy)}"
    return textwrap.fill(marked(text), COLUMNS, break_long_words=False, break_on_hyphens=False)


def sentences(text: str) -> str:
    """Return a remedy with a sentence where it has a semicolon."""
    return re.sub("; ([a-z])(?![a-z]*_)", lambda at: f". {at[1].upper()}", text)


def marked(text: str) -> str:
    """Return a text with its flags and names of fields as code."""
    parts = text.split("`")
    parts[::2] = [NAMES.sub(r"`\g<0>`", each) for each in parts[::2]]
    return "`".join(parts)


def table() -> str:
    """Return what a failed check leaves certain, as a table."""
    rows = ["| the check that failed | what is certain |", "|---|---|"]
    for moves, words in CERTAIN:
        names = [f"`{check.name}`" for check in CHECKS.values() if check.moves == moves]
        rows.append(f"| {', '.join(names)} | {words} |")
    return "\n".join([*rows, "| any other | nothing |"])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
