"""A data file: its columns, the requests that use them, and messages about mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import samples
from trueload.commands.http import read_job
from trueload.errors import UserError
from trueload.protocol.data import DataPlan, DataUse
from trueload.protocol.plan import Duration, Phase, Requests
from trueload.protocol.request_options import DataOrder
from trueload.request.data import DataFile, open_data
from trueload.request.values import Request
from trueload.trial.blobs import pieces
from trueload.trial.plan import make_plan
from trueload.verdict.data import check_data

CSV = "name,id,a b,ü,counter\nanna,1,2,3,4\n"


def write(folder: Path, text: str, name: str = "users.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def opened(path: Path, *texts: str, order: DataOrder = "sequential") -> DataFile:
    return open_data(path, order, [Request(host="a", path=text) for text in texts])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("users.csv", CSV),
        ("USERS.CSV", "\n" + CSV),
        ("users.csv", "\ufeff" + CSV),
        ("users.csv", CSV.replace("name", '"name"').replace("\n", "\r\n")),
        ("users.tsv", CSV.replace(",", "\t")),
        ("users.jsonl", '\n{"name": "anna", "id": 1, "a b": 2}\n'),
        ("users.ndjson", '{"name": "anna", "id": 1}'),
    ],
)
def test_the_columns_that_requests_use_are_found(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, text, name)
    found = opened(path, "/{id}", "/{+name}?{random}&{{x}")
    assert found.columns == ("name", "id")
    assert found.size_bytes == path.stat().st_size


def test_columns_are_found_in_headers_and_bodies(tmp_path: Path) -> None:
    path = write(tmp_path, CSV)
    header = Request(host="a", headers=(("X", "{name}"),))
    body = Request(host="a", body=b'\xff{"id": {id}}')
    assert open_data(path, "unique", [header, body]).columns == ("name", "id")


@pytest.mark.parametrize(
    ("name", "text", "asked", "message", "hint"),
    [
        ("a.csv", CSV, "/{nam}", "{nam} names no column of the data file", "columns are name, id,"),
        ("a.csv", CSV, "/{nam}", "", "{{nam} stands for itself"),
        ("a.csv", CSV, "/", "no request uses a column", "columns are name, id"),
        ("a.csv", CSV, "/{random}{{name}", "no request uses a column", "write {name}"),
        ("a.csv", CSV, "/{name}{counter}", "trueload's own number", "otherwise"),
        ("a.csv", "", "/{name}", "has no rows", "first row names"),
        ("a.csv", '"name\n', "/{name}", "line 1 is not a header", "double quotes"),
        ("a.txt", CSV, "/{name}", "does not say by its name", ".csv, .tsv, .jsonl or .ndjson"),
        ("a.jsonl", "", "/{name}", "has no rows", '{"name"'),
        ("a.jsonl", "\n[1]\n", "/{name}", "line 2 is not a JSON object", '{"name"'),
    ],
)
def test_a_mistake_is_refused_before_anything_is_started(
    tmp_path: Path, name: str, text: str, asked: str, message: str, hint: str
) -> None:
    with pytest.raises(UserError) as refused:
        opened(write(tmp_path, text, name), asked)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        opened(tmp_path / "none.csv", "/{name}")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(UserError, match="is not a regular file"):
        opened(folder, "/{name}")


def job(path: Path, **flags: Any) -> Any:
    return read_job(url="http://127.0.0.1:1/{name}", data=path, **flags)


def test_the_plan_names_the_file_and_marks_the_requests_that_use_it(tmp_path: Path) -> None:
    path = write(tmp_path, CSV)
    spec = job(path, data_order="shuffled", seed=7).spec
    plan = make_plan(spec, ())
    assert plan.data == DataPlan(path=str(path), format="csv", columns=("name",), order="shuffled")
    assert plan.request is not None
    assert plan.request.template
    assert plan.seed == 7
    assert list(pieces(spec.traffic, plan)) == []


def test_engines_elsewhere_are_sent_the_content(tmp_path: Path) -> None:
    path = write(tmp_path, CSV)
    spec = job(path).spec
    plan = make_plan(spec, (), is_here=False)
    assert plan.data is not None
    assert plan.data.path is None
    (piece,) = pieces(spec.traffic, plan)
    assert plan.data.blobs == (piece.sha256,)
    write(tmp_path, CSV + "x,1,2,3,4\n")
    with pytest.raises(UserError, match="has changed meanwhile"):
        list(pieces(spec.traffic, plan))


def test_rows_that_are_sent_once_leave_none_for_a_warm_up(tmp_path: Path) -> None:
    path = write(tmp_path, CSV)
    assert job(path).spec.load.warmup is not None
    assert job(path, data_order="unique").spec.load.warmup is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"warmup": 10**9}, "--warmup and --data-order unique cannot be used together"),
        ({"repeat": 3}, "--repeat and --data-order unique cannot be used together"),
        ({"limit": "p99<1s"}, "--limit and --data-order unique cannot be used together"),
    ],
)
def test_what_would_send_a_row_again_is_refused(
    tmp_path: Path, flags: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as refused:
        job(write(tmp_path, CSV), data_order="unique", **flags)
    assert refused.value.message == message


def test_an_order_needs_data() -> None:
    with pytest.raises(UserError, match="--data-order is given, but no --data"):
        read_job(url="http://127.0.0.1:1/", data_order="unique")


def test_with_several_origins_every_target_takes_a_row(tmp_path: Path) -> None:
    targets = write(
        tmp_path,
        '{"url": "http://127.0.0.1:1/{name}"}\n{"url": "http://127.0.0.1:2/"}\n',
        "targets.jsonl",
    )
    with pytest.raises(UserError, match="a target uses no column"):
        read_job(targets=targets, data=write(tmp_path, CSV))


def window(stop: Duration | Requests) -> Phase:
    return samples.good_record().plan.window.model_copy(update={"stop": stop})


@pytest.mark.parametrize(
    ("stop", "data", "status", "why"),
    [
        (Duration(ns=10**10), (1000, 400, False), "pass", "400 of 1,000 rows were sent"),
        (Duration(ns=10**10), (1, 1, False), "pass", "1 of 1 row were sent"),
        (Duration(ns=10**10), (100, 250, False), "pass", "100 rows were sent 2.5 times each"),
        (
            Duration(ns=10**12),
            (1000, 1000, True),
            "warn",
            "all 1,000 rows were used up: the run ended after 1.00 s of 1,000 s",
        ),
        (
            Requests(count=10**9),
            (1000, 1000, True),
            "warn",
            "requests of 1,000,000,000",
        ),
    ],
)
def test_a_run_that_ended_for_want_of_rows_is_suspect(
    stop: Duration | Requests, data: tuple[int, int, bool], status: str, why: str
) -> None:
    record = samples.good_record(data=DataUse(rows=data[0], taken=data[1], spent=data[2]))
    plan = DataPlan(path="/a.csv", format="csv", columns=("name",), order="unique")
    generate = record.plan.generate.model_copy(update={"data": plan})
    changed = record.plan.model_copy(update={"generate": generate, "window": window(stop)})
    found = check_data(record.model_copy(update={"plan": changed}))
    assert (found.status, why in found.why) == (status, True), found.why


def test_without_data_nothing_is_judged() -> None:
    assert check_data(samples.good_record()).status == "n/a"


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.csv", "name,id\n", "csv"),
        ("a.csv", "name;id\n", "ssv"),
        ("a.csv", "name\tid\n", "tsv"),
        ("a.tsv", "name\tid\n", "tsv"),
        ("a.tsv", "name,id\n", "csv"),
        ("a.tsv", "name;id\n", "ssv"),
        ("a.csv", "\n\r\nname;id\r\n1,5;2\r\n", "ssv"),
        ("a.csv", '"name";"id"\n', "ssv"),
        ("a.csv", 'name,id,"a;b"\n', "csv"),
        ("a.csv", 'name;id;"a,b"\n', "ssv"),
        ("a.csv", "name,id,a;b\n", "csv"),
        ("a.tsv", "name\tid\ta,b\n", "tsv"),
        ("a.csv", "\ufeffname;id\n", "ssv"),
    ],
)
def test_the_header_shows_the_separator(name: str, text: str, form: str, tmp_path: Path) -> None:
    found = opened(write(tmp_path, text + "1,2\n", name), "/{id}/{name}")
    assert (found.format, found.columns) == (form, ("name", "id"))


def test_a_line_for_excel_alone_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"users.csv' begins with 'sep=;'") as refused:
        opened(write(tmp_path, "sep=;\r\nname;id\r\n"), "/{id}")
    assert refused.value.hint == "remove the line: the separator is found by itself"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize(("name", "text"), [("a.csv", "name,id\n"), ("a.jsonl", '{"name": 1}\n')])
def test_another_encoding_is_named(name: str, text: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    named = "UTF-32" if encoding == "utf-32" else "UTF-16"
    with pytest.raises(UserError, match=f"{name}' is {named}, and must be UTF-8") as refused:
        opened(path, "/{name}")
    assert "iconv" in refused.value.hint
