"""Secrets in the user's environment reach no command of a subject; what it needs does."""

from __future__ import annotations

from pathlib import Path

import pytest
from subject_world import World

pytestmark = pytest.mark.engine

SECRETS = {
    "GITHUB_TOKEN": "hush-1",
    "AWS_SECRET_ACCESS_KEY": "hush-2",
    "DATABASE_URL": "postgres://me:hush-3@db/",
    "CARGO_REGISTRY_TOKEN": "hush-4",
}
TOOLS = {"CARGO_HOME": "/tools/cargo", "HOME": "/home/of-user"}


def noting(path: Path, then: str = "true") -> list[str]:
    """A command that writes its environment to a file."""
    return ["sh", "-c", f"env > '{path}'; {then}"]


def read(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_no_command_of_a_server_has_them(world: World, tmp_path: Path) -> None:
    serve = "exec python3 program.py fine {host} {port}"
    world.add(
        "noting",
        fetch=[noting(tmp_path / "fetch")],
        build=[noting(tmp_path / "build")],
        run=noting(tmp_path / "run", serve),
        version=noting(tmp_path / "version", "echo 1"),
        env={"OWN": "on {port}"},
    )
    checked = world.run("subjects", "check", "noting", env=SECRETS | TOOLS)
    assert checked.code == 0, checked
    assert world.run("subjects", "versions", "noting", env=SECRETS | TOOLS).code == 0
    found = {name: read(tmp_path / name) for name in ("fetch", "build", "version", "run")}
    for name, env in found.items():
        assert not SECRETS.keys() & env.keys(), name
        assert "hush" not in str(env), name
        assert env["PATH"], name
        assert "PYTHONPATH" in env, name
    for name in ("fetch", "build", "version"):
        assert TOOLS.items() <= found[name].items(), "toolchains find their settings and caches"
    run = found["run"]
    assert "CARGO_HOME" not in run
    assert Path(run["HOME"]).is_relative_to(world.cache), "a home of its own, gone with the trial"
    assert not Path(run["HOME"]).exists()
    assert run["OWN"].startswith("on ")
    assert run["OWN"][3:].isdecimal()


def test_a_client_does_not_have_them_either(world: World, tmp_path: Path) -> None:
    world.add(
        "noting",
        role="client",
        contracts=["http-client"],
        run=noting(tmp_path / "run"),
        ready_s=2,
    )
    checked = world.run("subjects", "check", "noting", env=SECRETS | TOOLS)
    assert checked.code == 4, checked
    env = read(tmp_path / "run")
    assert not SECRETS.keys() & env.keys()
    assert Path(env["HOME"]).is_relative_to(world.cache)
