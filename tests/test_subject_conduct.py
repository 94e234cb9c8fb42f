"""`subjects check` finds what the rules for subjects forbid, and a suite what makes a subject
reachable from elsewhere. Real programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from subject_world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("conduct"))


FORBIDDEN = [
    ("everywhere", "it listens on 0.0.0.0:"),
    ("ignores-sigterm", "it does not stop within 5 s of SIGTERM"),
    ("leaves-a-child", "it leaves 1 process behind when it stops on SIGTERM"),
    ("always-twice", "bytes after the answer to one request: b'HTTP/1.1 200 OK"),
]


@pytest.mark.parametrize(("how", "why"), FORBIDDEN, ids=[how for how, _ in FORBIDDEN])
def test_what_the_rules_forbid_is_found(world: World, how: str, why: str) -> None:
    world.add(how, how)
    checked = world.run("subjects", "check", how, "--json")
    [found] = checked.json()["checks"]
    assert checked.code == 4
    assert found["outcome"] == "failed"
    assert why in found["why"]
    assert world.marked() == {}, "nothing of it is left"


def test_a_trap_is_only_held_against_its_contract(world: World) -> None:
    world.add("trap", "ignores-sigterm", trap=True)
    assert world.run("subjects", "check", "trap").code == 0


def test_what_was_never_tried_is_listed_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add("new", tried="no: its registry is closed")
    assert "; tried: no: its registry is closed" in world.run("subjects", "list").out


def test_a_suite_does_not_measure_what_is_reachable_from_elsewhere(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add("open", "everywhere")
    world.add("fine")
    rows = {row["framework"]: row for row in world.run_suite("--json", "-").json()["rows"]}
    assert rows["open"]["outcome"] == "failed"
    assert "it listens on 0.0.0.0:" in rows["open"]["why"]
    assert "and may on 127.0.0.1 only" in rows["open"]["why"]
    assert rows["fine"]["outcome"] == "measured"
