"""The benchmark's pure parts: the order of runs, and what is computed from the samples."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from harness import ROOT


def all_cells(bench: Any) -> list[Any]:
    return [cell for group in bench["cells"].groups() for cell in group]


def sample(bench: Any, number: int, cell: Any, cpu_s: float, server_cpu_s: float = 1.0) -> Any:
    return bench["results"].Sample(
        round=number,
        cell=cell,
        requests=1_000_000,
        wall_s=2.0,
        cpu_s=cpu_s,
        server_cpu_s=server_cpu_s,
        peak_rss_bytes=None,
    )


def test_each_cell_has_one_turn_in_each_round_in_an_order_that_the_seed_decides(bench: Any) -> None:
    schedule, listed = bench["cells"].schedule, bench["cells"].groups()
    turns = schedule(listed, 15, seed=1)
    counted = Counter((turn.round, turn.cell) for turn in turns)
    assert set(counted.values()) == {1}
    assert all((number, cell) in counted for number in range(15) for cell in all_cells(bench))
    assert turns == schedule(listed, 15, seed=1)
    assert turns != schedule(listed, 15, seed=2)


def test_generators_that_are_compared_take_their_turns_one_right_after_the_other(
    bench: Any,
) -> None:
    listed = bench["cells"].groups()
    turns = [turn.cell for turn in bench["cells"].schedule(listed, 3, seed=1)]
    for group in listed:
        places = [place for place, cell in enumerate(turns) if cell in group]
        rounds = [places[at : at + len(group)] for at in range(0, len(places), len(group))]
        assert len(rounds) == 3
        assert all(each[-1] - each[0] == len(group) - 1 for each in rounds), group


@pytest.mark.parametrize("report", ["cells", "http2"])
def test_every_target_compares_cells_that_are_measured(bench: Any, report: str) -> None:
    measured = {cell for group in bench[report].groups() for cell in group}
    targets = bench[report].targets()
    assert len({target.what for target in targets}) == len(targets)
    for target in targets:
        assert {target.cell, target.against} <= measured, target.what


def test_a_ratio_is_the_median_of_those_within_rounds_with_the_least_and_the_most(
    bench: Any,
) -> None:
    ours, theirs = all_cells(bench)[:2]
    costs = [(1.0, 2.0), (3.0, 4.0), (2.0, 8.0)]
    samples = []
    for number, (one, two) in enumerate(costs):
        samples += [sample(bench, number, ours, one), sample(bench, number, theirs, two)]
    # A round in which only one of the two could be measured makes no pair.
    samples.append(sample(bench, 3, ours, 9.0))
    found = bench["results"].ratio(samples, ours, theirs, "generator")
    assert (found.middle, found.least, found.most, found.count) == (0.5, 0.25, 0.75, 3)


@pytest.mark.parametrize(
    ("cost", "word"), [(0.74, "met"), (0.75, "met"), (0.76, "missed"), (None, "not measured")]
)
def test_a_target_is_marked_by_the_ratio_reached(bench: Any, cost: float | None, word: str) -> None:
    target = bench["cells"].targets()[0]
    samples = [sample(bench, 0, target.against, 1.0)]
    if cost is not None:
        samples.append(sample(bench, 0, target.cell, cost))
    assert bench["results"].marks(samples, [target], {})[0].word == word


def test_a_limit_from_below_is_kept_from_above(bench: Any) -> None:
    limit = bench["marks"].Limit(1.8, at_least=True)
    assert [limit.is_kept_by(figure) for figure in (1.79, 1.8, 1.81)] == [False, True, True]
    assert str(limit) == "≥ 1.8"


def test_who_is_absent_has_no_turn_and_its_targets_say_why(bench: Any) -> None:
    cells, absent = bench["cells"], {"oha": "there is no cargo", cells_tls(bench): "no TLS"}
    left = [cell for group in cells.without(cells.groups(), absent) for cell in group]
    assert left
    assert not {cell.tool for cell in left} & {"oha"}
    assert not {cell.server for cell in left} & {cells_tls(bench)}
    marked = bench["results"].marks([], cells.targets(), absent)
    measured = {mark.measured for mark in marked}
    assert {"there is no cargo", "no TLS"} <= measured
    assert {mark.word for mark in marked} == {"not measured"}


def test_of_what_is_absent_no_version_is_told_whatever_would_tell_it(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench["machine"], "_found", lambda program: program == "dpkg-query")
    assert bench["machine"].describe().versions == {}


def cells_tls(bench: Any) -> str:
    return str(bench["cells"].TLS)


@pytest.mark.parametrize(
    ("mets", "code"),
    [([True, True], 0), ([True, None], 0), ([True, False], 1), ([None, None], 1), ([], 1)],
)
def test_a_missed_target_ends_with_1_and_so_does_nothing_at_all(
    bench: Any, mets: list[bool | None], code: int
) -> None:
    marks = bench["marks"]
    assert marks.exit_code([marks.Mark("it", "≤ 1", "", met) for met in mets]) == code


def test_a_cell_that_was_not_measured_is_said_so(bench: Any) -> None:
    listed = bench["cells"].groups()
    lines = bench["results"].table([], listed)
    assert len(lines) == 2 + len([cell for cell in all_cells(bench) if not cell.memory])
    assert all("not measured" in line for line in lines[2:])


REPORT = """A machine.

