"""Rows of a data file in the steps of a scenario: what is used, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trueload.commands.http import read_job
from trueload.errors import UserError
from trueload.protocol.data import DataPlan
from trueload.trial.plan import make_plan

LOG_IN = """
[[step]]
name    = "log in"
request = { method = "POST", url = "/login", body = '{"user":"{user}"}' }
take    = { token = "json:/token" }

[[step]]
name    = "list"
request = { url = "/items/{+key}?page={repeat}", headers = { Authorization = "Bearer {token}" } }
"""


def job(folder: Path, text: str, header: str, **flags: Any) -> Any:
    """Read a scenario with a data file of this header and one row."""
    scenario, data = folder / "s.toml", folder / "users.csv"
    scenario.write_text(text)
    data.write_text(header + "\n" + ",".join("1" for _ in header.split(",")) + "\n")
    url = "http://127.0.0.1:8080/"
    return read_job(**{"url": url, "scenario": scenario, "data": data, **flags})


def test_steps_use_the_columns_of_data(tmp_path: Path) -> None:
    found = job(tmp_path, LOG_IN, "user,key,other", data_order="unique")
    plan = make_plan(found.spec, ())
    path = str(tmp_path / "users.csv")
    assert plan.data == DataPlan(path=path, format="csv", columns=("user", "key"), order="unique")
    assert [step.request.path for step in plan.scenario] == [
        "/login",
        "/items/{+key}?page={repeat}",
    ]
    assert found.spec.load.warmup is None, "each row once leaves none for a warm-up"


@pytest.mark.parametrize(
    ("text", "header", "what", "hint"),
    [
        (LOG_IN, "user,key,token", "{token} is a value that a step takes, and a column", "another"),
        (
            LOG_IN,
            "user,key,repeat",
            "has a column 'repeat', and {repeat} is trueload's own",
            "name",
        ),
        (
            LOG_IN,
            "key,other",
            "no step before it takes {user}",
            "{token}, {key}, {other}, {counter}",
        ),
        (LOG_IN, "user,other", "no step before it takes {key}", "{user}, {other}"),
        (
            LOG_IN.replace("{user}", "{{user}").replace("{+key}", "x"),
            "user,key",
            "no request uses a column",
            "columns are user, key",
        ),
    ],
)
def test_a_mistake_gets_one_line_and_a_hint(
    tmp_path: Path, text: str, header: str, what: str, hint: str
) -> None:
    with pytest.raises(UserError) as caught:
        job(tmp_path, text, header)
    assert what in caught.value.message
    assert hint in (caught.value.hint or "")
