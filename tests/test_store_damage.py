"""A store damaged in hundreds of ways: each reader ends, says so in a line, and shows what it can.

A hang is detected by counting statements; the limit on CPU time is only the last resort.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from samples import good_record
from trueload.cli.app import run as run_command
from trueload.record.schema import Record
from trueload.store import file as store_file
from trueload.store import runs as store_module
from trueload.store.file import StoreError
from trueload.store.rows import ROW_COLUMNS, RUN_COLUMNS, DamagedRow, Row, checksum_of
from trueload.store.runs import Store

RECORD = good_record()
PAGE = 4096
STATEMENTS_MAX = 5 * store_module.ALONE_MAX
CPU_S_MAX = 10.0
ROWS = 24

READERS = [
    ("runs", "list"),
    ("runs", "list", "--json"),
    ("runs", "show", "last"),
    ("runs", "show", "last", "--json"),
    *(("runs", "export", "last", "--format", each) for each in ("json", "jsonl", "csv")),
    ("runs", "compare", "last", "last"),
]


class HangError(BaseException):
    """Not an ``Exception``, so that the code under test cannot take it for damage."""


@pytest.fixture(autouse=True)
def watchdog(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a reader that executes more statements than a damaged store can need."""
    asked = 0
    execute = store_file.Connection.execute

    def counted(self: store_file.Connection, sql: str, values: object = ()) -> sqlite3.Cursor:
        nonlocal asked
        asked += 1
        if asked > STATEMENTS_MAX:
            raise HangError("too many statements")
        return execute(self, sql, values)

    def hang(*_: object) -> None:
        raise HangError("it does not end")

    def reset() -> None:
        nonlocal asked
        asked = 0
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S_MAX)

    monkeypatch.setattr(store_file.Connection, "execute", counted)
    before = signal.signal(signal.SIGVTALRM, hang)
    reset()
    _RESET.append(reset)
    yield
    _RESET.pop()
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


