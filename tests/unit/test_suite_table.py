"""From rows to a table: what may be ranked, what stands apart, and that no text does harm."""

from __future__ import annotations

import csv
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest
import samples
from suite_samples import LOAD, figures, invalid, plan, subject
from trueload.cli.suite import exit_code
from trueload.errors import ExitCode
from trueload.record.schema import Check, CoreLatency, Record
from trueload.report import columns, table
from trueload.report.export.csv import csv_lines
from trueload.store.rows import DamagedRow, Row
from trueload.suites.definition import PublishedRow, PublishedTable
from trueload.suites.figures import Figures
from trueload.suites.figures import figures as figures_of
from trueload.suites.load_tables import LoadTable, run_verdict, tabulate
from trueload.suites.plan import Cell, PlannedLoad, PlannedSubject, Trial
from trueload.suites.summary import CellRows, RunCells, collect, judge, summarise
from trueload.text import plain

PUBLISHED, OURS = (
    tuple(column.heading for column in each) for each in (columns.PUBLISHED, columns.OURS)
)

SUSPECT = figures(verdict="suspect", reasons=("fairness: uneven",))
GOOD = figures()
BOUNDED = replace(invalid("hiccup"), lower_bound=True)

# Repetitions, reasons of failed ones: the cell's verdict and a word of its reason.
JUDGED: list[tuple[str, list[Figures], list[str], str, str]] = [
    ("all valid", [GOOD] * 3, [], "valid", ""),
    ("one suspect", [GOOD, SUSPECT, GOOD], [], "suspect", "fairness: uneven"),
    ("the subject's fault", [GOOD] * 5 + [invalid("unsolicited")], [], "invalid", "unsolicited"),
    ("errors once", [GOOD] * 5 + [invalid("errors")], [], "invalid", "errors"),
    ("it died once", [GOOD] * 5 + [invalid("died")], [], "invalid", "died"),
    ("the machine's fault", [GOOD, GOOD, invalid("generator-limit")], [], "suspect", "1 of 3"),
    ("mostly so", [GOOD, *[invalid("generator-limit")] * 2], [], "invalid", "generator"),
    ("half of them", [GOOD, invalid("generator-limit")], [], "invalid", "generator-limit"),
    ("one failed to start", [GOOD, GOOD], ["no port"], "suspect", "1 of 3 repetitions failed"),
    ("most failed to start", [GOOD], ["no port", "no port"], "invalid", "no port"),
    ("noise, and it hung once", [invalid("noise")], ["no answer"], "invalid", "no answer"),
    ("noise always", [BOUNDED] * 6, [], "suspect", "disturbed, so at least this much: hiccup"),
    ("noise mostly", [GOOD, *[BOUNDED] * 5], [], "suspect", "disturbed, so at least this much"),
    (
        "noise that made the rate uneven",
        [replace(BOUNDED, failed_checks=("steady-state", "hiccup"))] * 6,
        [],
        "suspect",
        "at least",
    ),
    ("uneven by itself", [invalid("steady-state")] * 6, [], "invalid", "steady-state"),
    ("noise, and a failure", [BOUNDED] * 5, ["no port"], "invalid", "no port"),
    ("no reason at all", [figures(verdict="invalid")], [], "invalid", "its checks failed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "done", "failed", "verdict", "word"), JUDGED, ids=lambda v: str(v)[:25]
)
def test_a_cell_is_only_as_good_as_its_repetitions(
    what: str, done: list[Figures], failed: list[str], verdict: str, word: str
) -> None:
    found, why = judge(done, failed)
    assert found == verdict, what
    assert word in why, what


def cell_rows(each: PlannedSubject, *measured: Figures, **more: object) -> CellRows:
    return CellRows(Cell(each, LOAD), list(measured), **more)  # type: ignore[arg-type]


def test_figures_of_a_cell_are_medians_sums_and_extremes() -> None:
    some = [
        figures(90.0, errors=1, min_ms=0.3, max_ms=9.0, p50_ms=1.0),
        figures(100.0, errors=2, min_ms=0.1, max_ms=1.0, p50_ms=2.0),
        figures(300.0, errors=0, min_ms=0.2, max_ms=2.0, p50_ms=9.0),
    ]
    summary = summarise(cell_rows(subject("a"), *some))
    assert summary is not None
    shown = summary.figures
    assert shown is not None
    assert (shown.ok_per_s, shown.ms("p50")) == (100.0, 2.0)
    assert (shown.requests, shown.errors) == (3000, 3)
    assert (shown.ms("min"), shown.ms("max")) == (0.1, 9.0), "a median would hide the worst"
    assert summary.best is not None
    assert summary.best.ok_per_s == 300.0
    assert summary.interval is not None
    assert (summary.interval.low, summary.interval.high) == (90.0, 300.0)
    assert summary.interval.kind == "range"


def test_a_spoilt_repetition_never_lends_its_figures() -> None:
    summary = summarise(cell_rows(subject("a"), GOOD, GOOD, invalid("generator-limit", 9e9)))
    assert summary is not None
    assert summary.best is not None
    assert summary.best.ok_per_s == 100.0
    assert summary.counted == 2


def test_repetitions_of_two_states_of_a_subject_are_suspect() -> None:
    summary = summarise(cell_rows(subject("a"), GOOD, GOOD, digests={"x", "y"}))
    assert summary is not None
    assert summary.verdict == "suspect"
    assert "changed in mid-run" in summary.why


def one_table(*cells: CellRows) -> LoadTable:
    made = plan(*(rows.cell.subject for rows in cells))
    (only,) = tabulate(RunCells(tuple(cells), (), ()), made)
    return only


def test_invalid_rows_and_traps_are_never_ranked() -> None:
    found = one_table(
        cell_rows(subject("slow"), *[figures(100.0)] * 6),
        cell_rows(subject("fast"), *[figures(200.0)] * 6),
        cell_rows(subject("liar"), *[invalid("unsolicited", 9000.0)] * 6),
        cell_rows(subject("trap", trap=True), *[figures(8000.0)] * 6),
        cell_rows(subject("broken"), failed=["it does not build"]),
        cell_rows(subject("absent"), skipped="no compiler"),
    )
    assert [(s.cell.subject.framework, s.rank) for s in found.ranked] == [("fast", 1), ("slow", 2)]
    assert [s.cell.subject.framework for s in found.invalid] == ["liar"]
    assert [s.cell.subject.framework for s in found.traps] == ["trap"]
    assert [s.outcome for s in found.unmeasured] == ["failed", "skipped"]
    shown = table.text([found], width=None, published=False)
    below = shown.index("Invalid, not ranked:")
    assert shown.index("fast") < below < shown.index("liar")
    assert "c/liar: unsolicited: why" in shown
    assert "c/broken: it does not build" in shown
    assert "c/absent: no compiler" in shown


def test_a_row_has_the_ranks_that_it_may_have() -> None:
    found = one_table(
        cell_rows(subject("a"), *[figures(100.0 + n) for n in range(6)]),
        cell_rows(subject("b"), *[figures(101.0 + n) for n in range(6)]),
        cell_rows(subject("c"), *[figures(50.0 + n) for n in range(6)]),
    )
    ranked = [(s.cell.subject.framework, str(s.places)) for s in found.ranked]
    assert ranked == [("b", "1-2"), ("a", "1-2"), ("c", "3")]
    assert table.RANGES in table.text([found], width=None, published=False)
    lines = csv.DictReader(csv_lines(table.sheet([found], published=False)))
    assert [(line["rank"], line["rank_last"]) for line in lines] == [("1", "2")] * 2 + [("3", "3")]


def test_a_disturbed_row_is_ranked_above_those_that_it_certainly_beats() -> None:
    def disturbed(per_s: float) -> Figures:
        return replace(invalid("hiccup", per_s), lower_bound=True)

    found = one_table(
        cell_rows(subject("bounded"), *[disturbed(100.0 + n) for n in range(6)]),
        cell_rows(subject("slow"), *[figures(50.0 + n) for n in range(6)]),
        cell_rows(subject("fast"), *[figures(200.0 + n) for n in range(6)]),
    )
    # The bounded one may carry more than the fast one, and carries more than the slow one.
    ranked = [(s.cell.subject.framework, str(s.places)) for s in found.ranked]
    assert ranked == [("fast", "1-2"), ("bounded", "1-2"), ("slow", "3")]
    bounded = found.ranked[1]
    assert (bounded.lower_bound, bounded.verdict, bounded.score) == (True, "suspect", 102.5)
    assert bounded.counted == 6
    assert "≥ 102" in table.text([found], width=None, published=False)
    assert run_verdict([found]) == "suspect"
    assert exit_code([found]) == ExitCode.OK


def test_too_few_repetitions_give_an_order_and_no_ranks() -> None:
    found = one_table(
        cell_rows(subject("a"), *[figures(100.0)] * 5), cell_rows(subject("b"), *[figures(9.0)] * 6)
    )
    assert [(s.cell.subject.framework, s.places) for s in found.ranked] == [
        ("a", None),
        ("b", None),
    ]
    text = table.text([found], width=None, published=False)
    assert "No ranks: they need 6 repetitions (--repeat 6), and a row has 5." in text
    assert "rank  " not in text, "an empty column says nothing"
    assert exit_code([found]) == ExitCode.OK


def test_the_interval_says_whether_it_is_a_range() -> None:
    few = one_table(cell_rows(subject("a"), figures(90.0), figures(110.0)))
    many = one_table(cell_rows(subject("a"), *[figures(90.0 + n) for n in range(6)]))
    assert "90-110 (range)" in table.text([few], width=None, published=False)
    text = table.text([many], width=None, published=False)
    assert "(range)" not in text
    assert "95 % by rank" in text


ENDS = [
    ("something is ranked", [cell_rows(subject("a"), GOOD)], ExitCode.OK, "valid"),
    ("all invalid", [cell_rows(subject("a"), invalid("errors"))], ExitCode.INVALID, "invalid"),
    ("none measured", [cell_rows(subject("a"), failed=["x"])], ExitCode.NOTHING_MEASURED, None),
    (
        "one of both",
        [cell_rows(subject("a"), GOOD), cell_rows(subject("b"), invalid("errors"))],
        ExitCode.OK,
        "suspect",
    ),
    ("no rows at all", [cell_rows(subject("a"))], ExitCode.NOTHING_MEASURED, None),
]


@pytest.mark.parametrize(("what", "cells", "code", "verdict"), ENDS, ids=[e[0] for e in ENDS])
def test_the_exit_code_agrees_with_the_table(
    what: str, cells: list[CellRows], code: ExitCode, verdict: str | None
) -> None:
    found = one_table(*cells)
    assert exit_code([found]) == code
    assert run_verdict([found]) == verdict
    for text in (
        table.text([found], width=None, published=True),
        table.text([found], width=60, published=True),
        table.markdown([found], published=True),
        "".join(csv_lines(table.sheet([found], published=True))),
    ):
        assert text.endswith("\n"), what


def test_nothing_answered_renders_as_blanks_not_as_zero() -> None:
    nothing = figures(
        None, verdict="invalid", failed_checks=("errors",), requests=50, errors=50,
        bytes_per_s=None, min_ms=None, p25_ms=None, p50_ms=None, p75_ms=None, p99_ms=None,
        max_ms=None, cpu_share=None, peak_rss_bytes=None, response_bytes=None,
    )  # fmt: skip
    found = one_table(cell_rows(subject("a"), nothing))
    (row,) = csv.DictReader(csv_lines(table.sheet([found], published=False)))
    assert (row["Req"], row["Err"], row["RPS"], row["min"], row["rank"]) == ("50", "50", "", "", "")


BRIEF = ("subject", "RPS", "rank", "interval", "50%", "99%", "Err", "CPU", "memory", "verdict")


def wide_cells() -> list[CellRows]:
    return [
        cell_rows(subject(f"framework-{n}"), *[figures(123_456.0 + n, requests=9_999_999)] * 6)
        for n in range(3)
    ]


@pytest.mark.parametrize(
    ("width", "without"), [(None, ()), (200, ()), (60, ("memory", "interval"))]
)
def test_a_table_has_the_columns_that_fit(width: int | None, without: tuple[str, ...]) -> None:
    lines = table.text([one_table(*wide_cells())], width=width, published=False).splitlines()
    assert max(map(len, lines)) <= 100
    assert max(map(len, lines[2:6])) <= (width or 100)
    assert lines[2].split() == [name for name in BRIEF if name not in without]


def test_published_columns_stand_in_whole_rows_however_narrow_the_terminal_is() -> None:
    for width in (None, 100):
        whole = table.text([one_table(*wide_cells())], width=width, published=True)
        header = next(line for line in whole.splitlines() if line.startswith("Language"))
        ours = [name for name in OURS if name not in ("estimate", "ratio")]
        assert header.split() == [*PUBLISHED, *ours]


def rated_table(*measured: Figures) -> LoadTable:
    """One subject at 20,000/s."""
    load = LOAD.model_copy(update={"rate_per_s": 20_000.0})
    rows = CellRows(Cell(subject("a"), load), list(measured))
    (only,) = tabulate(RunCells((rows,), (), ()), plan(subject("a"), loads=[load]))
    return only


def test_a_load_with_a_rate_has_a_column_for_it_in_every_format() -> None:
    tables = [one_table(cell_rows(subject("a"), GOOD)), rated_table(GOOD)]
    shown = table.text(tables, width=None, published=True)
    headers = [line.split() for line in shown.splitlines() if line.startswith("Language")]
    ours = [name for name in OURS if name not in ("rank", "estimate", "ratio")]
    whole, rated = (*PUBLISHED, *ours), (*PUBLISHED, "rate", *ours)
    best = PUBLISHED
    assert headers == [list(each) for each in (whole, best, rated, best)]
    assert "20000/s" in shown
    assert shown.count("rate: what was offered") == 1
    assert "20000/s" in table.text([tables[1]], width=None, published=False)
    marked = table.markdown(tables, published=True).splitlines()
    titles = [line for line in marked if line.startswith("| Language")]
    assert [" rate " in line for line in titles] == [False, False, True, False]
    rows = list(csv.DictReader(csv_lines(table.sheet(tables, published=False))))
    assert [row["rate_per_s"] for row in rows] == ["", "20000"]


def test_a_time_that_is_only_a_lower_bound_is_marked_so() -> None:
    bound = figures(p99_ms=5000.0, max_ms=5000.0, latency_at_least=("p99",))
    tables = [rated_table(GOOD, bound, bound)]
    shown = table.text(tables, width=None, published=True)
    row = next(line for line in shown.splitlines() if line.startswith("c "))
    assert "0.400  > 5000.000  5000.000" in row
    assert "A time after > is a lower bound" in shown
    assert "\\> 5000.000" in table.markdown(tables, published=False)
    (line,) = csv.DictReader(csv_lines(table.sheet(tables, published=False)))
    assert (line["99%"], line["max"]) == ("5000.000", "5000.000"), "a number stays a number"
    assert line["latency_at_least"] == "p99"


# p99 of three repetitions, which of them are lower bounds: the median, and whether it is one.
MEDIAN_BOUNDS = [
    ([(1, False), (2, False), (3, False)], 2, False),
    ([(1, False), (2, False), (3, True)], 2, False),
    ([(1, False), (2, True), (3, False)], 3, False),
    ([(1, True), (2, False), (3, False)], 3, False),
    ([(1, False), (2, True), (3, True)], 2, True),
    ([(2, True), (2, True), (2, True)], 2, True),
]


@pytest.mark.parametrize(("some", "median", "above"), MEDIAN_BOUNDS, ids=str)
def test_what_is_not_known_counts_as_slower_than_any_in_a_median_too(
    some: list[tuple[int, bool]], median: int, above: bool
) -> None:
    done = [
        figures(p99_ms=float(ms), latency_at_least=("p99",) if bound else ()) for ms, bound in some
    ]
    summary = summarise(cell_rows(subject("a"), *done))
    assert summary is not None
    assert summary.figures is not None
    assert summary.figures.ms("p99") == median
    assert ("p99" in summary.figures.latency_at_least) is above


def test_requests_that_never_ended_make_the_times_of_a_row_lower_bounds() -> None:
    trial = Trial(Cell(subject("a"), LOAD), 1)
    cut = samples.good_record(counts=samples.counts(ok=9_800, cancelled=200))
    assert figures_of(cut, {}).latency_at_least == ("p99",)
    latency = figures_of(cut, {}).latency
    assert latency.p99 == latency.max, "it is more than all known"
    assert figures_of(samples.good_record(), {}).latency_at_least == ()
    found = collect(plan(subject("a")), [row_of(trial, cut, 1)])
    assert found.cells[0].measured[0].latency_at_least == ("p99",)


HOSTILE = "\x1b]0;owned\x07\x1b[31m=cmd|'/c calc'!A1\n<script>alert(1)</script>\u2028\u202e|x"


def test_hostile_text_reaches_neither_terminal_nor_spreadsheet_nor_page() -> None:
    liar = subject("liar").model_copy(update={"variant": HOSTILE, "name": "c/liar:" + HOSTILE})
    worst = figures(verdict="suspect", reasons=(HOSTILE,))
    found = one_table(cell_rows(liar, worst), cell_rows(subject("b"), failed=[HOSTILE]))
    for width in (None, 80):
        shown = table.text([found], width=width, published=True)
        assert all(c == "\n" or c.isprintable() for c in shown)
    for row in csv.reader(csv_lines(table.sheet([found], published=True))):
        assert not any(cell[:1] in ("=", "+", "-", "@") for cell in row), row
    marked = table.markdown([found], published=True)
    assert "<script>" not in marked
    for line in marked.splitlines():
        if line.startswith("| c"):
            # One repetition has no rank, no estimate and no ratio.
            assert line.replace("\\|", "").count("|") in (
                len(PUBLISHED + OURS) - 2,
                len(PUBLISHED) + 1,
            )


PLAIN = [
    ("a\x1b[31mred\x1b[0m", "ared"),
    ("\x1b]0;title\x07x", "x"),
    ("tab\tand\nline", "tab and line"),
    ("\u202eevil\u2028", "evil"),
    ("nul\0x", "nulx"),
    ("fine: ü 漢 ✓", "fine: ü 漢 ✓"),
]


@pytest.mark.parametrize(("text", "expected"), PLAIN)
def test_plain_text_is_one_line_without_control_characters(text: str, expected: str) -> None:
    assert plain(text) == expected


def row_of(trial: Trial, record: Record, number: int) -> Row:
    labels = {"repetition": f"r{trial.repetition}", "response_bytes": "192", "digest": ""}
    return Row(
        seq=number, number=number, key=trial.key, labels=labels, outcome="measured",
        reason=None, detail=None, added_at="", record=record,
    )  # fmt: skip


def test_rows_find_their_cells_and_damaged_ones_are_told() -> None:
    made = plan(subject("a"), subject("b"), repeat=2)
    record = samples.good_record()
    trials = [Trial(Cell(each, LOAD), number) for each in made.subjects for number in (1, 2)]
    rows: list[Row | DamagedRow] = [row_of(t, record, n) for n, t in enumerate(trials)]
    cut_short = row_of(trials[0], record, 9)
    rows.append(Row(**{**cut_short.__dict__, "key": f"{trials[0].key} partial"}))
    rows.append(DamagedRow(7, "its checksum is another"))
    found = collect(made, rows)
    assert [len(each.measured) for each in found.cells] == [2, 2]
    assert found.damaged == ("row 7 is damaged: its checksum is another",)
    assert {check.name for check in found.checks} == {check.name for check in record.checks}
    (only,) = tabulate(found, made)
    shown = only.ranked[0].figures
    assert shown is not None
    assert shown.ok_per_s == samples.OK
    assert shown.cpu_share == pytest.approx(0.6)


def test_a_suite_whose_cpus_were_moved_from_trial_to_trial_says_so() -> None:
    made = plan(subject("a"), subject("b"), repeat=1)
    trials = [Trial(Cell(each, LOAD), 1) for each in made.subjects]
    near, far = (
        samples.good_record(cpu_distance=CoreLatency(cpus=(1, 0), before_ns=ns, after_ns=ns))
        for ns in (90.0, 400.0)
    )
    moved = collect(made, [row_of(trials[0], near, 1), row_of(trials[1], far, 2)]).moved
    assert moved.endswith("took 90 ns to 400 ns")
    assert collect(made, [row_of(each, far, 1) for each in trials]).moved == ""


def test_each_check_is_kept_as_it_came_out_worst() -> None:
    made = plan(subject("a"), repeat=3)
    cell = Cell(made.subjects[0], LOAD)

    def record(status: str) -> Record:
        check = Check(name="errors", status=status, value=None, limit=None, why=status)  # type: ignore[arg-type]
        return samples.good_record().model_copy(update={"checks": (check,)})

    rows = [row_of(Trial(cell, n), record(s), n) for n, s in enumerate(("pass", "fail", "warn"), 1)]
    assert [check.status for check in collect(made, rows).checks] == ["fail"]


@pytest.mark.slow
def test_a_run_of_2000_cells_is_summed_up_in_bounded_memory() -> None:
    subjects = [subject(f"s{number}") for number in range(500)]
    loads = [PlannedLoad(connections=n, pipeline=1, cores="single") for n in (1, 2, 3, 4)]
    made = plan(*subjects, repeat=1, loads=loads)
    text = samples.good_record().model_dump_json(by_alias=True)

    def rows() -> Iterator[Row]:
        """Each record again, as the store reads them: kept, they would fill 20 MB and more."""
        number = 0
        for each in made.subjects:
            for load in made.loads:
                number += 1
                record = Record.model_validate_json(text)
                yield row_of(Trial(Cell(each, load), 1), record, number)

    tracemalloc.start()
    found = collect(made, rows())
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.cells) == 2_000
    assert peak_bytes < 8 << 20, f"{peak_bytes / 2**20:.0f} MiB"
    tables = tabulate(found, made)
    assert [len(each.ranked) for each in tables] == [500] * 4


