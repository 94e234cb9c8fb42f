"""What limited a server: stated where it is known, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from samples import OK, counts, good_record, staged
from trueload.report.result import result_lines
from trueload.text import labelled
from trueload.verdict.limit import bottleneck_text

GOOD = good_record()


def ends(server: float | None, generator: float | None = 0.5) -> dict[str, Any]:
    """The saturations of both ends."""
    assert GOOD.server is not None
    return {
        "server": GOOD.server.model_copy(update={"saturation": server}),
        "generator": GOOD.generator.model_copy(update={"saturation": generator}),
    }


def at_a_rate(per_s: float) -> dict[str, Any]:
    """The same load as an open loop."""
    return {"plan": GOOD.plan.model_copy(update={"window": staged((per_s, per_s))})}


RATE_PER_S = OK / (GOOD.window.window_ns / 1e9)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (ends(0.97), "server saturated: server 97 %, generator"),
        (ends(0.9), "server saturated: server 90 %"),
        # The same as `generator-limit` says.
        (ends(0.97, 0.99), "server saturated"),
        (ends(0.956, 0.941), "both ends saturated: server 95.6 %, generator 94.1 %"),
        (ends(0.7, 0.94), "generator saturated: server 70 %, generator 94 %"),
        (ends(0.4), "not the server's CPU (server 40 %, generator"),
        ({**ends(0.34), **at_a_rate(RATE_PER_S)}, "none, the server kept up: server 34 %"),
    ],
)
def test_it_is_said_what_the_bottleneck_was(changes: dict[str, Any], expected: str) -> None:
    record = good_record(**changes)
    text = bottleneck_text(record)
    assert text.startswith(expected)
    assert set(labelled("bottleneck", text)) < set(result_lines(record))


@pytest.mark.parametrize(
    "changes",
    [
        {"server": None},
        ends(None),
        ends(0.97, None),
        # The checks say that the generator was the limit.
        ends(0.5, 0.95),
        {**ends(0.8, 0.95), **at_a_rate(RATE_PER_S)},
        {**ends(0.97), "counts": counts(ok=OK - 150, failed={"reset": 150})},
        {**ends(0.97), "window": GOOD.window.model_copy(update={"window_ns": 50_000_000})},
        # One request in 500 is unsent: suspect, and no longer the requested load.
        {
            **ends(0.97),
            **at_a_rate(RATE_PER_S),
            "counts": counts(scheduled=OK + OK // 500, unsent=OK // 500),
        },
    ],
)
def test_nothing_is_said_where_nobody_can_know(changes: dict[str, Any]) -> None:
    record = good_record(**changes)
    assert bottleneck_text(record) == ""
    assert not [line for line in result_lines(record) if line.startswith("limit ")]
