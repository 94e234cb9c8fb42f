"""Requests filled from a data file: every row is counted at the server that was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from counting import Counting
from harness import Trueload
from targets_files import measure, write
from trueload.places import EngineHost
from trueload.places.local import LocalPlace
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Requests
from trueload.request.data import DataFile, open_data
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.run import run_trial
from trueload.trial.spec import Load, TrialSpec

ROWS = 50


@pytest.fixture
def counting() -> Iterator[Counting]:
    with Counting() as server:
        yield server


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.csv"
    rows = "".join(f'user {row},{row},"a,{row}"\r\n' for row in range(ROWS))
    path.write_text(f"name,id,note\r\n{rows}", newline="")
    return path


def ids(counting: Counting) -> list[int]:
    return [int(asked.path.split("/")[2].partition("?")[0]) for asked in counting.asked]


def test_columns_fill_path_headers_and_body(
    trueload: Trueload, counting: Counting, users: Path
) -> None:
    url = f"{counting.url}/{{name}}/{{id}}?n={{counter}}&{{note}}&{{+note}}"
    more = ("-H", "X-Note: <{note}>", "--body", '{"id": {id}, "{{id}": "{name}"}')
    record = measure(trueload, url, *more, "--data", users, "--requests", "120", "-c", "1")
    assert record["counts"]["ok"] == 120
    assert ids(counting) == [number % ROWS for number in range(120)]
    for number, asked in enumerate(counting.asked):
        row = number % ROWS
        assert asked.path == f"/user%20{row}/{row}?n={number}&a%2C{row}&a,{row}"
        assert asked.headers["x-note"] == f"<a,{row}>"
        assert asked.body == f'{{"id": {row}, "{{id}}": "user {row}"}}'.encode()
    assert record["data"] == {"rows": ROWS, "taken": 120, "spent": False}


def test_a_shuffled_pass_holds_every_row_once_over_threads_and_connections(
    trueload: Trueload, counting: Counting, users: Path
) -> None:
    flags = ("--data-order", "shuffled", "-c", "6", "--threads", "2", "--seed", "3")
    requests = ("--requests", str(3 * ROWS))
    measure(trueload, f"{counting.url}/x/{{id}}", "--data", users, *flags, *requests)
    assert Counter(ids(counting)) == dict.fromkeys(range(ROWS), 3)
    assert sorted(ids(counting)[:ROWS]) != ids(counting)[:ROWS]


@pytest.mark.parametrize("load", [("-d", "60s"), ("-d", "60s", "--rate", "2k/s")])
def test_each_row_is_sent_once_and_then_the_run_ends(
    trueload: Trueload, counting: Counting, users: Path, load: tuple[str, ...]
) -> None:
    flags = ("--data-order", "unique", "-c", "4", "--threads", "2", *load)
    record = measure(trueload, f"{counting.url}/x/{{id}}", "--data", users, *flags)
    assert sorted(ids(counting)) == list(range(ROWS))
    counts = record["counts"]
    assert counts["issued"] == ROWS <= counts["scheduled"]
    assert record["data"] == {"rows": ROWS, "taken": ROWS, "spent": True}
    check = next(each for each in record["checks"] if each["name"] == "data")
    assert check["status"] == "warn"
    assert f"all {ROWS} rows were used up: the run ended after" in check["why"]
    assert not record["partial"]


@pytest.mark.parametrize(
    ("asked", "sent", "spent"), [(20, 20, False), (ROWS, ROWS, False), (80, ROWS, True)]
)
def test_a_number_of_requests_takes_no_more_rows_than_there_are(
    trueload: Trueload, counting: Counting, users: Path, asked: int, sent: int, spent: bool
) -> None:
    flags = ("--data-order", "unique", "--requests", str(asked), "-c", "4", "--threads", "2")
    record = measure(trueload, f"{counting.url}/x/{{id}}", "--data", users, *flags)
    assert sorted(ids(counting)) == list(range(sent))
    assert record["data"] == {"rows": ROWS, "taken": sent, "spent": spent}
    assert record["counts"]["scheduled"] == sent


def test_of_several_targets_those_that_use_columns_take_the_rows(
    trueload: Trueload, counting: Counting, users: Path, tmp_path: Path
) -> None:
    file = write(
        tmp_path,
        {"url": f"{counting.url}/x/{{id}}", "weight": 2},
        {"url": f"{counting.url}/plain/7", "weight": 3},
        {"url": f"{counting.url}/x/{{id}}?{{counter}}", "weight": 1},
    )
    flags = ("--data-order", "unique", "-d", "60s", "-c", "3")
    record = measure(trueload, "--targets", file, "--data", users, *flags)
    taken = [asked for asked in counting.asked if asked.path.startswith("/x/")]
    rows = sorted(int(asked.path.split("/")[2].partition("?")[0]) for asked in taken)
    assert rows == list(range(ROWS))
    assert record["data"]["taken"] == ROWS


def test_over_several_origins_each_row_is_sent_once(
    trueload: Trueload, counting: Counting, users: Path, tmp_path: Path
) -> None:
    with Counting() as other:
        file = write(
            tmp_path,
            {"url": f"{counting.url}/x/{{id}}", "weight": 2},
            {"url": f"{other.url}/x/{{id}}", "weight": 3},
        )
        flags = ("--data-order", "unique", "-d", "60s", "-c", "4")
        record = measure(trueload, "--targets", file, "--data", users, *flags)
        assert sorted(ids(counting) + ids(other)) == list(range(ROWS))
    assert record["data"] == {"rows": ROWS, "taken": ROWS, "spent": True}


class Far(LocalPlace):
    """This machine as a place with another name."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("sent", [False, True])
