"""A data file: the rows whose columns fill the placeholders of requests.

How: only the header is read here (of JSON lines, the first object), so that a placeholder without a
column is refused at once. The engine reads the rows, before it connects, and refuses a broken one
with its line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from trueload.errors import UserError
from trueload.files.inputs import text_of
from trueload.protocol.data import DataFormat, DataPlan
from trueload.protocol.request_options import DataOrder
from trueload.request.environment import HOW
from trueload.request.plans import NUMBERS as NUMBERS
from trueload.request.values import Request

HEADER_BYTES_MAX = 2**20
PIECE_BYTES = 8 * 2**20  # one line to the engine, in base64
SHOWN_MAX = 8  # columns in a hint, which is one line
FORMATS: dict[str, DataFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""The format of a file, by the end of its name."""
SEPARATORS: dict[DataFormat, str] = {"csv": ",", "ssv": ";", "tsv": "\t"}
EXAMPLES: dict[DataFormat, str] = {
    "csv": 'a field with a comma, a quote or a line break goes in double quotes, as in a,"b,c"',
    "ssv": "a field with a semicolon, a quote or a line break goes in double quotes",
    "tsv": "a field with a tab, a quote or a line break goes in double quotes",
    "jsonl": 'a line is like {"name": "anna", "id": 7}',
}
_PLACE = re.compile(rf"\{{\{{|\{{\+?([A-Za-z_][A-Za-z0-9_.-]*){HOW}\}}")
"""A brace that stands for itself, or a placeholder."""


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A data file, and the columns of it that requests use."""

    path: Path
    format: DataFormat
    order: DataOrder
    columns: tuple[str, ...] = ()
    size_bytes: int = 0

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return shown(self.path)

    def plan(self, *, is_here: bool) -> DataPlan:
        """Return its form in a plan; ``is_here``: every engine can read the file itself."""
        names = () if is_here else tuple(hashlib.sha256(each).hexdigest() for each in self.pieces())
        return DataPlan(
            path=str(self.path.resolve()) if is_here else None,
            blobs=names,
            format=self.format,
            columns=self.columns,
            order=self.order,
        )

    def pieces(self) -> Iterator[bytes]:
        """Yield its content in pieces. Raises ``UserError``."""
        try:
            with self.path.open("rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def refused(self, why: str) -> UserError:
        """Return the error for what the engine found wrong in it: ``line 3 has …``."""
        comma = "," if why.startswith("line ") else ""
        return UserError(f"{self.shown}{comma} {why}", EXAMPLES[self.format])


def open_data(
    path: Path,
    order: DataOrder,
    requests: Sequence[Request],
    numbers: Collection[str] = NUMBERS,
    taken: Collection[str] = (),
    texts: Iterable[str] = (),
) -> DataFile:
    """Read the header of a data file, and find the columns that requests, and other ``texts``, use.
    Other placeholders are those of ``numbers``, and the values ``taken`` from answers. Raises
    ``UserError`` for a file that cannot be read, a placeholder without a column, or if none has
    one."""
    form, columns, size_bytes = _read_header(path)
    for name in columns:
        if name in taken:
            raise UserError(
                f"{{{name}}} is a value that a step takes, and a column of {shown(path)}",
                "take the value under another name",
            )
    return DataFile(
        path=path,
        format=form,
        order=order,
        columns=_used(path, columns, {*_names_in(requests, texts)}, numbers, taken),
        size_bytes=size_bytes,
    )


def columns_of(path: Path | None) -> tuple[str, ...]:
    """Return the columns that placeholders can name; none without a file. Raises ``UserError``."""
    if path is None:
        return ()
    return tuple(name for name in _read_header(path)[1] if _can_be_named(name))


def _can_be_named(column: str) -> bool:
    return _PLACE.fullmatch(f"{{{column}}}") is not None


def _read_header(path: Path) -> tuple[DataFormat, list[str], int]:
    """Return the format of a data file, its columns, and its size in bytes."""
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise UserError(
            f"{shown(path)} does not say by its name how it is written",
            f"name it {', '.join(list(FORMATS)[:-1])} or {list(FORMATS)[-1]};"
            " a body to send is --body TEXT or --body-file FILE",
        )
    head, size_bytes = _read_head(path)
    head = text_of(head, shown(path))
    if form == "jsonl":
        return form, _columns_of_json(path, head), size_bytes
    form = _separated(path, form, head)
    return form, _columns_of_csv(path, form, head), size_bytes


def _separated(path: Path, form: DataFormat, head: bytes) -> DataFormat:
    """Return the format whose separator the header has: spreadsheets write `;` or tabs into a
    ``.csv``, too. That of the file's name comes first."""
    first = next((line for line in head.splitlines() if line.strip()), b"")
    if first.lower().startswith(b"sep="):
        raise UserError(
            f"{shown(path)} begins with {first.decode('latin-1')!r}, which is for Excel alone",
            "remove the line: the separator is found by itself",
        )
    plain = re.sub(rb'"[^"]*"', b"", first)
    order = (form, *(each for each in SEPARATORS if each != form))
    return next((each for each in order if SEPARATORS[each].encode() in plain), form)


