"""A conversation over WebSocket: the steps of a TOML file, in the way of a scenario's.

How it works: requests come first, then one step that connects, then messages. Without such a step,
the URL of the command line is connected to before the first message. What a message is compared
with is written as ``take`` is: its kind, and behind a colon the text or the place.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from trueload.errors import UserError
from trueload.protocol.scenario import (
    AnyMessage,
    BinaryMessage,
    HasMessage,
    MessagePlan,
    PrefixMessage,
    TextMessage,
    UsersPlan,
)
from trueload.request.data import columns_of
from trueload.request.fields import Entry, FileFormat
from trueload.request.make import is_token, read_body
from trueload.request.origins import origin_key
from trueload.request.scenario import (
    BUILT_IN,
    REPEAT_MAX,
    ScenarioFlags,
    check_values,
    read_steps,
    step_duration,
    step_name,
    step_think,
    take_from,
    taken_values,
)
from trueload.request.steps import Messages, StepSpec
from trueload.request.values import Request

ROLE_MAX = 1_000_000
UNTIL_THE_END = "until the end"
CONNECT_KEYS = ("url", "headers", "subprotocols")
MESSAGE_KEYS = ("name", "role", "send", "expect", "within", "take", "think", "repeat")
FORMAT = FileFormat(
    entry='a step is like: [[step]] name = "join"  send = "hello"  expect = "prefix:welcome"',
    table="a table",
    text='{} = "…"',
    headers='write for example headers = { Authorization = "Bearer {token}" }',
    server="name the server: `trueload ws URL --scenario FILE`",
)
EXPECT_HINT = (
    "write any, binary, text:TEXT, prefix:TEXT, json:/POINTER, json:/POINTER=VALUE or"
    ' regex:PATTERN, as expect = "json:/type=joined"'
)


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """The file of a conversation."""

    steps: tuple[StepSpec, ...]
    """One of them connects."""
    ignore_unexpected: bool
    """Messages that no step expects are allowed."""
    replies: tuple[tuple[str, str], ...]
    """Texts of the server that are answered at once, and their answers."""


def read_conversation(path: Path, beside: ScenarioFlags, opening: Request) -> Conversation:
    """Read the file of a conversation (``-`` for stdin). Raises ``UserError``."""
    role_of = dict[str, str]()
    read = partial(_read_step, role_of)
    settings, (_, steps) = read_steps(path, beside, read, FORMAT, ("ignore", "replies", "roles"))
    if role_of or "roles" in settings:
        names = (*BUILT_IN, *columns_of(beside.data))
        steps = _with_roles(path, steps, role_of, settings.get("roles"), names)
    _check_ends(path, steps, role_of)
    ignores, replies = settings.get("ignore", False), settings.get("replies", {})
    if not isinstance(ignores, bool):
        raise UserError(f"{path}: 'ignore' is not true or false", "write ignore = true")
    if not isinstance(replies, dict) or not all(isinstance(each, str) for each in replies.values()):
        raise UserError(
            f"{path}: 'replies' is not a table of texts",
            'write replies = { "2" = "3" }: what comes, and its answer',
        )
    return Conversation(
        steps=_connected(path, steps, opening),
        ignore_unexpected=ignores,
        replies=tuple(replies.items()),
    )


def _with_roles(
    path: Path,
    steps: Sequence[StepSpec],
    role_of: Mapping[str, str],
    weights: Any,
    names: Sequence[str],
) -> tuple[StepSpec, ...]:
    """The steps, each with the users that have its role: of so many users in a row as all weights
    add up to, the first role has the first ones."""
    hint = "write roles = { listener = 9, speaker = 1 } at the top"
    if not isinstance(weights, dict) or not weights:
        raise UserError(f"{path}: 'roles' does not name the roles of its steps", hint)
    if not all(type(weight) is int and 0 < weight <= ROLE_MAX for weight in weights.values()):
        raise UserError(f"{path}: a weight of 'roles' is not 1 to {ROLE_MAX:,}", hint)
    unknown = next(((name, role) for name, role in role_of.items() if role not in weights), None)
    if unknown is not None:
        name, role = unknown
        raise UserError(f"{path}, step {name!r}: {role!r} is not among the roles", hint)
    unused = next((role for role in weights if role not in role_of.values()), None)
    if unused is not None:
        raise UserError(f"{path}: no step has the role {unused!r}", f'write role = "{unused}"')
    first, users, whole = 0, dict[str, UsersPlan](), sum(weights.values())
    for role, weight in weights.items():
        users[role] = UsersPlan(first=first, count=weight, of=whole)
        first += weight
        own = [step for step in steps if role_of.get(step.name, role) == role]
        check_values(own, f"{path}, role {role!r}", names)
    roles = {name: users[role] for name, role in role_of.items()}
    return tuple(replace(step, users=roles.get(step.name)) for step in steps)


def _check_ends(path: Path, steps: Sequence[StepSpec], role_of: Mapping[str, str]) -> None:
    """Refuse a step that no user gets to, because an earlier one goes on until the end."""
    for place, step in enumerate(steps):
        if step.messages is None or not step.messages.endless:
            continue
        role = role_of.get(step.name)
        for late in steps[place + 1 :]:
            if role is None or role_of.get(late.name, role) == role:
                raise UserError(
                    f"{path}, step {late.name!r} comes after {step.name!r}, which does not end",
                    f'put the step with repeat = "{UNTIL_THE_END}" last',
                )


def _connected(path: Path, steps: Sequence[StepSpec], opening: Request) -> tuple[StepSpec, ...]:
    """The steps with the one that connects, in an order that a connection allows."""
    talk = [index for index, step in enumerate(steps) if step.messages is not None]
    connects = [index for index, step in enumerate(steps) if step.upgrade]
    if not talk:
        raise UserError(f"{path} has no step with a message", FORMAT.entry)
    if len(connects) > 1:
        raise UserError(
            f"{path}, step {steps[connects[1]].name!r} connects again",
            "a conversation has one connection",
        )
    first = talk[0]
    late = next((step for step in steps[first:] if step.messages is None), None)
    if late is not None:
        raise UserError(
            f"{path}, step {late.name!r} comes after a message and is none",
            "put requests, and the step that connects, before the first message",
        )
    if connects:
        if connects[0] != first - 1:
            raise UserError(
                f"{path}, step {steps[connects[0]].name!r} connects before a request",
                "put it right before the first message",
            )
        return tuple(steps)
    own = StepSpec(name="connect", url=opening.path, request=opening, upgrade=True)
    if any(step.name == own.name for step in steps):
        raise UserError(f"{path}: a step is called 'connect', and does not", "name it differently")
    return (*steps[:first], own, *steps[first:])


def _read_step(
    role_of: dict[str, str], fields: Mapping[str, Any], folder: Path, beside: ScenarioFlags
) -> StepSpec | None:
    """Read a step that connects or has a message, and note its role; None for one with a
    request."""
    if "connect" in fields:
        return _connect(dict(fields), folder, beside)
    if "request" in fields:
        return None
    step = _message(dict(fields), folder, beside)
    if "role" in fields:
        if not isinstance(fields["role"], str):
            FORMAT.refuse("'role' is not a string", 'write role = "listener"')
        role_of[step.name] = fields["role"]
    return step


def _connect(fields: dict[str, Any], folder: Path, beside: ScenarioFlags) -> StepSpec:
    asked = Entry(fields, ("name", "connect", "think"), FORMAT).table("connect", FORMAT.server)
    entry = Entry(asked, CONNECT_KEYS, FORMAT, " of 'connect'")
    endpoint = entry.endpoint(beside.base)
    if beside.base is not None and origin_key(endpoint) != origin_key(beside.base):
        FORMAT.refuse(f"it goes to {endpoint.origin}, another server", "all steps go to one server")
    names = asked.get("subprotocols", [])
    if not isinstance(names, list) or not all(isinstance(n, str) and is_token(n) for n in names):
        FORMAT.refuse("'subprotocols' is not a list of names", 'write subprotocols = ["chat.v1"]')
    request = entry.request(endpoint, folder, beside)
    if names:
        protocol = ("Sec-WebSocket-Protocol", ", ".join(names))
        request = replace(request, headers=(*request.headers, protocol))
    name, think_ns = step_name(fields.get("name")), step_think(fields.get("think", "0s"))
    return StepSpec(name=name, url=endpoint.url, request=request, think_ns=think_ns, upgrade=True)


def _message(fields: dict[str, Any], folder: Path, beside: ScenarioFlags) -> StepSpec:
    step = Entry(fields, MESSAGE_KEYS, FORMAT)
    if "send" not in fields and "expect" not in fields:
        FORMAT.refuse("it has neither 'send' nor 'expect'")
    is_text, body = _sent(fields.get("send"), folder)
    expected = None if "expect" not in fields else _expected(fields["expect"])
    take = taken_values(step.table("take", 'write for example take = { id = "json:/id" }'))
    if take and expected is None:
        FORMAT.refuse("'take' needs a message", "add expect")
    if any(found.kind in ("header", "cookie") for _, found in take):
        FORMAT.refuse("a message has no headers and cookies", "take json:/POINTER or regex:PATTERN")
    within_ns = None
    if "within" in fields:
        if expected is None:
            FORMAT.refuse("'within' needs a message", "add expect")
        within_ns = step_duration("within", fields["within"])
    endless = fields.get("repeat") == UNTIL_THE_END
    if endless and (body is not None or expected is None):
        FORMAT.refuse(
            f"'repeat' is {UNTIL_THE_END!r}, and it does not only expect", "leave send out"
        )
    return StepSpec(
        name=step_name(fields.get("name")),
        url="",
        request=Request(host="", path="/", method="GET", body=body),
        take=take,
        think_ns=step_think(fields.get("think", "0s")),
        repeat=1 if endless else step.count("repeat", REPEAT_MAX),
        messages=Messages(text=is_text, expected=expected, within_ns=within_ns, endless=endless),
    )


def _sent(value: Any, folder: Path) -> tuple[bool, bytes | None]:
    """Whether a text is sent, and the message."""
    if value is None:
        return True, None
    if isinstance(value, str):
        return True, value.encode()
    hint = 'write send = "TEXT", send = { base64 = "…" } or send = { file = "frame.bin" }'
    if not isinstance(value, dict) or len(value) != 1:
        FORMAT.refuse("'send' is not a text", hint)
    if isinstance(text := value.get("base64"), str):
        try:
            return False, base64.b64decode(text, validate=True)
        except binascii.Error:
            FORMAT.refuse("'send' is not base64", hint)
    if isinstance(name := value.get("file"), str):
        return False, read_body(None, folder / name)
    return FORMAT.refuse("'send' is not a text", hint)


def _expected(value: Any) -> MessagePlan:
    if not isinstance(value, str):
        FORMAT.refuse("'expect' is not a string", EXPECT_HINT)
    kind, colon, rest = value.partition(":")
    if not colon and kind == "any":
        return AnyMessage()
    if not colon and kind == "binary":
        return BinaryMessage()
    if colon and kind == "text":
        return TextMessage(text=rest)
    if colon and kind == "prefix":
        return PrefixMessage(text=rest)
    if colon and kind in ("json", "regex"):
        pointer, equals, text = rest.partition("=") if kind == "json" else (rest, "", "")
        found = take_from("expect", f"{kind}:{pointer}")
        return HasMessage.model_validate({"from": found, "text": text if equals else None})
    return FORMAT.refuse(f"{value!r} does not say which message is expected", EXPECT_HINT)
