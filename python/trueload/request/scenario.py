"""A scenario file: the steps that every virtual user goes through, in TOML.

How: each step is read by itself, and a mistake in it is reported with the step's name. Then the
values are followed through the steps: each must have been taken before it is used. Flags given
beside the file go into every step that does not say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trueload.errors import UserError
from trueload.files.inputs import read_input
from trueload.files.toml import UnreadableError, parse_toml
from trueload.protocol.scenario import FromCookie, FromHeader, FromJson, FromPlan, FromRegex
from trueload.request.data import SHOWN_MAX, columns_of
from trueload.request.environment import HOW, PLACE
from trueload.request.fields import Entry, FileFlags, FileFormat
from trueload.request.make import is_token
from trueload.request.origins import origin_key
from trueload.request.redact import redact_url
from trueload.request.steps import StepSpec
from trueload.request.url import Url
from trueload.units import parse_duration

FILE_BYTES_MAX = 4 * 2**20
BODIES_BYTES_MAX = 64 * 2**20
STEPS_MAX = 1_000  # crates/engine/src/scenario.rs has these three limits, too
REPEAT_MAX = 100_000
TAKES_MAX = 100
NAME_LENGTH_MAX = 80

KEYS = ("name", "request", "expect", "take", "think", "repeat")
REQUEST_KEYS = ("method", "url", "headers", "body", "body_file")
BUILT_IN = ("counter", "random", "repeat", "stamp", "vu")
"""Values that every request may use; crates/wire/src/message/places.rs has them, too."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)
_VALUE = rf"\{{\+?([A-Za-z_][A-Za-z0-9_-]{{0,63}}){HOW}\}}"
_PLACE = re.compile(rf"\{{\{{|{_VALUE}", re.ASCII)
_NAMED_PLACE = re.compile(f"{_VALUE}|{PLACE}", re.ASCII)
_NOT_IN_PATH = re.compile(rf"""(?:{_VALUE}|{PLACE})|["<>\\^`|]""", re.ASCII)
_POINTER = re.compile(r"(/([^~/]|~[01])*)*")
_GROUP = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?!\?)|\(\?P?<[A-Za-z_]", re.DOTALL)
FORMAT = FileFormat(
    entry='a step is like: [[step]] name = "home"  request = { url = "/" }',
    table="a table",
    text='{} = "…"',
    headers='write for example headers = { Accept = "text/plain" }',
    expect="write for example expect = { status = [200, 302] }",
    server="name the server: `trueload http --scenario FILE URL`",
)
TAKE_HINT = 'write json:/POINTER, header:NAME, cookie:NAME or regex:PATTERN, as "json:/token"'


@dataclass(frozen=True)
class ScenarioFlags(FileFlags):
    """The flags beside the file. The columns of a ``data`` file are values that steps may use."""

    data: Path | None = None


ReadStep = Callable[[Mapping[str, Any], Path, ScenarioFlags], StepSpec | None]
"""Reads a step of another kind than a request; returns None for one with a request."""


def read_scenario(path: Path, beside: ScenarioFlags) -> tuple[Url, tuple[StepSpec, ...]]:
    """Read a scenario file (``-`` for stdin). Return the URL of the origin, and the steps. Raises
    ``UserError``."""
    return read_steps(path, beside, lambda *_: None, FORMAT)[1]


def read_steps(
    path: Path, beside: ScenarioFlags, read: ReadStep, form: FileFormat, keys: Sequence[str] = ()
) -> tuple[dict[str, Any], tuple[Url, tuple[StepSpec, ...]]]:
    """Read a file of steps, of which ``read`` reads those of another kind. Return its other
    ``keys``, the URL of the origin, and the steps. Raises ``UserError``."""
    shown = "the scenario on stdin" if str(path) == "-" else f"the scenario {str(path)!r}"
    try:
        raw = parse_toml(read_input(path, FILE_BYTES_MAX, shown, "at most {} MiB"))
    except UnreadableError as error:
        raise UserError(f"{shown} {error}", form.entry) from None
    steps = raw.pop("step", None)
    for key in raw:
        if key not in keys:
            raise UserError(f"{shown}: {key!r} is not a key", form.entry)
    if not isinstance(steps, list) or not steps:
        raise UserError(f"{shown} has no step", form.entry)
    if len(steps) > STEPS_MAX:
        raise UserError(f"{shown} has more than {STEPS_MAX:,} steps", "use fewer")
    folder = Path() if str(path) == "-" else path.parent
    base, found = beside.base, list[StepSpec]()
    for number, fields in enumerate(steps, start=1):
        name = fields.get("name") if isinstance(fields, dict) else None
        where = f"step {name!r}" if isinstance(name, str) and name else f"step {number}"
        try:
            if not isinstance(fields, dict):
                form.refuse("not a table")
            with_base = replace(beside, base=base)
            step = read(fields, folder, with_base)
            endpoint = base
            if step is None:
                endpoint, step = _step(fields, folder, with_base)
            assert endpoint is not None
            base = base or endpoint
            if origin_key(endpoint) != origin_key(base):
                of = redact_url(endpoint.origin)
                FORMAT.refuse(f"it goes to {of}, another server", "all steps go to one server")
            if step.name in (each.name for each in found):
                FORMAT.refuse("another step has this name", "name each step differently")
        except UserError as error:
            raise UserError(f"{shown}, {where}: {error.message}", error.hint) from None
        found.append(step)
    _check_bodies(found, shown)
    check_values(found, shown, columns_of(beside.data))
    assert base is not None
    return raw, (base, tuple(found))


def _step(fields: dict[str, Any], folder: Path, beside: ScenarioFlags) -> tuple[Url, StepSpec]:
    step, asked = Entry(fields, KEYS, FORMAT), fields.get("request")
    if not isinstance(asked, dict):
        FORMAT.refuse("'request' is missing")
    request = Entry(asked, REQUEST_KEYS, FORMAT, " of 'request'")
    endpoint = request.endpoint(beside.base)
    endpoint = replace(endpoint, path=_as_legal(endpoint.path))
    return endpoint, StepSpec(
        name=step_name(fields.get("name")),
        url=redact_url(endpoint.url),
        request=request.request(endpoint, folder, beside),
        expect=step.expect(beside.expect),
        take=taken_values(step.table("take", 'write for example take = { token = "json:/token" }')),
        think_ns=step_think(fields.get("think", "0s")),
        repeat=step.count("repeat", REPEAT_MAX),
    )


def step_name(value: Any) -> str:
    hint = 'write for example name = "log in"'
    if not isinstance(value, str):
        FORMAT.refuse("'name' is missing" if value is None else "'name' is not a string", hint)
    if not (value.isprintable() and 0 < len(value) <= NAME_LENGTH_MAX):
        FORMAT.refuse(f"'name' is not a line of 1 to {NAME_LENGTH_MAX} characters", hint)
    return redact_url(value)


def taken_values(value: dict[str, Any]) -> tuple[tuple[str, FromPlan], ...]:
    if len(value) > TAKES_MAX:
        FORMAT.refuse(f"'take' has more than {TAKES_MAX} values", "use fewer")
    return tuple((_value_name(name), take_from(name, text)) for name, text in value.items())


def _value_name(name: str) -> str:
    if name in BUILT_IN:
        FORMAT.refuse(f"'{name}' is built in", "take the value under another name")
    if not _NAME.fullmatch(name):
        FORMAT.refuse(f"{name!r} is not a name for a value", "use letters, digits, _ and -")
    return name


def take_from(name: str, text: Any) -> FromPlan:
    kind, colon, rest = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not colon or kind not in ("json", "header", "cookie", "regex"):
        FORMAT.refuse(f"'{name}' is not taken from any part of an answer", TAKE_HINT)
    if kind == "json":
        if not _POINTER.fullmatch(rest):
            FORMAT.refuse(
                f"'{name}': {rest!r} is not a JSON pointer",
                "write each name after a /, as json:/user/id; ~0 stands for ~ and ~1 for /",
            )
        return FromJson(pointer=rest)
    if kind == "regex":
        if not any(found.startswith("(") for found in _GROUP.findall(rest)):
            FORMAT.refuse(f"'{name}': the pattern has no group", "put ( ) around the value")
        return FromRegex(pattern=rest)
    if not is_token(rest):
        FORMAT.refuse(f"'{name}': {rest!r} is not the name of a {kind}", TAKE_HINT)
    return FromHeader(name=rest) if kind == "header" else FromCookie(name=rest)


def step_duration(key: str, value: Any, more: str = "") -> int:
    """Read a time of a step, in ns."""
    hint = f'write for example {key} = "200ms"{more}'
    if not isinstance(value, str):
        FORMAT.refuse(f"'{key}' is not a string", hint)
    try:
        return parse_duration(value.strip())
    except ValueError as error:
        FORMAT.refuse(f"'{key}': {error}", hint)


def step_think(value: Any) -> tuple[int, int]:
    bounds = value.split("..", 1) if isinstance(value, str) else [value]
    times_ns = [step_duration("think", each, ', or think = "100ms..300ms"') for each in bounds]
    least_ns, most_ns = times_ns[0], times_ns[-1]
    if least_ns > most_ns:
        FORMAT.refuse(
            f"'think' begins with the longer pause: {value}", "write the shorter one first"
        )
    return least_ns, most_ns


def _check_bodies(steps: Sequence[StepSpec], shown: str) -> None:
    sizes = (len(step.request.body or b"") + len(step.expect.body or b"") for step in steps)
    if sum(sizes) > BODIES_BYTES_MAX:
        raise UserError(
            f"{shown}: the bodies are more than {BODIES_BYTES_MAX // 2**20} MiB", "use fewer"
        )


def _as_legal(path: str) -> str:
    """The path with characters percent-encoded that cannot be in one; places stay."""
    return _NOT_IN_PATH.sub(lambda found: quote(found[0]) if len(found[0]) == 1 else found[0], path)


def has_places(text: str) -> bool:
    """Whether a text has places for values, so that its braces have a meaning."""
    return _NAMED_PLACE.search(text) is not None


def used_values(step: StepSpec) -> Iterator[str]:
    """The names of the values that fill the places of a step, one for each place."""
    for text in step.texts:
        yield from (found[1] for found in _PLACE.finditer(text) if found[1])


def check_values(steps: Sequence[StepSpec], shown: str, columns: Sequence[str]) -> None:
    """Refuse a value that is no column of data, and that no step takes before its use. Raises
    ``UserError``."""
    takers = {name: step for step in reversed(steps) for name, _ in step.take}
    taken = {*BUILT_IN, *columns}
    for step in steps:
        for name in used_values(step):
            if name in taken:
                continue
            where = f"{shown}, step {step.name!r}: no step before it takes {{{name}}}"
            raise UserError(where, _hint_for(name, step, takers, columns))
        taken.update(name for name, _ in step.take)


def _hint_for(
    name: str, step: StepSpec, takers: dict[str, StepSpec], columns: Sequence[str]
) -> str:
    """What to do about a value that is used before it is taken."""
    taker = takers.get(name)
    if taker is None:
        known = ", ".join(f"{{{each}}}" for each in (*takers, *columns[:SHOWN_MAX], *BUILT_IN))
        if len(columns) > SHOWN_MAX:
            known += ", …"
        return f"values are {known}; write {{{{{name}}} for the text itself"
    if taker is step:
        return "its own answer has the value: take it in an earlier step"
    if {value for value, _ in step.take} & _needed(taker, takers):
        return f"it and step {taker.name!r} need values of each other: let another step take one"
    return f"step {taker.name!r} takes it, and comes later: change their order"


def _needed(step: StepSpec, takers: dict[str, StepSpec]) -> set[str]:
    """The values that a step needs, and those that their takers need."""
    needed, waiting = set[str](), [step]
    while waiting:
        for name in used_values(waiting.pop()):
            if name not in needed:
                needed.add(name)
                waiting += [takers[name]] if name in takers else []
    return needed
