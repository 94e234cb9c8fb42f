"""Redirects: a failure that names their destination; none is followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Trueload
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
    assert errors["why"].endswith(f"mostly status 302, {leads}: load that URL, none is followed")
    assert "hunter2" not in trueload.run("runs", "show", "last", "--json").out
    # Where a redirect is expected, it is no failure and causes no message.
    record = measure(trueload, url, "--requests", "20", "-c", "2", "--expect-status", "302")
    assert record["counts"]["ok"] == 20