| target | limit | measured | |
|---|---|---|---|
| one | ≤ 1 | 0.5 | met |
| two | ≤ 1 | 1.5 | **missed** |

2 targets: 1 met, 1 missed, 0 not measured.

| server | generator | CPU µs/request | server CPU µs/request | our req/s / its |
|---|---|--:|--:|--:|
| nginx | wrk | 6.19 (6.07 to 7.94) | 6.04 | 1.066 (0.898 to 1.149) |
| nginx | a bare loop | 5.00 | 6.00 | |
"""


def test_a_page_shows_of_a_report_what_its_readers_need(bench: Any) -> None:
    shortened, lines = bench["page"].shortened, REPORT.split("\n")
    text = "\n".join(shortened("http2", lines))
    assert "| one |" not in text
    assert "| two | ≤ 1 | 1.5 | **missed** |" in text
    assert text.endswith(
        "| server | generator | CPU µs/request |\n|---|---|--:|\n| nginx | wrk | 6.19 |\n"
    )
    met = [line for line in lines if "missed" not in line or "targets" in line]
    assert "| target |" not in "\n".join(shortened("http2", met)), "no row is left"
    assert shortened("pacing", lines) == lines


def outside(text: str, name: str) -> tuple[str, str]:
    """The page before and after a section."""
    before, _, rest = text.partition(f"<!-- {name}:")
    return before, rest.partition(f"<!-- end of {name} -->")[2]


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("PERFORMANCE", "peers"),
        ("PERFORMANCE", "http2"),
        ("ACCURACY", "breakdown"),
        ("ACCURACY", "floor"),
        ("PERFORMANCE", "truth"),
        ("ACCURACY", "witness"),
        ("ACCURACY", "pacing"),
        ("ACCURACY", "openloop"),
    ],
)
def test_a_report_is_written_into_its_own_section_of_the_page_and_nowhere_else(
    bench: Any, where: str, name: str
) -> None:
    page = bench["page"]
    text = getattr(page, where).read_text()
    written = page.replaced(text, name, ["one \\1 line", "another"])
    assert "\none \\1 line\nanother\n" in written
    assert outside(written, name) == outside(text, name)
    assert page.replaced(written, name, ["new"]) == page.replaced(text, name, ["new"])
    with pytest.raises(ValueError, match="0 sections called another"):
        page.replaced(text, "another", [])


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        (
            "requests: 40 total, 20 done, 20 succeeded, 20 failed, 20 errored, 0 timeout\n"
            "time for request:      198us      610us      358us      130us    60.00%",
            (20, 20, "mean 358us", 0),
        ),
        ("requests: 20 total, 20 started, 0 done, 0 succeeded, 0 failed, 0 errored, 9 timeout\n"
         "time for request:        0us        0us        0us        0us     0.00%", (0, 0, "", 0)),
        ("killed", (0, 0, "prints no counts", 0)),
    ],
)  # fmt: skip
def test_what_h2load_says_of_a_trap_is_read(
    bench: Any, out: str, expected: tuple[object, ...]
) -> None:
    found = bench["traps2"].read_h2load(0, out, ROOT)
    assert (found.ok, found.failed, found.remark, found.code) == expected


def test_a_trap_is_not_right_for_another_class_or_exit_code(bench: Any) -> None:
    is_right = bench["traps2"].only("h2.stream", 4)
    record = {"counts": {"ok": 0, "failed": {"h2.stream": 3, "status": 0}}}
    assert is_right(record, 4)
    assert not is_right(record, 0)
    assert not is_right({"counts": {"ok": 0, "failed": {"status": 3}}}, 4)
    assert not is_right({"counts": {"ok": 1, "failed": {"h2.stream": 3}}}, 4)
