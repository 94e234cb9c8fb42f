"""Contracts: what a subject must answer, as data, and the judgement of one answer.

How: a contract is a TOML file. One for HTTP has exchanges: a request in some form, and the reply
that it must get. One for TCP has echoes: a number of bytes that must come back. One for WebSocket
has messages, which must reach their receivers. One for clients is in `protocol.client`. The caller
speaks to the subject and brings the answer; whether it is right is decided here, purely.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from trueload.errors import UserError
from trueload.files.invalid import first_mistake
from trueload.files.toml import UnreadableError, read_toml
from trueload.near import did_you_mean
from trueload.protocol.client import PATH_PATTERN, ClientContract
from trueload.protocol.model import Model
from trueload.protocol.shootout import NAMES, Dialect
from trueload.protocol.shootout import Message as Received
from trueload.request.message import MESSAGE_BYTES_MAX
from trueload.units import counted

Form = Literal["plain", "twice", "split", "pipelined"]
EchoForm = Literal["plain", "twice", "split", "late", "half-close"]
MessageForm = Literal[
    "plain",
    "together",
    "split",
    "fragmented",
    "interrupted",
    "ping",
    "late",
    "leave",
    "nonsense",
    "close",
]
ECHO_BYTES_MAX = 64 * 1024 * 1024
PADDING_BYTES_MAX = 1024 * 1024


class Load(Model):
    """The request that is sent under load."""

    path: str = Field(pattern=PATH_PATTERN)
    method: str = "GET"


class Exchange(Model):
    """A request and its required reply; a field that is null may be anything.

    `form`: plain; twice, on one connection; split, the request in two parts; pipelined, three at
    once, over HTTP/2 each on its own stream. `json_value` is a JSON text that the body
    must equal as a value, whatever its spaces. `categories` are those of the subjects that it is
    asked of.
    """

    what: str
    form: Form = "plain"
    method: str = "GET"
    path: str = Field(pattern=PATH_PATTERN)
    status: int
    type: str | None = None
    body: str | None = None
    body_bytes: int | None = None
    json_: bool = Field(default=False, alias="json")
    json_value: str | None = None
    earliest_ms: int | None = None
    categories: tuple[str, ...] = ("micro", "platform", "fullstack", "proxy")


class Contract(Model):
    """What a subject must answer over a version of HTTP. The first exchange also shows when it is
    ready."""

    about: str
    role: Literal["server"]
    http: Literal["1.1", "2"] = "1.1"
    load: Load
    exchanges: tuple[Exchange, ...] = Field(min_length=1)


def exchange_of(contract: Contract, path: str | None) -> Exchange:
    """The first exchange, or that of a ``path``. Raises ``ValueError`` if there is none."""
    if path is None:
        return contract.exchanges[0]
    for exchange in contract.exchanges:
        if (exchange.path, exchange.form) == (path, "plain"):
            return exchange
    raise ValueError(f"the contract asks for no {path}")


def document_bytes(contract: AnyContract | ClientContract, path: str | None = None) -> int | None:
    """The length of a right answer's body; None if the contract leaves it open, or has none."""
    if not isinstance(contract, Contract):
        return None
    first = exchange_of(contract, path)
    return len(first.body.encode()) if first.body is not None else first.body_bytes


class Echo(Model):
    """A number of bytes that must come back, all and in order.

    `form`: plain; twice, on one connection; split, in two parts; late, everything is sent, as far
    as it is accepted, before anything is read; half-close, our side ends, and theirs must end after
    the last byte. Except for late, bytes are read while they are sent.
    """

    what: str
    form: EchoForm = "plain"
    size_bytes: int = Field(ge=1, le=ECHO_BYTES_MAX)


class EchoLoad(Model):
    """The message that is sent under load."""

    size_bytes: int = Field(ge=1, le=MESSAGE_BYTES_MAX)


class EchoContract(Model):
    """What a subject must send back over TCP. The first echo also shows when it is ready."""

    about: str
    role: Literal["server"]
    load: EchoLoad = EchoLoad(size_bytes=64)
    echoes: tuple[Echo, ...] = Field(min_length=1)


class Message(Model):
    """`count` messages over WebSocket, sent at once by one of the clients.

    `form`: plain; together, by every client; split, the bytes of the first message in two parts;
    fragmented, each message in three frames; interrupted, the same with a ping between the frames;
    ping, one before the messages; late, while another client reads nothing until no more is
    accepted; leave, while a further client goes away; nonsense, after a further client has sent
    what is not a message of the dialect; close, by a last client, which closes after them.
    """

    what: str
    form: MessageForm = "plain"
    type: Literal["echo", "broadcast"]
    padding_bytes: int = Field(ge=0, le=PADDING_BYTES_MAX)
    count: int = Field(default=1, ge=1, le=1000)


