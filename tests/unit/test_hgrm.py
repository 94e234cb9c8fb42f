"""The percentile output format: what the package `hdrhistogram` writes of the same histogram."""

from __future__ import annotations

import io
import re

import pytest
import samples
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from trueload.errors import UserError
from trueload.hdr import encode
from trueload.record.schema import Record
from trueload.report.export import export, measured_row
from trueload.report.export.hgrm import hgrm
from trueload.store.rows import Run

NUMBER = re.compile(r"[0-9.]+")


def record(values: list[int]) -> Record:
    counts = [(value, values.count(value)) for value in sorted(set(values))]
    histograms = samples.good_record().histograms
    latency = encode(counts, max(values), 3)
    changed = histograms.model_copy(update={"latency": latency})
    return samples.good_record().model_copy(update={"histograms": changed})


def of_the_package(values: list[int]) -> list[str]:
    histogram = HdrHistogram(1, max(2, *values), 3)
    for value in values:
        histogram.record_value(value)
    out = io.BytesIO()
    histogram.output_percentile_distribution(out, 1e6)
    return out.getvalue().decode().splitlines()


@settings(max_examples=10)
@given(st.lists(st.integers(1, 10**11), min_size=1, max_size=300))
def test_the_lines_are_those_of_the_package(values: list[int]) -> None:
    ours = "".join(hgrm(record(values))).splitlines()
    theirs = of_the_package(values)
    # It gives the deviation in the unit of the values, and the sum as a fraction.
    levels = [line for line in theirs if not line.startswith("#")]
    assert ours[: len(levels)] == levels
    mean = next(line for line in theirs if line.startswith("#[Mean"))
    assert ours[len(levels)].partition(",")[0] == mean.partition(",")[0]
    greatest = next(line for line in theirs if line.startswith("#[Max"))
    found = [float(text) for text in NUMBER.findall(ours[len(levels) + 1])]
    assert found == [float(text) for text in NUMBER.findall(greatest)]
    assert len(ours) == len(levels) + 3


def test_requests_without_a_time_are_named() -> None:
    counts = samples.counts(failed={"reset": 2}, unsent=1)
    found = "".join(hgrm(record([5]).model_copy(update={"counts": counts})))
    assert found.endswith("#[Without a time = 3 requests, in no line above]\n")


def run() -> Run:
    return Run(
        seq=1,
        id="20260101-000000-aaaa",
        kind="http",
        title="",
        command=(),
        plan=None,
        seed=None,
        started_at="",
        ended_at=None,
        state="finished",
        row_count=1,
    )


def test_a_file_holds_one_trial() -> None:
    one = measured_row(1, record([5]))
    assert "".join(export(run(), [one], "hgrm")) == "".join(hgrm(record([5])))
    for rows, message in (
        ([one, one], "has 2 trials with answers"),
        ([], "has no trial with answers"),
    ):
        with pytest.raises(UserError, match=message):
            list(export(run(), rows, "hgrm"))
