"""The store under what happens to files: killed writers, full disks, flipped bits, other versions.

Acknowledged records are there; changed ones are reported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import ROOT, Finished, Server, Trueload
from samples import good_record
from trueload.errors import UserError
from trueload.store import file as store_file
from trueload.store import runs as store_module
from trueload.store.file import APPLICATION_ID, BUSY_TIMEOUT_S, SCHEMA, StoreError
from trueload.store.rows import ROW_COLUMNS, DamagedRow, Row, Run, checksum_of
from trueload.store.runs import Store

RECORD = good_record()
PR_CAPBSET_DROP = 24  # prctl(2)


def filled(path: Path, rows: int = 5) -> Path:
    with Store.open(path) as store:
        run = store.new_run(kind="suite", title="a suite", plan={"cells": rows}, seed=7)
        for number in range(rows):
            store.add_record(run, RECORD, key=f"cell {number}", labels={"subject": "ours"})
        store.end_run(run)
    return path


def readable(path: Path) -> tuple[list[Row], list[DamagedRow]]:
    with Store.open(path) as store:
        found = [row for run in store.runs() for row in store.rows(run)]
        damaged = store.damaged_runs()
    return (
        [row for row in found if isinstance(row, Row)],
        damaged + [row for row in found if isinstance(row, DamagedRow)],
    )


def test_what_is_put_in_comes_out_unchanged(tmp_path: Path) -> None:
    with Store.open(tmp_path / "new folder" / "store") as store:
        run = store.new_run(
            kind="http", title="t", plan={"a": [1, None]}, seed=3, command=["trueload", "http"]
        )
        store.add_record(run, RECORD, key="a", labels={"language": "rust"})
        store.add_row(run, "skipped", "no toolchain", key="b", detail="tail\nof the log")
        ended = store.end_run(run, "interrupted")
    with Store.open(tmp_path / "new folder" / "store") as store:
        assert store.runs() == [ended]
        assert (ended.row_count, ended.state, ended.plan) == (2, "interrupted", {"a": [1, None]})
        first, second = store.rows(ended)
        assert isinstance(first, Row)
        assert isinstance(second, Row)
        assert first.record == RECORD
        assert (first.number, first.key, first.labels) == (1, "a", {"language": "rust"})
        assert (second.outcome, second.reason, second.record) == ("skipped", "no toolchain", None)
        assert second.detail == "tail\nof the log"
        assert second.key == "b"


def test_runs_are_found_by_id_by_a_prefix_and_as_the_last(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        with pytest.raises(UserError, match="there is no run 'last'"):
            store.find_run("last")
        first = store.new_run(kind="http", title="one")
        second = store.new_run(kind="http", title="two")
        assert store.find_run(first.id) == first
        assert store.find_run(second.id[:-1]) == second or first.id[:-1] == second.id[:-1]
        assert store.find_run("last") == second
        for selector, complaint in (("2", "beginning of 2 runs"), ("nope", "no run"), ("", "no r")):
            with pytest.raises(UserError, match=complaint):
                store.find_run(selector)


def test_order_is_by_sequence_when_the_clock_jumps_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = iter(range(23, 0, -1))
    monkeypatch.setattr(store_module, "now_iso", lambda: f"2026-01-01T{next(hours):02}:00:00Z")
    monkeypatch.setattr(store_module, "run_id", lambda: f"20260101-{next(hours):02}0000-0000")
    with Store.open(tmp_path / "store") as store:
        runs = [store.new_run(kind="http", title=str(number)) for number in range(3)]
        for key in "abc":
            store.add_record(runs[0], RECORD, key=key)
        assert [run.title for run in store.runs()] == ["0", "1", "2"]
        assert store.find_run("last").title == "2"
        keys = [row.key for row in store.rows(runs[0]) if isinstance(row, Row)]
        assert keys == ["a", "b", "c"]


WRITER = """
import sys
sys.path[:0] = [{python!r}, {tests!r}]
from samples import good_record
from trueload.store.runs import Store
record = good_record()
with Store.open() as store:
    run = store.new_run(kind="suite", title="writer")
    for number in range(1, {rows} + 1):
        store.add_record(run, record, key=str(number))
        print(number, flush=True)
