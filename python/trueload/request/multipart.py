"""The body of a form with fields and files, ``multipart/form-data`` (RFC 7578). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

# What the quoted name of a field cannot have, and how browsers write it instead.
_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


def multipart(parts: Sequence[bytes]) -> tuple[str, bytes]:
    """Return the Content-Type and the body of a form with these parts."""
    # The same form has the same bytes, so that runs can be compared.
    boundary = f"trueload-{hashlib.sha256(b''.join(parts)).hexdigest()[:32]}"
    body = b"".join(b"--%s\r\n%s\r\n" % (boundary.encode(), part) for part in parts)
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()


def form_part(name: str, content: bytes, filename: str | None, lines: Sequence[str] = ()) -> bytes:
    """Return a part of a form: a field, or a file of this name, with further header lines."""
    head = f'Content-Disposition: form-data; name="{name.translate(_QUOTED)}"'
    if filename is not None:
        head += f'; filename="{filename.translate(_QUOTED)}"'
    headers = "\r\n".join((head, *lines)).encode("utf-8", "surrogateescape")
    return headers + b"\r\n\r\n" + content