def test_published_figures_stand_beside_ours() -> None:
    rows = (
        PublishedRow(name="old a", value=158, subject="c/a"),
        PublishedRow(name="old b", value=40, subject="c/b"),
        PublishedRow(name="gone", value=341),
    )
    published = PublishedTable(title="As published:", connections=64, rows=rows)
    elsewhere = published.model_copy(update={"connections": 65})
    a, b = subject("a"), subject("b")
    whole = plan(a, b).model_copy(update={"published_tables": (published, elsewhere)})
    cells = (
        cell_rows(a, *[figures(158_400.0)] * 3),
        cell_rows(b, failed=["it did not start"]),
    )
    (found,) = tabulate(RunCells(cells, (), ()), whole)
    shown = table.text([found], width=None, published=False)
    lines = shown.partition("As published:\n")[2].splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["published", "k/s", "ours", "k", "RPS", "within", "verdict"],
        ["old", "a", "158", "c/a", "158.4", "158.4-158.4", "valid"],
        ["old", "b", "40", "c/b", "failed"],
        ["gone", "341"],
    ]
    assert shown.count("As published:") == 1, "the other load is not among ours"
    assert "| old a | 158 |" in table.markdown([found], published=False)


NO_TOOL = "it needs php, which is not here"
LOADS = [PlannedLoad(connections=n, pipeline=1, cores="single") for n in (8, 64, 512)]


