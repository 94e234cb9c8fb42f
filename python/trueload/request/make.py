"""Makes the request that a user describes with flags, and checks that it can be sent as it is.

No accepted value can end a header line or begin another request. The framing headers are set by
trueload: the body and ``--close`` decide them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from trueload.errors import UserError
from trueload.files.inputs import read_input
from trueload.protocol.option import refuse_beside
from trueload.request.message import BODY_BYTES_MAX, BODY_LIMIT
from trueload.request.redact import redact_headers
from trueload.request.url import Url, basic_credentials
from trueload.request.values import Request

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)  # RFC 9110, 5.6.2
# Tab, visible ASCII and anything beyond ASCII; no other control character (RFC 9110, 5.5).
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
USER_HINT = "write it as --user NAME:PASSWORD"
_OWN_HEADERS = {
    "content-length": "the body decides it: use --body or --body-file",
    "transfer-encoding": "the body decides it: use --body or --body-file",
    "connection": "use --close for a connection per request",
    "upgrade": "leave it out: `trueload http` stays with HTTP/1.1",
}


def make_request(
    endpoint: Url,
    *,
    method: str | None,
    headers: Sequence[str],
    user: str | None,
    body: bytes | None,
) -> Request:
    """Make the request for a URL and its flags. Without a method, a body makes it a POST. Raises
    ``UserError``."""
    pairs = [parse_header(line) for line in headers]
    names = [name.lower() for name, _ in pairs]
    if names.count("host") > 1:
        raise UserError("the header host is given twice", "keep one of them")
    if user is not None and endpoint.credentials is not None:
        raise UserError("--user and the URL both name a user", "keep one of them")
    credentials = endpoint.credentials if user is None else _credentials(user)
    if credentials is not None:
        refuse_beside("a user", {"an Authorization header": "authorization" in names})
        pairs.append(("Authorization", credentials))
    return Request(
        host=endpoint.authority,
        path=endpoint.path,
        method=_method(method, body),
        headers=tuple(pairs),
        body=body,
    )


def parse_header(line: str) -> tuple[str, str]:
    """Parse ``Name: value``. Raises ``UserError``."""
    name, colon, value = line.partition(":")
    shown = _shown_header(line)
    if not colon:
        raise UserError(f"{shown} has no colon", "write it as -H 'Name: value'")
    if not is_token(name):
        raise UserError(
            (f"{shown} has a name that is not a header name"), "write it as -H 'Name: value'"
        )
    value = value.strip(" \t")
    if not is_text(value):
        raise UserError(f"{shown} has a value that is not UTF-8", "write it in UTF-8")
    if not _VALUE.fullmatch(value):
        raise UserError(
            f"{shown} has a control character in its value", "a header is one line of text"
        )
    # A connection is kept anyway; HTTP/2 leaves the header out.
    keeps = name.lower() == "connection" and value.lower() == "keep-alive"
    if name.lower() in _OWN_HEADERS and not keeps:
        raise UserError(f"trueload sets {name} itself", _OWN_HEADERS[name.lower()])
    return name, value


def parse_statuses(texts: Sequence[str]) -> tuple[int, ...] | None:
    """Parse ``200``, ``200,404``, ``2xx``; None if none is given. Raises ``UserError``."""
    codes: set[int] = set()
    for part in ",".join(texts).split(",") if texts else ():
        text = part.strip().lower()
        if re.fullmatch(r"[2-5]xx", text):
            first = int(text[0]) * 100
            codes.update(range(first, first + 100))
        elif re.fullmatch(r"[2-5][0-9]{2}", text, re.ASCII):
            codes.add(int(text))
        else:
            raise UserError(
                f"'{part}' is not a final status code", "write for example 200, 200,404 or 2xx"
            )
    return tuple(sorted(codes)) if codes else None


def read_body(body: str | None, body_file: Path | None) -> bytes | None:
    """Read the body of ``--body`` or ``--body-file`` (``-`` for stdin). Raises ``UserError``."""
    if body is not None:
        refuse_beside("--body", {"--body-file": body_file is not None})
        if body.startswith("@") and Path(body[1:]).is_file():  # as curl and hey take a body
            raise UserError("--body sends text, not a file", "use --body-file FILE, without @")
        return body.encode("utf-8", "surrogateescape")
    if body_file is None:
        return None
    shown = f"the body file {_quoted(str(body_file))}"
    return read_input(body_file, BODY_BYTES_MAX, shown, BODY_LIMIT)


def _method(method: str | None, body: bytes | None) -> str:
    if method is None:
        return "GET" if body is None else "POST"
    if method.isdigit():
        hint = f"for so many requests on a connection use --http 2 --streams {method}"
        raise UserError(f"{_quoted(method)} is not a method", hint)
    if not is_token(method):
        raise UserError(f"{_quoted(method)} is not a method", "write for example -X POST")
    if method.upper() in _METHODS and method not in _METHODS:
        hint = f"methods are upper-case letters: write {method.upper()}"
        raise UserError(f"{_quoted(method)} is not a method", hint)
    if method == "CONNECT":
        raise UserError("CONNECT asks for a tunnel, not for an answer", "use another method")
    return method


def is_token(text: str) -> bool:
    """Whether a text is a token of HTTP (RFC 9110, 5.6.2)."""
    return _TOKEN.fullmatch(text) is not None


def _credentials(user: str) -> str:
    if not user.isprintable():
        raise UserError("--user has a control character", USER_HINT)
    if ":" not in user:
        # Not shown: it may be a password.
        raise UserError("--user is not a name, a colon and a password", USER_HINT)
    return basic_credentials(user.encode())


def is_text(value: str) -> bool:
    """Whether a value has no lone surrogates. Bytes of the command line that are not UTF-8 cannot
    be sent as JSON."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown_header(line: str) -> str:
    """A header for a message: its beginning, without what may be secret."""
    name, colon, value = line.partition(":")
    if colon and redact_headers([(name, value)]) == ((name, value),):
        return f"header {_quoted(line)}"
    word = _TOKEN.match(line)
    # A word that stands alone may be the value itself.
    return f"header {_quoted(word[0])}" if word and word[0] != line else "a header"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 24 else text[:24] + "…")
