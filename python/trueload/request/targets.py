"""A targets file: several requests that take turns, one JSON object a line.

How: each line is parsed by itself, and a mistake in it is reported with the line's number. Then the
file is checked as a whole (origins, weights that are possible). Flags given beside the file go into
every line that does not say otherwise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, NoReturn

from trueload.errors import UserError
from trueload.files.inputs import read_input
from trueload.request.fields import check_keys, text_of
from trueload.request.make import make_request, parse_header, parse_statuses, read_body
from trueload.request.origins import ORIGINS_MAX, OriginKey, origin_key
from trueload.request.redact import redact_url
from trueload.request.url import Target, parse_url
from trueload.request.values import Expect, TargetSpec

FILE_BYTES_MAX = 32 * 2**20
TARGETS_MAX = 10_000
BODIES_BYTES_MAX = 256 * 2**20
WEIGHT_MAX = 1_000_000
TURNS_MAX = 2**20  # crates/load: the engine keeps the order of a whole cycle
NAME_LENGTH_MAX = 80

KEYS = ("method", "url", "headers", "body", "body_file", "weight", "expect", "name")
EXPECT_KEYS = ("status", "body")
ANY_ANSWER = Expect()
EXAMPLE = 'a line is like {"method": "GET", "url": "http://127.0.0.1:8080/", "weight": 2}'


@dataclass(frozen=True)
class Defaults:
    """What a line gets unless it says otherwise: the flags beside the file. ``base`` is the URL
    that was given, if any; lines may then have only a path, and are of its origin."""

    base: Target | None = None
    headers: tuple[str, ...] = ()
    user: str | None = None
    expect: Expect = ANY_ANSWER


@dataclass(frozen=True)
class TargetsFile:
    """A targets file in memory: its content, how errors name it, and the folder in which the files
    lie that it names. With ``one_origin`` all lines must be of the origin of the URL beside it."""

    content: bytes
    shown: str
    folder: Path
    one_origin: bool = False


def open_targets(path: Path) -> TargetsFile:
    """Read the file (``-`` for stdin) into memory. Raises ``UserError``."""
    folder = Path() if str(path) == "-" else path.parent
    shown = _shown(path)
    content = read_input(path, FILE_BYTES_MAX, shown, "at most {} MiB")
    return TargetsFile(content, shown, folder)


def read_targets(
    file: Path | TargetsFile, defaults: Defaults
) -> tuple[tuple[Target, ...], tuple[TargetSpec, ...]]:
    """Read the targets of a file (``-`` for stdin). Return the first URL of each origin, in the
    order in which they come, and the targets. Raises ``UserError``."""
    return parse_targets(open_targets(file) if isinstance(file, Path) else file, defaults)


def parse_targets(
    file: TargetsFile, defaults: Defaults
) -> tuple[tuple[Target, ...], tuple[TargetSpec, ...]]:
    """Parse the content of a targets file, like ``read_targets``. Raises ``UserError``."""
    shown, base = file.shown, defaults.base
    origins: dict[OriginKey, Target] = {}
    found: list[TargetSpec] = []
    bodies_bytes = 0
    for number, line in enumerate(file.content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            target, spec = _target(line, file.folder, defaults)
            if file.one_origin and base is not None:
                _check_origin(target, base)
            spec = replace(spec, origin=_origin(target, origins))
            bodies_bytes += len(spec.request.body or b"") + len(spec.expect.body or b"")
            if bodies_bytes > BODIES_BYTES_MAX:
                _refuse(f"the bodies are more than {BODIES_BYTES_MAX // 2**20} MiB", "use fewer")
            if len(found) == TARGETS_MAX:
                _refuse(f"there are more than {TARGETS_MAX:,} targets", "use fewer")
        except UserError as error:
            raise UserError(f"{shown}, line {number}: {error.message}", error.hint) from None
        found.append(spec)
    if not found:
        raise UserError(f"{shown} has no target", EXAMPLE)
    if base is not None and origin_key(base) not in origins:
        raise UserError(
            f"no line of {shown} goes to {base.authority}, which the URL names",
            "leave the URL out, or write only paths in the lines",
        )
    _check_weights(found, shown)
    return tuple(origins.values()), tuple(found)


def _origin(target: Target, origins: dict[OriginKey, Target]) -> int:
    """The index of a target's origin, which is added if it is new. Raises ``UserError``."""
    key = origin_key(target)
    if key not in origins and len(origins) == ORIGINS_MAX:
        _refuse(
            f"{target.authority} is one more origin, and {ORIGINS_MAX} are the most", "use fewer"
        )
    origins.setdefault(key, target)
    return list(origins).index(key)


