"""``--form``: the fields and files of a form as a body, in the syntax of curl's ``-F`` (RFC 7578).

How: a value is a text, ``@FILE`` (a file with its name) or ``<FILE`` (a file's content as a text).
Parameters follow it, each behind a semicolon: ``type=``, ``filename=`` and ``headers=``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from trueload.errors import UserError
from trueload.files.inputs import read_input
from trueload.request.message import BODY_BYTES_MAX, BODY_LIMIT
from trueload.request.multipart import form_part, multipart

HINT = "write it as --form NAME=VALUE, or --form NAME=@FILE"
_ANY_TYPE = "application/octet-stream"
# curl's own list: that of the system would differ from machine to machine.
_TYPES = {
    ".gif": "image/gif",
    **dict.fromkeys((".jpg", ".jpeg"), "image/jpeg"),
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    **dict.fromkeys((".htm", ".html"), "text/html"),
    ".pdf": "application/pdf",
    ".xml": "application/xml",
}
_WORD = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"\s*|([^;]*?)\s*(?=;|\Z))', re.DOTALL)
_PARAMETER = re.compile(r";[ \t]*(type|filename|headers)=", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[^\s/;,]+/[^\s;,]+(?:;\s*(?!(?:filename|headers)=)[^\s;]+)*")
_LINE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def make_form(fields: Sequence[str]) -> tuple[str, bytes]:
    """Return the Content-Type and the body of a form. Raises ``UserError``."""
    media_type, body = multipart([_part(field) for field in fields])
    if len(body) > BODY_BYTES_MAX:
        raise UserError(BODY_LIMIT.format(BODY_BYTES_MAX // 2**20), "send smaller files")
    return media_type, body


def literal_field(field: str) -> str:
    """Return a field whose value stands for itself, as curl's ``--form-string`` has it."""
    name, equals, value = field.partition("=")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}{equals}"{escaped}"'


def _part(field: str) -> bytes:
    name, equals, rest = field.partition("=")
    if not (name and equals):
        raise UserError("--form has no name and value", HINT)
    if rest.startswith("("):
        hint = 'put the value in double quotes: NAME="(…"'
        raise UserError(f"the form field {name[:40]!r} begins a form within the form", hint)
    source = rest[:1] if rest[:1] in ("@", "<") else ""
    value, at = _word(rest, len(source))
    found = _parameters(rest, at, name)
    content = value.encode("utf-8", "surrogateescape")
    filename, media_type = found.get("filename"), found.get("type")
    if source:
        path = Path(value)
        content = _read(path, name, several="," in value)
        filename = path.name if filename is None and source == "@" else filename
    if media_type is None and (filename is not None or source):
        known = _TYPES.get(PurePath(filename or value).suffix.lower())
        media_type = known or (_ANY_TYPE if source == "@" else None)
    lines = [f"Content-Type: {media_type}"] if media_type else []
    lines += [found["headers"]] if "headers" in found else []
    return form_part(name, content, filename, lines)


def _word(text: str, at: int) -> tuple[str, int]:
    """The word at a position, which may be in double quotes, and where it ends. Spaces around it
    are left out."""
    found = _WORD.match(text, at)
    assert found is not None
    quoted = found[1]
    return (found[2] if quoted is None else re.sub(r"\\([\\\"])", r"\1", quoted)), found.end()


def _parameters(text: str, at: int, name: str) -> dict[str, str]:
    """The parameters behind a value. Raises ``UserError`` for one that is not known."""
    found: dict[str, str] = {}
    while at < len(text):
        begins = _PARAMETER.match(text, at)
        if begins is None:
            raise UserError(
                f"the form field {name[:40]!r} has more behind its value than type=, filename= or"
                " headers=",
                'put a value with semicolons or quotes in double quotes: NAME="a;b\\"c"',
            )
        key, at = begins[1].lower(), begins.end()
        media_type = _MEDIA_TYPE.match(text, at) if key == "type" else None
        if media_type is not None:
            found[key], at = media_type[0], media_type.end()
        else:
            found[key], at = _word(text, at)
        is_wrong = key == "type" and (media_type is None or text[at : at + 1] not in ("", ";"))
        is_file = key == "headers" and found[key][:1] in ("@", "<")
        if is_wrong or is_file or not _LINE.fullmatch(found[key]):
            raise UserError(
                f"the form field {name[:40]!r} has a {key}= that cannot be sent",
                "write for example type=text/plain, filename=a.txt or headers='X-Part: 1'",
            )
    return found


def _read(path: Path, name: str, *, several: bool) -> bytes:
    shown = f"the file {str(path)[:80]!r}"
    cure = "name a file that can be read"
    if several and not path.exists():
        cure = f"give each file a --form of its own: --form {name[:20]}=@FILE"
    return read_input(path, BODY_BYTES_MAX, shown, BODY_LIMIT, cure, stdin=False)
