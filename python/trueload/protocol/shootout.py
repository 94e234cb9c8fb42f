"""The dialects of the contract ws-shootout: how its messages look, as pure functions.

How: a message is a type and a payload, whatever the dialect. Each dialect encodes it in its own
way, and in two of them a client joins a channel first. A received message that is not one of the
contract raises ``ValueError`` with the reason, or is None if the dialect has such messages itself.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any, Literal

from trueload.units import counted

Dialect = Literal["json", "binary", "actioncable", "phoenix"]
"""How a server of broadcasts expects its messages to be wrapped."""
Kind = Literal["echo", "broadcast", "broadcastResult"]
Wire = str | bytes
"""A whole WebSocket message: text or binary."""
NAMES: dict[Kind, str] = {
    "echo": "an echo",
    "broadcast": "a broadcast",
    "broadcastResult": "a broadcastResult",
}
"""The kinds as they are named in a sentence."""

CHANNEL = '{"channel":"BenchmarkChannel"}'
TOPIC = "room:lobby"
SUBPROTOCOLS: dict[Dialect, str] = {"actioncable": "actioncable-v1-json"}
SHOWN_CHARACTERS = 60

_BINARY_HEAD = struct.Struct(">cI")
_BINARY_KINDS: dict[bytes, Kind] = {b"e": "echo", b"b": "broadcast", b"r": "broadcastResult"}
# Messages of Action Cable itself: https://docs.anycable.io/misc/action_cable_protocol
_CABLE_OWN = ("welcome", "ping", "confirm_subscription")


@dataclass(frozen=True)
class Message:
    """A message of the contract. `payload` is a JSON value, or bytes in the dialect binary.
    `listeners` is the number of clients that a result names, if it names one."""

    kind: Kind
    payload: Any
    listeners: int | None = None


def make_payload(dialect: Dialect, number: int, padding: str) -> Any:
    """A payload like the published benchmark's: a send time (any number will do) and padding."""
    if dialect == "binary":
        return struct.pack(">q", number) + padding.encode()
    return {"sendTime": str(number), "padding": padding}


def encode(dialect: Dialect, kind: Kind, payload: Any) -> Wire:
    """Encode what a client sends."""
    if dialect == "binary":
        return _BINARY_HEAD.pack(kind[0].encode(), len(payload)) + bytes(payload)
    if dialect == "actioncable":
        data = _json({"action": kind, "payload": payload})
        return _json({"command": "message", "identifier": CHANNEL, "data": data})
    if dialect == "phoenix":
        return _json({"topic": TOPIC, "event": kind, "payload": {"body": payload}, "ref": "2"})
    return _json({"type": kind, "payload": payload})


def decode(dialect: Dialect, wire: Wire) -> Message | None:
    """Decode what a client received; None for a message of the dialect itself, such as a heartbeat.
    Raises ``ValueError`` for anything else, with the reason in one line."""
    if dialect == "binary":
        return _decode_binary(wire)
    message = _object(wire)
    if dialect == "actioncable":
        return _decode_cable(message)
    if dialect == "phoenix":
        return _decode_phoenix(message)
    return _message(message, "type", "payload", exact=True)


def opening(dialect: Dialect) -> Wire | None:
    """The message with which a client joins as soon as it is connected; None if there is none."""
    if dialect == "phoenix":
        return _json({"topic": TOPIC, "event": "phx_join", "payload": {}, "ref": "1"})
    return None


def joins(dialect: Dialect) -> bool:
    """Whether a client has to join before it sends."""
    return dialect in ("actioncable", "phoenix")


def join(dialect: Dialect, wire: Wire) -> Wire | bool:
    """Take one step of joining: return a message to send, or whether the client has joined. Raises
    ``ValueError`` if joining is refused."""
    message = _object(wire)
    if dialect == "phoenix":
        reply = message.get("payload")
        if message.get("event") != "phx_reply" or not isinstance(reply, dict):
            raise ValueError(f"{_shown(wire)} instead of the reply to phx_join")
        if reply.get("status") != "ok":
            raise ValueError(f"phx_join is refused: {_shown(wire)}")
        return True
    if message.get("type") == "welcome":
        return _json({"command": "subscribe", "identifier": CHANNEL})
    if message.get("type") not in _CABLE_OWN:
        raise ValueError(f"{_shown(wire)} instead of the confirmation of the subscription")
    return bool(message["type"] == "confirm_subscription")


def _decode_binary(wire: Wire) -> Message:
    if isinstance(wire, str):
        raise ValueError("a text message instead of a binary one")
    if len(wire) < _BINARY_HEAD.size:
        raise ValueError(f"a message of only {counted(len(wire), 'byte')}")
    letter, size = _BINARY_HEAD.unpack_from(wire)
    payload = wire[_BINARY_HEAD.size :]
    if letter not in _BINARY_KINDS:
        raise ValueError(f"a message of type {letter!r}")
    if size != len(payload):
        raise ValueError(f"a payload of {counted(len(payload), 'byte')} that says it has {size}")
    return Message(_BINARY_KINDS[letter], payload)


def _decode_cable(message: dict[str, Any]) -> Message | None:
    if message.get("type") in _CABLE_OWN:
        return None
    inner = message.get("message")
    if message.get("identifier") != CHANNEL or not isinstance(inner, dict):
        raise ValueError(f"{_shown(_json(message))} is not a message of the channel")
    return _message(inner, "action", "payload", exact=False)


def _decode_phoenix(message: dict[str, Any]) -> Message:
    payload = message.get("payload")
    if message.get("topic") != TOPIC or not isinstance(payload, dict):
        raise ValueError(f"{_shown(_json(message))} is not a message of {TOPIC}")
    inner = payload.get("response", payload)
    if not isinstance(inner, dict):
        raise ValueError(f"{_shown(_json(message))} has no response")
    return _message(inner, "type", "body", exact=False)


def _message(message: dict[str, Any], kind_key: str, payload_key: str, *, exact: bool) -> Message:
    kind, listeners = message.get(kind_key), message.get("listenerCount")
    if kind not in ("echo", "broadcast", "broadcastResult") or payload_key not in message:
        raise ValueError(f"{_shown(_json(message))} is not a message of the contract")
    known = {kind_key, payload_key} | ({"listenerCount"} if kind == "broadcastResult" else set())
    if exact and set(message) != known:
        raise ValueError(f"{NAMES[kind]} with the keys {_shown(', '.join(sorted(message)))}")
    if listeners is not None and (not isinstance(listeners, int) or isinstance(listeners, bool)):
        raise ValueError(f"listenerCount is {_shown(_json(listeners))}, not a number")
    return Message(kind, message[payload_key], listeners)


def _object(wire: Wire) -> dict[str, Any]:
    if isinstance(wire, bytes):
        raise ValueError("a binary message instead of a text")
    try:
        message = json.loads(wire)
    except (ValueError, RecursionError):
        raise ValueError(f"{_shown(wire)} is not JSON") from None
    if not isinstance(message, dict):
        raise ValueError(f"{_shown(wire)} is not a JSON object")
    return message


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shown(wire: Wire) -> str:
    """The start of a message, safe to print."""
    more = "…" if len(wire) > SHOWN_CHARACTERS else ""
    return f"{wire[:SHOWN_CHARACTERS]!a}{more}"
