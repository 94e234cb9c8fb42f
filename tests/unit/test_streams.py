"""Streamed answers: what a record says of them, over one engine or several, and on each surface."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_samples import html, put_records
from samples import counts, flat, good_record, histogram, trial_facts
from trueload.errors import UserError
from trueload.protocol.request_options import StreamOptions
from trueload.protocol.streams import EndContent, EndEvent, StreamHistograms
from trueload.protocol.streams import Streams as Seen
from trueload.record.accounts.streams import STREAMS, Streams, add_streams
from trueload.record.thresholds import STREAMS_FAIL_ON, crossed, parse_condition
from trueload.report.accounts.streams import STREAMS as STREAMS_SHOWN
from trueload.report.accounts.streams import parts_text
from trueload.report.result import result_lines
from trueload.request.streams import make_stream
from trueload.store.runs import Store
from trueload.verdict.answers import check_errors

MS = 1_000_000


def seen(first_ms: int, gap_ms: int, streams: int = 400, parts: int = 5) -> Seen:
    """So many whole streams that are all alike."""
    return Seen(
        parts=streams * parts,
        together=streams,
        whole=streams,
        histograms=StreamHistograms(
            first_part=histogram((first_ms * MS, streams)),
            gap=histogram((gap_ms * MS, streams * (parts - 1))),
            parts_per_answer=histogram((parts, streams)),
        ),
    )


def account(found: Seen, **failed: int) -> Streams:
    """The record's account of streams, where so many other requests have failed."""
    classes = {name.replace("_", "."): count for name, count in failed.items()}
    record = good_record()
    measured = make_measured(record.counts.model_copy(update={"failed": classes}), found)
    made: Streams | None = STREAMS.made(trial_facts(measured))
    assert made is not None
    return made


def make_measured(of: object, found: Seen | None) -> Any:
    """Only what the account is made of."""
    return SimpleNamespace(streams=found, counts=of, window_ns=900 * MS, drain_ns=100 * MS)


def test_without_streams_there_is_no_account() -> None:
    assert STREAMS.made(trial_facts(make_measured(counts(), None))) is None
    assert STREAMS.added([]) is None
    assert not any(line.startswith("first part") for line in result_lines(good_record()))


def test_a_request_that_failed_is_slower_to_its_first_part_than_any() -> None:
    whole, failed = account(seen(20, 10)), account(seen(20, 10), truncated=40)
    assert (whole.first_part_ns.at_least, whole.first_part_ns.slower) == ((), 0)
    assert (failed.first_part_ns.at_least, failed.first_part_ns.slower) == (
        ("p95", "p99", "p999"),
        40,
    )
    assert failed.gap_ns.slower == 0, "the gaps of a cut stream are known"


def test_a_gap_in_which_a_stream_stalled_is_longer_than_any() -> None:
    found = account(seen(20, 10), timeout_stall=40)
    assert found.gap_ns.slower == 40
    assert found.gap_ns.at_least == ("p99", "p999")


def test_several_engines_are_added_up_without_loss() -> None:
    both = add_streams([seen(20, 10), seen(30, 50, streams=100)])
    assert both is not None
    assert (both.parts, both.together, both.whole) == (2500, 500, 500)
    found = account(both)
    assert (found.first_part_ns.count, found.gap_ns.count) == (500, 2000)
    assert found.gap_ns.max == pytest.approx(50 * MS, rel=0.001)
    assert found.parts_per_s == 2500


@pytest.mark.parametrize(
    ("ok", "ok_per_s", "parts_per_s"), [(100, 7.91, 158.2), (0, 0.0, 2000), (100, None, 2000)]
)
def test_parts_per_second_are_of_the_answers_that_count(
    ok: int, ok_per_s: float | None, parts_per_s: float
) -> None:
    measured = make_measured(counts(ok=ok), seen(20, 10))
    found = STREAMS.made(trial_facts(measured, ok_per_s=ok_per_s))
    assert found.parts_per_s == pytest.approx(parts_per_s)


def test_the_texts_name_the_times_of_tokens_and_the_parts() -> None:
    texts = dict(STREAMS_SHOWN.texts(account(seen(20, 10))))
    assert texts["first part"].startswith("p50 20.0 ms   p90 20.0 ms   p95 20.0 ms   p99 20.0 ms")
    assert "   p99.9 too few" in texts["first part"]
    assert texts["first part"].endswith("(time to first token)")
    assert texts["gaps"].endswith("(time between tokens)")
    assert texts["parts"] == (
        "2,000; 400 whole streams, 5 each; 2,000/s; 20 % came together with the part before"
    )


def test_streams_of_different_lengths_show_the_median_and_the_longest() -> None:
    both = add_streams([seen(20, 10), seen(20, 10, streams=10, parts=50)])
    assert both is not None
    assert "410 whole streams, 5 each at the median, at most 50" in parts_text(account(both))


def test_the_result_and_the_report_show_the_same_times(tmp_path: Path) -> None:
    record = good_record(streams=account(seen(20, 10)))
    lines = result_lines(record)
    texts = STREAMS_SHOWN.texts(account(seen(20, 10)))
    assert flat(word for pair in texts for word in pair) in flat(lines)
    with Store.open(tmp_path / "store.sqlite") as store:
        page = html(store, put_records(store, [record]))
    assert "Streamed answers" in page
    assert all(time in page for time in ("20.0 ms", "10.0 ms"))


def test_an_answer_that_is_no_stream_is_told_from_a_wrong_one() -> None:
    asked = "mostly mismatch: no part of a stream came; does the request ask for a stream?"
    failed = counts(ok=0, failed={"mismatch": 10_000})
    for streams in (account(seen(20, 10)), None):
        assert not check_errors(good_record(streams=streams, counts=failed)).why.endswith(asked)
    none = account(seen(20, 10)).model_copy(update={"parts": 0})
    assert check_errors(good_record(streams=none, counts=failed)).why.endswith(asked)
    assert "mostly" not in check_errors(good_record(streams=none)).why


def test_a_gate_may_be_on_the_first_part_or_on_the_gaps() -> None:
    record = good_record(streams=account(seen(20, 10)))
    for text, holds in (
        ("first_part_p99>15ms", True),
        ("first_part_p99>25ms", False),
        ("gap_p50>9ms", True),
        ("gap_p99>15ms", False),
        ("p99>15ms", False),
    ):
        assert bool(crossed([parse_condition(text, STREAMS_FAIL_ON)], [record])) is holds, text
    stalled = good_record(
        streams=account(seen(20, 10), timeout_stall=40),
        counts=counts(failed={"timeout.stall": 40}),
    )
    (found,) = crossed([parse_condition("gap_p99>15ms", STREAMS_FAIL_ON)], [stalled])
    assert found.values == (float("inf"),)
    with pytest.raises(UserError, match="'gap_p99' cannot be used here"):
        parse_condition("gap_p99>15ms")
    with pytest.raises(UserError, match="'receipt_p99' cannot be used here"):
        parse_condition("receipt_p99>15ms", STREAMS_FAIL_ON)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (None, None),
        ("body", None),
        ("[DONE]", EndContent(text="[DONE]")),
        ("event:done", EndEvent(name="done")),
    ],
)
def test_the_end_is_a_content_or_an_event(
    end: str | None, expected: EndContent | EndEvent | None
) -> None:
    made = make_stream(StreamOptions(stream="sse", stream_end=end))
    assert made is not None
    assert made.end == expected


def test_only_events_have_a_type() -> None:
    with pytest.raises(UserError, match="needs --stream sse"):
        make_stream(StreamOptions(stream="chunks", stream_end="event:done"))
