"""Attacks on suites: clients that cheat, and servers that answer differently under load.

Each is a subject of a small catalogue, beside an honest one; the result that is judged is its row.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redteam.demands import Answer, Demand, Seen
from redteam.stage import HERE, Stage, command
from subject_world import World

CLIENTS = """
about    = "clients that cheat"
contract = "http-client"
duration = "1s"
warmup   = "500ms"
timeout  = "10s"
repeat   = 2
[clients]
wait = "10ms"
[[loads]]
pools       = [1]
pool_size   = [32]
concurrency = [64]
cores       = ["multi"]
"""
SERVERS = """
about    = "servers that answer differently under load"
contract = "http-plaintext"
duration = "1s"
warmup   = "300ms"
repeat   = 1
[[loads]]
connections = [16]
"""
MANIFEST = """
role      = "ROLE"
about     = "part of an attack"
category  = "platform"
contracts = ["CONTRACT"]
ready_s   = 20
"""


@dataclass(frozen=True)
class Client:
    """A client that cheats as `client.py` says; an honest one is measured beside it."""

    cheat: str

    def play(self, stage: Stage) -> Seen:
        """Run the suite; return the row of the cheat."""
        program = ["python3", "client.py"]
        subjects = {"honest": program, "cheat": [*program, self.cheat]}
        made = MANIFEST.replace("ROLE", "client").replace("CONTRACT", "http-client")
        return _suite(stage, CLIENTS, made, HERE / "client.py", subjects)


@dataclass(frozen=True)
class Subject:
    """`server.c` as a subject with options; an honest one without them is measured beside it."""

    server: str

    def play(self, stage: Stage) -> Seen:
        """Run the suite; return the row of the cheat."""
        program = ["./server", "host={host}", "port={port}", "fixed=1ms"]
        subjects = {"honest": program, "cheat": [*program, *self.server.split()]}
        made = MANIFEST.replace("ROLE", "server").replace("CONTRACT", "http-plaintext")
        return _suite(stage, SERVERS, made, Path(stage.program("server")), subjects)


def _suite(
    stage: Stage, suite: str, manifest: str, program: Path, subjects: Mapping[str, list[str]]
) -> Seen:
    world = World(Path(tempfile.mkdtemp(dir=stage.folder)))
    for name, run in subjects.items():
        folder = world.subjects / "c" / name
        folder.mkdir(parents=True)
        # A program runs from its subject's own folder.
        shutil.copy2(program, folder)
        (folder / "subject.toml").write_text(f"{manifest}run       = {json.dumps(run)}\n")
    path = world.folder / "suite.toml"
    path.write_text(suite)
    words = ("suite", "run", str(path), "--no-live")
    with command(stage, *words, pinned=False, env=world.env, cwd=world.folder) as running:
        seen = running.seen()
    if not seen.result:
        return seen
    return replace(seen, result=_row(seen.result), others=_honest(seen.result))


def _row(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first record of the cheat, with the verdict and the place of its row."""
    row = _named(result, "cheat")
    records = [each for each in result["trials"] if each["id"] in row["record_ids"]]
    first = records[0] if records else {"checks": []}
    outcome = {name: row[name] for name in ("verdict", "why", "outcome")}
    return {**first, **outcome, "place": _place(result, "cheat")}


def _honest(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**_named(result, "honest"), "place": _place(result, "honest")}


def _place(result: Mapping[str, Any], name: str) -> int | None:
    """The place of a row among those that stand in order, from 1; None if it is not one of them."""
    stands = [row["framework"] for row in result["rows"] if row["verdict"] in ("valid", "suspect")]
    return stands.index(name) + 1 if name in stands else None


def _named(result: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(row for row in result["rows"] if row["framework"] == name)
    return found


def behind_honest(seen: Seen) -> Answer:
    """The cheat does not stand in the order, or behind the honest subject."""
    place, honest = seen.result["place"], seen.others["place"]
    right = place is None or (honest is not None and place > honest)
    return Answer(right, "no place before the honest one", f"place {place}, the honest {honest}")


def completed(per_s: float, within: float = 0.05) -> Demand:
    """Require at most this many requests per second, or an invalid client."""

    def demand(seen: Seen) -> Answer:
        reported = seen.result["throughput"]["ok_per_s"]
        shown = "none" if reported is None else f"{reported:,.4g}/s"
        right = seen.result["place"] is None or (
            reported is not None and reported <= per_s * (1 + within)
        )
        return Answer(right, f"at most {per_s:,.4g}/s", shown)

    return demand