_RESET: list[Callable[[], None]] = []


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store of three runs with interleaved rows."""
    path = tmp_path_factory.mktemp("whole") / "store"
    with Store.open(path) as store:
        runs = [store.new_run(kind="http", title=f"t{n}", plan={"n": n}) for n in range(3)]
        for number in range(ROWS // 3):
            for run in runs:
                store.add_record(run, RECORD, key=f"cell {number}", labels={"subject": "ours"})
        for run in runs:
            store.end_run(run)
    return path.read_bytes()


def look(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    readers: Sequence[tuple[str, ...]] = READERS,
) -> None:
    """Run every reader; each must end in one of the allowed ways."""
    monkeypatch.setenv("TRUELOAD_STORE", str(path))
    before = path.read_bytes()
    for words in readers:
        _RESET[-1]()
        code = run_command(words)
        out, err = capsys.readouterr()
        assert code in (0, 2, 4), (words, code, err)
        if code == 2:
            error, hint = err.splitlines()[-2:]
            assert error.startswith("error: "), (words, err)
            assert hint.startswith("hint: "), (words, err)
        elif words == ("runs", "list"):
            assert out or err
    assert len(path.read_bytes()) == len(before)
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)


def check(path: Path) -> tuple[int, int]:
    """Return the number of readable rows and of damaged items; no row may be silently wrong."""
    _RESET[-1]()
    try:
        with Store.open(path) as store:
            found = [row for run in store.runs() for row in store.rows(run)]
            damaged: list[object] = [*store.damaged_runs()]
    except StoreError:
        return 0, 1
    rows = [row for row in found if isinstance(row, Row)]
    for row in rows:
        assert isinstance(row.record, Record)
        assert row.record == RECORD
    damaged += [row for row in found if isinstance(row, DamagedRow)]
    return len(rows), len(damaged)


def flipped(content: bytes, at: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(at.choice((1, 1, 4, 64))):
        changed[at.randrange(100, len(changed))] = at.randrange(256)
    return bytes(changed)


def overwritten(content: bytes, at: random.Random) -> bytes:
    page = at.randrange(1, len(content) // PAGE) * PAGE
    filler = at.choice((bytes(PAGE), b"\xff" * PAGE, at.randbytes(PAGE)))
    return content[:page] + filler + content[page + PAGE :]


def swapped(content: bytes, at: random.Random) -> bytes:
    pages = [content[n : n + PAGE] for n in range(0, len(content), PAGE)]
    for _ in range(at.choice((1, 3))):
        one, other = at.sample(range(1, len(pages)), 2)
        pages[one], pages[other] = pages[other], pages[one]
    return b"".join(pages)


def copied(content: bytes, at: random.Random) -> bytes:
    one, other = at.sample(range(1, len(content) // PAGE), 2)
    page = content[other * PAGE : (other + 1) * PAGE]
    return content[: one * PAGE] + page + content[(one + 1) * PAGE :]


def in_headers(content: bytes, at: random.Random) -> bytes:
    """Change bytes in page headers, which hold the cell counts, where a flip has most effect."""
    changed = bytearray(content)
    for page in at.sample(range(len(content) // PAGE), 3):
        changed[max(100, page * PAGE) + at.randrange(24)] = at.randrange(256)
    return bytes(changed)


def in_turn(number: int) -> Sequence[tuple[str, ...]]:
    """All readers for every fifth damage, and one of them for each of the others.

    They read through the same few functions of the store, which ``check`` calls for each damage.
    """
    return READERS if number % 5 == 0 else [READERS[number % len(READERS)]]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("damage", [flipped, overwritten, swapped, copied, in_headers])
def test_a_store_that_was_changed_anywhere_is_read_to_an_end(
    whole: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[bytes, random.Random], bytes],
    seed: int,
) -> None:
    path = tmp_path / "store"
    path.write_bytes(damage(whole, random.Random(seed)))
    look(path, monkeypatch, capsys, in_turn(seed))
    check(path)


def test_a_store_that_was_cut_anywhere_is_read_to_an_end(
    whole: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    odd = random.Random(1)
    pages = range(PAGE, len(whole), PAGE)
    # Around the header, at the border of every fourth of 30 pages, and within every fourth.
    within = (page + odd.randrange(PAGE) for page in pages[2::4])
    for number, cut in enumerate((1, 99, 100, 101, 5000, *pages[::4], *within)):
        path = tmp_path / f"cut-{cut}"
        path.write_bytes(whole[:cut])
        look(path, monkeypatch, capsys, in_turn(number))
        rows, damaged = check(path)
        assert damaged or rows == ROWS, f"what is missing at {cut} is told"


def change(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


HUGE = 2**62


@pytest.mark.parametrize(
    "statement",
    [
        *(
            f"UPDATE sqlite_sequence SET seq = {value} WHERE name = '{table}'"
            for table in ("runs", "rows")
            for value in (HUGE, 2**63 - 1, -1, 1.5, "'many'", "NULL")
        ),
        "DELETE FROM sqlite_sequence",
        f"UPDATE runs SET row_count = {HUGE}",
        f"UPDATE runs SET seq = {HUGE} WHERE seq = 3",
        f"UPDATE runs SET seq = {2**63 - 1} WHERE seq = 3",
        f"UPDATE rows SET number = {HUGE} WHERE seq = 2",
        f"UPDATE rows SET seq = {HUGE} WHERE seq = {ROWS}",
        f"UPDATE rows SET run_seq = {HUGE} WHERE seq = 2",
    ],
)
def test_a_huge_or_odd_number_is_not_counted_up_to(
    whole: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    statement: str,
) -> None:
    path = tmp_path / "store"
    path.write_bytes(whole)
    change(path, statement)
    look(path, monkeypatch, capsys)
    rows, damaged = check(path)
    assert rows == ROWS or damaged


@pytest.mark.parametrize("value", [HUGE, 2**63 - 1])
@pytest.mark.parametrize("column", ["seq", "number", "row_count"])
def test_nor_is_one_that_its_checksum_vouches_for(
    whole: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    column: str,
    value: int,
) -> None:
    path = tmp_path / "store"
    path.write_bytes(whole)
    table = "runs" if column == "row_count" else "rows"
    columns = RUN_COLUMNS if table == "runs" else ROW_COLUMNS
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        last = f"(SELECT max(seq) FROM {table})"
        db.execute(f"UPDATE {table} SET {column} = {value} WHERE seq = {last}")
        fields = db.execute(f"SELECT {columns} FROM {table} ORDER BY seq DESC LIMIT 1").fetchone()
        checksum = checksum_of(fields[:-1])
        db.execute(f"UPDATE {table} SET checksum = ? WHERE seq = ?", (checksum, fields[0]))
    look(path, monkeypatch, capsys)
    rows, damaged = check(path)
    assert rows >= ROWS - 1
    assert damaged or rows == ROWS


def test_a_statement_that_goes_in_circles_is_ended_by_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.open(path) as store:
        run = store.new_run(kind="http", title="t")
        store.end_run(run)
    endless = "WITH RECURSIVE n(seq) AS (SELECT 1 UNION ALL SELECT seq FROM n) SELECT * FROM n"
    names = ("id", "kind", "title", "command", "plan", "seed", "started_at", "state", "ended_at")
    columns = ", ".join(f"'' AS {name}" for name in (*names, "row_count", "checksum"))
    change(path, "DROP TABLE runs", f"CREATE VIEW runs AS SELECT seq, {columns} FROM ({endless})")
    with Store.open(path) as store:
        assert store.runs() == []
        assert store.damaged_runs()


def test_behind_a_damaged_page_all_that_is_whole_is_found(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.open(path) as store:
        run = store.new_run(kind="http", title="t")
        for number in range(300):
            store.add_row(run, "skipped", "x" * 200, key=f"cell {number}")
        store.end_run(run)
    content = path.read_bytes()
    leaf = next(n for n in range(0, len(content), PAGE) if b"cell 100" in content[n : n + PAGE])
    path.write_bytes(content[:leaf] + b"\xff" * PAGE + content[leaf + PAGE :])
    with Store.open(path) as store:
        rows = list(store.rows(store.find_run("last")))
    lost = [n for n, row in enumerate(rows) if isinstance(row, DamagedRow)]
    assert len(rows) == 300
    assert 100 in lost
    assert lost == list(range(lost[0], lost[0] + len(lost))), "one page, and nothing else"
    assert len(lost) < 40
