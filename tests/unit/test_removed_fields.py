"""Fields that went: what was stored with them is read, and what is written with them is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import suite_samples
from samples import good_record
from trueload import __version__
from trueload.ids import now_iso
from trueload.protocol.exchange import WindowsPlan
from trueload.protocol.plan import Generate
from trueload.record import removed_fields
from trueload.record.removed_fields import REMOVED_FIELDS, RemovedField, read_record
from trueload.record.schema import Record
from trueload.report.suite_json import read_plan
from trueload.store.rows import DamagedRow, Row, Run
from trueload.store.run_files import to_record
from trueload.store.runs import Store

ROOT = Path(__file__).resolve().parents[2]
OF_A_PHASE = RemovedField("record", ("plan", "window", "former"), "0.2.0", range(10))
OF_EACH_CHECK = RemovedField("record", ("checks", "former"), "0.2.0", (None, "x"))
OF_A_SUITE = RemovedField("suite", ("loads", "former"), "0.2.0", (True,))


@pytest.fixture
def with_former(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make three fields known as removed."""
    monkeypatch.setattr(removed_fields, "REMOVED_FIELDS", (OF_A_PHASE, OF_EACH_CHECK, OF_A_SUITE))


def stored(of_phase: object = 3, of_check: object = "x") -> tuple[Record, Any]:
    """A record, and what a release with two more fields has stored of it."""
    record = good_record()
    value = json.loads(record.model_dump_json())
    value["plan"]["window"]["former"] = of_phase
    for check in value["checks"]:
        check["former"] = of_check
    return record, value


@pytest.mark.usefixtures("with_former")
def test_a_stored_record_is_read_without_the_fields_that_went() -> None:
    record, value = stored()
    assert read_record(json.dumps(value)) == to_record(value) == record


@pytest.mark.usefixtures("with_former")
@pytest.mark.parametrize("values", [{"of_phase": 10}, {"of_check": "y"}, {"of_check": {}}])
def test_a_value_that_cannot_be_ignored_makes_a_record_unreadable(values: dict[str, Any]) -> None:
    _, value = stored(**values)
    with pytest.raises(ValueError, match="former\n  Extra inputs are not permitted"):
        read_record(json.dumps(value))


@pytest.mark.usefixtures("with_former")
def test_another_unknown_field_is_refused_as_ever() -> None:
    _, value = stored()
    value["plan"]["window"]["other"] = 3
    with pytest.raises(ValueError, match=r"window\.other"):
        read_record(json.dumps(value))


class Former(Record):
    """The record of a release that had one more field."""

    former: int = 1


@pytest.mark.parametrize("known", [True, False])
def test_a_row_of_the_store_is_damaged_only_by_a_field_that_no_release_had(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = RemovedField("record", ("former",), "0.2.0", (1,))
    monkeypatch.setattr(removed_fields, "REMOVED_FIELDS", (field,) if known else ())
    record = good_record()
    with Store.open(tmp_path / "store.sqlite") as store:
        run = store.new_run(kind="http", title="x")
        store.add_record(run, Former(**dict(record)))
        [row] = store.rows(run)
    if known:
        assert isinstance(row, Row)
        assert row.record == record
    else:
        assert isinstance(row, DamagedRow)
        assert "former: Extra inputs are not permitted" in row.why


@pytest.mark.usefixtures("with_former")
def test_the_plan_of_a_suite_is_read_without_the_fields_that_went_and_kept_as_it_was() -> None:
    plan = suite_samples.plan()
    value = json.loads(plan.model_dump_json())
    value["loads"][0]["former"] = True
    run = Run(1, "1", "suite", "x", (), value, 1, now_iso(), "finished", None, 0)
    assert read_plan(run) == plan
    assert run.plan["loads"][0]["former"] is True, "an export has it as it was stored"


def test_the_upgrade_to_http_2_is_read_where_it_was_stored_and_refused_in_a_plan() -> None:
    value = json.loads(good_record().model_dump_json())
    generate = value["plan"]["generate"]
    generate["http2"] = json.loads(
        WindowsPlan(stream_window=65_535, connection_window=65_535).model_dump_json()
    )
    record = to_record(value)
    generate["http2"]["upgrade"] = True
    assert to_record(value) == record
    with pytest.raises(ValueError, match=r"http2\.upgrade\n  Extra inputs are not permitted"):
        Generate.model_validate_json(json.dumps(generate))


def test_each_removed_field_went_in_a_release_that_the_changelog_names() -> None:
    """The next release has no heading of its own yet."""
    headings = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert {field.since for field in REMOVED_FIELDS} <= {*headings, __version__}
