"""A body that is passed to the Python functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trueload.api.body import with_json_body
from trueload.errors import UserError

JSON_TYPE = "Content-Type: application/json"


@pytest.mark.parametrize("body", [{"a": 1}, {}, [], [1, "é", None, {"b": [True]}]])
def test_dicts_and_lists_are_sent_as_json(body: object) -> None:
    asked: dict[str, Any] = with_json_body({"body": body, "requests": 3})
    assert json.loads(asked["body"]) == body
    assert asked["header"] == [JSON_TYPE]
    assert asked["requests"] == 3


@pytest.mark.parametrize("body", ["a: 1", b"\xff", "", None])
def test_texts_and_bytes_are_sent_as_they_are(body: object) -> None:
    assert with_json_body({"body": body, "header": "A: b"}) == {"body": body, "header": "A: b"}


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        (None, [JSON_TYPE]),
        ("A: b", ["A: b", JSON_TYPE]),
        (b"A: \xff", ["A: \udcff", JSON_TYPE]),
        (["A: b", "C: d"], ["A: b", "C: d", JSON_TYPE]),
        (("A: b",), ["A: b", JSON_TYPE]),
        ({"A": "b"}, ["A: b", JSON_TYPE]),
        ("content-type: text/plain", "content-type: text/plain"),
        ({"Content-Type": "text/plain"}, {"Content-Type": "text/plain"}),
        (["CONTENT-TYPE : x"], ["CONTENT-TYPE : x"]),
    ],
)
def test_json_has_the_content_type_that_the_caller_set_or_that_of_json(
    header: object, lines: object
) -> None:
    assert with_json_body({"body": {}, "header": header})["header"] == lines


@pytest.mark.parametrize(
    "body", [1, 1.5, True, ("a",), {1, 2}, Path("x"), object(), bytearray(b"x")]
)
def test_other_types_are_refused(body: object) -> None:
    with pytest.raises(UserError, match=f"body cannot be a {type(body).__name__}") as refused:
        with_json_body({"body": body})
    assert "dict or list" in refused.value.hint


def test_what_json_cannot_hold_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    for body in ({"a": object()}, [float("nan")], {("a",): 1}, endless):
        with pytest.raises(UserError, match="body cannot be written as JSON"):
            with_json_body({"body": body})


@pytest.mark.parametrize("answer", [{"a": 1}, [1], 1])
def test_the_body_of_an_answer_is_only_compared_as_a_text(answer: object) -> None:
    with pytest.raises(UserError, match="expect_body cannot be"):
        with_json_body({"expect_body": answer})
