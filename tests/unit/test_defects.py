"""Known defects: what `make defects` reads and prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import defects


@pytest.mark.needs("git")
@pytest.mark.parametrize("patch", sorted(defects.PATCHES.glob("*.patch")), ids=lambda p: p.stem)
def test_every_defect_has_a_head_and_can_be_put_back(patch: Path) -> None:
    assert defects.Defect.read(patch).title.endswith(".")
    check = ["git", "apply", "--check", str(patch)]
    applied = subprocess.run(check, cwd=defects.ROOT, capture_output=True, text=True, check=False)
    assert applied.returncode == 0, f"make it again against the code: {applied.stderr}"


def test_a_patch_without_a_head_is_refused(tmp_path: Path) -> None:
    patch = tmp_path / "01-some.patch"
    patch.write_text("Defect: Something.\nPlay: the flute\n")
    with pytest.raises(defects.DefectError, match=r"01-some\.patch: begin with"):
        defects.Defect.read(patch)


def test_a_failed_test_of_the_drivers_is_told_with_its_seed() -> None:
    output = """
thread 'fake::tests::each_connection_hears' (7) panicked at crates/drive/src/fake/tests.rs:9:5:
assertion `left == right` failed: io_uring, seed 12: Plan {
thread 'fake::tests::a_run_ends' panicked at crates/drive/src/fake/world.rs:3:4:
byte 5 of what was sent
epoll, seed 4
"""
    assert defects.failures(output) == [
        defects.Found("each connection hears", 12),
        defects.Found("a run ends", 4),
    ]
