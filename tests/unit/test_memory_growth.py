"""What is said of a server whose memory grows while it is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
import samples
from suite_samples import LOAD, figures, subject
from trueload.record.memory import growth_text
from trueload.report.result import result_lines
from trueload.suites.plan import Cell
from trueload.suites.summary import CellRows, summarise

MIB = 1024 * 1024
GROWN = [
    ("a leak", 4 * MIB, 804 * MIB, "the server's memory grew from 4.00 MiB to 804 MiB"),
    ("half as much again", 100 * MIB, 150 * MIB, ""),
    ("more than that", 100 * MIB, 151 * MIB, "grew from 100 MiB to 151 MiB in the window"),
    ("little in bytes", 4 * MIB, 20 * MIB, ""),
    ("less than before", 100 * MIB, 50 * MIB, ""),
    ("not known", None, 50 * MIB, ""),
]


@pytest.mark.parametrize(("what", "before", "after", "expected"), GROWN, ids=[g[0] for g in GROWN])
def test_growth_by_more_than_half_is_told(
    what: str, before: int | None, after: int, expected: str
) -> None:
    good = samples.good_record()
    assert good.server is not None
    server = good.server.model_copy(update={"rss_before_bytes": before, "rss_after_bytes": after})
    found = growth_text(server)
    assert expected in found if expected else not found, what
    lines = "\n".join(result_lines(good.model_copy(update={"server": server})))
    assert (expected in lines) if expected else ("memory grew" not in lines)


def test_no_server_that_is_seen_says_nothing() -> None:
    assert growth_text(None) == ""


def test_a_row_of_a_suite_has_it_as_a_remark() -> None:
    grown = replace(figures(), remark="the server's memory grew from 4.00 MiB to 804 MiB")
    found = summarise(CellRows(Cell(subject("a"), LOAD), [grown] * 6, planned=6))
    assert found is not None
    assert (found.verdict, found.why) == ("valid", grown.remark)
