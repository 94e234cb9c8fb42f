"""URLs that can be shown: without their user, and without the values of secret parameters. Pure.

How: a parameter is secret by its name (``secret_names``), or because its value contains a URL or
parameters that would be redacted. Redacting a URL again changes nothing.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from trueload.request.environment import PLACE
from trueload.request.secret_names import ESCAPES_DEEP, is_secret_name

REDACTED = "<redacted>"

# Each pattern takes time in proportion to the text: a URL may have 64 KiB, and a header any length.
_USER_INFO = re.compile(rf"((?:^|:)//)(?!{REDACTED}@)[^/?#]*@")
_UP_TO_LAST_AT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:/+)?.*@", re.DOTALL)
_QUERY = re.compile(r"[?#&]")
_PATH_PARAMETER = re.compile(r";([^=;/]*)=([^;/?#&]+)")
_NAME_WITHIN = re.compile(
    rf"""(?<![^?&#;=/\s"'{{}},])([^?&#;=/\s"'{{}},]++)(?:=|"\s*+:)(?!{REDACTED})(?=.)"""
)


_PLACES = re.compile(f"({PLACE})")
_SCHEME = re.compile(r"((basic|bearer|digest|token|apikey) +)?[ :;,]*", re.IGNORECASE)


def redact_text(text: str) -> str:
    """Redact all of a secret but its ``{env:NAME}``, and the scheme of credentials before it."""
    parts = _PLACES.split(text)
    if len(parts) == 1:
        return REDACTED
    kept = ((at % 2 == 1 or _SCHEME.fullmatch(part)) for at, part in enumerate(parts))
    return "".join(part if keep else REDACTED for part, keep in zip(parts, kept, strict=True))


def redact_url(url: str) -> str:
    """Turn ``http://name:secret@host/?token=abc`` into
    ``http://<redacted>@host/?token=<redacted>``; also works on a part of a URL."""
    url = _USER_INFO.sub(rf"\1{REDACTED}@", url)
    found = _QUERY.search(url)
    end = len(url) if found is None else found.end()
    path = _PATH_PARAMETER.sub(_redact_path_parameter, url[:end])
    return path + "&".join(map(_redact_parameter, url[end:].split("&")))


def redact_typed_url(url: str) -> str:
    """Redact a URL that may lack its scheme: also ``name:secret@host/``."""
    scheme = "" if "://" in url else "http://"
    return redact_url(scheme + url).removeprefix(scheme)


def redact_refused_url(url: str) -> str:
    """Redact a URL that cannot be parsed, for a message; where its user ends is unknown, too."""
    found = _UP_TO_LAST_AT.match(url)
    return redact_url(f"{found[1] or ''}{REDACTED}@{url[found.end() :]}" if found else url)


def _redact_path_parameter(found: re.Match[str]) -> str:
    return f";{found[1]}={redact_text(found[2])}" if _is_secret(found[1], found[2]) else found[0]


def _redact_parameter(piece: str) -> str:
    """Redact ``name=value`` between two ``&``; if a part of the value is secret, all of it is."""
    name, equals, value = piece.partition("=")
    if not equals:
        return redact_text(piece) if hides_secret(piece) else piece
    return f"{name}={redact_text(value)}" if value and _is_secret(name, value) else piece


def _is_secret(name: str, value: str) -> bool:
    return is_secret_name(name) or hides_secret(value)


def hides_secret(value: str) -> bool:
    """Whether a value contains a URL, or parameters, with a secret that is not redacted yet."""
    for _ in range(ESCAPES_DEEP):
        plain = unquote(value)
        if plain == value:
            names = _NAME_WITHIN.findall(value)
            return _USER_INFO.search(value) is not None or any(map(is_secret_name, names))
        value = plain
    return True
