"""Results and exports: the output for people and programs, also for hostile and missing data."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from samples import counts, distribution, good_record, histogram, staged
from trueload.cli.runs import check_lines
from trueload.commands.output import exit_code
from trueload.engines.engine import last_words
from trueload.protocol.plan import Histograms
from trueload.record.certainty import rule
from trueload.record.schema import Record, Trouble
from trueload.record.thresholds import parse_condition
from trueload.report.export import Format, export
from trueload.report.export.csv import csv_cell
from trueload.report.export.json import result_json
from trueload.report.export.markdown import markdown_cell
from trueload.report.result import latency_text, load_text, repeated_lines, result_lines
from trueload.report.sheets import TRIALS
from trueload.store.rows import DamagedRow, Row, Run
from trueload.text import plain

HOSTILE = "\x1b]0;owned\x07\x9b31m=cmd()|'\u202e\u2028<script>\r\nX"
RUN = Run(
    seq=1,
    id="20261120-190105-7f3a",
    kind="suite",
    title=HOSTILE,
    command=("trueload", "suite"),
    plan={"a": 1},
    seed=7,
    started_at="2026-11-20T19:01:05.000Z",
    state="finished",
    ended_at=None,
    row_count=3,
)


def row(number: int, record: Record | None, reason: str | None = None, key: str = "k") -> Row:
    return Row(
        seq=number,
        number=number,
        key=key,
        labels={"subject": HOSTILE},
        outcome="measured" if record else "skipped",
        reason=reason,
        detail=None,
        added_at="2026-11-20T19:01:05.000Z",
        record=record,
    )


GOOD = good_record()
BAD = good_record(trouble=Trouble(kind="died", what=HOSTILE), partial=True)
ROWS: list[Row | DamagedRow] = [
    row(1, GOOD),
    row(2, None, HOSTILE, "=1+1"),
    DamagedRow(3, HOSTILE),
    row(4, BAD),
]
FORMATS: tuple[Format, ...] = ("json", "jsonl", "csv", "markdown")


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS], ids=["none", "one", "all"])
def test_no_export_carries_control_codes(format_: Format, rows: list[Row | DamagedRow]) -> None:
    text = "".join(export(RUN, rows, format_))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", text)


def test_json_holds_every_row_whole() -> None:
    value = json.loads("".join(export(RUN, ROWS, "json")))
    assert value["id"] == RUN.id
    assert value["plan"] == {"a": 1}
    outcomes = [line["outcome"] for line in value["rows"]]
    assert outcomes == ["measured", "skipped", "damaged", "measured"]
    assert Record.model_validate(value["rows"][0]["record"]) == GOOD
    assert value["rows"][1]["reason"] == HOSTILE


@pytest.mark.parametrize("part", ["latency_ns", "throughput", "window"])
def test_a_record_with_a_field_that_nobody_knows_is_refused(part: str) -> None:
    value = GOOD.model_dump(mode="json")
    value[part]["p42"] = 1
    with pytest.raises(ValueError, match="p42"):
        Record.model_validate_json(json.dumps(value))


def test_json_lines_hold_a_row_each() -> None:
    lines = "".join(export(RUN, ROWS, "jsonl")).splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3, 4]


def test_csv_has_a_row_each_and_no_formula() -> None:
    found = list(csv.DictReader(io.StringIO("".join(export(RUN, ROWS, "csv")))))
    assert len(found) == len(ROWS)
    assert set(found[0]) == {each.name for each in TRIALS}
    assert (found[0]["ok"], found[0]["verdict"]) == ("10000", "valid")
    assert found[0]["latency_p99_ns"] == str(GOOD.latency_ns.p99)
    assert found[1]["key"] == "'=1+1"
    for cells in found:
        for cell in cells.values():
            assert not cell.startswith(("=", "+", "-", "@"))


def test_markdown_has_a_line_each_and_no_markup_from_outside() -> None:
    lines = "".join(export(RUN, ROWS, "markdown")).splitlines()
    table = [line for line in lines if line.startswith("| ")]
    assert len(table) == 2 + len(ROWS)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {10}
    assert "<script>" not in "\n".join(lines).replace("\\<", "")


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (0, "0"),
        (-1.5, "-1.5"),
        (True, "True"),
        ("=1+1", "'=1+1"),
        ("-1", "'-1"),
        ("@x", "'@x"),
        ("\tx", " x"),
        ("a,b", "a,b"),
    ],
)
def test_a_csv_cell(value: object, cell: str) -> None:
    assert csv_cell(value) == cell


def test_text_is_one_line_without_anything_a_terminal_obeys() -> None:
    assert plain(HOSTILE).isprintable()
    assert plain("grüße 漢字") == "grüße 漢字"
    assert plain("x" * 20, 5) == "xxxxx…"
    assert markdown_cell("a|b`c") == "a\\|b\\`c"


def test_a_result_has_no_control_codes_whatever_the_record_says() -> None:
    for line in (*result_lines(BAD), *repeated_lines([GOOD, BAD]), *check_lines(BAD)):
        assert line.isprintable() or line == ""


def test_a_result_shows_what_was_measured() -> None:
    text = "\n".join(result_lines(GOOD))
    for part in (
        "10 connections, 1s",
        "10,000 requests/s",
        "p99 1.00 ms",
        "10,000 ok",
        "10,000 ok, each with status 200",
        "generator 0.50 s",
        "server 0.60 s (busiest thread 60 %), peak 2.86 MiB",
        "verdict      valid",
    ):
        assert part in text, part


def test_an_empty_record_renders() -> None:
    nothing = good_record(
        counts=counts(**dict.fromkeys(("scheduled", "issued", "ok"), 0), statuses={}),
        latency_ns=distribution(None),
        histograms=Histograms(
            latency=None, service=None, connect=None, first_byte=None, total=None
        ),
        server=None,
        slots=None,
    )
    text = "\n".join(result_lines(nothing))
    assert "0 ok" in text
    assert "latency" not in text
    assert latency_text(nothing) == ""


def test_a_percentile_that_nobody_can_know_is_shown_as_more() -> None:
    latency = histogram((1_000_000, 9_800))
    record = good_record(
        counts=counts(ok=9_800, cancelled=150, unsent=50, issued=9_950),
        latency_ns=distribution(latency),
        histograms=GOOD.histograms.model_copy(update={"latency": latency}),
    )
    text = latency_text(record)
    assert "p50 1.00 ms" in text
    assert "p90 1.00 ms" in text
    assert "p99 > 1.00 ms" in text
    assert "p99.9 > 1.00 ms" in text
    assert "max of answers 1.00 ms" in text


def test_several_trials_show_their_median_and_say_what_the_interval_is() -> None:
    text = "\n".join(repeated_lines([GOOD] * 3))
    assert "median 10,000 requests/s (range 10,000 to 10,000)" in text
    assert "95 % interval" in "\n".join(repeated_lines([GOOD] * 6))


def test_one_trial_is_its_record_and_several_are_one_object() -> None:
    assert result_json([GOOD], None) == GOOD.model_dump(mode="json")
    several = result_json([GOOD, BAD], "a run")
    assert (several["id"], several["verdict"], several["partial"]) == ("a run", "invalid", True)
    assert len(several["trials"]) == 2


UNREACHED = good_record(connections=GOOD.connections.model_copy(update={"established": 0}))
NO_MEMORY = good_record(trouble=Trouble(kind="memory", what="ran out of memory"), partial=True)
SUSPECT = good_record(
    connections=GOOD.connections.model_copy(update={"requested": 1000, "established": 999})
)


@pytest.mark.parametrize(
    ("records", "condition", "interrupted", "strict", "code"),
    [
        ([GOOD], "p99>10s", False, False, 0),
        ([SUSPECT], "p99>10s", False, False, 0),
        ([SUSPECT], "p99>10s", False, True, 4),
        ([GOOD], "p99>1ns", False, False, 1),
        ([GOOD], "p99>1ns", False, True, 1),
        ([BAD], "p99>1ns", False, False, 4),
        ([GOOD, BAD], "p99>10s", False, False, 4),
        ([UNREACHED], "p99>1ns", False, False, 3),
        ([UNREACHED, GOOD], "p99>10s", False, False, 4),
        ([NO_MEMORY], "p99>1ns", False, False, 71),
        ([UNREACHED, NO_MEMORY, GOOD], "p99>1ns", False, True, 71),
        ([NO_MEMORY], "p99>1ns", True, False, 130),
        ([UNREACHED], "p99>1ns", True, False, 130),
        ([GOOD], "p99>10s", True, False, 130),
    ],
)
def test_the_exit_code_follows_the_order_of_the_design(
    records: list[Record], condition: str, interrupted: bool, strict: bool, code: int
) -> None:
    rulings = rule([parse_condition(condition)], records)
    assert exit_code(records, rulings, interrupted=interrupted, strict=strict) == code


def test_every_check_is_shown_with_what_to_do_about_it() -> None:
    text = "\n".join(check_lines(UNREACHED))
    assert "fail connections: 10 of 10 were never established" in text
    assert text.count("What to do:") == sum(c.status in ("warn", "fail") for c in UNREACHED.checks)
    left = [check.name for check in UNREACHED.checks if check.status == "n/a"]
    assert " ".join(text.partition("  n/a: ")[2].split()) == ", ".join(left)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", ""),
        ("one\ntwo\n", "two"),
        ("memory allocation of 9 bytes failed\nskipping backtrace printing\n", "memory allocation"),
        ("panicked: x\nnote: run with RUST_BACKTRACE=1\n", "panicked: x"),
        ("\x1b[31mred\n", " [31mred"),
    ],
)
def test_the_last_words_of_an_engine_say_what_happened(log: str, words: str) -> None:
    assert last_words(log).startswith(words)
    assert bool(last_words(log)) is bool(words)


OPEN = good_record(
    plan=GOOD.plan.model_copy(update={"window": staged((10_000, 10_000))}),
    counts=counts(scheduled=12_500, unsent=2_500),
)


def test_an_open_loop_shows_both_rates_and_both_times() -> None:
    text = "\n".join(result_lines(OPEN))
    assert "10,000/s of constant arrivals" in text
    assert "rate         offered 12,500 requests/s, sent 10,000/s" in text
    assert re.search(r"response +p50 1.00 ms +p90 > 1.00 ms", text)
    assert re.search(r"service +p50 1.00 ms +p99 1.00 ms +max", text)
    assert re.search(
        r"service +p50 1.00 ms +p90 1.00 ms", "\n".join(result_lines(OPEN, whole=True))
    )
    assert "2,500 never sent" in text


@pytest.mark.parametrize(
    ("resets", "shown"),
    [(0, "12 sent again after a stale connection"), (3, "a stale connection (3 by a reset)")],
)
def test_resets_among_stale_connections_are_shown_and_exported(resets: int, shown: str) -> None:
    record = good_record(counts=counts(stale=12, stale_resets=resets))
    text = "\n".join(result_lines(record))
    assert shown in text
    assert ("by a reset" in text) == (resets > 0)
    [line] = csv.DictReader(io.StringIO("".join(export(RUN, [row(1, record)], "csv"))))
    assert (line["stale"], line["stale_resets"]) == ("12", str(resets))


def test_exports_mark_what_is_only_a_lower_bound() -> None:
    [line] = csv.DictReader(io.StringIO("".join(export(RUN, [row(1, OPEN)], "csv"))))
    assert line["latency_at_least"] == "p90; p95; p99; p999"
    assert (line["rate_per_s"], line["arrivals"]) == ("12500.0", "constant")
    table = "".join(export(RUN, [row(1, OPEN)], "markdown"))
    assert "| 1.00 ms | \\> 1.00 ms | 1.00 ms |" in table


@pytest.mark.parametrize(("many", "shown"), [(1, "1 connection,"), (12_345, "12,345 connections,")])
def test_a_load_is_counted_as_people_count(many: int, shown: str) -> None:
    generate = GOOD.plan.generate.model_copy(update={"connections": many})
    record = good_record(plan=GOOD.plan.model_copy(update={"generate": generate}))
    assert load_text(record).startswith(shown)


def test_stages_are_shown_as_typed() -> None:
    phase = staged((1_000, 1_000), (1_000, 20_000))
    record = good_record(plan=GOOD.plan.model_copy(update={"window": phase}))
    assert "stages 500ms@1000,500ms@1000..20000 of constant arrivals" in load_text(record)
