"""The files of a detached run: what they tell, and that its log stays short."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from trueload.cli.attach import Tail
from trueload.cli.detach import check_detach
from trueload.errors import UserError
from trueload.store import detached
from trueload.store.detached import DetachedFiles

# A process that holds the files of a run until its input ends.
CARRIES_OUT = """
import pathlib, sys
from trueload.store.detached import DetachedFiles, end_detached

DetachedFiles(pathlib.Path(sys.argv[1]), sys.argv[2]).begin()
end_detached(4)
print("!", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def files(tmp_path: Path) -> DetachedFiles:
    """The files of a run that has just been detached."""
    files = DetachedFiles(tmp_path / "store", "20260101-000000-abcd")
    files.folder.mkdir(parents=True)
    return files


def tail(files: DetachedFiles) -> tuple[Tail, io.BytesIO]:
    shown = io.BytesIO()
    return Tail(files.stderr, io.TextIOWrapper(shown)), shown


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"json_path": Path("-")}, "--json -"),
        ({"no_save": True}, "--no-save"),
        ({"dry_run": True}, "--dry-run"),
        ({"json_path": Path("x"), "no_save": False, "dry_run": False, "quiet": True}, ""),
    ],
)
def test_flags_without_use_in_the_background_are_refused(
    flags: dict[str, object], says: str
) -> None:
    if not says:
        check_detach(flags)
        return
    with pytest.raises(UserError) as refused:
        check_detach(flags)
    assert says in refused.value.message + refused.value.hint


def test_a_run_that_was_not_detached_has_no_files(tmp_path: Path) -> None:
    files = DetachedFiles(tmp_path / "store", "20260101-000000-abcd")
    assert not files.exist()
    assert (files.process(), files.exit_code()) == (None, None)
    files.remove()


def test_the_files_are_private_and_held_while_their_process_lives(tmp_path: Path) -> None:
    files = DetachedFiles(tmp_path / "store", "20260101-000000-abcd")
    command = [sys.executable, "-c", CARRIES_OUT, str(tmp_path / "store"), files.folder.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        modes = {stat.S_IMODE(each.stat().st_mode) for each in files.folder.iterdir()}
        folders = [files.folder, files.folder.parent]
        assert modes == {0o600}
        assert {stat.S_IMODE(each.stat().st_mode) for each in folders} == {0o700}
        assert (files.exist(), files.process(), files.exit_code()) == (True, process.pid, 4)
    assert files.process() is None


def test_only_the_end_of_a_long_log_is_kept_and_who_follows_it_misses_nothing(
    files: DetachedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "LOG_BYTES_MAX", 100)
    log = files.open_output(files.stderr)
    followed, shown = tail(files)
    lines = [f"line {number}\n".encode() for number in range(100)]
    with followed:
        for line in lines:
            files.turn_stderr(log)
            os.write(log, line)
            followed.print(followed.read(whole=False))
    os.close(log)
    assert shown.getvalue() == b"".join(lines)
    kept = files.stderr_before.read_bytes() + files.stderr.read_bytes()
    assert b"".join(lines).endswith(kept)
    assert 100 <= len(kept) < 300


def test_who_comes_later_sees_the_last_lines(files: DetachedFiles) -> None:
    files.stderr.write_bytes(b"one\ntwo\nthree\nfo")
    followed, shown = tail(files)
    with followed:
        assert followed.skip_all_but(2) == 2
        followed.print(followed.read(whole=False))
        assert shown.getvalue() == b"three\n"
        followed.print(followed.read(whole=True))
    assert shown.getvalue() == b"three\nfo"
