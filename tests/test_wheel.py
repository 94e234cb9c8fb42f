"""What `pip install .` brings: the command, the engine, and the whole catalogue."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from harness import ROOT


def files_of_git(*folders: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *folders], cwd=ROOT, check=True, capture_output=True
    )
    return set(listed.stdout.decode().split("\0")) - {""}


@pytest.mark.slow
@pytest.mark.timeout(600)  # the engine is built, if it has not been
def test_the_wheel_carries_command_engine_and_catalogue(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    built = subprocess.run(
        [*pip, "--wheel-dir", str(tmp_path), str(ROOT)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (points,) = [name for name in names if name.endswith("/entry_points.txt")]
        assert "trueload = trueload.cli.app:main" in archive.read(points).decode()
    assert [name for name in names if name.endswith(".data/scripts/trueload-engine")]
    assert "trueload/py.typed" in names
    catalogue = {n.removeprefix("trueload/catalogue/") for n in names if "/catalogue/" in n}
    assert catalogue >= files_of_git("suites", "subjects", "contracts")
    assert not [name for name in catalogue if "/target/" in name or "/node_modules/" in name]
