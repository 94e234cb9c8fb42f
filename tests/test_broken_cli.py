"""A catalogue with one broken subject or suite: the others run, and the broken one is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from harness import ROOT
from subject_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world with one good subject, and one for each way to be broken."""
    world = World(tmp_path)
    world.add("good")
    for name in ("half", "folder", "sources"):
        world.add(name)
    (world.subjects / "python" / "half" / "subject.toml").write_text("role = ")
    (world.subjects / "python" / "folder").rename(world.subjects / "python" / "bad name")
    (world.subjects / "python" / "sources" / "out").symlink_to("/etc")
    return world


def test_a_listing_shows_what_is_broken_beside_the_others(world: World) -> None:
    done = world.run("subjects", "list")
    assert done.code == 2
    lines = {line.split("  ")[0].strip(): line for line in done.out.splitlines()}
    assert "http-plaintext" in lines["python/good"]
    assert "broken: subjects/python/half/subject.toml: is not TOML" in lines["python/half"]
    assert "broken: subjects/python/bad name: 'bad name'" in lines["python/bad name"]
    assert done.err.startswith("error: 2 subjects are broken: python/bad name, python/half\nhint: ")
    shown = json.loads(world.run("subjects", "list", "--json").out)
    assert [each["name"] for each in shown["broken"]] == ["python/bad name", "python/half"]
    assert {each["framework"] for each in shown["subjects"]} == {"good", "sources"}


def test_a_check_fails_what_is_broken_and_checks_the_others(world: World) -> None:
    done = world.run("subjects", "check")
    assert done.code == 4
    outcomes = {line.split(":")[0] for line in done.out.splitlines()}
    assert "ok      python/good http-plaintext" in outcomes
    assert {f"failed  python/{name}" for name in ("half", "bad name", "sources")} <= outcomes
    exact = world.run("subjects", "check", "python/half")
    assert exact.code == 2
    assert exact.err.startswith("error: subjects/python/half/subject.toml: is not TOML")


def test_a_suite_measures_the_others(world: World) -> None:
    done = world.run_suite()
    assert done.code in (0, 4), done.err  # 4: a busy machine spoiled it
    assert "note: python/half is broken: subjects/python/half/subject.toml" in done.err
    assert "note: python/bad name is broken: " in done.err
    assert "python/sources: failed: it cannot be built: " in done.err
    rows = json.loads(world.run("runs", "export", "last").out)["rows"]
    assert sorted(row["outcome"] for row in rows) == ["failed", "measured"]
    exact = world.run_suite("--subjects", "good,half")
    assert exact.code == 2
    assert "subjects/python/half/subject.toml" in exact.err


def test_a_suite_file_that_is_broken_is_listed_beside_the_others(tmp_path: Path) -> None:
    world = World(tmp_path)
    suites = tmp_path / "suites"
    suites.mkdir()
    (suites / "good.toml").write_text('about = "x"\ncontract = "http-plaintext"\nrequests = 1\n')
    (suites / "bad.toml").write_text("about = ")
    os.symlink("nowhere", suites / "away.toml")
    done = world.run("suite", "list")
    assert done.code == 2
    first, second, third = done.out.splitlines()
    assert first.startswith(f"away  broken: {suites}/away.toml cannot be read")
    assert second.startswith(f"bad   broken: {suites}/bad.toml is not TOML")
    assert third == "good  x (http-plaintext)"
    assert done.err.startswith("error: 2 suites are broken: away, bad\nhint: correct the file; ")
    shown = json.loads(world.run("suite", "list", "--json").out)
    assert [each["name"] for each in shown["suites"]] == ["good"]
    assert [each["name"] for each in shown["broken"]] == ["away", "bad"]
    assert world.run("suite", "run", "bad").code == 2


def test_what_others_can_change_is_not_run(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    ran = tmp_path / "ran"
    write = [["sh", "-c", f"touch '{ran}'"]]
    folder = world.add("theirs", build=write)
    world.add("good")
    (folder / "program.py").chmod(0o666)
    done = world.run("subjects", "check")
    assert done.code == 4
    assert f"failed  python/theirs: {folder / 'program.py'} can be written by every" in done.out
    assert "ok      python/good http-plaintext" in done.out
    (folder / "program.py").chmod(0o644)
    world.subjects.chmod(0o777)
    below = world.subjects.parent / "at" / "work"
    below.mkdir(parents=True)
    world.folder = below
    done = world.run("subjects", "check", "theirs")
    assert done.code == 2, done
    note, error, _ = done.err.splitlines()
    assert note.startswith(f"note: {world.subjects} is not used: {world.subjects} can be written")
    assert error == "error: no subject is called 'theirs'"
    assert not ran.exists()
    named = {"TRUELOAD_HOME": str(world.subjects.parent)}
    contracts = world.subjects.parent / "contracts"
    contracts.symlink_to(ROOT / "contracts")
    assert world.run("subjects", "check", "theirs", env=named).code == 0
    assert ran.exists()
