"""Keeps secrets out of all that is stored or shown: the store, reports, exports, metrics, messages.

How: values of headers and query parameters are judged by their name (``secret_names``). The user of
a URL and private keys are always removed. A body is shown as its length and SHA-256. What is
removed leaves a placeholder in ``<…>``; redacting a text again changes nothing. The engine gets the
secrets. Pure.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Sequence

from trueload.errors import UserError
from trueload.request.secret_names import is_secret_name
from trueload.request.secret_urls import REDACTED as REDACTED
from trueload.request.secret_urls import hides_secret, redact_text
from trueload.request.secret_urls import redact_typed_url as redact_typed_url
from trueload.request.secret_urls import redact_url as redact_url
from trueload.request.shell import join_words, split_words

FILL_IN = "<…> stands for what is not stored: fill it in before you repeat the command"

KEEP_BODY = "--keep-body"
_SUBPROTOCOL = "--subprotocol"
# Browsers can set no other header of a WebSocket, so tokens are often sent in this one.
_SUBPROTOCOL_HEADER = "sec-websocket-protocol"

_PRIVATE_KEY = "PRIVATE KEY-----"  # in a PEM text that was given instead of a file's name
_HEADER_LINE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ \t]+\S")  # RFC 9110, 5.6.2
_BODY = re.compile(r"<body: [0-9]+ bytes?, SHA-256 [0-9a-f]{64}>")
_SHORT = 6  # a word this short may be in a message by chance


def redact_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Replace the values of secret headers, and the secrets within other values."""
    return tuple((name, _redact_value(name, value)) for name, value in headers)


def redact_body(body: str) -> str:
    """A body as its length and SHA-256."""
    if _BODY.fullmatch(body):
        return body
    data = body.encode("utf-8", "surrogateescape")
    count = f"{len(data)} byte{'' if len(data) == 1 else 's'}"
    return f"<body: {count}, SHA-256 {hashlib.sha256(data).hexdigest()}>"


def redact_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """A command line that can be stored and shown. To repeat it, fill in the placeholders."""
    pairs = list(_with_flags(arguments))
    keep_body = (KEEP_BODY, "") in pairs
    shown = [_as_text(_redact_argument(text, flag, keep_body)) for text, flag in pairs]
    return tuple(_without_token_protocols(shown, pairs))


def _without_token_protocols(shown: list[str], pairs: list[tuple[str, str]]) -> Iterable[str]:
    """Redact all subprotocols if one is secret: ``access_token`` only names the next one."""
    joined = f"{_SUBPROTOCOL}="
    of_protocol = [
        flag == _SUBPROTOCOL or (not flag and word.startswith(joined))
        for word, (_, flag) in zip(shown, pairs, strict=True)
    ]
    found = any(own and REDACTED in word for own, word in zip(of_protocol, shown, strict=True))
    for own, word in zip(of_protocol, shown, strict=True):
        prefix = joined if word.startswith(joined) else ""
        yield f"{prefix}{REDACTED}" if own and found else word


def command_text(arguments: Sequence[str]) -> str:
    """A stored command as it would be typed into a shell."""
    return join_words(redact_command(arguments))


def has_placeholders(arguments: Sequence[str]) -> bool:
    """Whether a redacted command has placeholders to fill in."""
    return any(REDACTED in word or _BODY.search(word) for word in redact_command(arguments))


def hide_arguments(text: str, arguments: Sequence[str]) -> str:
    """Remove the secrets of a command line from a message that may quote its arguments."""
    for argument, shown in zip(arguments, redact_command(arguments), strict=True):
        if argument == shown:
            continue
        text = _replaced(text, argument, shown)
        flag, equals, value = argument.partition("=")
        if equals and flag.startswith("--"):
            text = _replaced(text, value, shown.removeprefix(f"{flag}="))
    return text


def _replaced(text: str, secret: str, shown: str) -> str:
    return text if len(secret) < _SHORT else text.replace(secret, shown)


