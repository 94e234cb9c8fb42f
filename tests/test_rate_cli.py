"""Unreachable rates through the command line: measured as far as they go, and judged."""

from __future__ import annotations

import re

import pytest
from harness import Server, Trueload


@pytest.mark.parametrize(
    ("rate", "offered"),
    [
        (("1k/s",), r"1,000"),
        # More than could be drawn one by one in the duration of the phase.
        (("1G/s", "--arrivals", "poisson"), r"(1,000|999,9\d\d),\d{3},\d{3}"),
    ],
)
def test_a_rate_that_cannot_be_reached_is_measured_and_judged(
    trueload: Trueload, server: Server, rate: tuple[str, ...], offered: str
) -> None:
    url = f"{server.url}/wait/50"
    flags = ("--rate", *rate, "-c", "5", "-d", "400ms", "--warmup", "0")
    done = trueload.run("http", url, *flags)
    assert done.code == 4, done
    assert re.search(rf"rate +offered {offered} requests/s, sent [\d.]+/s", done.out), done.out
    assert "fail rate-reached" in done.out
    assert re.search(r"response .*p99 > ", done.out)
