"""Which conditions of ``--fail-on`` get a note, because good values would cross them."""

from __future__ import annotations

import pytest
from trueload.record.thresholds import direction_note, parse_condition


@pytest.mark.parametrize(
    ("condition", "note"),
    [
        ("p99<20ms", "fails when p99 is below 20ms; to keep it below, write 'p99>20ms'"),
        (" mean <= 1s", "fails when mean is at or below 1s; to keep it below, write 'mean>1s'"),
        (
            "throughput>50k/s",
            "fails when throughput is above 50k/s; to keep it above, write 'throughput<50k/s'",
        ),
        ("errors<1%", "fails when errors are below 1%; to keep them below, write 'errors>1%'"),
        (
            "p99<20ms and errors<1%",
            "fails when p99 is below 20ms and errors are below 1%; to keep them so, write"
            " 'p99>20ms' and 'errors>1%', each with its own --fail-on",
        ),
        ("p99>20ms", None),
        ("throughput<50k/s", None),
        ("errors>=0.1%", None),
        ("p99>20ms and throughput>50k/s", None),
    ],
)
def test_a_condition_that_good_values_would_cross_is_noted(
    condition: str, note: str | None
) -> None:
    found = direction_note(parse_condition(condition))
    assert found == (note and f"--fail-on '{condition.strip()}' {note}")
