"""`trueload suite` and `trueload subjects` as a user types them."""

from __future__ import annotations

import csv
import io
import signal
from pathlib import Path
from typing import Any

import pytest
from subject_world import World

PUBLISHED = "Language,Framework,Category,Name,Res[B],Req,Err,RPS,BPS,min,25%,50%,75%,99%,max"


def test_a_dry_run_prints_the_plan_and_starts_nothing(world: World) -> None:
    world.add("one", build=[["touch", "built-by-dry-run"]])
    world.add("two")
    words = ("--subjects", "python", "-c", "8,64", "-d", "10s", "--seed", "7", "--dry-run")
    ended = world.run("suite", "run", "quick", *words)
    assert ended.code == 0, ended
    first = ended.out.splitlines()[0]
    assert first == "12 trials, about 2 min: 2 subjects x 2 loads x 3 repetitions, seed 7"
    assert not world.cache.exists()
    assert not world.trueload.store.exists()


# (arguments, words of the error, words of the hint)
MISTAKES = [
    (["run"], "no suite is named", "suite list"),
    (["run", "quik"], "no suite is called 'quik'", "did you mean quick?"),
    (["run", "no/such.toml"], "no suite file no/such.toml", "suite list"),
    (["run", "quick", "--subjects", "fin"], "no subject is called 'fin'", "did you mean fine?"),
    (["run", "quick", "--subjects", "fine:x"], "no subject has the variant", "only the default"),
    (["run", "quick", "--subjects", "!fine,python"], "no subject with the contract", ""),
    (["run", "quick", "--subjects", "/"], "'/' selects no subject", "SELECT is NAME"),
    (["run", "quick", "--subjects", "perf"], "no subject with the contract 'http-plaintext'", ""),
    (["run", "quick", "-c", "64x"], "'--connections': '64x' is not from 1 to 1000000: write", ""),
    (["run", "quick", "-c", "0"], "'--connections': '0' is not from 1 to 1000000", ""),
    (["run", "quick", "--spin", "5us"], "suite run has no option --spin", "as its key spin"),
    (["run", "quick", "--read-rate", "1KiB"], "no option --read-rate", "as its key read_rate"),
    (["run", "quick", "-d", "10x"], "for '-d' / '--duration': '10x' unit 'x' is not known", ""),
    (["run", "quick", "-d", "0s"], "for '-d' / '--duration': '0s' must be greater than 0", ""),
    (
        ["run", "quick", "-d", "1s", "--requests", "5", "--subjects", "fine"],
        "cannot be used together",
        "",
    ),
    (["run", "quick", "--cores", "dual"], "'dual' is neither single nor multi", ""),
    (["run", "quick", "--resume", "nothing"], "there is no run 'nothing'", "runs list"),
    (["run", "quick", "--json", "/no/such/file"], "/no/such/file cannot be written", ""),
    (["run", "quick", "--repeat", "0"], "--repeat", ""),
    (
        ["run", "quick", "--subjects", "fine", "--place", "ssh:a", "--dry-run"],
        "do not reach subjects on 127.0.0.1",
        "--server-place",
    ),
    (
        [
            *("run", "quick", "--subjects", "fine", "-c", "1", "--dry-run"),
            *("--place", "ssh:a", "--place", "ssh:b", "--server-place", "ssh:c"),
        ],
        "1 connection is too few for 2 hosts",
        "",
    ),
    (["run", "quick", "--seed", "9223372036854775808"], "--seed", ""),
]


@pytest.mark.parametrize(("words", "error", "hint"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_gets_one_line_and_one_hint(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], error: str, hint: str
) -> None:
    world = World(tmp_path_factory.mktemp("world"))
    world.add("fine")
    world.add("perf", contracts=["http-perf"])
    ended = world.run("suite", *words)
    lines = [line for line in ended.err.splitlines() if not line.startswith("note: ")]
    assert ended.code == 2, ended
    assert len(lines) == 2, ended
    assert lines[0].startswith("error: "), ended
    assert error in lines[0], ended
    assert lines[1].startswith("hint: "), ended
    assert hint in lines[1], ended
    assert ended.out == ""


@pytest.mark.engine
def test_the_table_has_the_published_columns_and_then_ours(world: World) -> None:
    world.add("fine")
    ended = world.run_suite("--format", "csv", "--published", "-c", "2,4")
    lines = ended.out.splitlines()
    assert lines[0].startswith(PUBLISHED + ",interval,CPU,memory,verdict,rank,rank_last"), lines[0]
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    medians = {row["connections"]: row["verdict"] for row in rows if row["figures"] == "median"}
    assert list(medians) == ["2", "4"]
    # A busy machine may make a cell invalid, which then has no best row.
    valid = [connections for connections, verdict in medians.items() if verdict != "invalid"]
    assert [row["connections"] for row in rows if row["figures"] == "best"] == valid
    assert rows[0]["Res[B]"] == "78"
    assert rows[0]["Req"] == "200"
    text = world.run_suite("--published")
    header = next(line for line in text.out.splitlines() if line.startswith("Language"))
    assert header.split()[:15] == PUBLISHED.split(",")
    assert "\x1b" not in text.out + text.err, "no control codes in a pipe"


@pytest.mark.engine
def test_the_json_is_one_object_with_the_records_under_trials(world: World) -> None:
    world.add("fine")
    ended = world.run_suite("--json", "-", "--repeat", "2")
    shown = ended.json()
    assert shown["verdict"] in ("valid", "suspect", "invalid")
    assert {check["name"] for check in shown["checks"]} >= {"unsolicited", "errors", "audit"}
    assert len(shown["trials"]) == 2
    assert shown["rows"][0]["record_ids"] == [trial["id"] for trial in shown["trials"]]
    assert shown["trials"][0]["server"]["source"] == "started"


@pytest.mark.engine
def test_an_interrupted_run_goes_on_where_it_was_and_does_nothing_twice(world: World) -> None:
    world.add("fine")
    long = ("--subjects", "fine", "-c", "2", "-d", "300ms", "--warmup", "0s", "--repeat", "4")
    words = ("suite", "run", "quick", *long, "--share-cpus")
    process = world.trueload.start(*words, cwd=world.folder, env=world.env)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[2/4]"):
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=60)
    assert process.returncode == 130
    before = done_trials(world)
    (world.subjects / "python" / "fine" / "program.py").write_text("raise SystemExit(5)\n")
    changed = world.run("suite", "run", "--resume", "last")
    assert "note: python/fine has changed since the run began" in changed.err
    after = done_trials(world)
    assert after[: len(before)] == before, "nothing is lost"
    complete = [key for key in after if not key.endswith(" partial")]
    assert len(complete) == len(set(complete)) == 4, "nothing is done twice"
    again = world.run("suite", "run", "--resume", "last")
    assert done_trials(world) == after, again
    refused = world.run("suite", "run", "--resume", "last", "-c", "8")
    assert refused.code == 2
    assert "--resume goes on with the plan of the run" in refused.err