def _with_flags(arguments: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Yield each argument with the flag that it is the value of, if that is one of ours, else an
    empty text. Behind ``--``, which no flag follows, it is paired with that."""
    flag = ""
    for argument in arguments:
        yield argument, flag
        if flag != "--":
            flag = argument if not flag and argument in (*_SECRET_FLAGS, "--") else ""


def _redact_argument(argument: str, flag: str, keep_body: bool) -> str:
    if _PRIVATE_KEY in argument:
        return REDACTED
    if flag in _SECRET_FLAGS:
        return _SECRET_FLAGS[flag](argument, keep_body)
    name, equals, value = argument.partition("=")
    if equals and name in _SECRET_FLAGS:
        return f"{name}={_SECRET_FLAGS[name](value, keep_body)}"
    if argument.startswith("-H") and len(argument) > 2:
        return f"-H{_redact_header_line(argument[2:])}"
    if _HEADER_LINE.match(argument):  # the flag before it is missing
        return _redact_header_line(argument)
    return redact_url(argument)


def _redact_form(field: str, keep_body: bool) -> str:
    name, equals, text = field.partition("=")
    kept = keep_body or not equals or text.startswith(("@", "<"))  # a file's name
    return field if kept else f"{name}={redact_body(text)}"


def redact_curl(command: str, *, keep_body: bool = False) -> str:
    """A curl command without its secrets; if it cannot be parsed, all of it is secret."""
    from trueload.request.curl import split_options  # imported late: few requests are of curl

    try:
        words = split_words(command)
        options = list(split_options(words))
    except (ValueError, UserError):
        return REDACTED
    in_query = any(option.name == "--get" for option in options)
    for option in options:
        if option.value is not None:
            shown = _redact_curl_value(option.name, option.value, keep_body, in_query)
            words[option.word] = words[option.word][: option.start] + shown
    return _as_text(shlex.join(words))


def _as_text(argument: str) -> str:
    """Escape bytes of a command line that are not text, which nothing can store."""
    return argument.encode("utf-8", "backslashreplace").decode()


def _redact_curl_value(name: str, value: str, keep_body: bool, in_query: bool) -> str:
    match name:
        case "--user" | "--cookie":
            return redact_text(value)
        case "--header":
            return _redact_header_line(value)
        case "--cert" if ":" in value:
            return f"{value.partition(':')[0]}:{REDACTED}"
        case "" | "--url" | "--referer" | "--proxy":
            return redact_typed_url(value)
        case "--form":
            return _redact_form(value, keep_body)
        case "--form-string":
            return _redact_content(value, keep_body)
        case "--data-urlencode" if "@" in value and "=" not in value:
            return value  # a file's name
        case _ if name.startswith("--data") or name == "--json":
            if value.startswith("@") and name not in ("--data-raw", "--data-urlencode"):
                return value  # a file's name
            if in_query:
                return redact_url(f"?{value}")[1:]
            return _redact_content(value, keep_body)
    return value


def _redact_header_line(line: str) -> str:
    name, colon, value = line.partition(":")
    if not colon:
        # A header of curl's without a value, or a file of headers; anything else may be secret.
        return line if line.endswith(";") or line.startswith("@") else REDACTED
    bare = value.strip()
    shown = _redact_value(name, bare)
    return line if shown == bare else f"{name}: {shown}"


def _redact_value(name: str, value: str) -> str:
    """Redact the value of a header; a value that is no secret may contain a URL, or parameters."""
    if not value:
        return value
    tokens = name.strip().lower() == _SUBPROTOCOL_HEADER and is_secret_name(value)
    shown = redact_url(value)
    hidden = is_secret_name(name) or tokens or hides_secret(shown)
    return redact_text(value) if hidden else shown


def _redact_content(text: str, keep_body: bool) -> str:
    return text if keep_body else redact_body(text)


_SECRET_FLAGS: dict[str, Callable[[str, bool], str]] = {
    "--user": lambda user, keep_body: redact_text(user),
    "--curl": lambda command, keep_body: redact_curl(command, keep_body=keep_body),
    **dict.fromkeys(("-H", "--header"), lambda line, keep_body: _redact_header_line(line)),
    **dict.fromkeys(("--body", "--expect-body"), _redact_content),
    "--form": _redact_form,
    _SUBPROTOCOL: lambda name, keep_body: REDACTED if is_secret_name(name) else name,
}
"""Options whose values may be secret, and how they are redacted; bodies may be kept."""
