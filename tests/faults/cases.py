"""Reads the table of faults (`cases/*.toml`, described in README.md) into frozen values.

The Rust test at `crates/sim/tests/faults` reads the same files. Unknown keys, words and texts are
refused, so that a typing mistake does not pass as a test. Must not know sockets or trueload.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

WORDS_WITH_TEXT = frozenset({"send", "flood", "drip", "raw", "upgrade"})
WORDS_ALONE = frozenset({"head", "fin", "rst", "hold", "again", "refuse", "drop", "unroutable"})
SILENT_WORDS = frozenset({"read", "hold"})
PROTOCOLS = frozenset({"http", "tcp", "ws"})

PAYLOAD = b"abcdefghijklmnopqrstuvwx"
"""What is sent over TCP and WebSocket: messages of `MESSAGE_BYTES`, in turn on each connection."""
MESSAGE_BYTES = 4

LIVE_TIMEOUT_MS = 5_000
LIVE_SLOWER = 5
"""So many times as slowly go rows on real sockets that may end by a timeout. A peer of threads on a
loaded machine may well be late by a row's own 200 ms."""

WORDS_OF_TLS = frozenset({"cut", "notify", "alert"})


@dataclass(frozen=True)
class Step:
    """One action of a peer."""

    word: str
    count: int = 1
    """`read`: requests to wait for, 0 for the end of the other side. `echo`: requests to send back.
    `send`: how many times over."""
    ms: int = 0
    """`wait`: for how long. `drip`: between two bytes."""
    data: bytes = b""


Script = tuple[Step, ...]


@dataclass(frozen=True)
class Between:
    """A count that may lie between two bounds, both included."""

    least: int
    most: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.least <= value <= self.most

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}..{self.most}"


NONE = Between(0, 0)


@dataclass(frozen=True)
class Out:
    """The expected outcome of a run."""

    each: tuple[str, ...] = ()
    """Every request ends as one of these; empty when `ok` and `failed` say it."""
    ok: Between = NONE
    failed: Mapping[str, Between] = field(default_factory=dict)
    stale: Between = NONE
    stale_resets: Between = NONE
    unsent: Between = NONE
    reconnects: Between | None = None
    statuses: Mapping[str, int] | None = None
    exits: tuple[int, ...] = ()


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    name: str
    scripts: tuple[Script, ...]
    out: Out
    apart: Out | None
    protocol: str = "http"
    half_close: bool = False
    method: str = "GET"
    body: bytes | None = None
    expect_status: tuple[int, ...] = ()
    expect_body: bytes | None = None
    connections: int = 2
    requests: int = 6
    depth: int = 1
    close: bool = False
    timeout_ms: int = 200
    only: str = ""
    tls: str = ""
    """How the peer speaks TLS: the name of a set-up, `none` for not at all; empty without TLS."""

    def classes(self) -> set[str]:
        """The failure classes in which this row may end, and `ok`."""
        return set(self.out.each) | set(self.out.failed) | ({"ok"} if self.out.ok.most else set())

    def live(self) -> Case:
        """Return the row for real sockets, where its peer needs more time than in virtual time.

        Where no request may end by its timeout, nothing waits for the timeout, so it can be long.
        Otherwise all delays grow, unless the peer says nothing, or the row tests how long a run is
        patient.
        """
        outs = (self.out,) if self.apart is None else (self.out, self.apart)
        ways = {way for out in outs for way in (*out.each, *out.failed)}
        if not any("timeout" in way for way in ways):
            return replace(self, timeout_ms=LIVE_TIMEOUT_MS)
        words = {step.word for script in self.scripts for step in script}
        silent = words <= SILENT_WORDS and self.tls in ("", "none")
        if silent or self.out.unsent != NONE:
            return self
        scripts = tuple(
            tuple(replace(step, ms=LIVE_SLOWER * step.ms) for step in script)
            for script in self.scripts
        )
        return replace(self, scripts=scripts, timeout_ms=LIVE_SLOWER * self.timeout_ms)