def done_trials(world: World) -> list[str]:
    """The keys in the store, in their order."""
    from trueload.store.rows import Row
    from trueload.store.runs import Store

    with Store.open(world.trueload.store) as store:
        rows = list(store.rows(store.find_run("last")))
    assert all(isinstance(row, Row) for row in rows)
    return [row.key for row in rows if isinstance(row, Row)]


@pytest.mark.engine
def test_subjects_check_says_what_is_wrong_with_each(world: World) -> None:
    world.add("fine")
    world.add("wrong", "wrong", ready_s=1)
    world.add("absent", needs={"tools": ["no-such-tool"]})
    ended = world.run("subjects", "check", "--json")
    found = {check["subject"]: check for check in ended.json()["checks"]}
    assert ended.code == 4
    assert found["python/fine"]["outcome"] == "ok"
    assert found["python/wrong"]["outcome"] == "failed"
    assert "Hello, Moon!!" in found["python/wrong"]["why"]
    assert found["python/absent"]["outcome"] == "skipped"
    assert world.run("subjects", "check", "fine", "absent").code == 0
    world.wait_until_nothing_is_left()


def test_subjects_responses_prints_what_was_answered(world: World) -> None:
    world.add("fine")
    ended = world.run("subjects", "responses", "fine")
    assert "GET /: 78 bytes" in ended.out
    assert "HTTP/1.1 200 OK" in ended.out
    assert "> Hello, World!" in ended.out


def test_a_new_subject_is_a_manifest_that_can_be_read(world: World) -> None:
    world.add("fine")
    made = world.run("subjects", "new", "zig/my-server")
    assert made.code == 0, made
    listed = world.run("subjects", "list", "zig", "--json").json()["subjects"]
    assert [subject["framework"] for subject in listed] == ["my-server"]
    assert world.run("subjects", "new", "zig/my-server").code == 2, "never overwritten"
    assert world.run("subjects", "new", "zig/my-client", "--client").code == 0
    both = world.run("subjects", "list", "zig", "--json").json()["subjects"]
    assert {subject["framework"]: (subject["role"], *subject["contracts"]) for subject in both} == {
        "my-client": ("client", "http-client"),
        "my-server": ("server", "http-plaintext"),
    }
    for bad in ("zig", "../x", "a/../b", "zig/", "a/b/c", "a/;rm"):
        assert world.run("subjects", "new", bad).code == 2, bad
    assert sorted(path.name for path in world.folder.iterdir() if path.is_dir()) == ["subjects"]


def test_names_with_shell_characters_do_no_harm(world: World) -> None:
    odd = world.add("fine")
    strange = odd.parent / "$(touch x); `touch y`\n"
    strange.mkdir()
    (strange / "subject.toml").write_text((odd / "subject.toml").read_text())
    ended = world.run("subjects", "list")
    assert ended.code == 2
    assert "names have letters, digits" in ended.err
    assert len(ended.err.splitlines()) == 2
    assert not list(world.folder.rglob("x")) + list(world.folder.rglob("y"))


def test_a_missing_package_is_named_with_the_way_to_it(world: World) -> None:
    world.add("fine", needs={"debian": ["no-such-package-of-ours"]})
    listed: Any = world.run("subjects", "list", "--json").json()["subjects"][0]
    reason = listed["missing"]
    if reason is not None:  # without dpkg only the build can tell
        assert "no-such-package-of-ours" in reason
        assert "`sudo apt-get install " in reason


def test_the_suites_of_the_checkout_can_be_listed_and_planned(world: World) -> None:
    names = [suite["name"] for suite in world.run("suite", "list", "--json").json()["suites"]]
    assert {"quick", "http-servers"} <= set(names)
    root = Path(world.env["TRUELOAD_HOME"])
    for name in names:
        ended = world.trueload.run("suite", "run", name, "--dry-run", cwd=root)
        assert ended.code == 0, ended


def test_nothing_is_left_in_the_checkout_by_a_build(world: World) -> None:
    folder = world.add("built", build=[["sh", "-c", "echo x > made.txt"]])
    before = sorted(folder.iterdir())
    assert world.run("subjects", "check", "built").code == 0
    assert sorted(folder.iterdir()) == before
    stamp = next(world.cache.glob("builds/*/stamp.json")).stat().st_mtime_ns
    assert world.run("subjects", "check", "built").code == 0
    made = next(world.cache.glob("builds/*/tree/made.txt")).stat().st_mtime_ns
    assert made <= stamp, "the second time it came from the cache"
