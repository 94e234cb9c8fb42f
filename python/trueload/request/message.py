"""The messages of an echo: generated ones of a given size, or the content of a file.

How: generated messages look random and are always the same. They differ from each other and take
turns, so that what comes back altered, late, doubled or out of order is noticed. As text they are
letters and digits. A file is one message.
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field
from pathlib import Path

from trueload.errors import UserError
from trueload.files.inputs import read_input
from trueload.protocol.option import refuse_beside
from trueload.protocol.request_options import MESSAGE_BYTES_MAX as MESSAGE_BYTES_MAX

BODY_BYTES_MAX = 32 * 2**20  # it goes to the engine in one line, base64
BODY_LIMIT = "a body has at most {} MiB"
SIZE_BYTES = 64
_LETTERS = (string.ascii_letters + string.digits).encode()
_AS_LETTERS = bytes(_LETTERS[byte % len(_LETTERS)] for byte in range(256))


# If there are more messages than are ever in flight on a connection, a late or doubled echo differs
# from the one that is due. Beyond so many bytes in all there are fewer messages.
TURNS = 256
PAYLOAD_BYTES_MAX = 16 * 2**20


@dataclass(frozen=True)
class Messages:
    """What connections send in turn: ``payload``, cut into messages of ``size_bytes``."""

    payload: bytes = field(repr=False)
    size_bytes: int


def make_messages(size_bytes: int | None, data: Path | None, *, text: bool = False) -> Messages:
    """Make the messages that are sent again and again. Raises ``UserError``."""
    if data is not None:
        refuse_beside("--size", {"--data": size_bytes is not None})
        message = _read(data)
        if text and not _is_text(message):
            raise UserError(
                f"--data {str(data)!r} is not UTF-8, as text must be", "send it with --binary"
            )
        return Messages(message, len(message))
    chance = random.Random(1)
    count = SIZE_BYTES if size_bytes is None else size_bytes
    turns = max(2, min(TURNS, PAYLOAD_BYTES_MAX // count))
    total = turns * count
    payload = chance.randbytes(total)
    return Messages(payload.translate(_AS_LETTERS) if text else payload, count)


def _read(path: Path) -> bytes:
    shown = f"--data {str(path)!r}"
    content = read_input(path, MESSAGE_BYTES_MAX, shown, "a message has at most {} MiB")
    if not content:
        raise UserError(f"{shown} is empty", "a message has at least one byte")
    return content


def _is_text(message: bytes) -> bool:
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True