def _target(line: bytes, folder: Path, defaults: Defaults) -> tuple[Target, TargetSpec]:
    fields = _object(line)
    check_keys(fields, KEYS)
    target = parse_url(_url(fields.get("url"), defaults.base))
    body = _body(fields, folder)
    own = _headers(fields.get("headers"))
    named = {parse_header(text)[0].lower() for text in own}
    rest = [text for text in defaults.headers if parse_header(text)[0].lower() not in named]
    user = None if "authorization" in named or target.credentials else defaults.user
    request = make_request(
        target, method=_text(fields, "method"), headers=[*own, *rest], user=user, body=body
    )
    return target, TargetSpec(
        url=redact_url(target.url),
        request=request,
        expect=_expect(fields.get("expect"), defaults.expect),
        weight=_weight(fields.get("weight", 1)),
        name=_name(_text(fields, "name")),
    )


def _object(line: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            _refuse(f"'{twice}' is given twice", "keep one of them")
        return fields

    try:
        fields = json.loads(line.decode(), object_pairs_hook=once)
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 at byte {error.start + 1}", EXAMPLE) from None
    except json.JSONDecodeError as error:
        raise UserError(f"not JSON at character {error.pos + 1}: {error.msg}", EXAMPLE) from None
    except (ValueError, RecursionError):
        raise UserError("not JSON that can be read", EXAMPLE) from None
    if not isinstance(fields, dict):
        _refuse("not a JSON object")
    return fields


def _text(fields: dict[str, Any], key: str) -> str | None:
    return text_of(fields, key, f'"{key}": "…"')


def _url(value: Any, base: Target | None) -> str:
    if not isinstance(value, str) or not value:
        _refuse("'url' is missing" if value is None else "'url' is not a text")
    if not value.startswith("/"):
        return value
    if base is None:
        _refuse(
            "'url' has no scheme and host",
            "write them in every line, or name the server: `trueload http URL --targets FILE`",
        )
    return base.origin + value


def _headers(value: Any) -> list[str]:
    """Headers as lines ``Name: value``; a list of values becomes as many headers."""
    hint = 'write for example "headers": {"Accept": "text/plain"}'
    if value is None:
        return []
    if not isinstance(value, dict):
        _refuse("'headers' is not an object", hint)
    lines = []
    for name, values in value.items():
        if ":" in name:
            _refuse("a header's name has a colon", hint)
        for one in values if isinstance(values, list) else [values]:
            if not isinstance(one, str):
                _refuse(f"the header {name!r} has a value that is no text", hint)
            lines.append(f"{name}: {one}")
    return lines


def _body(fields: dict[str, Any], folder: Path) -> bytes | None:
    body, file = _text(fields, "body"), _text(fields, "body_file")
    if body is not None and file is not None:
        _refuse("'body' and 'body_file' exclude each other", "keep one of them")
    if body is not None:
        return _encoded(body, "body")
    return None if file is None else read_body(None, folder / file)


def _expect(value: Any, default: Expect) -> Expect:
    hint = 'write for example "expect": {"status": [200, 404], "body": "ok"}'
    if value is None:
        return default
    if not isinstance(value, dict):
        _refuse("'expect' is not an object", hint)
    check_keys(value, EXPECT_KEYS, " of 'expect'")
    expect = default
    if (status := value.get("status")) is not None:
        codes = status if isinstance(status, list) else [status]
        if not codes or not all(_is_code(code) for code in codes):
            _refuse("'expect' has a 'status' that is not a status code", hint)
        expect = replace(expect, statuses=parse_statuses([str(code) for code in codes]))
    body = _text(value, "body")
    return expect if body is None else replace(expect, body=_encoded(body, "body"))


def _is_code(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _weight(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= WEIGHT_MAX:
        _refuse(f"'weight' is not a whole number from 1 to {WEIGHT_MAX:,}", "write for example 3")
    return value


def _name(value: str | None) -> str | None:
    if value is not None and not (value.isprintable() and 0 < len(value) <= NAME_LENGTH_MAX):
        _refuse(f"'name' is not a line of 1 to {NAME_LENGTH_MAX} characters", "shorten it")
    return None if value is None else redact_url(value)


def _encoded(text: str, key: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UserError(f"'{key}' has half of a surrogate pair", "write whole characters") from None


def _check_origin(target: Target, base: Target) -> None:
    if origin_key(target) != origin_key(base):
        _refuse(
            f"it goes to {redact_url(target.origin)}, but the URL is of {redact_url(base.origin)}",
            "both sides are asked the same: write only the path",
        )


def _check_weights(targets: Sequence[TargetSpec], shown: str) -> None:
    weights = [target.weight for target in targets]
    turns = sum(weights) // reduce(math.gcd, weights)
    if turns > TURNS_MAX:
        raise UserError(
            (
                f"{shown}: the weights need {turns:,} turns even in lowest terms, and at most"
                f" {TURNS_MAX:,} are allowed"
            ),
            "use smaller or rounder weights",
        )


def _shown(path: Path) -> str:
    return "the targets on stdin" if str(path) == "-" else f"the targets file {str(path)!r}"


def _refuse(what: str, hint: str = EXAMPLE) -> NoReturn:
    raise UserError(what, hint)
