"""Several requests in turn, with placeholders: counted at the server that was asked."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from counting import Counting
from harness import Server, Trueload
from targets_files import measure, write


@pytest.fixture
def counting() -> Iterator[Counting]:
    with Counting() as server:
        yield server


def test_turns_are_exact_over_all_connections_and_threads(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    file = write(
        tmp_path,
        {"url": f"{counting.url}/five/{{counter}}", "weight": 5, "name": "five"},
        {"url": f"{counting.url}/three/{{counter}}", "method": "HEAD", "weight": 3},
        {
            "url": f"{counting.url}/missing/{{counter}}",
            "body": '{"id": {counter}, "by": "{random}"}',
            "weight": 2,
            "expect": {"status": 404, "body": "ok"},
        },
    )
    flags = ("--requests", "1000", "-c", "7", "--threads", "2", "--pipeline", "3")
    record = measure(trueload, "--targets", file, *flags)
    assert record["counts"]["ok"] == 1000
    by_kind = Counter((asked.method, asked.path.split("/")[1]) for asked in counting.asked)
    assert by_kind == {("GET", "five"): 500, ("HEAD", "three"): 300, ("POST", "missing"): 200}
    numbers = sorted(int(asked.path.split("/")[2]) for asked in counting.asked)
    assert numbers == list(range(1000))
    for asked in counting.asked:
        if asked.method == "POST":
            assert json.loads(asked.body)["id"] == int(asked.path.split("/")[2])
    found = [
        (each["name"], each["method"], each["url"], each["weight"], each["counts"]["ok"])
        for each in record["targets"]
    ]
    assert found == [
        ("five", "GET", f"{counting.url}/five/{{counter}}", 5, 500),
        (None, "HEAD", f"{counting.url}/three/{{counter}}", 3, 300),
        (None, "POST", f"{counting.url}/missing/{{counter}}", 2, 200),
    ]
    for each in record["targets"]:
        assert each["latency_ns"]["count"] == sum(each["latency"].values()) == each["counts"]["ok"]
        assert each["counts"]["issued"] == each["counts"]["ok"]


def test_random_numbers_are_those_of_the_seed(trueload: Trueload, counting: Counting) -> None:
    def sent(*flags: str) -> dict[str, str]:
        counting.asked.clear()
        url = f"{counting.url}/{{counter}}?{{random}}&{{random}}"
        measure(trueload, url, "--requests", "60", "-c", "3", *flags)
        pairs = (asked.path.split("?") for asked in counting.asked)
        return dict(pairs)

    first = sent()
    numbers = [number for pair in first.values() for number in pair.split("&")]
    assert len(set(numbers)) == 120
    assert all(0 <= int(number) < 2**53 for number in numbers)
    assert sent("--seed", "1") == first
    assert set(sent("--seed", "2").values()).isdisjoint(first.values())


def test_one_request_is_filled_in_and_two_braces_stand_for_one(
    trueload: Trueload, counting: Counting
) -> None:
    flags = ("-H", "X-Id: n{counter}", "--body", "{{counter}={counter}", "--requests", "20")
    record = measure(trueload, f"{counting.url}/{{x}}", "-c", "2", *flags)
    assert record["targets"] is None
    assert {asked.path for asked in counting.asked} == {"/{x}"}
    received = {asked.headers["x-id"]: asked.body for asked in counting.asked}
    assert received == {f"n{n}": f"{{counter}}={n}".encode() for n in range(20)}
    assert all(asked.headers["content-length"] == str(len(asked.body)) for asked in counting.asked)


def test_what_fails_is_counted_at_its_own_target(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    file = write(
        tmp_path,
        {"url": "/", "expect": {"body": "no"}},
        {"url": "/missing"},
        {"url": "/fine"},
    )
    flags = (counting.url, "--targets", file, "--requests", "30", "-c", "2")
    record = measure(trueload, *flags)
    assert record["verdict"] == "invalid"
    failed = [each["counts"]["failed"] for each in record["targets"]]
    assert failed == [{"mismatch": 10}, {"status": 10}, {}]
    statuses = [each["counts"]["statuses"] for each in record["targets"]]
    assert statuses == [{"200": 10}, {"404": 10}, {"200": 10}]
    shown = trueload.run("runs", "show", "last").out
    assert re.search(
        r"^target +weight +requests +ok +failed +p50 +p99 +max of answers$", shown, re.MULTILINE
    )
    assert re.search(rf"^GET {counting.url}/missing +1 +10 +0 +10$", shown, re.MULTILINE)


def test_nothing_secret_of_a_targets_file_is_kept(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    authority = f"127.0.0.1:{server.port}"
    file = write(
        tmp_path,
        {"url": f"http://me:hidden-a@{authority}/"},
        {"url": f"http://{authority}/", "headers": {"Cookie": "hidden-b"}},
        {"url": f"http://{authority}/", "headers": {"Authorization": "Bearer hidden-c"}},
    )
    record = measure(trueload, "--targets", file, "--requests", "30", "-c", "2")
    assert record["counts"]["ok"] == 30
    shown = trueload.run("runs", "show", "last", "--json").out
    stored = b"".join(path.read_bytes() for path in trueload.folder.glob("store.sqlite*"))
    for text in (json.dumps(record), shown, stored.decode("latin-1")):
        assert "hidden" not in text
        assert "aGlkZGVu" not in text  # base64 of hidden


CURL = """curl 'http://me:hidden-a@{}/item/{{counter}}?a=b' \\
  -H 'Accept: text/html' -H 'Connection: keep-alive' \\
  -b 'session=hidden-b' \\
  --data-raw $'it\\'s \\u00fc' --compressed --insecure -s"""