def skipped(name: str, load: int, why: str = NO_TOOL) -> CellRows:
    return CellRows(Cell(subject(name), LOADS[load]), skipped=why)


def measured(name: str, load: int) -> CellRows:
    return CellRows(Cell(subject(name), LOADS[load]), measured=[figures()])


# Rows of subjects, how often each reason is said, and where.
SUMMARIES = [
    (
        "under every load",
        [skipped("a", 0), skipped("a", 1), skipped("a", 2), measured("b", 0)],
        ["Skipped under every load:", f"  c/a: {NO_TOOL}"],
    ),
    (
        "under one of them",
        [skipped("a", 1), measured("a", 0), measured("a", 2)],
        ["Skipped:", f"  c/a: {NO_TOOL}"],
    ),
    (
        "for two reasons",
        [skipped("a", 0), skipped("a", 1), skipped("a", 2, "it runs with --cores multi only")],
        [
            *("Skipped:", f"  c/a: {NO_TOOL}", "Skipped:", f"  c/a: {NO_TOOL}"),
            *("Skipped:", "  c/a: it runs with --cores multi only"),
        ],
    ),
    (
        "two subjects under every load",
        [skipped(name, load) for load in range(3) for name in "ab"],
        ["Skipped under every load:", f"  c/a: {NO_TOOL}", f"  c/b: {NO_TOOL}"],
    ),
]


