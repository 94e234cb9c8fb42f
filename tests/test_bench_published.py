"""Short runs of the published benchmarks: what they run, and what they write."""

from __future__ import annotations

import itertools
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from harness import ROOT, Trueload

MINUTE_S = 60


NAMES = ("http-servers", "http-clients", "c10k", "ws-broadcast", "tcp-echo")


def test_all_five_take_25_minutes_at_most(bench: Any) -> None:
    published = bench["published"]
    assert tuple(published.SHORT) == NAMES
    assert len(published.SHORT) * published.BUDGET_S <= 25 * MINUTE_S


@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_each_is_one_that_the_catalogue_knows(
    bench: Any, trueload: Trueload, name: str
) -> None:
    words = bench["published"].words_of(name)
    planned = trueload.run(*words, "--dry-run", cwd=ROOT)
    assert planned.code == 0, planned
    selects = dict(itertools.pairwise(words))["--subjects"].split(",")
    wanted = sorted(select for select in selects if not select.startswith("!"))
    listed = planned.out.partition("subjects:\n")[2].partition("loads:")[0]
    assert sorted(line.strip() for line in listed.splitlines()) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_a_place_for_each(bench: Any, name: str) -> None:
    page = (ROOT / "docs" / "published.md").read_text()
    written = bench["page"].replaced(page, name, ["", "a table"], by=bench["published"].BY)
    assert f"<!-- {name}: written by make published -->\n\na table\n" in written
    with pytest.raises(ValueError, match="0 sections"):
        bench["page"].replaced(page, f"no-{name}", [], by=bench["published"].BY)


def test_the_row_whose_repetitions_differ_most_is_found(bench: Any) -> None:
    spread = bench["published"].spread
    table = [
        ([], None),
        (["[1/2] a, 8 connections, r1: 100 requests/s, valid"], None),
        (
            [
                "[ 1/24] a, 8 connections, r1: 1,000 requests/s, valid",
                "[ 2/24] a, 8 connections, r2: 2,500 requests/s, suspect",
                "[ 3/24] a, 8 connections, r3: 9,000 requests/s, invalid",
                "[ 4/24] b, 8 connections, r1: 10 requests/s, valid",
                "[ 5/24] b, 8 connections, r2: 11 requests/s, valid",
                "[ 6/24] b, 8 connections, r3: failed: it ended",
            ],
            ("a, 8 connections", 2.5),
        ),
    ]
    for lines, expected in table:
        assert spread(lines) == expected


def test_a_section_says_which_command_on_which_machine_and_whether_it_was_cut_short(
    bench: Any,
) -> None:
    words = ("suite", "run", "tcp-echo", "--subjects", "rust/mio,!rust/mio:prefork")
    machine = bench["machine"].Machine("A CPU", 2, "6.18", "cubic", "2026-11-22", {"wrk": "4.2"})
    table = "whose  server\nours   rust/mio\n"
    trial = "[ 1/24] rust/mio, 640 connections, single core, r1: 250,000 requests/s, valid"
    output = f"run x: 24 trials\nbuilding rust/mio …\n{trial}\nsaved: trueload runs show x\n"
    found = bench["published"].repetitions(output)
    assert found == (trial,)
    short = bench["published"].Short(words, table, found, "{}", cut_short=True)
    lines = bench["published"].section("tcp-echo", short, machine, "Others took nothing.")
    text = "\n".join(lines)
    assert "`trueload suite run tcp-echo --subjects 'rust/mio,!rust/mio:prefork'`" in text
    assert "A CPU, 2 CPUs, Linux 6.18, 2026-11-22. Others took nothing. It was cut short" in text
    assert "[A short run](published/short-tcp-echo.txt), `trueload suite run" in text
    assert "[Each repetition](published/repetitions-tcp-echo.txt) has" in text
    assert "trueload report" not in text, "that run is not in the repository"
    assert trial not in text
    whole = bench["published"].Short(words, "", (), "{}", cut_short=False)
    assert "cut short" not in "\n".join(bench["published"].section("c10k", whole, machine, ""))


def test_the_run_that_is_kept_is_one_to_try_reports_on(
    bench: Any, trueload: Trueload, tmp_path: Path
) -> None:
    run = bench["published"].run_of(bench["published"].KEPT)
    assert run.is_relative_to(ROOT / "docs")
    assert trueload.run("report", str(run), "-o", str(tmp_path / "page.html")).code == 0


def test_a_whole_run_is_of_one_suite(bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--whole"], ["--whole", "--only", "c10k", "--only", "tcp-echo"]):
        with pytest.raises(SystemExit):
            bench["published"].main(words)
        assert "--whole needs one suite: --only NAME" in capsys.readouterr().err


def test_a_whole_run_is_shipped_without_the_output_of_builds(bench: Any) -> None:
    skipped = "the fetch failed with exit code 2: sh mix.sh: see /builds/log"
    invalid = "starvation: 1 of 64 slots waited"
    exported = {
        "row_count": 3,
        "rows": [
            _row("64", "skipped", skipped, "see /builds/log"),
            _row("64", "measured", invalid, ""),
            _row("2", "measured", None, ""),
        ],
    }
    shipped = _shipped(bench, exported, ())
    assert [row["reason"] for row in shipped["rows"]] == [
        "the fetch failed with exit code 2",
        invalid,
        None,
    ]
    assert "builds" not in json.dumps(shipped)
    assert shipped["row_count"] == 3


def test_of_a_large_run_some_numbers_of_connections_are_shipped(bench: Any) -> None:
    rows = [_row(connections, "measured", None, "") for connections in ("2", "64", "64")]
    shipped = _shipped(bench, {"row_count": 3, "rows": rows}, ("64",))
    assert [row["labels"]["connections"] for row in shipped["rows"]] == ["64", "64"]
    assert [row["number"] for row in shipped["rows"]] == [1, 2]
    assert shipped["row_count"] == 2


def _row(connections: str, outcome: str, reason: str | None, detail: str) -> dict[str, Any]:
    labels = {"connections": connections}
    return {"labels": labels, "outcome": outcome, "reason": reason, "detail": detail}


def _shipped(bench: Any, exported: dict[str, Any], connections: tuple[str, ...]) -> Any:
    packed = bench["published"].packed(json.dumps(exported), connections)
    return json.loads(lzma.decompress(packed))