"""


def start_writer(path: Path, rows: int) -> subprocess.Popen[str]:
    code = WRITER.format(python=str(ROOT / "python"), tests=str(ROOT / "tests"), rows=rows)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TRUELOAD_STORE": str(path)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("kill_after", [1, 2, 3, 5, 8, 13])
def test_each_acknowledged_row_is_there_after_kill_9(tmp_path: Path, kill_after: int) -> None:
    path = tmp_path / "store"
    with start_writer(path, 10_000) as writer:
        assert writer.stdout is not None
        for _ in range(kill_after):
            assert writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        acknowledged = kill_after + len(writer.stdout.readlines())
    rows, damaged = readable(path)
    assert not damaged
    # One more may have reached the disk although its acknowledgement did not get out.
    assert [row.key for row in rows[:acknowledged]] == [str(n + 1) for n in range(acknowledged)]
    assert len(rows) - acknowledged in (0, 1)
    assert all(row.record == RECORD for row in rows)
    filled(path, rows=1)  # the store still works


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store"
    writers = [start_writer(path, 20) for _ in range(3)]
    for writer in writers:
        out, _ = writer.communicate(timeout=60)
        assert writer.returncode == 0
        assert out.split()[-1] == "20"
    with Store.open(path) as store:
        assert [run.row_count for run in store.runs()] == [20, 20, 20]
        for run in store.runs():
            keys = [row.key for row in store.rows(run) if isinstance(row, Row)]
            assert keys == [str(number) for number in range(1, 21)]


def test_an_interruption_ends_the_waiting_for_another_who_writes(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    other = sqlite3.connect(path, check_same_thread=False)
    with contextlib.closing(other), Store.open(path) as store:
        run = store.new_run(kind="http", title="t")
        other.execute("BEGIN IMMEDIATE")
        # A caller that waited all the same would find the store unlocked.
        giving_up = threading.Timer(BUSY_TIMEOUT_S * 2 / 3, other.rollback)
        main = threading.get_ident()
        signalling = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
        giving_up.start()
        signalling.start()
        with pytest.raises(KeyboardInterrupt):
            store.add_record(run, RECORD)
        with pytest.raises(StoreError, match="locked"):  # and this call does not wait again
            store.end_run(run, "interrupted")
        giving_up.cancel()
        giving_up.join()
        other.rollback()
        assert store.end_run(run, "interrupted").state == "interrupted"


def test_a_full_disk_is_one_clear_error_and_earlier_rows_are_intact(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.open(path) as store:
        run = store.new_run(kind="http", title="t")
        store.add_record(run, RECORD, key="first")
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match="full") as caught:
            add_many(store, run, 20)
        assert "\n" not in caught.value.message
        assert "free some space" in caught.value.hint
        store._db.execute("PRAGMA max_page_count = 1000000")
        store.add_record(run, RECORD, key="after")
    rows, damaged = readable(path)
    assert not damaged
    assert rows[0].key == "first"
    assert rows[-1].key == "after"


def add_many(store: Store, run: Run, rows: int) -> None:
    for number in range(rows):
        store.add_record(run, RECORD, key=f"more {number}")


# Forks for each limit of the size of files, as to load the modules takes longer than all the rest.
FILLERS = """
import os, resource, signal, sys
sys.path[:0] = [{python!r}, {tests!r}]
from pathlib import Path
from samples import good_record
from trueload.store.file import StoreError
from trueload.store.runs import Store
record = good_record()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def fill(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    with Store.open(Path({folder!r}, f"store-{{limit}}")) as store:
        run = store.new_run(kind="suite", title="writer")
        for number in range({rows}):
            store.add_record(run, record, key=str(number))
            os.write(1, b"%d acknowledged\\n" % limit)

for limit in {limits}:
    if os.fork() == 0:
        try:
            fill(limit)
        except StoreError as error:
            os.write(1, f"{{limit}} refused: {{error.message}}\\n".encode())
        except BaseException as error:
            os.write(1, f"{{limit}} broke: {{error!r}}\\n".encode())
        os._exit(0)
    os.wait()
"""


def test_every_save_point_survives_a_disk_that_is_full_there(tmp_path: Path) -> None:
    """A limit on the size of files simulates the disk; it is raised until everything fits."""
    limits, most = range(4096, 200_000, 8192), 4
    told = filled_up_to(tmp_path, limits, most)
    for limit in limits:
        path = tmp_path / f"store-{limit}"
        acknowledged = told.count(f"{limit} acknowledged")
        refused = [line for line in told if line.startswith(f"{limit} refused: the store ")]
        assert len(refused) == (acknowledged < most), told
        if not path.exists() or path.stat().st_size == 0:
            assert acknowledged == 0
            continue
        rows, damaged = readable(path)
        assert not damaged, limit
        assert len(rows) == acknowledged, limit
    assert not [line for line in told if "broke" in line]
    assert acknowledged == most, "the last limit was still too small"


def filled_up_to(folder: Path, limits: range, rows: int) -> list[str]:
    """Write rows with each limit on the size of files; return which were acknowledged."""
    python, tests = str(ROOT / "python"), str(ROOT / "tests")
    code = FILLERS.format(python=python, tests=tests, folder=str(folder), limits=limits, rows=rows)
    command = [sys.executable, "-B", "-c", code]
    return subprocess.check_output(command, text=True, timeout=100).splitlines()


def on_a_full_disk(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose writes to files all fail, as on a full disk."""
    return with_little_room(path, 0, "-m", "trueload", *words)


def with_little_room(path: Path, limit: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process whose files may not exceed ``limit`` bytes."""

    def shrink() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-B", *arguments],
        env={**os.environ, "TRUELOAD_STORE": str(path)},
        capture_output=True,
        text=True,
        preexec_fn=shrink,
        timeout=60,
        check=False,
    )


def test_where_nothing_can_be_written_what_is_there_is_read_and_nothing_is_begun(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store", rows=3)
    for words in (("runs", "list"), ("runs", "show", "last"), ("runs", "export", "last")):
        done = on_a_full_disk(path, *words)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "a suite" in done.stdout or "cell 2" in done.stdout
    begun = on_a_full_disk(path, "http", "http://127.0.0.1:9/", "--requests", "1")
    assert begun.returncode == 2
    assert begun.stdout == ""
    first, second = begun.stderr.splitlines()
    assert "could not be written" in first
    assert "free some space" in second
    rows, damaged = readable(path)
    assert (len(rows), damaged) == (3, [])


def test_rows_that_cannot_be_read_where_nothing_can_be_written_are_told_of(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", rows=3)
    with Store.open(path) as store:
        run = store.new_run(kind="http", title="in the log")
        for name in ("store", "store-wal"):
            (tmp_path / f"copy-{name}").write_bytes((tmp_path / name).read_bytes())
        store.end_run(run)
    (tmp_path / "copy-store-wal").rename(tmp_path / "copied-wal")
    (tmp_path / "copy-store").rename(tmp_path / "copied")
    done = on_a_full_disk(tmp_path / "copied", "runs", "list")
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "its latest rows are in copied-wal" in done.stderr
    assert "hint: copy both files" in done.stderr


def test_flipped_bits_are_found_and_the_other_rows_kept(tmp_path: Path) -> None:
    whole = filled(tmp_path / "whole", rows=24).read_bytes()
    noticed = 0
    for position in range(700, len(whole), len(whole) // 60):
        path = tmp_path / f"flipped-{position}"
        path.write_bytes(flip(whole, position))
        try:
            rows, damaged = readable(path)
        except StoreError:  # too much is damaged to read anything
            noticed += 1
            continue
        for row in rows:  # no row is silently wrong
            assert row.record == RECORD
            assert re.fullmatch(r"cell \d+", row.key)
        noticed += bool(damaged)
        assert len(rows) + len(damaged) >= 24 or damaged, (
            f"rows are missing without a word: {position}"
        )
    assert noticed > 20, "a third of the file is content: so many flips must be noticed"


def flip(content: bytes, position: int) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 0x10
    return bytes(changed)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_of_a_store_that_was_cut_short_the_rows_that_are_there_are_read(
    tmp_path: Path, trueload: Trueload, kept: float
) -> None:
    path = filled(tmp_path / "store", rows=8)
    before = path.read_bytes()
    os.truncate(path, int(len(before) * kept))
    cut = path.read_bytes()
    rows, damaged = readable(path)
    assert len(rows) + len(damaged) == 8
    assert damaged
    assert kept < 0.5 or rows
    own = {"TRUELOAD_STORE": str(path)}
    listed = trueload.run("runs", "list", env=own)
    assert (listed.code, len(listed.out.splitlines())) == (0, 2), "its head and the run"
    refused = trueload.run("http", "http://127.0.0.1:1/", env=own)
    assert refused.code == 2
    assert re.match(r"error: the store .* is damaged: [^\n]+\nhint: [^\n]+\n$", refused.err)
    assert path.read_bytes() == cut, "what is damaged is left as it is"


def heed_modes() -> None:
    """Make file modes apply to this process's children, as they do not for root.

    Drops CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH (capabilities(7)).
    """
    libc = ctypes.CDLL(None)
    for capability in (1, 2):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def test_a_store_in_a_folder_of_somebody_else_is_told_in_a_line(
    tmp_path: Path, trueload: Trueload
) -> None:
    folder = tmp_path / "theirs"
    filled(folder / "store")
    folder.chmod(0o000)
    for words in (["runs", "list"], ["http", "http://127.0.0.1:1/"], ["suite", "run", "quick"]):
        own = {"TRUELOAD_STORE": str(folder / "store")}
        refused = trueload.start(*words, env=own, prepare=heed_modes)
        _, err = refused.communicate(timeout=60)
        assert refused.returncode == 2, err
        assert re.match(r"error: the store .* cannot be opened[^\n]+\nhint: [^\n]+\n$", err)
    folder.chmod(0o700)


def test_a_row_whose_record_was_changed_is_damaged_and_its_neighbours_are_not(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store", rows=3)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute('UPDATE rows SET labels = \'{"subject":"theirs"}\' WHERE number = 2')
    rows, damaged = readable(path)
    assert [row.number for row in rows] == [1, 3]
    assert damaged == [DamagedRow(2, "its content does not match its checksum")]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (zlib.compress(b'{"schema": 99}'), r"[a-z_.]+: Field required, and \d+ more"),
        (b"packed otherwise", "Error -3 while decompressing data: incorrect header check"),
    ],
)
def test_a_record_of_another_version_is_told_in_one_line_and_its_neighbours_are_read(
    tmp_path: Path, trueload: Trueload, record: bytes, why: str
) -> None:
    path = filled(tmp_path / "store", rows=3)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE rows SET record = ? WHERE number = 2", (record,))
        read = f"SELECT {ROW_COLUMNS} FROM rows WHERE number = 2"
        fields = db.execute(read).fetchone()[:-1]
        checksum = checksum_of(fields)
        db.execute("UPDATE rows SET checksum = ? WHERE number = 2", (checksum,))
    rows, damaged = readable(path)
    assert [row.number for row in rows] == [1, 3]
    assert [row.number for row in damaged] == [2]
    assert re.fullmatch(f"its record cannot be read by this version: {why}", damaged[0].why)
    done = trueload.run("runs", "show", "last", env={"TRUELOAD_STORE": str(path)})
    assert done.code == 0, done
    assert len(done.err.splitlines()) == 1, done.err


def test_a_row_that_was_taken_out_is_missed(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", rows=3)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM rows WHERE number = 2")
    rows, damaged = readable(path)
    assert [row.number for row in rows] == [1, 3]
    assert [row.number for row in damaged] == [2]


def test_a_run_that_cannot_be_read_is_missed_and_the_others_are_there(tmp_path: Path) -> None:
    path = filled(filled(filled(tmp_path / "store")))
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM runs WHERE seq = 2")
    with Store.open(path) as store:
        assert [run.seq for run in store.runs()] == [1, 3]
        assert store.damaged_runs() == [DamagedRow(None, "it cannot be read")]
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE runs RENAME COLUMN plan TO plans")
    with Store.open(path) as store:
        assert (store.runs(), len(store.damaged_runs())) == ([], 3)


@pytest.mark.parametrize("version", [0, -1])
def test_a_schema_that_never_was_is_damage(tmp_path: Path, version: int) -> None:
    path = filled(tmp_path / "store")
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=f"damaged: no store has schema {version}"):
        Store.open(path)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    with pytest.raises(StoreError, match=f"schema {SCHEMA + 1}; this trueload knows up to"):
        Store.open(path)


def test_an_older_schema_is_brought_up_to_date_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "store")
    monkeypatch.setattr(store_file, "SCHEMA", SCHEMA + 1)
    monkeypatch.setattr(
        store_file, "MIGRATIONS", {SCHEMA: "CREATE TABLE notes (text TEXT);\nSELECT 1"}
    )
    with Store.open(path) as store:
        assert store._db.execute("SELECT count(*) FROM notes").fetchone() == (0,)
        assert store._db.execute("PRAGMA user_version").fetchone() == (SCHEMA + 1,)
    rows, damaged = readable(path)
    assert (len(rows), damaged) == (5, [])


def make_directory(path: Path) -> None:
    path.mkdir()


def make_text(path: Path) -> None:
    path.write_text("this is not a database, and longer than the header of one\n" * 20)


def make_short_text(path: Path) -> None:
    path.write_text("a note")


def make_foreign_database(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE theirs (x)")


def make_folder_of_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file where a folder should be")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (make_directory, "is a directory"),
        (make_text, "is not a store"),
        (make_short_text, "is not a store"),
        (make_foreign_database, "not a store"),
        (make_folder_of_a_file, "cannot be opened"),
    ],
)
def test_what_is_no_store_is_told_and_left_alone(
    tmp_path: Path, trueload: Trueload, make: Callable[[Path], None], complaint: str
) -> None:
    path = tmp_path / "folder" / "store"
    path.parent.mkdir()
    make(path)
    before = path.read_bytes() if path.is_file() else None
    for words in (["runs", "list"], ["http", "http://127.0.0.1:9/", "--requests", "1"]):
        done = trueload.run(*words, env={"TRUELOAD_STORE": str(path)})
        assert done.code == 2
        assert complaint in done.err
        assert len(done.err.splitlines()) == 2, done.err
        assert done.err.splitlines()[1].startswith("hint: ")
        assert done.out == ""
    if before is not None:
        assert path.read_bytes() == before


def test_a_foreign_database_gets_no_table_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    make_foreign_database(path)
    with pytest.raises(StoreError, match="not a store of trueload"):
        Store.open(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        names = db.execute("SELECT name FROM sqlite_schema").fetchall()
        assert names == [("theirs",)]
        assert db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,)


def test_a_store_nobody_may_write_is_told(tmp_path: Path, trueload: Trueload) -> None:
    # /proc allows no new files, not even to root.
    done = trueload.run("runs", "list", env={"TRUELOAD_STORE": "/proc/store"})
    assert done.code == 2
    assert "cannot be opened" in done.err
    assert len(done.err.splitlines()) == 2


def test_a_body_and_a_file_name_that_are_no_text_are_sent_and_saved(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    path = os.fsdecode(bytes(tmp_path / "out") + b"\xe9.json")
    done = trueload.run("http", server.url, "--requests", "99", "--body", "\udce9", "--json", path)
    found = Finished(done.code, Path(path).read_text(), done.err).measured()
    assert found["counts"]["ok"] == 99
    assert "\\udce9" in trueload.run("runs", "show", "last").out


def test_a_store_that_another_process_just_makes_is_not_taken_for_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    made = sqlite3.connect(tmp_path / "made.sqlite", isolation_level=None)
    store_file.prepare(made, path)
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    read = store_file._pragma

    def read_while_it_is_made(db: sqlite3.Connection, name: str) -> object:
        found = read(db, name)
        made.backup(other)
        return found

    monkeypatch.setattr(store_file, "_pragma", read_while_it_is_made)
    here = sqlite3.connect(path, isolation_level=None)
    store_file._refuse_foreign(here, path)
    monkeypatch.undo()
    assert read(here, "user_version") == SCHEMA
    for db in (made, other, here):
        db.close()
