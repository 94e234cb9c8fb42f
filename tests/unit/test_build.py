"""The cache of builds: intact builds are reused, and others are rebuilt."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trueload.runner import build as building
from trueload.runner.build import Build, BuildError, build, in_use
from trueload.runner.stamp import STAMP
from trueload.subjects.manifest import Subject, load_subject

MANIFEST = """
role      = "server"
about     = "a program that is made"
category  = "micro"
contracts = ["http-plaintext"]
build     = [["sh", "-c", "echo made >> ../made; sh make.sh"]]
run       = ["./program"]
"""
MAKE = """
mkdir -p out/deep __pycache__
printf '#!/bin/sh\\n' > program && chmod +x program
echo data > out/deep/data
echo kept > __pycache__/kept.pyc
ln -s nowhere link
"""


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    monkeypatch.setenv("TRUELOAD_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "subjects" / "c" / "made"
    folder.mkdir(parents=True)
    (folder / "subject.toml").write_text(MANIFEST)
    (folder / "make.sh").write_text(MAKE)
    (found,) = load_subject(folder)
    return found


def built(subject: Subject) -> Build:
    return build(subject, trueload_command=())


def times_made(found: Build) -> int:
    return len((found.folder.parent / "made").read_text().split())


def remove_folder(tree: Path) -> None:
    shutil.rmtree(tree)


def remove_one(tree: Path) -> None:
    (tree / "out" / "deep" / "data").unlink()


def remove_link(tree: Path) -> None:
    (tree / "link").unlink()


def make_folder_of_it(tree: Path) -> None:
    shutil.rmtree(tree)
    tree.write_text("a file where the folder was")


def forbid_to_run(tree: Path) -> None:
    (tree / "program").chmod(0o644)


def empty(tree: Path) -> None:
    (tree / "program").write_text("")


def damage_stamp(tree: Path) -> None:
    (tree.parent / STAMP).write_bytes(b"\xff{")


def make_stamp_of_another_shape(tree: Path) -> None:
    (tree.parent / STAMP).write_text('{".": 3, "program": 4}')


DAMAGES: tuple[Callable[[Path], None], ...] = (
    remove_folder,
    remove_one,
    remove_link,
    make_folder_of_it,
    forbid_to_run,
    empty,
    damage_stamp,
    make_stamp_of_another_shape,
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_build_that_is_no_longer_whole_is_made_anew(
    subject: Subject, damage: Callable[[Path], None]
) -> None:
    first = built(subject)
    assert (first.from_cache, built(subject).from_cache) == (False, True)
    damage(first.folder)
    with in_use(first):
        pass  # damaged or not, releasing it must not fail
    again = built(subject)
    assert (again.from_cache, again.folder) == (False, first.folder)
    assert times_made(again) == 2
    assert (again.folder / "out" / "deep" / "data").read_text() == "data\n"
    assert built(subject).from_cache


def log_more(tree: Path) -> None:
    (tree / "out" / "deep" / "data").write_text("data and more")


def clear_the_interpreters(tree: Path) -> None:
    shutil.rmtree(tree / "__pycache__")


def note_names_only(tree: Path) -> None:
    stamp = tree.parent / STAMP
    stamp.write_text(json.dumps([name for name in json.loads(stamp.read_text()) if name != "."]))


@pytest.mark.parametrize("change", [log_more, clear_the_interpreters, note_names_only])
def test_what_a_program_does_to_its_own_files_is_no_damage(
    subject: Subject, change: Callable[[Path], None]
) -> None:
    first = built(subject)
    change(first.folder)
    assert built(subject).from_cache
    assert times_made(first) == 1


def test_what_a_program_leaves_about_is_removed_and_what_was_built_stays(subject: Subject) -> None:
    first = built(subject)
    with in_use(first):
        (first.folder / "out" / "left").write_text("left")
    assert not (first.folder / "out" / "left").exists()
    assert built(subject).from_cache


def test_a_cache_that_was_moved_is_built_anew_where_it_is(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built(subject)
    monkeypatch.setenv("TRUELOAD_CACHE", str((tmp_path / "cache").rename(tmp_path / "moved")))
    again = built(subject)
    assert (again.from_cache, again.key) == (False, first.key)
    monkeypatch.setenv("TRUELOAD_CACHE", str(tmp_path / "link"))
    (tmp_path / "link").symlink_to(tmp_path / "moved")
    assert built(subject).from_cache, "another name of the same folder"


def test_a_build_that_is_made_anew_and_cut_short_is_not_taken_for_whole(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built(subject)
    remove_one(first.folder)

    def full(home: Path, tree: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(building, "write_stamp", full)
        with pytest.raises(BuildError, match=r"it cannot be built: .*No space left"):
            built(subject)
    assert not built(subject).from_cache
    assert times_made(first) == 3


def test_it_is_said_that_a_build_is_made_anew(subject: Subject) -> None:
    notes: list[str] = []
    forbid_to_run(built(subject).folder)
    build(subject, trueload_command=(), announce=notes.append)
    assert notes == ["c/made: its build has changed, and is built again"]


def old(path: Path) -> None:
    month_ago = time.time() - building.UNUSED_S_MAX - 1
    os.utime(path, (month_ago, month_ago))


@pytest.mark.parametrize(
    ("whole", "is_old", "stays"),
    [(True, False, True), (True, True, False), (False, False, True), (False, True, False)],
)
def test_what_nobody_has_used_for_a_month_goes_when_another_is_built(
    subject: Subject, *, whole: bool, is_old: bool, stays: bool
) -> None:
    before = built(subject).folder
    if not whole:
        (before.parent / STAMP).unlink()
    if is_old:
        old(before.parent / STAMP if whole else before)
    (subject.folder / "make.sh").write_text(f"{MAKE}# another\n")
    now = built(subject).folder
    assert (before.is_dir(), now.is_dir()) == (stays, True)
