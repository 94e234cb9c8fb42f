"""A TOML file of the user's as a dictionary, or a few words on why it is none.

How: read once, with a bound; whoever asks knows what the file is for and says so. Must not know any
key.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

# Each of ours is a page; anything much longer is a mistake or an attack, refused before parsing.
TOML_BYTES_MAX = 64 * 1024


class UnreadableError(Exception):
    """What is wrong with a file, as words that follow its name."""


def read_toml(path: Path) -> dict[str, Any]:
    """What a file says. Raises ``UnreadableError``."""
    try:
        with path.open("rb") as file:  # of some files the size is told as 0
            raw = file.read(TOML_BYTES_MAX + 1)
        if len(raw) > TOML_BYTES_MAX:
            raise UnreadableError(f"is larger than {TOML_BYTES_MAX // 1024} KiB")
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8: byte {error.start}") from None
    except ValueError as error:  # also of a number with thousands of digits
        raise UnreadableError(f"is not TOML: {error}") from None
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from None
