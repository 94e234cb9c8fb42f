"""The message of an echo: so many bytes, or those of a file.

How: bytes of a given size look random and are always the same, so that what comes back altered,
shifted or out of order shows; as text they are letters and digits. Must not know where they go.
"""

from __future__ import annotations

import random
import string
import sys
from pathlib import Path

from trueload.errors import UserError

MESSAGE_BYTES_MAX = 2**20
SIZE_BYTES = 64
_LETTERS = (string.ascii_letters + string.digits).encode()


def make_message(size_bytes: int | None, data: Path | None, *, text: bool = False) -> bytes:
    """What is sent again and again. Raises ``UserError``."""
    if data is not None:
        if size_bytes is not None:
            raise UserError("--size and --data exclude each other", "keep one of them")
        message = _read(data)
        if text and not _is_text(message):
            raise UserError(
                f"--data {str(data)!r} is not UTF-8, as text must be", "send it with --binary"
            )
        return message
    chance = random.Random(1)
    count = SIZE_BYTES if size_bytes is None else size_bytes
    return bytes(chance.choices(_LETTERS, k=count)) if text else chance.randbytes(count)


def _read(path: Path) -> bytes:
    shown = repr(str(path))
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(MESSAGE_BYTES_MAX + 1)
        else:
            with path.open("rb") as file:
                content = file.read(MESSAGE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(
            f"--data {shown} cannot be read: {reason}", "name a file that can be read"
        ) from error
    if not content:
        raise UserError(f"--data {shown} is empty", "a message has at least one byte")
    if len(content) > MESSAGE_BYTES_MAX:
        raise UserError(
            f"--data {shown} is too large",
            f"a message has at most {MESSAGE_BYTES_MAX // 2**20} MiB",
        )
    return content


def _is_text(message: bytes) -> bool:
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True