def test_over_several_hosts_each_row_is_sent_once(
    counting: Counting, users: Path, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sent:
        plan = DataFile.plan
        # As if the hosts could not read the file; in pieces within rows.
        monkeypatch.setattr("trueload.request.data.PIECE_BYTES", 64)
        monkeypatch.setattr(DataFile, "plan", lambda self, is_here: plan(self, is_here=False))
    host = counting.url.removeprefix("http://")
    request = Request(host=host, path="/x/{id}")
    spec = TrialSpec(
        url=counting.url,
        addresses=(host,),
        traffic=Traffic(request=request, data=open_data(users, "unique", [request])),
        load=Load(connections=6, stop=Requests(count=10 * ROWS), warmup=None),
        engine=EngineOptions(threads=2),
        hosts=tuple(EngineHost(Far(name)) for name in ("one", "two", "three")),
    )
    record = run_trial(spec)
    assert sorted(ids(counting)) == list(range(ROWS))
    assert record.data is not None
    assert (record.data.taken, record.data.spent) == (ROWS, True)
    data = open_data(users, "sequential", [request])
    plain = replace(spec, traffic=Traffic(request=request, data=data))
    counting.asked.clear()
    run_trial(replace(plain, load=replace(spec.load, stop=Requests(count=2 * ROWS))))
    assert len(counting.asked) == 2 * ROWS


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "id,b\n1,2\n3\n", "line 3 has 1 field, and the header has 2"),
        ("a.csv", 'id,b\n1,2\n"3,4\n', "line 3 has a quote that is never closed"),
        ("a.csv", "id,b\n", "has no rows"),
        ("a.jsonl", '{"id": 1}\n{"b": 1}\n', "line 2 has no 'id'"),
    ],
)
def test_a_broken_row_is_refused_with_its_line_and_nothing_is_sent(
    trueload: Trueload, counting: Counting, tmp_path: Path, name: str, text: str, message: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = trueload.run("http", f"{counting.url}/x/{{id}}", "--data", file, "-d", "1s")
    assert done.code == 2
    lines = done.err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"error: the data file '{file}'")
    assert lines[0].endswith(message)
    assert lines[1].startswith("hint: ")
    assert counting.asked == []


def test_a_value_is_not_filled_in_again(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    file = tmp_path / "cycle.csv"
    file.write_text("a,b\n{b},{a}\n")
    flags = ("-H", "X-A: {a}{counter}", "--requests", "3", "-c", "1")
    measure(trueload, f"{counting.url}/{{b}}", "--data", file, *flags)
    assert [asked.headers["x-a"] for asked in counting.asked] == ["{b}0", "{b}1", "{b}2"]
    assert {asked.path for asked in counting.asked} == {"/%7Ba%7D"}
