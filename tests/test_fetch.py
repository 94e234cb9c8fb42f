"""Subjects whose package manager cannot fetch: skipped with its last output, not failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from subject_world import World

pytestmark = pytest.mark.engine

# A package manager that counts its calls, and fails to fetch while the registry is missing.
MANAGER = """#!/bin/sh
echo called >> {calls}
printf 'Resolving the dependencies\\n'
test -e {registry} || {{ printf '\\033[31m===> No route to the registry\\033[0m\\n\\n'; exit 1; }}
echo fetched > dependency
"""


class Fetching:
    """A world with a package manager, and a subject that needs it."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.registry = folder / "registry"
        self.calls = folder / "calls"
        self.bin = folder / "bin"
        self.bin.mkdir()
        manager = self.bin / "manager"
        manager.write_text(MANAGER.format(calls=self.calls, registry=self.registry))
        manager.chmod(0o755)
        self.world.add("made-of", fetch=[["manager", "get"]], build=[["cat", "dependency"]])

    def check(self) -> dict[str, Any]:
        ended = self.world.run("subjects", "check", "made-of", "--json", env=self.env)
        [found] = ended.json()["checks"]
        return {**found, "code": ended.code}

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin"}

    @property
    def called(self) -> int:
        return len(self.calls.read_text().splitlines())


@pytest.fixture
def fetching(tmp_path: Path) -> Fetching:
    return Fetching(tmp_path)


def test_a_subject_that_cannot_be_fetched_is_skipped_with_the_last_words(
    fetching: Fetching,
) -> None:
    found = fetching.check()
    assert (found["outcome"], found["code"]) == ("skipped", 0), found
    assert found["why"] == (
        "the fetch failed with exit code 1: manager get: ===> No route to the registry"
    )


def test_it_is_fetched_again_until_it_is_there_and_never_after(fetching: Fetching) -> None:
    fetching.check()
    fetching.registry.touch()
    assert fetching.check()["outcome"] == "ok"
    assert fetching.check()["outcome"] == "ok"
    assert fetching.called == 2, "what was built is built for good"


def test_a_package_manager_that_hangs_is_ended_and_means_skipped(fetching: Fetching) -> None:
    fetching.world.add("slow", fetch=[["sleep", "3600"]], build_s=1)
    ended = fetching.world.run("subjects", "check", "slow", "--json")
    [found] = ended.json()["checks"]
    assert found["outcome"] == "skipped", found
    assert found["why"] == "the fetch took longer than 1 s (build_s): sleep 3600"
    fetching.world.wait_until_nothing_is_left()


def test_a_package_manager_that_is_not_there_is_a_need(fetching: Fetching) -> None:
    fetching.world.add("without", fetch=[["no-such-manager", "get"]])
    [found] = fetching.world.run("subjects", "check", "without", "--json").json()["checks"]
    assert (found["outcome"], found["why"]) == ("skipped", "no-such-manager is not installed")


def test_a_suite_has_a_row_that_says_why_it_was_skipped(fetching: Fetching) -> None:
    fetching.world.add("fine")
    ended = fetching.world.run(
        *("suite", "run", "quick", "--subjects", "python", "--requests", "200", "-c", "4"),
        *("--repeat", "1", "--share-cpus", "--json", "-"),
        env=fetching.env,
    )
    [skipped] = [row for row in ended.json()["rows"] if row["outcome"] == "skipped"]
    assert skipped["why"].endswith("===> No route to the registry"), skipped
