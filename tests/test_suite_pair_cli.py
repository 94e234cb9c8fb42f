"""A suite that is paired with a reference, from the command line: real servers, few requests."""

from __future__ import annotations

import json
import re
from pathlib import Path

from subject_world import World

SUITE = """
about = "two servers beside a third"
contract = "http-plaintext"
subjects = ["python/one", "python/two"]
reference = "python/beside"
requests = 100
repeat = 2

[[loads]]
connections = [2]
"""


def test_each_trial_lies_between_two_of_the_reference(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("one", "two", "beside"):
        world.add(name)
    (tmp_path / "paired.toml").write_text(SUITE)
    words = ("suite", "run", "paired.toml", "--share-cpus", "--pair", "reference", "--json", "-")
    ended = world.run(*words)
    found = ended.json()
    assert "each beside python/beside" in ended.err
    assert found["plan"]["reference"]["name"] == "python/beside"
    assert {row["framework"] for row in found["rows"]} == {"one", "two"}, "it is in no table"
    for row in found["rows"]:
        assert row["figures"]["ratio"] > 0
        assert row["ratio_interval"]["kind"] == "range"
    # Four trials, and the reference before the first and after each.
    assert len(found["trials"]) == 4 + 5
    world.wait_until_nothing_is_left()


def test_without_it_there_is_no_ratio(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("one", "two"):
        world.add(name)
    (tmp_path / "paired.toml").write_text(SUITE)
    ended = world.run("suite", "run", "paired.toml", "--share-cpus", "--json", "-")
    found = json.loads(ended.out)
    assert "reference" not in found["plan"]
    assert all(row["figures"]["ratio"] is None for row in found["rows"])


def test_a_comparison_leaves_the_reference_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("one", "beside"):
        world.add(name)
    (tmp_path / "paired.toml").write_text(SUITE.replace(', "python/two"', ""))
    world.run("suite", "run", "paired.toml", "--share-cpus", "--pair", "reference")
    compared = world.run("runs", "compare", "last", "last").out
    # Two repetitions; the reference has three trials.
    assert re.findall(r"(\d+) against \d+ trials", compared) == ["2"]