@pytest.mark.parametrize(("what", "rows", "lines"), SUMMARIES, ids=[what for what, *_ in SUMMARIES])
def test_why_a_subject_was_not_measured_is_said_once(
    what: str, rows: list[CellRows], lines: list[str]
) -> None:
    made = plan(subject("a"), subject("b"), repeat=1, loads=LOADS)
    tables = tabulate(RunCells(tuple(rows), (), ()), made)
    text = table.text(tables, width=None, published=False)
    found = [line for line in text.splitlines() if "kipped" in line or line.startswith("  c/")]
    assert found == lines, what
    listed = table.markdown(tables, published=False).splitlines()
    assert [line[2:] for line in listed if line.startswith("- ")] == [
        line.strip() for line in lines if line.startswith("  ")
    ]
    assert len(list(csv_lines(table.sheet(tables, published=False)))) >= len(rows), "each row"


def test_a_lower_bound_is_marked_and_never_ranked_below_a_row_that_it_may_exceed() -> None:
    why = "generator-limit: co-limited, a lower bound"
    bound = figures(90.0, lower_bound=True, reasons=(why,))
    found = one_table(
        cell_rows(subject("above"), *[figures(100.0)] * 6),
        cell_rows(subject("bound"), *[bound] * 5, figures(90.0)),
        cell_rows(subject("below"), *[figures(80.0)] * 6),
    )
    ranked = [(s.cell.subject.framework, str(s.places), s.lower_bound) for s in found.ranked]
    assert ranked == [("above", "1-2", False), ("bound", "1-2", True), ("below", "3", False)]
    assert [s.verdict for s in found.ranked] == ["valid"] * 3
    shown = table.text([found], width=None, published=False)
    assert "≥ 90 " in shown
    assert f"Lower bounds:\n  c/bound: {why}" in shown
    assert "Suspect:" not in shown
    lines = list(csv.DictReader(csv_lines(table.sheet([found], published=False))))
    cells = [(line["RPS"], line["verdict"], line["lower_bound"]) for line in lines]
    assert cells == [("100", "valid", "false"), ("90", "valid", "true"), ("80", "valid", "false")]
