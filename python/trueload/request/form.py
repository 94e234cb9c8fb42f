"""``--form``: the fields and files of a form as a body, as a browser sends them (RFC 7578)."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Sequence
from pathlib import Path

from trueload.errors import UserError
from trueload.files.inputs import read_input
from trueload.request.message import BODY_BYTES_MAX, BODY_LIMIT

HINT = "write it as --form NAME=VALUE, or --form NAME=@FILE"
_ANY_TYPE = "application/octet-stream"
# What the quoted name of a field cannot have, and how browsers write it instead.
_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


def make_form(fields: Sequence[str]) -> tuple[str, bytes]:
    """Return the Content-Type and the body of a form. Raises ``UserError``."""
    parts = [_part(field) for field in fields]
    # The same form has the same bytes, so that runs can be compared.
    boundary = f"trueload-{hashlib.sha256(b''.join(parts)).hexdigest()[:32]}"
    body = b"".join(b"--%s\r\n%s\r\n" % (boundary.encode(), part) for part in parts)
    if len(body) > BODY_BYTES_MAX:
        raise UserError(BODY_LIMIT.format(BODY_BYTES_MAX // 2**20), "send smaller files")
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()


def _part(field: str) -> bytes:
    name, equals, value = field.partition("=")
    if not (name and equals):
        raise UserError("--form has no name and value", HINT)
    head = f'Content-Disposition: form-data; name="{name.translate(_QUOTED)}"'
    content = value.encode("utf-8", "surrogateescape")
    if value.startswith("@"):
        path = Path(value[1:])
        head += f'; filename="{path.name.translate(_QUOTED)}"'
        head += f"\r\nContent-Type: {mimetypes.guess_type(path.name)[0] or _ANY_TYPE}"
        content = read_input(
            path, BODY_BYTES_MAX, f"the file {value[1:]!r}", BODY_LIMIT, stdin=False
        )
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n" + content
