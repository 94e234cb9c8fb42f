"""docs/verdicts.md has a section for each check, as its definition says."""

from __future__ import annotations

import re

import pytest
from trueload.verdict import CHECKS

from tools import verdicts

PAGE = verdicts.PAGE.read_text()


def test_the_page_is_current() -> None:
    assert verdicts.page(PAGE) == PAGE, "run make options"


def test_every_check_has_a_section_in_the_order_of_the_table_with_its_line_and_limits() -> None:
    sections = re.split(r"(?m)^## ", PAGE)[1:]
    named = {section.split("\n", 1)[0]: section for section in sections}
    assert [name for name in named if name in CHECKS] == list(CHECKS)
    for name in CHECKS:
        assert named[name].count("**Limits:**") == 1, name


def test_a_check_without_a_section_says_what_the_page_needs() -> None:
    with pytest.raises(ValueError, match="one section '## errors': an example of its line"):
        verdicts.page(PAGE.replace("## errors\n", "## mistakes\n"))


def test_the_last_row_is_of_checks_that_leave_nothing_certain() -> None:
    named = re.findall(r"`([a-z-]+)`", verdicts.table())
    assert len(named) == len(set(named))
    others = [check.moves for check in CHECKS.values() if check.name not in named]
    assert all(moves.latency == moves.throughput == "unknown" for moves in others)


def test_remedies_are_sentences_with_flags_as_code() -> None:
    text = "Use --rate; look at `curl -v`; a_field of it; 3 more, or a lower -c."
    expected = "Use `--rate`. Look at `curl -v`; `a_field` of it; 3 more, or a lower `-c`."
    assert verdicts.marked(verdicts.sentences(text)) == expected
