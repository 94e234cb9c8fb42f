"""Plain English, as far as a program can judge it: pages of Markdown, and docstrings of Python.

How: a page's paragraphs and list items are taken apart into sentences; code, tables, headings and
what programs write between markers is left out. Pure; `tidy.py` reads the files and prints.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

SENTENCE_WORDS_MAX = 30
PROSE_COLUMNS_MAX = 100

Remark = tuple[int, str]
"""A line, and what to do about it."""

# How no docstring begins: a fragment whose subject the reader has to guess.
FRAGMENTS = re.compile(r"(?:Of|Those|Whoever|Who|What there (?:is|are)|Nobody|Twice)\b")
# Words of ours for which the field has its own.
RETIRED = {
    r"stewards?": "agent",
    r"keepers?": "supervisor",
    r"was come by": "was found or started",
    r"wants the end": "asks to stop",
    r"exclude each other": "cannot be used together",
    r"(?:stands|stood) still": "is paused",
    r"mend(?:s|ed)?": "fix",
    r"anew": "again",
    r"for want of": "because there is no",
    r"is no (?:time|number|text|name|option|header|JSON|percentile)\b": "is not a",
    r"leave \S+ away": "leave it out",
    r"is still going on": "is still running",
}
_RETIRED = {re.compile(rf"\b{old}\b", re.IGNORECASE): new for old, new in RETIRED.items()}

_FENCE = re.compile(r"\s*(?:```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_NO_PROSE = re.compile(r"\s*(?:[|#<!>]|---|\[[^]]+\]:)")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])(?:[)\"”*_]*)\s+(?=[\"“*_(`\[]*[A-Z0-9`])")


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """The paragraphs and list items of a page, each with its first line's number."""
    begun, parts = 0, list[str]()
    for number, line in prose_lines(page):
        breaks = not line.strip() or _ITEM.match(line) is not None
        if breaks and parts:
            yield begun, " ".join(parts)
            parts = []
        if line.strip():
            begun = begun if parts else number
            parts.append(_ITEM.sub("", line).strip())
    if parts:
        yield begun, " ".join(parts)


def prose_lines(page: str) -> Iterator[tuple[int, str]]:
    """The lines of a page that are prose, with their numbers; a blank one where others stood."""
    in_code = in_generated = False
    for number, line in enumerate(page.split("\n"), 1):
        if _FENCE.match(line):
            in_code = not in_code
        elif line.startswith("<!-- "):
            in_generated = not line.startswith("<!-- end") and "written by" in line
        prose = not in_code and not in_generated and not _NO_PROSE.match(line)
        yield number, line if prose and not _FENCE.match(line) else ""


def long_sentences(page: str) -> Iterator[Remark]:
    """Sentences of more than 30 words; code counts as one word."""
    for number, text in paragraphs(page):
        plain = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))
        for sentence in _SENTENCE_END.split(plain):
            count = len(sentence.split())
            if count > SENTENCE_WORDS_MAX:
                begun = " ".join(sentence.split()[:6])
                yield number, f'{count} words in one sentence: "{begun} …"; make two of it'


def wide_lines(page: str) -> Iterator[Remark]:
    """Lines of prose over 100 columns."""
    for number, line in prose_lines(page):
        if len(line) > PROSE_COLUMNS_MAX and " " in line.strip():
            yield number, f"{len(line)} columns of prose: wrap it at {PROSE_COLUMNS_MAX}"


def fragments(tree: ast.Module) -> Iterator[Remark]:
    """Docstrings that begin as no sentence does."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, kinds) else None
        if text and (found := FRAGMENTS.match(text)):
            line = getattr(node, "lineno", 1)
            yield line, f'a docstring begins with "{found[0]}": begin with a verb or a noun'


def retired_words(text: str) -> Iterator[Remark]:
    """Words that the project no longer uses."""
    for number, line in enumerate(text.split("\n"), 1):
        for word, better in _RETIRED.items():
            if found := word.search(line):
                yield number, f'"{found[0]}" is retired: {better}'
