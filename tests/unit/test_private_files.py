"""Files that only their owner can read, whatever the umask."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from trueload.files import outputs
from trueload.files.private import make_folder, narrow, open_text, user_folder
from trueload.store.lock import lock_path
from trueload.store.runs import Store, StoreError


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o277])
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """A umask. ``tmp_path`` is made before: under the last one only root could write to it."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_files_and_folders_are_private(umask: int, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    make_folder(folder)
    with open_text(folder / "text") as text:
        text.write("é")
    outputs.check_writable(folder / "checked")
    outputs.write_text(folder / "written", "x")
    assert [mode(each) for each in sorted(folder.iterdir())] == [0o600] * 2
    assert [mode(folder), mode(folder.parent)] == [0o700] * 2
    assert (folder / "text").read_bytes() == "é".encode()


def test_a_file_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    path.chmod(0o664)
    outputs.check_writable(path)
    outputs.write_text(path, "new")
    assert (path.read_text(), mode(path)) == ("new", 0o664)


def test_a_link_is_followed_also_where_it_leads_to_no_file_yet(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "page.html")
    with open_text(link) as file:
        file.write("x")
    assert link.is_symlink()
    assert mode(tmp_path / "page.html") == 0o600


def test_a_folder_where_a_file_is_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        make_folder(Path("/proc/no"))
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file" / "below")


def test_rights_are_only_ever_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    for before, after in ((0o644, 0o600), (0o777, 0o600), (0o444, 0o400), (0o600, 0o600)):
        path.chmod(before)
        narrow(path)
        assert mode(path) == after
    narrow(tmp_path / "none")


def test_a_new_store_is_private_with_all_that_is_beside_it(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "data" / "trueload" / "store.sqlite3"
    with Store.open(path) as store:
        store.new_run(kind="http", title="x")
        found = sorted(path.parent.iterdir())
        names = [each.name.removeprefix(path.name) for each in found]
        assert names == ["", "-running", "-shm", "-wal"]
        assert [mode(each) for each in found] == [0o600] * 4
    assert [mode(path.parent), mode(path.parent.parent)] == [0o700] * 2


def test_a_store_behind_a_link_is_private(umask: int, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    with Store.open(link) as store:
        store.new_run(kind="http", title="x")
        assert {mode(each) for each in tmp_path.glob("real*")} == {0o600}


def test_a_store_with_wider_modes_is_narrowed_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.open(path) as first:
        first.new_run(kind="http", title="x")
        beside = [path, lock_path(path), tmp_path / "store-wal", tmp_path / "store-shm"]
        for each in beside:
            each.chmod(0o666)
        with Store.open(path):
            assert [mode(each) for each in beside] == [0o600] * 4


def test_a_damaged_store_is_narrowed_too(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.open(path) as store:
        store.new_run(kind="http", title="x")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * len(content[4096:])
    path.write_bytes(content)
    path.chmod(0o644)
    with Store.open(path):
        pass
    assert mode(path) == 0o600


def test_somebody_elses_database_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    path.chmod(0o644)
    with pytest.raises(StoreError, match="not a store"):
        Store.open(path)
    assert mode(path) == 0o644


@pytest.mark.parametrize(
    ("kind", "named", "folder"),
    [
        ("cache", None, "/h/me/.cache/trueload"),
        ("data", None, "/h/me/.local/share/trueload"),
        ("state", None, "/h/me/.local/state/trueload"),
        ("state", "", "/h/me/.local/state/trueload"),
        ("cache", "/tmp/c", "/tmp/c/trueload"),
        ("data", " /tmp/d/ ", "/tmp/d/trueload"),
    ],
)
def test_the_users_folders_are_where_programs_keep_theirs(
    kind: Literal["cache", "data", "state"],
    named: str | None,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/h/me")
    monkeypatch.delenv(f"XDG_{kind.upper()}_HOME", raising=False)
    if named is not None:
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", named)
    assert user_folder(kind) == Path(folder)
