"""Values that fill a request are escaped by where they go, whatever they come from."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from counting import Asked, Counting
from harness import Trueload
from samples import flat

pytestmark = pytest.mark.engine

VALUE = 'a/b c?&="\\<>^|%41'
ENCODED = "a%2Fb%20c%3F%26%3D%22%5C%3C%3E%5E%7C%2541"
LEGAL = "a/b%20c?&=%22%5C%3C%3E%5E%7C%41"
QUOTED = json.dumps(VALUE)
FORM = "application/x-www-form-urlencoded"
FEW = ("-c", "1", "--requests", "2")


@pytest.fixture
def counting() -> Iterator[Counting]:
    with Counting() as server:
        yield server


def send(trueload: Trueload, counting: Counting, *words: str | Path) -> Asked:
    done = trueload.run("http", *words, *FEW, env={"VALUE": VALUE})
    assert done.code in (0, 4), done
    return counting.asked[0]


@pytest.mark.parametrize("name", ["v", "env:VALUE"])
@pytest.mark.parametrize(
    ("path", "header", "kind", "body", "sent"),
    [
        ("{v}?q={v}", "{v}", "text/plain", "{v}", (f"{ENCODED}?q={ENCODED}", VALUE, VALUE)),
        ("", "", "", "{v}", ("", "", VALUE)),
        ("{v|raw}", "{v|json}", "", "a={v}", (LEGAL, QUOTED, f"a={VALUE}")),
        ("", "", FORM, "a={v}&b=1", ("", "", f"a={ENCODED}&b=1")),
        ("", "", FORM, "a={v|raw}", ("", "", f"a={VALUE}")),
        ("", "", "application/json", '{"a":"{v}"}', ("", "", f'{{"a":{QUOTED}}}')),
        ("", "", "", '[{"a":"{v}"}]', ("", "", f'[{{"a":{QUOTED}}}]')),
        ("", "", "", '{"a":{v|json}}', ("", "", f'{{"a":{QUOTED}}}')),
        ("", "", "", '{"a":"{v|json}"}', ("", "", f'{{"a":{json.dumps(QUOTED)}}}')),
        ("", "", "text/plain", '{"a":"{v}"}', ("", "", f'{{"a":"{VALUE}"}}')),
    ],
)
def test_a_value_is_escaped_by_where_it_goes(
    trueload: Trueload,
    counting: Counting,
    tmp_path: Path,
    name: str,
    path: str,
    header: str,
    kind: str,
    body: str,
    sent: tuple[str, str, str],
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"v": VALUE}) + "\n")
    path, header, body = (text.replace("{v", f"{{{name}") for text in (path, header, body))
    words: list[str | Path] = [f"{counting.url}/{path}", "-H", f"X-V: {header}", "--body", body]
    words += ["-H", f"Content-Type: {kind}"] if kind else []
    words += ["--data", rows] if name == "v" else []
    found = send(trueload, counting, *words)
    assert (found.path[1:], found.headers["x-v"], found.body.decode()) == sent


SCENARIO = r"""
[[step]]
name = "take"
request = { url = '/"<>^|`\{c}' }
take = { t = "json:/t", list = "json:/list" }

[[step]]
name = "use"

