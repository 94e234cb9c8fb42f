"""Secrets that a request takes from the environment: ``{env:NAME}``. Pure.

How: requests, plans and all that is stored keep the text. The values go to the engine beside the
plan, which fills them in as it does other values. Only what the front must encode is filled here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from trueload.errors import UserError
from trueload.request.values import Request

BEGIN = "{env:"
HOW = r"(?:\|(?:raw|json))?"
"""What may follow the name in any place: how the value is written (crates/wire/src/message/fit.rs).
"""
PLACE = rf"\{{env:[A-Za-z_][A-Za-z0-9_]*{HOW}\}}"
_NAMED = re.compile(rf"\{{\{{|\{{env:([A-Za-z_][A-Za-z0-9_]*){HOW}\}}")
_BROKEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_RAW_OR_OTHER = re.compile(
    r"\{\{|\{env:([A-Za-z_][A-Za-z0-9_]*)\|raw\}" rf"|\{{\+?[A-Za-z_][A-Za-z0-9_.:-]*{HOW}\}}"
)
_SPACES = " \t\r\n"
_JSON = json.JSONDecoder(parse_constant=int)  # refuses NaN and Infinity


def environment_of(requests: Iterable[Request], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that requests name, with their values. Raises ``UserError`` for one that
    is not set, or that cannot stand where it is named."""
    found: dict[str, str] = {}
    for request in requests:
        body = (request.body or b"").decode("latin-1")
        found |= {name: _value(name, environ) for name in _names(request.path, body)}
        for header, value in request.headers:
            for name in _names(value):
                found[name] = _header_value(name, header, environ)
        _refuse_broken_json(request, found)
    return found


def fill_in(text: str, environ: Mapping[str, str]) -> str:
    """Return a text with the values that it names. Raises ``UserError``."""
    if not any(_names(text)):
        return text
    return _NAMED.sub(lambda place: _value(place[1], environ) if place[1] else "{", text)


def fill_header(line: str, environ: Mapping[str, str]) -> str:
    """Return the line of a header with the values that it names. Raises ``UserError``."""
    for name in _names(line):
        _header_value(name, line.partition(":")[0], environ)
    return fill_in(line, environ)


def _refuse_broken_json(request: Request, values: Mapping[str, str]) -> None:
    """Refuse values that stand raw in a body of JSON, and make it none. Raises ``UserError``."""
    body = (request.body or b"").decode("utf-8", "surrogateescape")
    names = [place[1] for place in _RAW_OR_OTHER.finditer(body) if place[1]]
    if not names:
        return

    def filled(values: Mapping[str, str]) -> str:
        def written(place: re.Match[str]) -> str:
            return "{" if place[0] == "{{" else values.get(place[1], "1")

        return _RAW_OR_OTHER.sub(written, body)

    # A digit may stand in a text of JSON, and for a value.
    sample = filled({})
    if _is_meant_as_json(request, sample) and _is_json(sample) and not _is_json(filled(values)):
        raise UserError(
            f"the variable {' or '.join(dict.fromkeys(names))} makes a body that is not JSON",
            f"write {{env:{names[0]}}} without |raw",
        )


def _is_meant_as_json(request: Request, body: str) -> bool:
    """Whether values are written as JSON, as ``Body`` in crates/wire/src/message/fit.rs decides."""
    for name, value in request.headers:
        if name.lower() == "content-type":
            essence = value.partition(";")[0].strip().lower()
            return essence.partition("/")[2].endswith(("json", "jsonl"))
    return body.lstrip().startswith(("{", "["))


def _is_json(text: str) -> bool:
    """Whether a text is values of JSON, one or, as in JSON lines, several."""
    text, at = text.strip(_SPACES), 0
    try:
        while at < len(text):
            _, at = _JSON.raw_decode(text, at)
            while at < len(text) and text[at] in _SPACES:
                at += 1
    except (ValueError, RecursionError):
        return False
    return True


def _names(*texts: str) -> Iterator[str]:
    for text in texts:
        yield from (place[1] for place in _NAMED.finditer(text) if place[1])


def _value(name: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if value is None:
        raise UserError(
            f"a request has {{env:{name}}}, and no variable {name} is set",
            f"export {name}, or write {{{{env:{name}}} for the text itself",
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UserError(f"the variable {name} is not UTF-8", "export it in UTF-8") from None
    return value


def _header_value(name: str, header: str, environ: Mapping[str, str]) -> str:
    value = _value(name, environ)
    if _BROKEN.search(value):
        raise UserError(
            f"the variable {name} has a control character, and the header {header} is one line",
            f'export it without line breaks: export {name}="$(cat FILE)"',
        )
    return value
