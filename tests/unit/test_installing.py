"""An installation on another host: which Python it is for, and which packages belong to it."""

from __future__ import annotations

import pytest
from trueload.commands.installing import needed_packages, wheel_platforms
from trueload.places.ssh.install import Python, choose_python

GNU = "cpython-311-x86_64-linux-gnu"


def python(version: tuple[int, int], abi: str) -> Python:
    return Python(f"/usr/bin/python{version[0]}.{version[1]}", abi, version)


OLD = python((3, 9), "cpython-39-x86_64-linux-gnu")
SAME = python((3, 11), GNU)
NEWER = python((3, 13), "cpython-313-x86_64-linux-gnu")
PYPY = python((3, 11), "pypy311-pp73")


@pytest.mark.parametrize(
    ("why", "found", "chosen"),
    [
        ("the same as here", [NEWER, SAME], SAME),
        ("none is the same: the first", [OLD, NEWER], NEWER),
        ("too old", [OLD], None),
        ("another implementation has no such packages", [PYPY], None),
        ("none at all", [], None),
    ],
)
def test_which_python_is_chosen(why: str, found: list[Python], chosen: Python | None) -> None:
    assert choose_python(found, (3, 11), GNU) == chosen, why


@pytest.mark.parametrize(
    ("abi", "platforms"),
    [
        (GNU, ("manylinux_2_17_x86_64", "manylinux2014_x86_64")),
        ("cpython-312-aarch64-linux-gnu", ("manylinux_2_17_aarch64", "manylinux2014_aarch64")),
        ("cpython-312-x86_64-linux-musl", ("musllinux_1_1_x86_64",)),
    ],
)
def test_which_packages_fit_a_python(abi: str, platforms: tuple[str, ...]) -> None:
    assert wheel_platforms(abi) == platforms


def test_there_are_no_packages_for_what_is_no_linux() -> None:
    with pytest.raises(ValueError, match="there are no packages for cpython-312-darwin"):
        wheel_platforms("cpython-312-darwin")


def test_what_belongs_to_a_plain_installation() -> None:
    names = {package.name.lower().replace("_", "-") for package in needed_packages("trueload")}
    assert {"typer", "rich", "pydantic", "pydantic-core", "h11", "typing-extensions"} <= names
    assert not names & {"ray", "trueload", "pyarrow", "pytest"}
