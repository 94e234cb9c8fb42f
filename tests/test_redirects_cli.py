"""Redirects: a failure that names their destination, or followed to the final answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Trueload, start_server
from test_http_cli import OneAnswer, measure

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("several", [False, True], ids=["one request", "targets"])
def test_redirects_say_where_they_lead_without_a_secret(
    trueload: Trueload, tmp_path: Path, several: bool
) -> None:
    answer = (
        b"HTTP/1.1 302 Found\r\nLocation: /login?token=hunter2&a=1\r\nContent-Length: 0\r\n\r\n"
    )
    server = OneAnswer(answer)
    targets = tmp_path / "targets"
    targets.write_text('{"url": "/a"}\n{"url": "/b"}\n')
    url = f"http://127.0.0.1:{server.port}/"
    words = ("--targets", str(targets)) if several else ()
    record = measure(trueload, url, "--requests", "20", "-c", "2", *words, code=4)
    leads = "a redirect to /login?token=<redacted>&a=1"
    assert record["connections"]["reasons"] == {"status": leads}
    errors = next(check for check in record["checks"] if check["name"] == "errors")
    assert errors["why"].endswith(f"mostly status 302, {leads}: load that URL, or use --follow")
    assert "hunter2" not in trueload.run("runs", "show", "last", "--json").out
    # Where a redirect is expected, it is no failure and causes no message.
    record = measure(trueload, url, "--requests", "20", "-c", "2", "--expect-status", "302")
    assert record["counts"]["ok"] == 20


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_a_chain_is_followed_and_counts_as_one_request(trueload: Trueload, http: str) -> None:
    server = start_server(trueload, "--http", "2")
    words = ("--requests", "40", "-c", "4", "--http", http, "--follow", "3")
    url = f"http://{server.host}:{server.port}/redirect"
    record = measure(trueload, f"{url}/3", *words, "--expect-body", "Hello, World!")
    assert (record["counts"]["ok"], record["counts"]["statuses"]) == (40, {"200": 40})
    found = record["redirects"]
    assert (found["followed"], found["statuses"], found["hops"]) == (120, {"302": 120}, {"3": 40})
    assert found["redirect_ns"]["count"] == 120
    # The time of a request holds those of its redirects.
    assert record["latency_ns"]["max"] > found["redirect_ns"]["p50"]
    record = measure(trueload, f"{url}/4", *words, code=4)
    assert record["counts"]["failed"] == {"redirect": 40}
    why = "behind 3 redirects: a redirect to /"
    assert record["connections"]["reasons"] == {"redirect": why}


def test_a_redirect_to_another_server_is_not_followed_and_says_what_to_load(
    trueload: Trueload,
) -> None:
    answer = b"HTTP/1.1 301 Moved\r\nLocation: https://a.test/\r\nContent-Length: 0\r\n\r\n"
    url = f"http://127.0.0.1:{OneAnswer(answer).port}/"
    record = measure(trueload, url, "--requests", "20", "--follow", "2", code=4)
    assert record["counts"]["failed"] == {"redirect": 20}
    errors = next(check for check in record["checks"] if check["name"] == "errors")
    says = "mostly a redirect to another server: load https://a.test/ instead"
    assert errors["why"].endswith(says)


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_with_close_each_redirect_has_a_connection_of_its_own(
    trueload: Trueload, http: str
) -> None:
    server = start_server(trueload, "--http", "2")
    words = ("--requests", "40", "-c", "4", "--http", http, "--follow", "2", "--close")
    record = measure(trueload, f"http://{server.host}:{server.port}/redirect/2", *words)
    assert (record["counts"]["ok"], record["redirects"]["followed"]) == (40, 80)
    # Each of the 40 requests has three connections; some are opened beforehand at the end.
    assert record["connections"]["established"] + record["connections"]["reconnects"] >= 120


def test_a_body_goes_on_by_307_and_targets_and_data_are_followed(
    trueload: Trueload, tmp_path: Path
) -> None:
    server = start_server(trueload)
    url = f"http://{server.host}:{server.port}/"
    data, targets = tmp_path / "rows.csv", tmp_path / "targets"
    data.write_text("steps,text\n1,a\n2,bb\n")
    targets.write_text(
        '{"url": "/redirect/{steps}/307", "method": "POST", "body": "{text}", "name": "kept"}\n'
        '{"url": "/redirect/{steps}/303", "method": "POST", "body": "{text}", "name": "get"}\n'
    )
    words = ("--targets", str(targets), "--data", str(data), "--requests", "40", "-c", "2")
    record = measure(trueload, url, *words, "--follow", "2")
    assert record["counts"]["ok"] == 40
    assert {target["name"]: target["counts"]["ok"] for target in record["targets"]} == {
        "kept": 20,
        "get": 20,
    }
    assert set(record["redirects"]["statuses"]) == {"303", "307"}
