"""Subjects that are HTTP clients, end to end: built, given orders, and judged by the servers."""

from __future__ import annotations

import pytest
from harness import ROOT, Trueload

pytestmark = pytest.mark.engine

CHEAP = [
    "python/urllib3",
    pytest.param("go/net-http-client", marks=pytest.mark.needs("go")),
    pytest.param("c/libcurl-multi", marks=pytest.mark.needs("libcurl")),
]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CHEAP)
def test_a_client_keeps_its_contract(trueload: Trueload, name: str) -> None:
    # HTTP/2 would take as long again.
    others = () if name.startswith("python/") else (f"!{name}:http2",)
    ended = trueload.run("subjects", "check", name, *others, "--json", cwd=ROOT, timeout_s=500)
    [check] = ended.json()["checks"]
    assert check["outcome"] == "ok", check
    assert "requests pipelined" in check["why"], "what it cannot do is said"


def test_a_client_answers_nobody(trueload: Trueload) -> None:
    ended = trueload.run("subjects", "responses", "go/net-http-client", "--json", cwd=ROOT)
    answers = ended.json()["responses"]
    assert [each["outcome"] for each in answers] == ["skipped"] * len(answers)
    assert answers