[step.request]
method = "POST"
url = "/{t}/{c}/{+t}/{t|raw}"
body = '{"t":"{t}","list":{list},"c":{c|json}}'
"""


def test_a_scenario_escapes_columns_and_taken_values_alike(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    counting.answer = json.dumps({"t": VALUE, "list": [{"a": 1}]}).encode()
    steps, rows = tmp_path / "steps.toml", tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"c": VALUE}) + "\n")
    steps.write_text(SCENARIO)
    first = send(trueload, counting, counting.url, "--scenario", steps, "--data", rows)
    assert first.path == f"/%22%3C%3E%5E%7C%60%5C{ENCODED}"
    second = counting.asked[1]
    assert second.path == f"/{ENCODED}/{ENCODED}/{LEGAL}/{LEGAL}"
    assert json.loads(second.body) == {"t": VALUE, "list": [{"a": 1}], "c": VALUE}


@pytest.mark.parametrize(
    ("name", "rows", "is_json"),
    [
        ("rows.jsonl", '{"v":[1]}\n{"v":{"a":"b"}}\n{"v":false}\n', True),
        ("rows.csv", "v\n7\ntrue\n", True),
        ("rows.csv", "v\n7\nanna\n", False),
        ("rows.jsonl", '{"v":1}\n{"v":"anna"}\n', False),
    ],
)
def test_what_would_be_no_json_is_told_before_anything_is_sent(
    trueload: Trueload, counting: Counting, tmp_path: Path, name: str, rows: str, is_json: bool
) -> None:
    (tmp_path / name).write_text(rows)
    words = ("--body", '{"v":{v}}', "--data", tmp_path / name, *FEW)
    done = trueload.run("http", counting.url, *words)
    assert (done.code != 2) == is_json, done
    if not is_json:
        assert counting.asked == []
        assert "has in 'v' what is not JSON" in done.err
        assert "{v|json}" in done.err


@pytest.mark.parametrize(
    ("body", "rows", "is_json"),
    [
        ('{"v":"{v|raw}"}', '{"v":"a \\\\\\"b"}\n', True),
        ('{"v":"{v|raw}"}', '{"v":"ok"}\n{"v":"a \\"b"}\n', False),
        ('{"v":{v|raw}}', '{"v":[1]}\n{"v":"anna"}\n', False),
        ("{v|raw}", '{"v":[1]}\n{"v":"anna"}\n', True),
        ('{"v":"{v|raw}","n":{counter}}', '{"v":"ok"}\n{"v":"a\\nb"}\n', False),
    ],
)
@pytest.mark.parametrize("steps", [False, True])
def test_a_raw_value_that_would_break_json_is_told_before_anything_is_sent(
    trueload: Trueload,
    counting: Counting,
    tmp_path: Path,
    body: str,
    rows: str,
    is_json: bool,
    steps: bool,
) -> None:
    file, script = tmp_path / "rows.jsonl", tmp_path / "steps.toml"
    file.write_text(rows)
    step = f"name = 'a'\nrequest = {{ url = '/', body = '{body}' }}\n"
    script.write_text(f"[[step]]\n{step}")
    words = ("--scenario", script) if steps else ("--body", body)
    done = trueload.run("http", counting.url, *words, "--data", file, *FEW)
    assert (done.code != 2) == is_json, done
    if not is_json:
        assert counting.asked == []
        assert "line 2 has in 'v' what makes a body that is not JSON" in done.err
        assert done.err.count("error:") == done.err.count("hint:") == 1


def brotli(content: bytes) -> bytes:
    """The content in one block that is not compressed (RFC 7932 §9.2), and an empty last one."""
    return (1 << 20 | (len(content) - 1) << 4).to_bytes(3, "little") + content + b"\x03"


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli,
}


@pytest.mark.parametrize(
    "needs", [("--expect-body", "{}\n{}\n"), ("--stream", "jsonl", "--stream-end", "{}")]
)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", ""])
def test_content_that_is_needed_is_decoded_or_the_reason_is_told(
    trueload: Trueload, counting: Counting, tmp_path: Path, coding: str, needs: tuple[str, ...]
) -> None:
    content = b"{}\n{}\n" if needs[0] == "--expect-body" else b"1\n{}\n"
    counting.answer, counting.coding = WAYS.get(coding, bytes)(content), coding
    result = tmp_path / "result.json"
    done = trueload.run("http", counting.url, *needs, *FEW, "--json", result)
    failed = json.loads(result.read_text())["counts"]["failed"]
    assert list(failed) == (["encoded"] if coding == "zstd" else []), done
    why = flat([trueload.run("runs", "show", "last", "--why").out])
    assert ("only gzip, deflate and br are decoded" in why) == (coding == "zstd")


@pytest.mark.parametrize(
    ("sent", "coding", "ending"),
    [
        ("gzip", "gzip", ""),
        ("br", "br", ""),
        ("gzip", "br", "encoded"),
        ("br", "zstd", "encoded"),
        ("gzip", "", "extract"),
    ],
)
def test_a_value_is_taken_from_a_compressed_answer_or_the_reason_is_told(
    trueload: Trueload, counting: Counting, tmp_path: Path, sent: str, coding: str, ending: str
) -> None:
    counting.answer, counting.coding = WAYS[sent](b'{"t":"anna"}'), coding
    (tmp_path / "steps.toml").write_text(
        """
step = [
  { name = "take", request = { url = "/" }, take = { t = "json:/t" } },
  { name = "use", request = { url = "/{t}" } },
]
"""
    )
    words = ("--scenario", tmp_path / "steps.toml", *FEW)
    done = trueload.run("http", counting.url, *words, "--json", tmp_path / "result.json")
    failed = json.loads((tmp_path / "result.json").read_text())["counts"]["failed"]
    assert list(failed) == ([ending] if ending else []), done
    assert ("/anna" in [asked.path for asked in counting.asked]) == (not ending)


def test_a_taken_text_that_would_be_no_json_fails_as_extract(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    counting.answer = b'{"t":"anna"}'
    (tmp_path / "steps.toml").write_text(
        """
step = [
  { name = "take", request = { url = "/" }, take = { t = "json:/t" } },
  { name = "use", request = { url = "/", body = '{"t":{t}}' } },
]
"""
    )
    done = trueload.run("http", counting.url, "--scenario", tmp_path / "steps.toml", *FEW)
    assert "extract" in done.out + done.err
    assert all(asked.method == "GET" for asked in counting.asked)
