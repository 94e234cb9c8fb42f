"""The contract of HTTP clients: what they are told and answer, and how that is judged. Pure.

How: a conversation is a setup and some orders. The client claims how many of its requests were
answered and how the others failed; the server has counted what it saw. The claims must add up by
themselves, and must agree with the server's counts, which decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from trueload.protocol.model import Model
from trueload.units import counted

Peer = Literal[
    "reference", "refuse", "reset", "error", "mixed", "silent", "refuse-streams", "go-away"
]
COUNT_MAX = 10**12  # far beyond any order; a larger number is refused
CLASSES_MAX = 40  # there are fewer classes of failures
Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
FailureClass = Annotated[str, Field(pattern=r"^[a-z0-9_.]{1,40}$")]
Us = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# A client may read its clock a little later than the server begins to wait.
CLOCK_SLACK_US = 1_000
STREAMS = 1000
"""Streams permitted on each HTTP/2 connection, unless the contract says otherwise."""
PATH_PATTERN = r"^/[!-~]*$"
WAIT_PREFIX = "/wait/"
UNKEPT = "it opens a connection for each request"
"""What is said of a client that keeps no connections."""


class ClientSetup(Model):
    """The first line that a client reads."""

    url: str
    concurrency: int
    """How many requests are open at once."""
    pools: int
    """How many client objects of the library there are."""
    pool_size: int
    """How many connections each of these has at most."""
    timeout_ms: int
    pipelining: int
    """Requests in flight on a connection, 1 without pipelining; for an HTTP/2 client how many
    streams it may have at once."""
    keep_alive: bool


class LatencyUs(Model):
    """Latency of the answered requests in microseconds, from before the call to the body read."""

    p50: Us
    p90: Us
    p99: Us
    max: Us


class Claim(Model):
    """What a client says of one order."""

    ok: Count
    failed: dict[FailureClass, Count] = Field(max_length=CLASSES_MAX)
    elapsed_s: float = Field(ge=0, allow_inf_nan=False)
    latency_us: LatencyUs | None
    """Null if nothing was answered."""


class Conversation(Model):
    """What a client is told from its start to the end of its input (contracts/http-client.toml)."""

    what: str
    peer: Peer = "reference"
    path: str = Field(pattern=PATH_PATTERN)
    concurrency: int = Field(ge=1, le=1000)
    pools: int = Field(default=1, ge=1, le=100)
    pool_size: int = Field(default=1, ge=1, le=1000)
    timeout_ms: int = Field(default=10_000, ge=1, le=60_000)
    pipelining: int = Field(default=1, ge=1, le=100)
    keep_alive: bool = True
    go: tuple[Annotated[int, Field(ge=1, le=100_000)], ...] = Field(min_length=1)
    classes: tuple[str, ...] = ()
    """The names of the failures that the client may report."""
    peak_least: int = Field(default=1, ge=1)
    """So many connections must have been open at once."""
    at_once_least: int = Field(default=1, ge=1)
    """So many requests must have been under way at once."""
    max_streams: int = Field(default=STREAMS, ge=1, le=STREAMS)
    """The server permits so many on a connection over HTTP/2."""
    retries: bool = False
    """The library may send requests again by itself, which is only noted."""
    loose: bool = False
    """Connections beyond the pools' room, and streams that the server refuses, are only noted, too.
    """

    def setup(self, authority: str, scheme: str = "http") -> ClientSetup:
        """The setup line for a server at ``authority`` (``IP:PORT``)."""
        told = self.model_dump(include=set(ClientSetup.model_fields))
        return ClientSetup(url=f"{scheme}://{authority}{self.path}", **told)

    @property
    def wait_ms(self) -> int:
        """How long the server takes for each answer, in ms."""
        wait = self.path.removeprefix(WAIT_PREFIX)
        return int(wait) if wait != self.path and wait.isdigit() else 0


class Refusal(Model):
    """A first line that is not a valid setup, and must be refused."""

    what: str
    line: str


class ClientContract(Model):
    """What a client must do: the conversations it must hold, and the first lines it must refuse."""

    about: str
    role: Literal["client"]
    http: Literal["1.1", "2"] = "1.1"
    conversations: tuple[Conversation, ...] = Field(min_length=1)
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class ServerCounts:
    """The server's counts over a conversation."""

    requests: int
    """Requests that came."""
    ok: int
    """Answers with status 200."""
    accepted: int
    """Connections."""
    open_peak: int
    """The most connections that were open at once."""
    at_once: int
    """The most requests under way."""


@dataclass(frozen=True)
class Ready:
    """The client said that it is ready."""


@dataclass(frozen=True)
class Unsupported:
    """The client said that it cannot do this, and why."""

    why: str


def parse_answer(line: str) -> Ready | Unsupported:
    """Parse the answer to a setup. Raises ``ValueError`` with one line for anything else."""
    match _parsed(line):
        case {"ready": True, **rest} if not rest:
            return Ready()
        case {"unsupported": str(why), **rest} if not rest and why.strip():
            return Unsupported(why.strip())
    raise ValueError(f"neither ready nor unsupported: {shown(line)}")


