"""Keeps secrets out of the store, reports and the command to repeat: the values of Authorization,
Proxy-Authorization and Cookie, the user information of URLs, and private keys. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from trueload.curl import split_options
from trueload.errors import UserError
from trueload.shell import split_words

REDACTED = "<redacted>"
SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})

_USER_FLAGS = ("--user",)
_CURL_FLAGS = ("--curl",)
_HEADER_FLAGS = ("-H", "--header")
_PRIVATE_KEY = "PRIVATE KEY-----"  # of a PEM text where the name of its file belongs
_USER_INFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@")


def redact_url(url: str) -> str:
    """``http://name:secret@host/`` as ``http://<redacted>@host/``."""
    return _USER_INFO.sub(rf"\1{REDACTED}@", url)


def redact_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Headers with the values of the secret ones replaced."""
    return tuple(
        (name, REDACTED if name.strip().lower() in SECRET_HEADERS else value)
        for name, value in headers
    )


def redact_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """A command line that can be stored and shown; it can be repeated once the secrets are put
    back."""
    shown: list[str] = []
    previous = ""
    for argument in arguments:
        shown.append(_as_text(_redact_argument(previous, argument)))
        previous = argument
    return tuple(shown)


def _redact_argument(previous: str, argument: str) -> str:
    if _PRIVATE_KEY in argument:
        return REDACTED
    if previous in _USER_FLAGS:
        return REDACTED
    if previous in _HEADER_FLAGS:
        return _redact_header_line(argument)
    if previous in _CURL_FLAGS:
        return redact_curl(argument)
    flag, equals, value = argument.partition("=")
    if equals and flag in _CURL_FLAGS:
        return f"{flag}={redact_curl(value)}"
    if equals and flag in _USER_FLAGS:
        return f"{flag}={REDACTED}"
    if equals and flag in _HEADER_FLAGS:
        return f"{flag}={_redact_header_line(value)}"
    if argument.startswith("-H") and len(argument) > 2:
        return f"-H{_redact_header_line(argument[2:])}"
    return redact_url(argument)


def redact_curl(command: str) -> str:
    """A curl command without its secrets; one that cannot be read is all secret."""
    try:
        words = split_words(command)
        for option in split_options(words):
            if option.value is not None:
                shown = _redact_curl_value(option.name, option.value)
                words[option.word] = words[option.word][: option.start] + shown
    except (ValueError, UserError):
        return REDACTED
    return _as_text(shlex.join(words))


def _as_text(argument: str) -> str:
    """Bytes of a command line that are no text, which nothing can store, as escapes."""
    return argument.encode("utf-8", "backslashreplace").decode()


def _redact_curl_value(name: str, value: str) -> str:
    match name:
        case "--user" | "--cookie":
            return REDACTED
        case "--header":
            return _redact_header_line(value)
        case "--cert" if ":" in value:
            return f"{value.partition(':')[0]}:{REDACTED}"
        case "" | "--url":
            scheme = "" if "://" in value else "http://"
            return redact_url(scheme + value).removeprefix(scheme)
    return value


def _redact_header_line(line: str) -> str:
    name, colon, _ = line.partition(":")
    secret = colon and name.strip().lower() in SECRET_HEADERS
    return f"{name}: {REDACTED}" if secret else line
