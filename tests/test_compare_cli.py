"""``runs diff`` and ``ab``, by the command line against the reference server."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness import Finished, Server, Trueload, start_server
from subject_world import World

SHORT = ("-d", "200ms", "--warmup", "0", "-c", "4")


def measure(trueload: Trueload, server: Server, *flags: str) -> str:
    """Measure once; return the id of the run in the store."""
    done = trueload.run("http", f"{server.url}/", *SHORT, *flags)
    assert done.code in (0, 4), done
    return str(json.loads(trueload.run("runs", "list", "--json").out)[-1]["id"])


def test_two_runs_are_compared_in_every_format(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    base = measure(trueload, server, "--repeat", "4")
    new = measure(trueload, server, "--repeat", "4")
    found = trueload.run("runs", "diff", base, new, "--format", "json")
    assert found.code in (0, 4), found
    row = found.json()["rows"][0]
    assert (row["base_trials"], row["new_trials"]) == (4, 4)
    assert row["ratios"][0]["metric"] == "throughput"
    assert row["ratios"][0]["ratio"] > 0

    exported = tmp_path / "baseline.json"
    assert trueload.run("runs", "export", base, "--format", "json", "-o", exported).code == 0
    from_file = trueload.run("runs", "diff", exported, new, "--format", "json")
    assert from_file.json()["rows"] == found.json()["rows"]

    assert "| throughput |" in trueload.run("runs", "diff", base, new, "--format", "markdown").out
    output = tmp_path / "junit.xml"
    condition = ("--fail-on", "throughput>0.000001")
    crossed = trueload.run("runs", "diff", base, new, *condition, "--format", "junit", "-o", output)
    unclear = row["ratios"][0]["word"] == "unclear"
    assert crossed.code in ((0, 4) if unclear else (1, 4)), crossed
    assert ("threshold crossed" in crossed.err) is (crossed.code == 1)
    assert ("threshold undecided" in crossed.err) is (crossed.code == 4)
    suite = ElementTree.parse(output).getroot()
    assert suite.attrib["failures"] == ("1" if crossed.code == 1 else "0")
    assert suite.attrib["errors"] == ("1" if crossed.code == 4 else "0")


def test_single_runs_are_unclear_and_a_condition_on_them_is_refused(
    trueload: Trueload, server: Server
) -> None:
    base, new = measure(trueload, server), measure(trueload, server)
    shown = trueload.run("runs", "diff", base, new)
    assert shown.code in (0, 4), shown
    assert "unclear: one trial each; use --repeat 6 or trueload compare" in shown.out
    refused = trueload.run("runs", "diff", base, new, "--fail-on", "throughput<0.95")
    assert (refused.code, refused.out) == (2, ""), refused
    error, hint = refused.err.splitlines()
    assert error.endswith("--fail-on cannot be judged: one trial each")
    assert hint == "hint: use --repeat 6 or trueload compare"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nosuch", "nosuch"), "there is no run 'nosuch'"),
        (("nosuch.json", "last"), "cannot be read"),
        (("a", "b", "--fail-on", "throughput<x"), "'x' is not a ratio"),
        (("a", "b", "--fail-on", "errors<1"), "at character 1"),
    ],
)
def test_a_comparison_of_nothing_is_refused(
    trueload: Trueload, arguments: tuple[str, ...], complaint: str
) -> None:
    done = trueload.run("runs", "diff", *arguments)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err.splitlines()[0]
    assert len(done.err.splitlines()) == 2


def test_two_servers_are_measured_in_pairs(trueload: Trueload, server: Server) -> None:
    urls = (f"{server.url}/", f"{server.url}/perf")
    done = trueload.run("compare", *urls, *SHORT, "--repeat", "2", "--seed", "3", "--json", "-")
    assert done.code in (0, 4), done
    found = done.json()
    assert (found["a"], found["b"], found["pairs"], found["partial"]) == (*urls, 2, False)
    sides = [(trial["pair"], trial["side"]) for trial in found["trials"]]
    assert sorted(sides) == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    paths = {
        trial["side"]: trial["plan"]["generate"]["request"]["path"] for trial in found["trials"]
    }
    assert paths == {"a": "/", "b": "/perf"}
    assert {check["name"] for check in found["checks"]} >= {"errors", "audit"}
    throughput = found["ratios"][0]
    assert throughput["metric"] == "throughput"
    assert len(throughput["pairs"]) == 2
    assert throughput["interval"]["kind"] == "range"
    assert (throughput["word"], throughput["why"]) == ("unclear", "2 pairs; use --repeat 6")
    shown = trueload.run("runs", "show", "last")
    assert shown.code == 0
    assert "row 1  pair 1" in shown.out


def test_a_stored_comparison_is_shown_as_it_was_printed(trueload: Trueload, server: Server) -> None:
    urls = (f"{server.url}/", f"{server.url}/perf")
    gate = ("--fail-on", "p95>1000000")
    printed = trueload.run("compare", *urls, *SHORT, "--repeat", "6", *gate).out.splitlines()
    assert any(line.startswith("p95 ") for line in printed), "a metric that only the gate names"
    comparison = [line for line in printed if not line.startswith(("why ", "saved "))]
    assert "\n".join(comparison) in trueload.run("runs", "show", "last").out


def test_pairs_are_shown_as_markdown_and_junit(trueload: Trueload, server: Server) -> None:
    sides = ("compare", f"{server.url}/", f"{server.url}/wait/20", *SHORT, "--repeat", "6")
    condition = ("--fail-on", "throughput<0.5")
    done = trueload.run(*sides, *condition, "--format", "markdown")
    crosses = done.code == 1
    assert done.code in (1, 4), done
    assert done.out.startswith(f"**trueload**: {server.url}/wait/20 against {server.url}/")
    assert "| throughput |" in done.out
    assert ("threshold crossed: throughput of B is" in done.out) is crosses
    assert "pair 1" in done.err
    done = trueload.run(*sides, *condition, "--format", "junit", "--no-save")
    suite = ElementTree.fromstring(done.out).attrib
    assert suite["failures"] == ("1" if done.code == 1 else "0")
    assert suite["errors"] == ("1" if done.code == 4 else "0")
    assert trueload.run(*sides, "--format", "json", "--no-save").json()["pairs"] == 6
    refused = trueload.run(*sides, "--format", "junit", "--json", "-")
    assert (refused.code, len(refused.err.splitlines())) == (2, 2)
    assert "both write to stdout" in refused.err


def test_a_pair_that_is_much_slower_crosses_a_ratio(trueload: Trueload, server: Server) -> None:
    done = trueload.run(
        *("compare", f"{server.url}/", f"{server.url}/wait/20", *SHORT, "--repeat", "6"),
        *("--fail-on", "throughput<0.5", "--no-save"),
    )
    assert done.code in (1, 4), done
    assert ("threshold crossed: throughput of B is" in done.err) is (done.code == 1)
    assert ("threshold undecided: throughput of B is" in done.err) is (done.code == 4)


def test_a_condition_on_few_pairs_is_refused_before_anything_is_sent(trueload: Trueload) -> None:
    few = ("--repeat", "5", "--fail-on", "throughput<0.5")
    refused = trueload.run("compare", *NOBODY, *SHORT, *few)
    assert (refused.code, refused.out) == (2, ""), refused
    error, hint = refused.err.splitlines()
    assert error.endswith("--fail-on cannot be judged: 5 pairs")
    assert hint == "hint: use --repeat 6"


def test_a_side_that_is_not_there_measures_nothing(
    trueload: Trueload, server: Server, refusing_port: int
) -> None:
    gone = f"http://127.0.0.1:{refusing_port}/"
    done = trueload.run("compare", f"{server.url}/", gone, *SHORT, "--repeat", "2")
    assert done.code in (3, 4), done
    assert "connect.refused" in done.err
    missing = trueload.run("compare", "no-such-subject", gone)
    assert missing.code == 2
    assert "no-such-subject" in missing.err


def test_each_pair_has_arrivals_of_its_own_and_both_sides_the_same(
    trueload: Trueload, server: Server
) -> None:
    urls = (f"{server.url}/", f"{server.url}/perf")
    chance = ("--rate", "500/s", "--arrivals", "poisson", "--seed", "40")
    done = trueload.run("compare", *urls, *SHORT, *chance, "--repeat", "3", "--json", "-")
    assert done.code in (0, 4), done
    seeds: dict[int, set[int]] = {}
    for trial in done.json()["trials"]:
        seeds.setdefault(trial["pair"], set()).add(trial["plan"]["window"]["load"]["seed"])
    assert seeds == {1: {40}, 2: {41}, 3: {42}}


def test_a_body_from_stdin_goes_to_both_sides(trueload: Trueload, server: Server) -> None:
    urls = (f"{server.url}/", f"{server.url}/perf")
    flags = ("--body-file", "-", "-X", "GET", "--repeat", "1", "--json", "-")
    done = trueload.run("compare", *urls, *SHORT, *flags, stdin="a body \u00fc")
    assert done.code in (0, 4), done
    plans = [trial["plan"]["generate"]["request"] for trial in done.json()["trials"]]
    assert len({plan["body_sha256"] for plan in plans}) == 1
    assert all(["Content-Length", "9"] in plan["headers"] for plan in plans)


def asked_of(done: Finished) -> dict[str, set[tuple[str, str]]]:
    """The method and path of the requests that each side got."""
    found: dict[str, set[tuple[str, str]]] = {}
    for trial in done.json()["trials"]:
        generate = trial["plan"]["generate"]
        requests = [each["request"] for each in generate["targets"]] or [generate["request"]]
        pairs = {(each["method"], each["path"]) for each in requests}
        found.setdefault(trial["side"], set()).update(pairs)
    return found


def two_servers(trueload: Trueload, server: Server) -> tuple[str, str]:
    return server.url, start_server(trueload).url


LINES = '{"url": "/a"}\n{"url": "/b", "method": "POST", "body": "x", "weight": 2}\n'
OF_LINES = {("GET", "/a"), ("POST", "/b")}


@pytest.mark.parametrize("by", ["a file", "stdin"])
def test_both_sides_are_asked_the_lines_of_a_targets_file(
    trueload: Trueload, server: Server, tmp_path: Path, by: str
) -> None:
    file = tmp_path / "targets.jsonl"
    file.write_text(LINES)
    flags = ("--targets", "-" if by == "stdin" else file, "--repeat", "1", "--json", "-")
    sides = two_servers(trueload, server)
    more = ("--expect-status", "200,404,405")
    done = trueload.run("compare", *sides, *SHORT, *flags, *more, stdin=LINES)
    assert done.code in (0, 4), done
    assert asked_of(done) == {"a": OF_LINES, "b": OF_LINES}
    assert (done.json()["a"], done.json()["b"]) == sides


def test_both_sides_are_asked_what_a_curl_command_asks(trueload: Trueload, server: Server) -> None:
    curl = "curl -k 'http://me:pw@example.org/perf?x=1' -X PUT -H 'Accept: text/x' --data-raw a=b"
    flags = ("--curl", curl, "--repeat", "1", "--expect-status", "2xx,4xx", "--json", "-")
    sides = two_servers(trueload, server)
    done = trueload.run("compare", *sides, *SHORT, *flags)
    assert done.code in (0, 4), done
    assert asked_of(done) == {side: {("PUT", "/perf?x=1")} for side in "ab"}
    hosts = set()
    for trial in done.json()["trials"]:
        headers = dict(trial["plan"]["generate"]["request"]["headers"])
        assert headers["Accept"] == "text/x"
        assert headers["Content-Type"] == "application/x-www-form-urlencoded"
        assert headers["Authorization"]
        assert "bWU6cHc" not in str(trial), "what is secret is not in the record"
        hosts.add(headers["Host"])
    assert hosts == {side.removeprefix("http://") for side in sides}


NOBODY = ("http://127.0.0.1:1", "http://127.0.0.1:2")


@pytest.mark.parametrize(
    ("sides", "flags", "complaint"),
    [
        (NOBODY, ("--curl", "curl http://h/ -T x"), "the curl command has -T"),
        (NOBODY, ("--curl", "curl http://h/", "-X", "PUT"), "--curl and --method cannot be used"),
        (
            NOBODY,
            ("--curl", "curl http://h/", "--targets", "-"),
            "--curl and --targets cannot be used together",
        ),
        (
            (NOBODY[0], f"{NOBODY[1]}/x"),
            ("--curl", "curl http://h/y"),
            "the --curl command and http://127.0.0.1:2/x both have a path",
        ),
        (NOBODY, ("--targets", "-"), "the targets on stdin, line 1: not JSON"),
        (NOBODY, ("--targets", "-", "-X", "PUT"), "--targets and --method cannot be used together"),
        (NOBODY, ("--targets", "/nowhere"), "the targets file '/nowhere' cannot be read"),
    ],
)
def test_what_both_sides_cannot_be_asked_is_refused(
    trueload: Trueload, sides: tuple[str, str], flags: tuple[str, ...], complaint: str
) -> None:
    done = trueload.run("compare", *sides, *SHORT, *flags, stdin="nonsense")
    assert (done.code, done.out) == (2, ""), done
    error, hint = done.err.splitlines()
    assert complaint in error
    assert hint.startswith("hint: ")


def test_lines_that_name_a_server_are_of_that_one_only(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "targets.jsonl"
    file.write_text(f'{{"url": "{server.url}/a"}}\n')
    done = trueload.run("compare", server.url, NOBODY[0], *SHORT, "--targets", file)
    assert done.code == 2
    assert "line 1: it goes to" in done.err
    assert "write only the path" in done.err


def test_a_subject_is_asked_what_its_contract_says_with_the_headers_given(
    world: World,
) -> None:
    world.add("one")
    world.add("two")
    sides = ("compare", "python/one", "python/two", *SHORT, "--repeat", "1")
    done = world.run(*sides, "-H", "Accept: text/x", "--user", "a:b", "--json", "-")
    assert done.code in (0, 4), done
    for trial in done.json()["trials"]:
        request = trial["plan"]["generate"]["request"]
        assert (request["method"], request["path"]) == ("GET", "/")
        assert ["Accept", "text/x"] in request["headers"]
        assert "Authorization" in [name for name, _ in request["headers"]]
        assert trial["counts"]["ok"] > 0


def test_random_numbers_of_a_pair_are_the_same_for_both_sides(
    trueload: Trueload, server: Server
) -> None:
    sides = ("compare", f"{server.url}/", f"{server.url}/perf", *SHORT, "--repeat", "2")
    done = trueload.run(*sides, "-H", "X-Id: {random}", "--seed", "40", "--json", "-")
    assert done.code in (0, 4), done
    seeds: dict[int, set[int]] = {}
    for trial in done.json()["trials"]:
        seeds.setdefault(trial["pair"], set()).add(trial["plan"]["generate"]["seed"])
    assert seeds == {1: {40}, 2: {41}}


@pytest.mark.parametrize(
    "flags",
    [
        ("--method", "POST"),
        ("--body", ""),
        ("--body-file", "-"),
        ("--expect-status", "404"),
        ("--expect-body", "x"),
        ("--unix", "/tmp/x.sock"),
        ("--resolve", "a:80:127.0.0.1"),
        ("--targets", "-"),
        ("--curl", "curl http://127.0.0.1/"),
    ],
)
def test_what_a_contract_decides_is_refused_for_a_subject(
    world: World, flags: tuple[str, str]
) -> None:
    world.add("one")
    done = world.run("compare", "http://127.0.0.1:1/", "python/one", *flags)
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert f"{flags[0]} cannot be used with a subject" in error
    assert "http-plaintext" in error
    assert hint.startswith("hint: ")