def parse_claim(line: str) -> Claim:
    """Parse the answer to an order. Raises ``ValueError`` with one line for anything else."""
    _parsed(line)
    try:
        return Claim.model_validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the line"
        raise ValueError(f"{place}: {first['msg']}: {shown(line)}") from None


def judge_claim(talk: Conversation, asked: int, claim: Claim, wall_s: float) -> str | None:
    """What is wrong with a claim by itself; None if nothing is. `wall_s` is how long we waited."""
    return next(_claim_faults(talk, asked, claim, wall_s), None)


def judge_conversation(
    talk: Conversation, claims: Sequence[Claim], seen: ServerCounts
) -> str | None:
    """What in the server's counts contradicts a conversation's claims; None if nothing."""
    return next(_conversation_faults(talk, claims, seen), None)


def note_of(talk: Conversation, seen: ServerCounts) -> str | None:
    """Something that is no fault, but has to be known; None if there is nothing."""
    asked, most = sum(talk.go), talk.pools * talk.pool_size
    if seen.requests > asked:
        return f"it sends requests again, {seen.requests} for {asked}"
    if talk.loose and seen.accepted > most:
        return f"it opens {seen.accepted} connections, where {counted(most, 'is', 'are')} asked for"
    if talk.loose and seen.requests < asked:
        refused = counted(asked - seen.requests, "stream is", "streams are")
        return f"{refused} refused, and not asked again"
    return None


def _claim_faults(talk: Conversation, asked: int, claim: Claim, wall_s: float) -> Iterator[str]:
    failed = sum(claim.failed.values())
    yield from miscounted(asked, claim)
    strange = sorted(name for name in claim.failed if name not in talk.classes)
    if strange and not talk.classes:
        yield f"says that {failed} of {asked} failed ({', '.join(strange)[:80]})"
    elif strange:
        yield f"calls a failure {shown(strange[0])}, not {' or '.join(talk.classes)}"
    yield from mistimed(talk.wait_ms, claim, wall_s)


def miscounted(asked: int, claim: Claim) -> Iterator[str]:
    """Yield a fault if a claim does not add up to the requests that were asked for."""
    failed = sum(claim.failed.values())
    if claim.ok + failed != asked:
        yield f"claims {claim.ok} ok and {failed} failed, of {counted(asked, 'request')}"


def mistimed(wait_ms: int, claim: Claim, wall_s: float) -> Iterator[str]:
    """Yield faults for times that are impossible if the server takes `wait_ms` for each answer."""
    if claim.elapsed_s > wall_s:
        yield f"claims to have taken {claim.elapsed_s:.3f} s, in {wall_s:.3f} s"
    latency = claim.latency_us
    if (latency is None) != (claim.ok == 0):
        yield "has latency_us null where requests were answered, or figures where none was"
    if latency is None:
        return
    if not latency.p50 <= latency.p90 <= latency.p99 <= latency.max:
        yield "latency_us: the percentiles are out of order"
    if latency.max > claim.elapsed_s * 1e6 + CLOCK_SLACK_US:
        yield f"latency_us: {latency.max:.0f} µs is longer than all took"
    if latency.p50 < wait_ms * 1000 - CLOCK_SLACK_US:
        yield f"latency_us: p50 of {latency.p50:.0f} µs where an answer takes {wait_ms} ms"


def _conversation_faults(
    talk: Conversation, claims: Sequence[Claim], seen: ServerCounts
) -> Iterator[str]:
    asked = sum(talk.go[: len(claims)])
    ok = sum(claim.ok for claim in claims)
    most = talk.pools * talk.pool_size
    if ok > seen.ok:
        yield f"claims {ok} ok, but the server completed {seen.ok}"
    # Some libraries lose what is in transit when the connection is taken from them.
    if ok < seen.ok and talk.peer != "go-away":
        yield f"claims only {ok} ok, of {seen.ok} that the server completed"
    if seen.requests > asked and not talk.retries:
        yield f"the server saw {seen.requests} requests instead of {asked}: hidden retries"
    lost = talk.loose or talk.peer in ("refuse", "reset", "go-away")
    if seen.requests < asked and not lost:
        yield f"the server saw only {seen.requests} of {counted(asked, 'request')}"
    if talk.peer not in ("reference", "mixed"):
        return
    bound = not talk.loose
    if bound and talk.keep_alive and seen.accepted > most and talk.peer == "reference":
        yield f"opened {seen.accepted} connections, where {most} are kept"
    if not talk.keep_alive and seen.accepted < asked:
        opened, requests = counted(seen.accepted, "connection"), counted(asked, "request")
        yield f"opened {opened} for {requests}, none to be used again"
    if bound and seen.open_peak > (most if talk.keep_alive else max(most, talk.concurrency)):
        yield f"had {seen.open_peak} connections open at once, where {most} are the most"
    if seen.at_once < talk.at_once_least:
        at_once = counted(seen.at_once, "request")
        yield f"had only {at_once} under way at once, of {talk.concurrency}"
    if seen.open_peak < talk.peak_least:
        opened = counted(seen.open_peak, "connection")
        yield f"had only {opened} open at once, {counted(talk.concurrency, 'request')}"


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"no JSON: {shown(line)}") from None


def shown(text: str) -> str:
    """The start of a text, safe to print."""
    start = ascii(text[:80])
    return f"{start}…" if len(text) > 80 else start
