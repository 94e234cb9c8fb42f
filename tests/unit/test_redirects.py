"""Redirects that are followed: what a record says of them, and what ``--follow`` excludes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_samples import html, put_records
from samples import good_record, histogram, trial_facts
from trueload.commands.http import read_http
from trueload.errors import UserError
from trueload.protocol.redirects import Redirects as Seen
from trueload.record.accounts.redirects import REDIRECTS, Redirects, add_redirects
from trueload.report.accounts.redirects import counts_text
from trueload.report.result import result_lines
from trueload.report.sheets import record_values
from trueload.request.follow import check_load
from trueload.store.runs import Store

MS = 1_000_000
CHAIN = Seen(statuses={"302": 300}, hops={"3": 100}, time=histogram((2 * MS, 300)))
ONE = Seen(statuses={"302": 10, "307": 40}, hops={"1": 50, "0": 50}, time=histogram((MS, 50)))
NONE = Seen(statuses={}, hops={"0": 7})


def account(found: Seen | None) -> Redirects | None:
    made: Redirects | None = REDIRECTS.made(trial_facts(SimpleNamespace(redirects=found)))
    return made


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([CHAIN], "300 followed (302: 300); 3 before each answer"),
        ([CHAIN, ONE],
         "350 followed (302: 310, 307: 40); 0 to 3 before an answer, 1.8 on average"),
        ([NONE], "none came"),
        ([Seen(statuses={"302": 5}, hops={})], "5 followed (302: 5)"),
    ],
)  # fmt: skip
def test_hosts_add_up_and_the_text_says_how_many_a_request_had(
    found: list[Seen], text: str
) -> None:
    both = account(add_redirects(found))
    assert both is not None
    assert counts_text(both) == text


def test_a_result_has_redirects_only_if_they_are_followed() -> None:
    assert account(None) is None
    assert REDIRECTS.added([]) is None
    labels = [line[:9] for line in result_lines(good_record(redirects=account(CHAIN)))]
    assert labels.count("redirects") == labels.count("each took") == 1
    assert not any(line.startswith("redirects") for line in result_lines(good_record()))
    values = record_values(good_record(redirects=account(CHAIN)))
    assert (values["redirects"], values["redirects_mean"]) == (300, 3.0)
    assert values["redirect_p50_ns"] == pytest.approx(2 * MS, rel=0.01)
    assert "redirects" not in record_values(good_record())


def test_the_page_has_a_table_of_redirects(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        page = html(store, put_records(store, [good_record(redirects=account(CHAIN))]))
    assert "Redirects that were followed" in page
    assert "3 before each answer" in page


URL = "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("flags", "message", "hint"),
    [
        ({"expect_status": ["200,302"]}, "status 302 is expected", "the final answer"),
        ({"expect_status": ["3xx"]}, "status 301 is expected", "the final answer"),
        ({"proxy": "http://127.0.0.1:3128"}, "--follow needs a request for a path", "--proxy"),
    ],
)  # fmt: skip
def test_what_follow_excludes_is_one_line_and_a_hint(
    flags: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        read_http(**{"url": URL, "follow": 3, **flags})
    assert hint in refused.value.hint


def test_a_step_may_not_expect_a_redirect_that_is_followed(tmp_path: Path) -> None:
    scenario = tmp_path / "form.toml"
    step = '[[step]]\nname = "a"\nrequest = { url = "/form" }\n'
    scenario.write_text(step)
    assert read_http(url=URL, follow=3, scenario=scenario).traffic.dialogue.follow == 3
    scenario.write_text(f"{step}expect = {{ status = 303 }}\n")
    with pytest.raises(UserError, match="status 303 is expected, but --follow follows it"):
        read_http(url=URL, follow=3, scenario=scenario)


def test_follow_needs_connections_that_are_not_opened_by_the_load() -> None:
    check_load(3, connect_open=False)
    check_load(None, connect_open=True)
    with pytest.raises(UserError, match="--follow and --connect-open cannot be used together"):
        check_load(3, connect_open=True)
