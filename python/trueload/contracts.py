"""Contracts: what a subject must answer, as data, and the judgement of one answer.

How: a contract is a TOML file of exchanges, each a request in some form and the reply that
it must get. Whoever speaks to the subject brings the `Reply`; whether it is right is
decided here, purely.

Must not know: sockets, processes, subjects' files.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from trueload.errors import UserError
from trueload.plan import Model

Form = Literal["plain", "twice", "split", "pipelined"]


class Load(Model):
    """The request that is sent under load."""

    path: str = Field(pattern=r"^/[!-~]*$")
    method: str = "GET"


class Exchange(Model):
    """A request and its required reply; what is null may be anything.

    `form`: plain; twice, on one connection; split, the request in two parts; pipelined,
    three at once. `categories` are those of the subjects that it is asked of.
    """

    what: str
    form: Form = "plain"
    method: str = "GET"
    path: str = Field(pattern=r"^/[!-~]*$")
    status: int
    type: str | None = None
    body: str | None = None
    body_bytes: int | None = None
    json_: bool = Field(default=False, alias="json")
    earliest_ms: int | None = None
    categories: tuple[str, ...] = ("micro", "platform", "fullstack")


class Contract(Model):
    """What a subject must answer. The first exchange also tells when it is ready."""

    about: str
    role: Literal["server", "client"]
    load: Load
    exchanges: tuple[Exchange, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Reply:
    """One answer as received. `wire_bytes` is its size with its head, `wait_ms` its time."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    wire_bytes: int
    wait_ms: float
    raw_head: bytes = b""

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)


def load_contract(folder: Path, name: str) -> Contract:
    """The contract of that name; raises ``UserError`` if there is none or it cannot be used."""
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"contracts are {', '.join(known)}"
        raise UserError(f"no contract is called {name!r}", hint)
    path = folder / f"{name}.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return Contract.model_validate(data)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}", "correct the file") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path}: {place}: {first['msg']}", "correct the file") from None


def asked_of(contract: Contract, category: str, pipelined: bool) -> list[Exchange]:
    """The exchanges that a subject of that category must master before its load."""
    return [
        exchange
        for exchange in contract.exchanges
        if category in exchange.categories and (pipelined or exchange.form != "pipelined")
    ]


def judge(exchange: Exchange, reply: Reply) -> str | None:
    """What is wrong with the reply, in one line; None if nothing is."""
    return next(_faults(exchange, reply), None)


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
        yield f"a body of {len(reply.body)} bytes instead of {exchange.body_bytes}"
    if exchange.json_ and not _is_json(reply.body):
        yield f"body {_quoted(reply.body)} is not JSON"
    if exchange.earliest_ms is not None and reply.wait_ms < exchange.earliest_ms:
        yield f"answered after {reply.wait_ms:.1f} ms, before {exchange.earliest_ms} ms"


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _quoted(body: bytes) -> str:
    """The start of a body, safe to print."""
    shown = ascii(body[:40].decode("latin-1"))
    return f"{shown}…" if len(body) > 40 else shown
