"""Reads recordings: access logs, HAR files, or JSON lines with times.

How: the format is told from the content. Lines are read one by one, and what cannot be sent again
is left out and counted; only a file of trueload's own format must be right in each line. Files that
gzip or xz has compressed are unpacked as they are read.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from trueload.errors import UserError
from trueload.files.compressed import UnpackError, unpacked
from trueload.files.inputs import text_of
from trueload.request.gather import FileEntries, Gathering, RecordingFlags
from trueload.request.har import HAR, parse_har
from trueload.request.log_formats import look
from trueload.request.logs.line import LineFormat, Parser, text_of_line
from trueload.request.logs.pattern import parse_pattern
from trueload.request.replay import Replay

HAR_BYTES_MAX = 256 * 2**20
UNPACKED_BYTES_MAX = 4 * 2**30
"""Of one compressed file; it is not held in memory."""
LINES_MAX = 20_000_000  # of one file, with those that are no requests
LINE_BYTES_MAX = 2**20
LOOKED_AT = 1_000  # lines among which one must be of a known format
HINT = (
    "formats are access logs (common, combined, nginx's JSON, Caddy, AWS, CloudFront, or"
    " --log-format), HAR, and JSON lines with 'at'"
)

Lines = Iterator[tuple[int, bytes]]


def read_recording(paths: Sequence[Path], beside: RecordingFlags) -> Replay:
    """Read one recording in one or several files (``-`` for stdin). Raises ``UserError``."""
    pattern = None if beside.pattern is None else parse_pattern(beside.pattern)
    found = Gathering(beside)
    for path in paths:
        on_stdin = str(path) == "-"
        shown = "the recording on stdin" if on_stdin else f"the recording {str(path)!r}"
        name = "stdin" if on_stdin else path.name
        try:
            with contextlib.nullcontext(sys.stdin.buffer) if on_stdin else path.open("rb") as file:
                read_file(unpacked(file, UNPACKED_BYTES_MAX), shown, name, found, pattern)
        except UnpackError as error:
            raise UserError(f"{shown} {error}", error.hint) from None
        except OSError as error:
            raise UserError(
                f"{shown} cannot be read: {error.strerror}", "name a file that can be read"
            ) from error
    return found.done(HINT if pattern is None else "compare a line with the --log-format")


def read_file(
    file: BinaryIO, shown: str, name: str, found: Gathering, pattern: LineFormat | None
) -> None:
    """Read the requests of one file. Raises ``UserError`` and ``UnpackError``."""
    lines = _lines(file, shown)
    head: list[tuple[int, bytes]] = []
    known = None if pattern is None else _begun(pattern)
    if known is None:
        head, known = _look(lines)
        if not head:
            raise UserError(f"{shown} is empty", HINT)
        if known is None and _may_be_har(head):
            _read_har(file, head, FileEntries(shown, name, HAR, "starts"), found)
            return
    if known is None:
        raise UserError(f"{shown}, line {head[0][0]}: no request can be read", HINT)
    form, parser = known
    entries = FileEntries(shown, name, form.name, form.order)
    found.files.append(entries)
    for number, line in chain(head, lines):
        found.add_line(entries, number, line, parser)


def _begun(form: LineFormat) -> tuple[LineFormat, Parser] | None:
    parser = form.begin("")
    return None if parser is None else (form, parser)


def _read_har(
    file: BinaryIO, head: list[tuple[int, bytes]], entries: FileEntries, found: Gathering
) -> None:
    content = b"".join(line for _, line in head)
    content += file.read(HAR_BYTES_MAX + 1 - len(content))
    if len(content) > HAR_BYTES_MAX:
        raise UserError(f"{entries.shown} is too large", f"at most {HAR_BYTES_MAX // 2**20} MiB")
    har = parse_har(content, entries.shown)
    entries.left_out = har.left_out
    found.forms += har.forms
    found.files.append(entries)
    for entry in har.entries:
        found.add(entries, entry.number, entry.recorded)


def _lines(file: BinaryIO, shown: str) -> Lines:
    """Yield the lines that are not blank, with their numbers. A HAR file may be one long line: its
    beginning comes alone."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX):
        number += 1
        if number == 1:
            line = text_of(line, shown)
        if number > LINES_MAX:
            raise UserError(f"{shown} has more than {LINES_MAX:,} lines", "replay a part of it")
        if len(line) >= LINE_BYTES_MAX - 3 and not line.endswith(b"\n"):
            if number > 1 or line.lstrip()[:1] != b"{":
                raise UserError(f"{shown}, line {number}: longer than 1 MiB", HINT)
            yield number, line
            return
        if line.strip():
            yield number, line


def _look(lines: Lines) -> tuple[list[tuple[int, bytes]], tuple[LineFormat, Parser] | None]:
    """Return the first lines, up to one whose format is known, and the format with its parser. The
    lines of a HAR file are of none."""
    head: list[tuple[int, bytes]] = []
    for number, line in lines:
        head.append((number, line))
        if (known := look(text_of_line(line))) is not None or len(head) == LOOKED_AT:
            return head, known
    return head, None


def _may_be_har(head: Sequence[tuple[int, bytes]]) -> bool:
    """Whether a file with these first lines may be one JSON object."""
    text = text_of_line(head[0][1])
    if not text.startswith("{"):
        return False
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return isinstance(fields, dict) and isinstance(fields.get("log"), dict)
