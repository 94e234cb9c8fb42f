"""Files that hold what is sent: read whole, up to a limit."""

from __future__ import annotations

import sys
from pathlib import Path

from trueload.errors import UserError


def read_input(
    path: Path,
    bytes_max: int,
    shown: str,
    limit: str,
    cure: str = "name a file that can be read",
    *,
    stdin: bool = True,
) -> bytes:
    """Read a file, or stdin for ``-`` if that is allowed. ``shown`` is its name in messages.
    ``limit`` is the hint for a file that is too large, with ``{}`` for the MiB. Raises
    ``UserError``."""
    try:
        if stdin and str(path) == "-":
            content = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with path.open("rb") as file:
                content = file.read(bytes_max + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"{shown} cannot be read: {reason}", cure) from error
    if len(content) > bytes_max:
        raise UserError(f"{shown} is too large", limit.format(bytes_max // 2**20))
    return content
