"""Headers from files: ``-H @FILE`` keeps a secret out of the arguments that others can see."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trueload.errors import UserError
from trueload.files.inputs import read_input, text_of

HEADERS_BYTES_MAX = 2**20


def read_headers(lines: Sequence[str]) -> tuple[str, ...]:
    """Return header lines; ``@FILE`` stands for those of a file. Raises ``UserError``."""
    found: list[str] = []
    for line in lines:
        found += _lines_of(line[1:]) if line.startswith("@") else [line]
    return tuple(found)


def _lines_of(name: str) -> list[str]:
    shown = f"the headers file {name[:80]!r}"
    content = read_input(Path(name), HEADERS_BYTES_MAX, shown, "headers have at most {} MiB")
    try:
        text = text_of(content, shown).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{shown} is not UTF-8 at byte {error.start + 1}", "save it so") from None
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    for number, line in enumerate(lines, start=1):
        if line.strip() and (line.startswith("@") or ":" not in line):
            # Not shown: it may be a secret.
            why = f"{shown}, line {number} is not a header"
            raise UserError(why, "write each line as 'Name: value'")
    return [line for line in lines if line.strip()]
