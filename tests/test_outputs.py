"""Files that flags name for results: written completely or not at all, whatever they are."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Finished, Server, Trueload
from trueload.errors import ExitCode, UserError, unsaved
from trueload.files import outputs

FEW = ("-c", "1", "--requests", "10")
# Nothing meets this limit, so one connection is the last step, however busy the machine is.
SEARCH = ("--search", "connections", "--limit", "p99<1ns", "-d", "100ms", "--warmup", "0")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_whoever_reads_a_named_pipe_gets_the_whole_result(
    trueload: Trueload, server: Server, pipe: Path
) -> None:
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        try:
            ended = trueload.run("http", server.url, *FEW, "--json", pipe)
            out, _ = reader.communicate(timeout=60)
        finally:
            reader.kill()
    assert Finished(ended.code, out, ended.err).measured()["counts"]["ok"] == 10
    assert trueload.run("runs", "list").out.count(server.url) == 1


def test_what_the_shell_substitutes_for_a_command_is_written_to(
    trueload: Trueload, server: Server
) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader) as read:
        named = f"/proc/{os.getpid()}/fd/{writer}"
        ended = trueload.run("http", server.url, *FEW, "--no-save", "--json", named)
        os.close(writer)
        assert Finished(ended.code, read.read(), ended.err).measured()["counts"]["ok"] == 10


def test_a_pipe_that_nobody_reads_is_waited_for_and_then_told(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "READER_S", 0.2)
    outputs.check_writable(pipe)
    with pytest.raises(UserError, match="nothing reads from this pipe"):
        outputs.write_text(pipe, "result")


def test_the_next_line_of_a_file_ends_as_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("before")
    with outputs.text_output(path, newline="") as file:
        file.write("a\r\n")
    assert path.read_bytes() == b"a\r\n"


def in_folder(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def test_what_cannot_be_written_whole_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("the old one")

    class GaveUpError(Exception):
        pass

    def write_half() -> None:
        with outputs.text_output(path) as file:
            file.write("x" * 1_000_000)
            raise GaveUpError

    with pytest.raises(GaveUpError):
        write_half()
    assert path.read_text() == "the old one"
    assert in_folder(tmp_path) == ["report.html"]


def test_a_file_keeps_its_mode_and_a_new_one_is_its_owners_alone(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("before")
    for mode in (0o600, 0o640, 0o755):
        one.chmod(mode)
        outputs.write_text(one, "after")
        assert one.stat().st_mode & 0o7777 == mode
    outputs.write_text(other, "new")
    assert other.stat().st_mode & 0o7777 == 0o600
    assert one.read_text() == "after"


def test_a_link_stays_one_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, there in (("one", True), ("two", False)):
        link, real = tmp_path / f"link-{name}", tmp_path / "folder" / name
        if there:
            real.write_text("before")
        link.symlink_to(f"folder/{name}")
        outputs.check_writable(link)
        outputs.write_text(link, "after")
        assert link.is_symlink()
        assert real.read_text() == "after"


@pytest.mark.parametrize("named", ["/dev/fd/{}", "/proc/self/fd/{}", "link to it"])
def test_a_file_that_somebody_holds_open_is_the_one_that_is_written(
    tmp_path: Path, named: str
) -> None:
    with (tmp_path / "held").open("w+") as held:
        path = named.format(held.fileno())
        if path == "link to it":
            path = str(tmp_path / "link")
            os.symlink(f"/dev/fd/{held.fileno()}", path)
        outputs.write_text(Path(path), "result")
        assert held.read() == "result"


def test_a_device_is_written_directly_and_says_when_it_is_full(tmp_path: Path) -> None:
    outputs.write_text(Path("/dev/null"), "result")
    (tmp_path / "full").symlink_to("/dev/full")
    for path in (Path("/dev/full"), tmp_path / "full"):
        outputs.check_writable(path)
        with pytest.raises(UserError, match="could not be written: No space left") as caught:
            outputs.write_text(path, "result")
        assert caught.value.exit_code == ExitCode.OUTPUT
        assert path.is_char_device()


def make_missing(path: Path) -> Path:
    return path / "none" / "file"


def make_folder(path: Path) -> Path:
    (path / "folder").mkdir()
    return path / "folder"


def make_below_a_file(path: Path) -> Path:
    (path / "file").write_text("")
    return path / "file" / "below"


def make_long(path: Path) -> Path:
    return path / ("x" * 300)


def make_endless(path: Path) -> Path:
    (path / "link").symlink_to(path / "link")
    return path / "link"


@pytest.mark.parametrize(
    "make", [make_missing, make_folder, make_below_a_file, make_long, make_endless]
)
def test_what_could_not_be_written_is_found_out_before_and_nothing_is_left(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path)
    before = in_folder(tmp_path)
    with pytest.raises(OSError, match="Errno"):
        outputs.check_writable(path)
    with pytest.raises(UserError, match="could not be written"):
        outputs.write_text(path, "result")
    assert in_folder(tmp_path) == before


def test_the_longest_name_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    outputs.check_writable(path)
    outputs.write_text(path, "result")
    assert path.read_text() == "result"


def test_a_file_that_cannot_be_replaced_is_written_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mounted"
    path.write_text("before, and longer")
    number = path.stat().st_ino

    def busy(self: Path, target: Path) -> Path:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(target))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", busy)
        outputs.write_text(path, "after")
    assert (path.read_text(), path.stat().st_ino) == ("after", number)
    assert in_folder(tmp_path) == ["mounted"]


def test_a_folder_that_takes_no_new_file_does_not_keep_from_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("before, and longer")
    really = os.open

    def refuse(name: object, flags: int, *more: int, **named: object) -> int:
        if flags & os.O_EXCL:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(name))
        return really(name, flags, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    outputs.check_writable(path)
    outputs.write_text(path, "after")
    assert path.read_text() == "after"
    with pytest.raises(PermissionError):
        outputs.check_writable(tmp_path / "another")


def test_what_was_not_saved_comes_before_0_and_1_and_behind_all_else() -> None:
    behind = {code: unsaved(code) for code in ExitCode}
    for code in (ExitCode.OK, ExitCode.THRESHOLD):
        assert behind.pop(code) == ExitCode.OUTPUT
    assert all(code == ended for code, ended in behind.items())


def ended(trueload: Trueload, *words: object, limit: int | None = None) -> Finished:
    process = trueload.start(*map(str, words), file_bytes_max=limit)
    out, err = process.communicate(timeout=90)
    return Finished(process.returncode, out, err)


@pytest.mark.engine
def test_every_command_that_measures_ends_with_74_where_its_json_is_lost(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    old = tmp_path / "old.json"
    old.write_text("the old one")
    commands = [
        ("http", server.url, *FEW, "--no-save"),
        ("http", server.url, *FEW, "--no-save", "--fail-on", "throughput>0"),
        ("compare", server.url, server.url, *FEW, "--repeat", "1", "--no-save"),
        ("http", server.url, *SEARCH, "--no-save"),
    ]
    for words in commands:
        for path, limit in (("/dev/full", None), (old, 100)):
            done = ended(trueload, *words, "--json", path, limit=limit)
            assert done.code in (74, 4), done  # 4: the machine of the tests is busy
            assert server.url in done.out, "the result is printed first"
            error, hint = done.err.splitlines()[-2:]
            assert error.startswith(f"error: {path} could not be written: ")
            assert hint.startswith("hint: free some space")
    assert old.read_text() == "the old one"
    assert not [name for name in in_folder(tmp_path) if name.endswith(".part")]


@pytest.mark.engine
def test_a_run_that_the_store_has_no_room_for_ends_with_74(
    trueload: Trueload, server: Server
) -> None:
    done = ended(trueload, "http", server.url, *FEW, "--repeat", "40", limit=80_000)
    assert done.code in (74, 4), done
    assert "trial 40" in done.out or "median" in done.out
    assert "could not be written" in done.err.splitlines()[-2]


@pytest.mark.engine
def test_a_command_that_ends_with_2_leaves_no_file_behind(
    trueload: Trueload, tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    for words in (
        ("http", "http://127.0.0.1:1/", "--place", "nowhere"),
        ("http", "http://127.0.0.1:1/", "--server-place", "nowhere"),
        ("compare", "http://127.0.0.1:1/", "no/such-subject"),
        ("suite", "run", "no-such-suite"),
    ):
        done = trueload.run(*words, "--json", path, env={"TRUELOAD_STORE": str(tmp_path)})
        assert done.code == 2, done
        assert not path.exists(), words
    done = trueload.run("http", "http://127.0.0.1:1/", "--json", path, env={"TRUELOAD_STORE": "/"})
    assert done.code == 2, done
    assert not path.exists()


@pytest.mark.engine
def test_what_is_exported_compared_and_reported_is_written_or_an_error(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    assert trueload.run("http", server.url, *FEW).code in (0, 4)
    writers: list[tuple[str, ...]] = [
        *(("runs", "export", "last", "--format", name) for name in ("json", "jsonl", "csv")),
        ("runs", "export", "last", "--format", "markdown"),
        ("runs", "compare", "last", "last"),
        ("report", "last"),
    ]
    old = tmp_path / "old"
    for words in writers:
        old.write_text("the old one")
        for path, limit in (("/dev/full", None), (old, 10)):
            done = ended(trueload, *words, "-o", path, limit=limit)
            assert done.code in (74, 4) if "compare" in words else done.code == 74, (words, done)
            assert done.err.splitlines()[-2].startswith(f"error: {path} could not be written: ")
        assert old.read_text() == "the old one"
        done = ended(trueload, *words, "-o", tmp_path / "none" / "file")
        assert done.code == 2, (words, done)
