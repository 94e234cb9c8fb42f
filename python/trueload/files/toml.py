"""Reads a user's TOML file as a dictionary, or says in a few words why it is none.

How: the file is read once, up to a limit. The caller knows what it is for, and names it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from trueload.files.inputs import foreign_encoding

# Each of ours is about a page; a much longer one is a mistake or an attack, and is refused before
# it is parsed.
TOML_BYTES_MAX = 64 * 1024


class UnreadableError(Exception):
    """What is wrong with a file, as words that follow its name."""


def read_toml(path: Path, bytes_max: int = TOML_BYTES_MAX) -> dict[str, Any]:
    """Read a file of at most ``bytes_max``. Raises ``UnreadableError``."""
    try:
        with path.open("rb") as file:  # some files have a size of 0
            raw = file.read(bytes_max + 1)
        if len(raw) > bytes_max:
            raise UnreadableError(f"is larger than {bytes_max // 1024} KiB")
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from None
    return parse_toml(raw)


def parse_toml(raw: bytes) -> dict[str, Any]:
    """Parse the content of a file. Raises ``UnreadableError``."""
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        if (encoding := foreign_encoding(raw)) is not None:
            raise UnreadableError(f"is {encoding}, and must be UTF-8") from None
        raise UnreadableError(f"is not UTF-8: byte {error.start}") from None
    except ValueError as error:  # also of a number with thousands of digits
        raise UnreadableError(f"is not TOML: {error}") from None
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
