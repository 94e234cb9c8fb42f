"""What `pip install .` installs: the command, the engine, the whole catalogue, and little else."""

from __future__ import annotations

import compileall
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from harness import ROOT
from packaging.requirements import Requirement
from trueload.places.program import needs

from tools.release_check import engine_in

PLAIN_BYTES_MAX = 40_000_000


def files_of_git(*folders: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *folders], cwd=ROOT, check=True, capture_output=True
    )
    return set(listed.stdout.decode().split("\0")) - {""}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, whose build also builds the engine if needed."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    built = subprocess.run(
        [*pip, "--wheel-dir", str(folder), str(ROOT)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


def plain_packages() -> Iterator[Distribution]:
    """Yield all packages that a plain install brings besides the wheel."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    seen, left = set(), [Requirement(each) for each in declared]
    while left:
        wanted = left.pop()
        if wanted.name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted.name)
        found = distribution(wanted.name)
        yield found
        left += map(Requirement, found.requires or ())


def installed_bytes(package: Distribution) -> int:
    paths = [Path(str(package.locate_file(file))) for file in package.files or ()]
    return sum(path.stat().st_size for path in paths if path.exists())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_plain_install_is_small(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert compileall.compile_dir(tmp_path, quiet=2)
    ours = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    sizes = {package.name: installed_bytes(package) for package in plain_packages()}
    assert ours + sum(sizes.values()) < PLAIN_BYTES_MAX, (ours, sizes)


@pytest.mark.slow
@pytest.mark.needs("git")
@pytest.mark.timeout(600)
def test_the_wheel_carries_command_engine_and_catalogue(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (points,) = [name for name in names if name.endswith("/entry_points.txt")]
        assert "trueload = trueload.__main__:main" in archive.read(points).decode()
    assert [name for name in names if name.endswith(".data/scripts/trueload-engine")]
    assert "trueload/py.typed" in names
    catalogue = {n.removeprefix("trueload/catalogue/") for n in names if "/catalogue/" in n}
    tracked = files_of_git("suites", "subjects", "contracts")
    assert catalogue >= {name for name in tracked if not name.endswith("README.md")}
    assert not [name for name in catalogue if "/target/" in name or "/node_modules/" in name]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_tags_of_the_wheel_say_where_it_runs(wheel: Path) -> None:
    python, abi, platform = wheel.stem.split("-")[-3:]
    assert (python, abi) == ("py3", "none"), "the engine is a program, for no certain Python"
    anywhere = platform.startswith("manylinux_2_17_") and ".musllinux_1_1_" in platform
    _, loader = needs(engine_in(wheel))
    assert anywhere == (loader is None)