def _read_head(path: Path) -> tuple[bytes, int]:
    try:
        if not path.is_file() and path.exists():
            raise UserError(
                f"{shown(path)} is not a regular file", "it is read more than once: save it first"
            )
        with path.open("rb") as file:
            return file.read(HEADER_BYTES_MAX), path.stat().st_size
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError | ValueError) -> UserError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return UserError(f"{shown(path)} cannot be read: {reason}", "name a file that can be read")


def _columns_of_csv(path: Path, form: DataFormat, head: bytes) -> list[str]:
    text = io.StringIO(head.decode("utf-8", "surrogateescape"), newline="")
    try:
        rows = csv.reader(text, delimiter=SEPARATORS[form], strict=True)
        found = next((row for row in rows if row), [])
    except csv.Error as error:
        raise UserError(f"{shown(path)}, line 1 is not a header: {error}", EXAMPLES[form]) from None
    if not found:
        raise UserError(f"{shown(path)} has no rows", "its first row names the columns")
    return found


def _columns_of_json(path: Path, head: bytes) -> list[str]:
    for number, line in enumerate(head.split(b"\n"), start=1):
        if line.strip():
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                return list(found)
            raise UserError(f"{shown(path)}, line {number} is not a JSON object", EXAMPLES["jsonl"])
    raise UserError(f"{shown(path)} has no rows", EXAMPLES["jsonl"])


def _used(
    path: Path,
    columns: Sequence[str],
    named: set[str],
    numbers: Collection[str],
    taken: Collection[str],
) -> tuple[str, ...]:
    """Return the columns that are ``named`` in placeholders, in the order of the file."""
    own = named & {*numbers, *taken}
    for name in sorted(own & set(columns)):
        raise UserError(
            f"{shown(path)} has a column '{name}', and {{{name}}} is trueload's own number",
            "name the column otherwise",
        )
    usable = [name for name in columns if _can_be_named(name)]
    listed = ", ".join(usable[:SHOWN_MAX]) + (", …" if len(usable) > SHOWN_MAX else "")
    for name in sorted(named - own - set(columns)):
        raise UserError(
            f"{{{name}}} names no column of {shown(path)}",
            f"columns are {listed or 'none with a usable name'}; {{{{{name}}} stands for itself",
        )
    if not named - own:
        raise UserError(
            f"no request uses a column of {shown(path)}",
            f"write {{name}} in the URL, a header or the body; columns are {listed or 'none'}",
        )
    return tuple(dict.fromkeys(name for name in columns if name in named))


def _names_in(requests: Iterable[Request], texts: Iterable[str]) -> Iterator[str]:
    for text in chain(texts, *map(_texts, requests)):
        yield from (found[1] for found in _PLACE.finditer(text) if found[1])


def _texts(request: Request) -> Iterable[str]:
    yield request.path
    yield from (value for _, value in request.headers)
    if request.body is not None:
        yield request.body.decode("latin-1")


def shown(path: Path) -> str:
    """The name of a data file in messages."""
    return f"the data file {str(path)!r}"
