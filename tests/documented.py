"""The command lines and files that the pages of the documentation show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from harness import ROOT
from trueload.cli.app import COMMANDS

PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/contributors/*.md",
        "docs/clusters/*",
        "subjects/*.md",
    )
    for path in ROOT.glob(pattern)
)

VERB = rf"(?:{'|'.join(COMMANDS)})\b"
# A line of a code block, up to an explanation after two spaces, or to the parenthesis around it.
# Others may call trueload: `$`, `docker run …`, `# … with:`. `from trueload import …` is Python.
LINE = re.compile(rf"(?!\s*from )(?:.*[\s(])?(trueload {VERB}.*?)(?:\)|  +.*)?")
INLINE = re.compile(rf"`(trueload {VERB}[^`]*)`")
AFTER = {"|", ";", ">", "&", "&&"}


def commands_in(text: str, is_code: bool = False) -> Iterator[str]:
    """Yield the commands in code blocks and inline code of a page, or in a file of code."""
    blocks = [text] if is_code else re.findall(r"(?ms)^```\w*\n(.*?)^```", text)
    for line in "\n".join(blocks).splitlines():
        if found := LINE.fullmatch(line):
            yield found[1]
    prose = "" if is_code else re.sub(r"(?ms)^```.*?^```", "", text)
    yield from INLINE.findall(re.sub(r"\s+", " ", prose))


def words_of(command: str) -> list[str]:
    """Return the words after `trueload`, without what a shell does with its output."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)[1:]
    return words[: next((at for at, word in enumerate(words) if word in AFTER), None)]


def files_in(text: str) -> dict[str, str]:
    """Return the files that a page shows whole, by name: their first line begins with `# NAME:`."""
    return {name: whole for whole, name in re.findall(r"(?ms)^```\w+\n(# ([\w.]+):.*?)^```", text)}
