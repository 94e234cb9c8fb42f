"""Files that hold what is sent: read whole, up to a limit."""

from __future__ import annotations

import codecs
import contextlib
import sys
from pathlib import Path

from trueload.errors import UserError
from trueload.files.compressed import UnpackError, unpacked

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # begins as that of UTF-16 does
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def read_input(
    path: Path,
    bytes_max: int,
    shown: str,
    limit: str,
    cure: str = "name a file that can be read",
    *,
    stdin: bool = True,
    packed: bool = False,
) -> bytes:
    """Read a file, or stdin for ``-`` if that is allowed. ``shown`` is its name in messages.
    ``limit`` is the hint for a file that is too large, with ``{}`` for the MiB. ``packed``: it may
    be compressed. Raises ``UserError``."""
    on_stdin = stdin and str(path) == "-"
    try:
        with contextlib.nullcontext(sys.stdin.buffer) if on_stdin else path.open("rb") as file:
            content = (unpacked(file, bytes_max) if packed else file).read(bytes_max + 1)
    except UnpackError as error:
        raise UserError(f"{shown} {error}", error.hint) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"{shown} cannot be read: {reason}", cure) from error
    if len(content) > bytes_max:
        raise UserError(f"{shown} is too large", limit.format(bytes_max // 2**20))
    return content


def foreign_encoding(content: bytes) -> str | None:
    """Return the encoding of a text that is UTF-16 or UTF-32, from its beginning; None for all
    else. A text without a mark shows it by a zero beside its first letter."""
    for mark, name in _MARKS:
        if content.startswith(mark):
            return name
    first = content[:2]
    return "UTF-16" if len(first) == 2 and first.count(0) == 1 else None


def text_of(content: bytes, shown: str) -> bytes:
    """Return a text in UTF-8, or its beginning, without a byte order mark. Raises ``UserError`` for
    another Unicode encoding."""
    if (encoding := foreign_encoding(content)) is not None:
        raise UserError(
            f"{shown} is {encoding}, and must be UTF-8",
            f"save it as UTF-8, for example by iconv -f {encoding} -t UTF-8",
        )
    return content.removeprefix(codecs.BOM_UTF8)
