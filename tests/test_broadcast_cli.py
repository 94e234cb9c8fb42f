"""``trueload ws --mode broadcast`` by the command line, with an engine that plays the server."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness import Finished, Trueload, against
from samples import flat

SCRIPTED = Path(__file__).resolve().parent / "scripted_broadcast.py"
URL = "ws://127.0.0.1:9/ws"


@dataclass(frozen=True)
class Played:
    """The result of a command, and the messages that the engine received."""

    done: Finished
    received: list[dict[str, Any]]

    @property
    def phases(self) -> list[dict[str, Any]]:
        """The phases in which something was sent."""
        phases = [line for line in self.received if line["type"] == "phase"]
        return [phase for phase in phases if phase["stop"]["count"]]


@dataclass(frozen=True)
class Stage:
    """Runs broadcasts against a server that the engine plays."""

    trueload: Trueload
    folder: Path

    def play(self, server: str, *flags: str) -> Played:
        engine = self.folder / "engine"
        engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SCRIPTED}"\n')
        engine.chmod(0o755)
        log = self.folder / "heard"
        log.unlink(missing_ok=True)
        env = {
            "TRUELOAD_ENGINE": str(engine),
            "SCRIPTED_BROADCAST": server,
            "SCRIPTED_HEARD": str(log),
        }
        done = self.trueload.run("ws", URL, "--mode", "broadcast", *flags, env=env)
        lines = log.read_text().splitlines() if log.exists() else []
        return Played(done, [json.loads(line) for line in lines])


@pytest.fixture
def stage(trueload: Trueload, tmp_path: Path) -> Stage:
    return Stage(trueload, tmp_path)


def test_clients_join_until_the_limit_is_crossed_and_the_rest_is_bisected(stage: Stage) -> None:
    played = stage.play("fair", "--json", "-", "--limit", "p95<500ms")
    assert played.done.code == 0, played.done
    found = played.done.json()
    # A step that a busy machine spoiled is repeated.
    clients = [phase["connections"] for phase in played.phases]
    assert list(dict.fromkeys(clients))[:5] == [1000, 2000, 3000, 4000, 5000]
    result = found["result"]
    assert (result["outcome"], result["unit"]) == ("found", "clients")
    low, high = result["interval"]["low"], result["interval"]["high"]
    assert low < 5000
    assert high <= low * 1.02
    # Where the machine spoils a step twice, the bracket ends there.
    assert high >= 5000 or result["limited_by"] != "server"
    assert clients[-1] == low
    stages = [step["step"]["stage"] for step in found["steps"]]
    assert list(dict.fromkeys(stages)) == ["bracket", "bisect", "confirm"]
    assert against(found) == set()


def test_one_engine_serves_all_steps_as_phases_of_so_many_messages(stage: Stage) -> None:
    played = stage.play("fair", "--steps", "2", "--step", "500", "--samples", "40", "--json", "-")
    assert played.done.code == 0, played.done
    generate, phases = played.received[0], played.phases
    assert generate["exchange"] == {
        "kind": "ws_broadcast",
        "opening": {
            "method": "GET",
            "path": "/ws",
            "headers": [["Host", "127.0.0.1:9"]],
            "body_sha256": None,
            "template": False,
        },
        "dialect": "json",
        "padding": 200,
    }
    assert (generate["connections"], generate["threads"]) == (500, 1)
    # A step that a busy machine spoiled is repeated; a confirming run, then at fewer clients.
    steps = dict.fromkeys((phase["connections"], phase["stop"]["count"]) for phase in phases)
    assert list(steps)[:3] == [(500, 40), (1000, 40), (1000, 400)], "enough to confirm"
    assert all(phase["load"] == {"kind": "turns", "concurrent": 4} for phase in phases)


def test_local_addresses_are_had_ready_for_the_clients_that_may_come(stage: Stage) -> None:
    few = stage.play("fair", "--steps", "2", "--step", "500").received[0]
    assert few["local_addresses"] == []
    many = stage.play("fair", "--step", "2500").received[0]
    assert len(set(many["local_addresses"])) >= 32
    named = ("--local-address", "127.0.0.3", "--local-address", "127.0.0.4")
    ours = stage.play("fair", "--step", "2500", *named).received[0]
    assert ours["local_addresses"] == ["127.0.0.3", "127.0.0.4"]


def test_a_step_shows_receipts_and_deliveries(stage: Stage) -> None:
    found = stage.play("fair", "--steps", "1", "--json", "-").done.json()
    step = found["steps"][0]
    assert step["latency_ns"]["p95"] == pytest.approx(100_000_000, rel=0.01)
    deliveries = step["deliveries"]
    assert (deliveries["expected"], deliveries["lost"]) == (100_000, 0)
    assert deliveries["per_s"] == 200_000
    assert deliveries["last_ns"]["p50"] == pytest.approx(200_000_000, rel=0.01)
    assert step["connections"]["requested"] == step["plan"]["generate"]["connections"] == 1000


def test_the_published_lines_leave_out_the_step_that_crossed_the_limit(stage: Stage) -> None:
    played = stage.play("fair", "--format", "shootout", "--step", "2000")
    assert played.done.out.splitlines() == [
        "clients:  2000    95per-rtt: 200ms    min-rtt: 200ms    median-rtt: 200ms"
        "    max-rtt: 200ms",
        "clients:  4000    95per-rtt: 400ms    min-rtt: 400ms    median-rtt: 400ms"
        "    max-rtt: 400ms",
    ]
    assert "is the largest load confirmed to keep receipt_p95<500ms" in flat([played.done.err])


def test_a_lost_delivery_makes_the_run_invalid_and_names_how_many(stage: Stage) -> None:
    played = stage.play("lossy")
    assert played.done.code == 4, played.done
    assert re.search(r"fail ledger: 3 of [0-9,]+ deliveries were lost", played.done.out)
    assert max(phase["connections"] for phase in played.phases) == 5000, "it goes on by itself"


def test_a_lost_delivery_ends_the_run_if_asked(stage: Stage) -> None:
    played = stage.play("lossy", "--stop-on-loss", "--json", "-")
    assert played.done.code == 4, played.done
    found = played.done.json()
    assert [phase["connections"] for phase in played.phases] == [1000, 2000]
    assert found["verdict"] == "invalid"
    ledger = next(check for check in found["checks"] if check["name"] == "ledger")
    assert ledger["why"] == "3 of 200,000 deliveries were lost"
    assert found["result"]["outcome"] == "lost"


def test_a_server_that_upgrades_nobody_ends_with_3(stage: Stage) -> None:
    played = stage.play("refuses")
    assert played.done.code == 3, played.done
    assert "no connection became usable: ws.handshake" in played.done.err


def test_an_engine_that_dies_leaves_the_steps_before(stage: Stage) -> None:
    played = stage.play("dies", "--json", "-")
    found = played.done.json()
    assert found["steps"][0]["step"]["outcome"] == "kept"
    assert {step["step"]["outcome"] for step in found["steps"]} == {"kept", "limited"}
    assert found["result"]["outcome"] == "found"
    assert found["result"]["limited_by"] == "generator"
    assert 1000 <= found["result"]["load"] < 2000


def test_too_few_ports_end_the_search_with_at_least_so_many(stage: Stage) -> None:
    played = stage.play("short", "--json", "-")
    assert played.done.code == 0, played.done
    result = played.done.json()["result"]
    if result["limited_by"] == "generator":  # of a busy machine, before its ports
        return
    assert (result["outcome"], result["limited_by"]) == ("found", "ports")
    assert 2450 <= result["load"] <= 2500
    at_least = f"at least {result['load']:,.0f} clients keep p95<500ms: the local ports of this"
    assert at_least in flat([played.done.err])
    assert "--local-address 127.0.0.2" in result["sentence"]


def test_a_broadcast_is_kept_and_shown_again(stage: Stage) -> None:
    played = stage.play("fair", "--step", "2000")
    assert "is the largest load confirmed to keep p95<500ms" in played.done.out
    shown = stage.trueload.run("runs", "show", "last")
    assert shown.code == 0, shown
    head = shown.out.split("\nrow 1")[0]
    table = [line for line in played.done.out.splitlines() if "bracket" in line]
    assert table
    assert all(line in head for line in table)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--connections", "5"), "--connections works only with --mode echo"),
        (("--rate", "5/s"), "--rate works only with --mode echo"),
        (("--limit", "throughput<5"), "'throughput' cannot be used here"),
        (("--format", "shootout", "--json", "-"), "both write to stdout"),
        (("-H", "Sec-WebSocket-Key: x"), "trueload sets sec-websocket-key itself"),
        (("-H", "Origin: a", "--origin", "b"), "cannot be used together"),
        (("--cacert", "x"), "--cacert needs TLS, but the URL begins with ws://"),
    ],
)
def test_flags_that_contradict_are_refused_before_anything_is_sent(
    stage: Stage, flags: tuple[str, ...], why: str
) -> None:
    played = stage.play("fair", *flags)
    assert (played.done.code, played.received) == (2, []), played.done
    assert why in played.done.err


def test_a_flag_of_broadcasts_is_refused_for_echoes(trueload: Trueload) -> None:
    done = trueload.run("ws", URL, "--step", "5")
    assert done.code == 2, done
    assert "--step works only with --mode broadcast, and the mode is echo" in done.err
