"""HAR files: bodies and forms, and what an entry lacks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import FORM, har, har_entry, of_har, read
from trueload.errors import UserError
from trueload.request.har import parse_har

MULTIPART = {"mimeType": "multipart/form-data; boundary=----WebKit"}
FIELD = {"name": 'a"b', "value": "ü"}


@pytest.mark.parametrize(
    ("data", "kind", "body"),
    [
        ({"text": "aGk/", "encoding": "base64"}, None, b"hi?"),
        ({"text": "/+8=\n", "encoding": "Base64"}, None, b"\xff\xef"),
        ({"text": "", "encoding": "base64"}, None, b""),
        ({"text": "hi", "encoding": ""}, None, b"hi"),
        ({"text": "hi", "params": [FIELD]}, None, b"hi"),
        ({"text": "", "params": []}, None, b""),
        ({"params": [FIELD]}, FORM[1], b"a%22b=%C3%BC"),
        ({"mimeType": FORM[1], "params": [{"name": "a"}]}, FORM[1], b"a="),
        (
            {**MULTIPART, "params": [FIELD]},
            "multipart",
            'Content-Disposition: form-data; name="a%22b"\r\n\r\nü'.encode(),
        ),
        (
            {"params": [{"name": "f", "fileName": "x.png", "contentType": "image/png"}]},
            "multipart",
            b'Content-Disposition: form-data; name="f"; filename="x.png"\r\n'
            b"Content-Type: image/png\r\n\r\n",
        ),
    ],
)
def test_the_body_of_a_har_entry_is_its_text_or_its_form(
    data: dict[str, Any], kind: str | None, body: bytes
) -> None:
    own = [{"name": "content-type", "value": "application/own"}]
    for headers in ([], own if kind == "multipart" else []):
        found = of_har(har_entry(request={"method": "POST", "postData": data, "headers": headers}))
        kinds = [value for name, value in found.headers if name.lower() == "content-type"]
        if kind == "multipart":
            (said,) = kinds
            boundary = said.removeprefix("multipart/form-data; boundary=").encode()
            assert boundary.startswith(b"trueload-")
            body_of = b"--%s\r\n%s\r\n--%s--\r\n"
            assert found.body == body_of % (boundary, body, boundary)
        else:
            assert (kinds, found.body) == ([] if kind is None else [kind], body)


def test_a_form_with_a_boundary_of_our_own_is_told(tmp_path: Path) -> None:
    entry = har_entry(request={"method": "POST", "postData": {**MULTIPART, "params": [FIELD]}})
    note = "1 form made of the recorded fields, with a boundary of trueload's own"
    assert note in read(tmp_path, har(entry)).notes


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"startedDateTime": None}, "entry 2 has no startedDateTime: not HAR 1.2"),
        ({"startedDateTime": ""}, "entry 2 has no startedDateTime: not HAR 1.2"),
        ({"startedDateTime": "soon"}, "entry 2 has no time in startedDateTime: 'soon' is not"),
        ({"startedDateTime": 5}, "entry 2 has no time in startedDateTime: '5' is not"),
        ({"request": {"url": None}}, "entry 2 has no request.url: not HAR 1.2"),
        ({"request": {"method": ""}}, "entry 2 has no request.method: not HAR 1.2"),
        (
            {"request": {"postData": {"text": "a", "encoding": "base64"}}},
            "entry 2 has a body that is not base64",
        ),
        ({"request": {"postData": {"params": [{"value": "a"}]}}}, "entry 2 cannot be read"),
        ({"request": {"headers": [1]}}, "entry 2 cannot be read"),
        ({"time": "long"}, "entry 2 cannot be read"),
    ],
)
def test_an_entry_says_what_it_lacks(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"it: {message}")) as refused:
        parse_har(har(har_entry(), har_entry(**entry)).encode(), "it")
    assert "\n" not in refused.value.message + refused.value.hint


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("base64"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["text", "params", "name", "value", "encoding"]), inner)
    ),
    max_leaves=8,
)


@given(st.sampled_from(["startedDateTime", "time", "request", "response", "postData"]), JSON_VALUES)
def test_any_entry_of_a_har_file_is_traffic_or_refused(key: str, value: Any) -> None:
    if key == "postData":
        entry = har_entry(request={"postData": value})
    else:
        entry = {**har_entry(), key: value}
    refused = ""
    try:
        found = parse_har(json.dumps({"log": {"entries": [entry]}}).encode(), "it").entries
    except UserError as error:
        found, refused = (), error.message
    assert refused.isprintable()
    assert all(isinstance(each.recorded.body, bytes | None) for each in found)
    assert bool(found) != bool(refused)