def test_a_copied_curl_command_is_taken_over_and_its_secrets_are_not_kept(
    trueload: Trueload, counting: Counting
) -> None:
    flags = ("-H", "accept: */*", "--requests", "20", "-c", "2")
    record = measure(trueload, "--curl", CURL.format(counting.authority), *flags)
    assert record["counts"]["ok"] == 20
    assert record["plan"]["url"] == f"http://<redacted>@{counting.authority}/item/{{counter}}?a=b"
    assert {asked.method for asked in counting.asked} == {"POST"}
    assert {asked.path for asked in counting.asked} == {f"/item/{n}?a=b" for n in range(20)}
    assert {asked.body for asked in counting.asked} == {"it's ü".encode()}
    headers = counting.asked[0].headers
    assert headers["host"] == counting.authority
    assert headers["accept"] == "*/*"
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers["cookie"] == "session=hidden-b"
    assert headers["authorization"].startswith("Basic ")
    assert headers["content-length"] == "7"
    assert "connection" not in headers
    stored = b"".join(path.read_bytes() for path in trueload.folder.glob("store.sqlite*"))
    assert b"hidden" not in stored + json.dumps(record).encode()
    assert b"aGlkZGVu" not in stored
    assert b"--compressed" in stored


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (['{"url": "http://127.0.0.1:9/"}', "{"], "line 2: not JSON at character 2"),
        (['{"url": "http://a/"}', "", '{"url": "ws://b/"}'], "line 3: 'ws://' cannot be loaded"),
        (["{}"], "line 1: 'url' is missing"),
    ],
)
def test_a_bad_line_is_told_by_its_number_before_anything_is_sent(
    trueload: Trueload, tmp_path: Path, lines: list[str], error: str
) -> None:
    file = tmp_path / "targets.jsonl"
    file.write_text("\n".join(lines))
    done = trueload.run("http", "--targets", file)
    assert (done.code, done.out) == (2, "")
    first, hint = done.err.splitlines()
    assert first.startswith(f"error: the targets file '{file}', {error}")
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ((), "there is no URL"),
        (("--targets", "x", "--method", "GET"), "--targets and --method cannot be used together"),
        (
            ("--targets", "x", "--body-file", "y"),
            "--targets and --body-file cannot be used together",
        ),
        (("http://a/", "--seed", "1"), "--seed is for the arrivals of an open loop"),
        (("http://a/", "--curl", "curl b"), "--curl and a URL cannot be used together"),
        (("--curl", "curl b", "--targets", "x"), "--curl and --targets cannot be used together"),
        (("--curl", "curl b", "--user", "x"), "--curl and --user cannot be used together"),
        (("--curl", "curl b -Z"), "the curl command has -Z, which is not known here"),
    ],
)
def test_flags_that_contradict_are_refused(
    trueload: Trueload, flags: tuple[str, ...], error: str
) -> None:
    done = trueload.run("http", *flags)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {error}")


def test_files_of_other_tools_are_sent(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    (tmp_path / "body.bin").write_bytes(b"\xff\x00")
    url = counting.url
    vegeta_json = json.dumps({"method": "PUT", "url": f"{url}/b", "body": "/wA="})
    for name, text, expected in (
        (
            "urls.txt",
            f"\ufeff{url}/a\n# no\n{url}/b?c\n",
            {("GET", "/a", b""), ("GET", "/b?c", b"")},
        ),
        (
            "targets.txt",
            f"GET {url}/a\nX-One: 1\n\nPOST {url}/b\n@body.bin\n",
            {("GET", "/a", b""), ("POST", "/b", b"\xff\x00")},
        ),
        ("vegeta:targets.json", vegeta_json, {("PUT", "/b", b"\xff\x00")}),
    ):
        counting.asked.clear()
        prefix, _, rest = name.rpartition(":")
        file = tmp_path / rest
        file.write_text(text, encoding="utf-8")
        named = f"{prefix}:{file}" if prefix else str(file)
        measure(trueload, "--targets", named, "--requests", "4", "-c", "2")
        assert {(one.method, one.path, one.body) for one in counting.asked} == expected