class ShootoutContract(Model):
    """What a subject must echo and broadcast over WebSocket to ``clients`` clients. The first
    message also shows when it is ready. `path` and `dialect` apply to a subject that names none."""

    about: str
    role: Literal["server"]
    path: str = Field(pattern=PATH_PATTERN)
    dialect: Dialect = "json"
    clients: int = Field(ge=3, le=100)
    messages: tuple[Message, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _begins_with_an_echo(self) -> Self:
        first = self.messages[0]
        if (first.form, first.type, first.count) != ("plain", "echo", 1):
            raise ValueError("the first message is a plain echo: one client has to do for it")
        return self


AnyContract = Contract | EchoContract | ShootoutContract


@dataclass(frozen=True)
class Reply:
    """One answer as received. `wire_bytes` is its size including the head, `wait_ms` its time."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    wire_bytes: int
    wait_ms: float
    raw_head: bytes = b""

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)


def load_http_contract(folder: Path, name: str) -> Contract:
    """Load a contract of HTTP servers. Raises ``UserError`` for any other."""
    contract = load_contract(folder, name)
    if not isinstance(contract, Contract):
        raise UserError(
            f"the contract {name!r} is not one of HTTP servers, and only these can be measured",
            "choose another contract; `trueload subjects check` verifies this one",
        )
    return contract


def load_contract(folder: Path, name: str) -> AnyContract | ClientContract:
    """Load the contract of that name. Raises ``UserError`` if there is none that can be used."""
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in known:
        hint = did_you_mean(name, known) or f"contracts are {', '.join(known)}"
        raise UserError(f"no contract is called {name!r}", hint)
    path = folder / f"{name}.toml"
    try:
        data = read_toml(path)
        return _kind(data).model_validate(data)
    except UnreadableError as error:
        raise UserError(f"{path} {error}", "correct the file") from None
    except ValidationError as error:
        mistake = first_mistake(error)
        what = f"'{mistake.place}' is not a key" if mistake.is_unknown else mistake.sentence()
        raise UserError(f"{path}: {what}", "correct the file") from None


def _kind(data: dict[str, Any]) -> type[AnyContract | ClientContract]:
    if data.get("role") == "client":
        return ClientContract
    if "messages" in data:
        return ShootoutContract
    return EchoContract if "echoes" in data else Contract


def as_spoken(contract: AnyContract, path: str | None, dialect: Dialect | None) -> AnyContract:
    """The contract with the path or dialect that a subject names for itself."""
    if not isinstance(contract, ShootoutContract):
        return contract
    own = {"path": path or contract.path, "dialect": dialect or contract.dialect}
    return contract.model_copy(update=own)


def asked_of(contract: Contract, category: str, pipelined: bool) -> list[Exchange]:
    """The exchanges that a subject of that category must pass before its load."""
    return [
        exchange
        for exchange in contract.exchanges
        if category in exchange.categories and (pipelined or exchange.form != "pipelined")
    ]


def first_asked(contract: AnyContract) -> str:
    """What is asked first, in a few words."""
    if isinstance(contract, EchoContract):
        return f"an echo of {contract.echoes[0].what}"
    if isinstance(contract, ShootoutContract):
        return f"{contract.messages[0].what} at {contract.path}"
    return f"{contract.exchanges[0].method} {contract.exchanges[0].path}"


def judge(exchange: Exchange, reply: Reply) -> str | None:
    """What is wrong with the reply, in one line; None if nothing is."""
    return next(_faults(exchange, reply), None)


def judge_echo(sent: bytes, back: bytes) -> str | None:
    """What is wrong with what came back, in one line; None if nothing is."""
    if back == sent:
        return None
    pairs = enumerate(zip(sent, back, strict=False))
    wrong = next(((at, ours, theirs) for at, (ours, theirs) in pairs if ours != theirs), None)
    if wrong is not None:
        at, ours, theirs = wrong
        return f"byte {at} of {len(sent)} came back as 0x{theirs:02x}, not 0x{ours:02x}"
    if len(back) < len(sent):
        return f"only {len(back)} of {counted(len(sent), 'byte')} came back"
    return f"{counted(len(back) - len(sent), 'byte')} came back that nobody had sent"


def judge_message(due: list[Received], got: Received, counts: range) -> str | None:
    """What is wrong with a message that a client got, in one line; None if nothing is. A message
    that was due is removed from the list. `counts` are the numbers of clients that a result may
    name."""
    named = Received(got.kind, got.payload)
    if named not in due:
        near = any(each.kind == got.kind for each in due)
        return f"{NAMES[got.kind]} {'with a payload ' if near else ''}that was not due"
    due.remove(named)
    if got.listeners is not None and got.listeners not in counts:
        wanted = f"{counts[0]}" if len(counts) < 3 else f"at least {counts[0]}"
        return f"listenerCount {got.listeners} instead of {wanted}"
    return None


def _faults(exchange: Exchange, reply: Reply) -> Iterator[str]:
    if reply.status != exchange.status:
        yield f"status {reply.status} instead of {exchange.status}"
    if exchange.type is not None:
        given = (reply.header("content-type") or "").split(";")[0].strip().lower()
        if given != exchange.type:
            yield f"Content-Type {given or 'absent'} instead of {exchange.type}"
    if exchange.body is not None and reply.body != exchange.body.encode():
        yield f"body {_quoted(reply.body)} instead of {exchange.body!r}"
    if exchange.body_bytes is not None and len(reply.body) != exchange.body_bytes:
        yield f"a body of {counted(len(reply.body), 'byte')} instead of {exchange.body_bytes}"
    if exchange.json_ and not _is_json(reply.body):
        yield f"body {_quoted(reply.body)} is not JSON"
    wanted = exchange.json_value
    if wanted is not None and not (_is_json(reply.body) and _means(reply.body, wanted)):
        yield f"body {_quoted(reply.body)} does not mean {wanted}"
    if exchange.earliest_ms is not None and reply.wait_ms < exchange.earliest_ms:
        yield f"answered after {reply.wait_ms:.1f} ms, before {exchange.earliest_ms} ms"


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _means(body: bytes, wanted: str) -> bool:
    return bool(json.loads(body) == json.loads(wanted))


def _quoted(body: bytes) -> str:
    """The start of a body, safe to print."""
    shown = ascii(body[:40].decode("latin-1"))
    return f"{shown}…" if len(body) > 40 else shown
