"""What every request says of its body and its connection."""

from __future__ import annotations

from typing import Any

import pytest
from trueload.commands.http import read_job
from trueload.errors import UserError
from trueload.request.plans import request_plan
from trueload.request.replay import Replay
from trueload.request.values import Request

LENGTH = "content-length"


def lengths(headers: Any) -> list[str]:
    return [value for name, value in headers if name.lower() == LENGTH]


@pytest.mark.parametrize(
    ("method", "body", "found"),
    [
        *[(method, None, ["0"]) for method in ("POST", "PUT", "PATCH")],
        *[(method, None, []) for method in ("GET", "HEAD", "DELETE", "OPTIONS", "post", "QUERY")],
        *[(method, b"", ["0"]) for method in ("GET", "POST", "DELETE")],
        *[(method, b"abc", ["3"]) for method in ("GET", "POST", "DELETE")],
    ],
)
def test_a_request_without_a_body_says_so_where_one_is_expected(
    method: str, body: bytes | None, found: list[str]
) -> None:
    request = Request(host="h", method=method, body=body)
    assert lengths(request_plan(request, close=False).headers) == found
    # The engine adds the length of a body that it fills.
    added = found if body is None else []
    assert lengths(request_plan(request, close=False, template=True).headers) == added
    sent = [(method, "/", (), body)]
    replay = Replay(about="", host="h", at_ns=[0], numbers=[0], requests=sent, statuses=[None])  # type: ignore[arg-type]
    (line,) = [piece for piece in replay.pieces(close=False) if piece.startswith(b"{")]
    assert (b'["Content-Length","' in line) == bool(found)


@pytest.mark.parametrize("value", ["keep-alive", "Keep-Alive"])
def test_a_connection_is_kept_as_the_header_says(value: str) -> None:
    given = {"url": "http://a/", "header": [f"Connection: {value}"]}
    traffic = read_job(**given).spec.traffic
    assert traffic.request is not None
    assert ("Connection", value) in request_plan(traffic.request, close=False).headers
    closing = request_plan(traffic.request, close=True).headers
    assert [pair for pair in closing if pair[0] == "Connection"] == [("Connection", "close")]


@pytest.mark.parametrize("value", ["close", "upgrade", "keep-alive, x", ""])
def test_other_headers_of_a_connection_are_still_ours(value: str) -> None:
    with pytest.raises(UserError, match="trueload sets Connection itself"):
        read_job(url="http://a/", header=[f"Connection: {value}"])