class Texts:
    """The named texts, and the expansion of a text with such names into bytes."""

    def __init__(self, raw: Mapping[str, str]) -> None:
        self._raw = raw

    def expand(self, text: str) -> bytes:
        """Return the bytes of `text`. Raises `KeyError` for an unknown name."""
        out = b""
        for literal, name in re.findall(r"([^{]+)|\{([^}]*)\}", text):
            out += literal.encode() if literal else self._named(name)
        return out

    def _named(self, name: str) -> bytes:
        kind, _, rest = name.partition(":")
        if kind == "pad":
            return b"x" * int(rest)
        if kind == "hex":
            return bytes.fromhex(rest)
        return self.expand(self._raw[name])


def parse_step(line: str, texts: Texts) -> Step:
    """Parse a step such as `send*3 {ok}`. Raises `ValueError` for anything else."""
    word, _, rest = line.partition(" ")
    word, _, times = word.partition("*")
    if word == "read":
        return Step(word, count=0 if rest == "end" else int(rest or "1"))
    if word == "echo":
        return Step(word, count=int(rest or "1"))
    if word == "wait":
        return Step(word, ms=int(rest))
    if word == "drip":
        every, _, rest = rest.partition(" ")
        return Step(word, ms=int(every), data=texts.expand(rest))
    if word in WORDS_WITH_TEXT:
        return Step(word, count=int(times or "1"), data=texts.expand(rest))
    if word in WORDS_ALONE | WORDS_OF_TLS and not rest:
        return Step(word)
    raise ValueError(f"no step: {line!r}")


def _between(raw: int | list[int]) -> Between:
    least, most = (raw, raw) if isinstance(raw, int) else raw
    return Between(least, most)


def _several(raw: Any) -> tuple[Any, ...]:
    return tuple(raw) if isinstance(raw, list) else (raw,)


def _out(raw: dict[str, Any]) -> Out:
    raw = dict(raw)
    reconnects, statuses = raw.pop("reconnects", None), raw.pop("statuses", None)
    out = Out(
        each=_several(raw.pop("each", [])),
        ok=_between(raw.pop("ok", 0)),
        failed={name: _between(n) for name, n in raw.pop("failed", {}).items()},
        stale=_between(raw.pop("stale", 0)),
        stale_resets=_between(raw.pop("stale_resets", 0)),
        unsent=_between(raw.pop("unsent", 0)),
        reconnects=None if reconnects is None else _between(reconnects),
        statuses=None if statuses is None else {str(code): n for code, n in statuses.items()},
        exits=_several(raw.pop("exit", [])),
    )
    if raw:
        raise ValueError(f"unknown in `out`: {sorted(raw)}")
    if out.exits:
        return out
    good = out.each == ("ok",) or (not out.each and not out.failed)
    return Out(**{**vars(out), "exits": (0,) if good else (4,)})


def _scripts(raw: dict[str, Any], texts: Texts) -> tuple[Script, ...]:
    if "peer" in raw:
        return tuple(
            tuple(parse_step(line, texts) for line in script) for script in raw.pop("peer")
        )
    answer = Step("send", data=texts.expand(raw.pop("answer")))
    return ((Step("read"), answer, Step(raw.pop("then", "again"))),)


def _case(raw: dict[str, Any], texts: Texts) -> Case:
    raw = dict(raw)
    raw.pop("why", None)
    apart = raw.pop("apart", None)
    if raw.get("protocol", "http") not in PROTOCOLS:
        raise ValueError(f"no protocol: {raw['protocol']}")
    for key in ("body", "expect_body"):
        if key in raw:
            raw[key] = raw[key].encode()
    return Case(
        name=raw.pop("name"),
        scripts=_scripts(raw, texts),
        out=_out(raw.pop("out")),
        apart=None if apart is None else _out(apart),
        expect_status=tuple(raw.pop("expect_status", ())),
        **raw,
    )


def load() -> list[Case]:
    """Read every row of every file, in order. An error names the row."""
    texts = Texts(tomllib.loads((FOLDER / "texts.toml").read_text("utf-8")))
    cases = []
    for path in sorted((FOLDER / "cases").glob("*.toml")):
        for raw in tomllib.loads(path.read_text("utf-8"))["case"]:
            try:
                cases.append(_case(raw, texts))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path.name}: {raw.get('name')}: {error!r}") from error
    return cases
