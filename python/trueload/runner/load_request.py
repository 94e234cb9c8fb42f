"""The request that a subject gets under load, by its contract. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trueload.protocol.shootout import SUBPROTOCOLS
from trueload.request.exchange import Exchange, TcpEcho, WsBroadcast, WsEcho
from trueload.request.message import make_messages
from trueload.request.values import ANY_ANSWER, Expect, Request
from trueload.subjects.contracts import (
    AnyContract,
    Contract,
    EchoContract,
    Load,
    ShootoutContract,
    exchange_of,
)


@dataclass(frozen=True)
class Sent:
    """A request with its expected answer, or an exchange of another protocol than HTTP."""

    url: str
    request: Request | None = None
    expect: Expect = ANY_ANSWER
    exchange: Exchange | None = None


def what_is_sent(
    contract: AnyContract,
    authority: str,
    padding_bytes: int | None,
    *,
    path: str | None = None,
    tls: bool = False,
) -> Sent:
    """Return what is sent to a subject at ``authority`` (``IP:PORT``) by its contract.

    With ``padding_bytes`` each message is a broadcast with this much padding. With HTTP, a ``path``
    of the contract may replace the path of its load.
    """
    if isinstance(contract, EchoContract):
        messages = make_messages(contract.load.size_bytes, None)
        return Sent(url=f"tcp://{authority}", exchange=TcpEcho(messages=messages))
    if isinstance(contract, ShootoutContract):
        return _over_websocket(contract, authority, padding_bytes)
    return _over_http(contract, authority, path, "https" if tls else "http")


def _over_http(contract: Contract, authority: str, path: str | None, scheme: str) -> Sent:
    asked = contract.load
    first = exchange_of(contract, path)
    if path is not None:
        asked = Load(path=path, method=first.method)
    return Sent(
        url=f"{scheme}://{authority}{asked.path}",
        request=Request(host=authority, path=asked.path, method=asked.method),
        expect=Expect(
            statuses=(first.status,),
            body=first.body.encode() if first.body is not None else None,
        ),
    )


def _over_websocket(contract: ShootoutContract, authority: str, padding_bytes: int | None) -> Sent:
    dialect = contract.dialect
    protocol = SUBPROTOCOLS.get(dialect)
    # Servers for browsers check a page's origin: it is the server itself.
    headers = [("Origin", f"http://{authority}")]
    headers += [] if protocol is None else [("Sec-WebSocket-Protocol", protocol)]
    opening = Request(host=authority, path=contract.path, headers=tuple(headers))
    exchange: Exchange
    if padding_bytes is None:
        messages = make_messages(None, None, text=True)
        exchange = WsEcho(
            opening=opening, messages=messages, text=dialect != "binary", dialect=dialect
        )
    else:
        exchange = WsBroadcast(opening=opening, dialect=dialect, padding=padding_bytes)
    return Sent(url=f"ws://{authority}{contract.path}", exchange=exchange)
