"""Runs a client through its contract, against servers whose counts decide.

How: each conversation has a process of its own, with its setup, its orders and the end of its
input. Each claim is judged when it comes. When the client has ended, all claims together are
compared with the server's counts. The contract judges.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from trueload.engines.engine import EngineError
from trueload.protocol.client import (
    UNKEPT,
    Claim,
    ClientContract,
    ClientSetup,
    Conversation,
    Refusal,
    Unsupported,
    judge_claim,
    judge_conversation,
    note_of,
    parse_answer,
    parse_claim,
)
from trueload.protocol.exchange import ServeHttp2
from trueload.runner.client import Client, ClientError
from trueload.runner.client_peers import SELF_SIGNED, opened
from trueload.runner.process import StartError
from trueload.runner.verify import HttpVariant

# The time for an order beyond what server and time-outs take: it bounds a client that hangs.
GO_S = 20.0

StartClient = Callable[[], AbstractContextManager[Client]]


@dataclass(frozen=True)
class ClientVerdict:
    """The result: the first fault in one line, with the end of the client's log.

    ``notes`` are about what the client cannot do, or does besides.
    """

    fault: str | None
    log_tail: str = ""
    notes: tuple[str, ...] = ()


def verify_client(
    contract: ClientContract, start: StartClient, *, tls: bool = False, keep_alive: bool = True
) -> ClientVerdict:
    """Try all conversations and refusals of a contract, up to the first fault.

    With ``tls`` the servers have self-signed certificates. A client that keeps no connections
    (``keep_alive``) is asked for one per request in each conversation.
    """
    notes: list[str] = []
    talks = contract.conversations
    if not keep_alive:
        talks = tuple(talk.model_copy(update={"keep_alive": False}) for talk in talks)
    everything: list[Conversation | Refusal] = [*talks, *contract.refusals]
    for asked in everything:
        verdict = _tried(asked, start, HttpVariant(http2=contract.http == "2", tls=tls))
        if verdict.fault is not None:
            return ClientVerdict(f"{asked.what}: {verdict.fault}", verdict.log_tail)
        notes += verdict.notes
    if len(notes) >= len(talks):
        return ClientVerdict("it supports nothing that was asked for")
    unkept = () if keep_alive else (UNKEPT,)
    return ClientVerdict(None, "", (*unkept, *notes))


def _tried(asked: Conversation | Refusal, start: StartClient, means: HttpVariant) -> ClientVerdict:
    """Run one process. A failure on our side is a fault, too, as nothing could be verified."""
    try:
        with start() as client:
            try:
                if isinstance(asked, Refusal):
                    _refuse(asked, client)
                    return ClientVerdict(None)
                why = _hold(asked, client, means)
            except (ClientError, ValueError) as fault:
                client.processes.end(0)
                return ClientVerdict(str(fault), client.processes.log_tail())
    except StartError as error:
        return ClientVerdict(f"it cannot be started: {error}")
    except EngineError as error:
        return ClientVerdict(f"the reference server failed: {error}")
    return ClientVerdict(None, "", () if why is None else (f"{asked.what}: {why}",))


def _hold(talk: Conversation, client: Client, means: HttpVariant) -> str | None:
    """Hold a conversation; return why it is not supported, or what the client does besides. Raises
    ``ClientError`` or ``ValueError`` for a fault."""
    http2 = ServeHttp2(max_streams=talk.max_streams) if means.http2 else None
    with opened(talk.peer, http2, SELF_SIGNED if means.tls else None) as server:
        setup = talk.setup(server.authority, "https" if means.tls else "http")
        try:
            claims = _converse(talk, setup, client)
        except (ClientError, ValueError):
            server.count()  # raises if the server had failed
            raise
        if isinstance(claims, Unsupported):
            return claims.why
        seen = server.count()
        if fault := judge_conversation(talk, claims, seen):
            raise ClientError(fault)
    return note_of(talk, seen)


def _converse(talk: Conversation, setup: ClientSetup, client: Client) -> list[Claim] | Unsupported:
    """Send the setup and the orders, and end the client; return its claims."""
    client.send(setup.model_dump_json())
    answer = parse_answer(client.receive(client.ready_s))
    if isinstance(answer, Unsupported):
        client.finish_well()
        return answer
    claims = [_order(talk, number, client) for number in talk.go]
    client.finish_well()
    return claims


def _order(talk: Conversation, number: int, client: Client) -> Claim:
    begun_s = time.monotonic()
    client.send(f"go {number}")
    claim = parse_claim(client.receive(_patience_s(talk, number)))
    if fault := judge_claim(talk, number, claim, time.monotonic() - begun_s):
        raise ClientError(fault)
    return claim


def _patience_s(talk: Conversation, number: int) -> float:
    """Return how long an order may take, in s.

    Its requests take turns over the connections, each as long as it may take. A library may take
    its whole time-out for a connection that was reset.
    """
    turns = -(-number // min(talk.concurrency, talk.pools * talk.pool_size))
    each_ms = talk.timeout_ms if talk.peer in ("silent", "reset") else talk.wait_ms
    return GO_S + turns * each_ms / 1000


def _refuse(refusal: Refusal, client: Client) -> None:
    """Check that the client ends by itself while its input is still open."""
    client.send(refusal.line)
    if not client.processes.wait(time.monotonic() + client.ready_s):
        raise ClientError("it must end after a first line that is no setup, but it keeps running")
    if client.finish() == 0:
        raise ClientError("it ends as if nothing were wrong, with exit code 0")
