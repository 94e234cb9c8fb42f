"""Every way in which a subject can fail: a row with its reason, and no process is left.

The next subject runs all the same.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest
from harness import kill_group, spoiled, statuses
from subject_world import World

pytestmark = pytest.mark.engine


def rows_by_name(found: Any) -> dict[str, Any]:
    return {row["framework"]: row for row in found["rows"]}


# (the subject's behaviour, how its row ends, words of its reason)
FAULTS = [
    ("fine", "measured", ""),
    ("exits-at-once", "failed", "ended before it was ready: exit code 0"),
    ("never-listens", "failed", "did not listen on 127.0.0.1"),
    ("elsewhere", "failed", r"listens on 127.0.0.1:\d+ instead of"),
    ("wrong", "failed", "body 'Hello, Moon!!' instead of 'Hello, World!'"),
    ("dies-after-ready", "failed", "ended before anything was measured: exit code 3"),
    ("dies-in-mid-run", "invalid", "ended in mid-run: exit code 3"),
    ("killed", "invalid", r"ended in mid-run: signal 9 \(SIGKILL"),
    ("twice", "invalid", "unsolicited"),
    ("ignores-sigterm", "measured", ""),
    ("daemonises", "measured", ""),
    ("prints", "measured", ""),
    ("closes-stdout", "measured", ""),
    ("litters", "measured", ""),
]


def test_each_fault_is_a_row_with_its_reason_and_nothing_is_left(world: World) -> None:
    for how, _outcome, _reason in FAULTS:
        unready = how in ("never-listens", "elsewhere", "wrong")
        world.add(how, how, ready_s=2 if unready else 20)
    world.add("build-fails", build=[["sh", "-c", "echo the compiler is unhappy; exit 7"]])
    world.add("build-hangs", build=[["sleep", "3600"]], build_s=1)
    world.add("needs-more", needs={"tools": ["no-such-tool>=2"]})
    ended = world.run_suite("--json", "-")
    rows = rows_by_name(ended.json())
    trials = {trial["id"]: trial for trial in ended.json()["trials"]}
    world.wait_until_nothing_is_left()
    for how, outcome, reason in FAULTS:
        row = rows[how]
        found = "invalid" if row["verdict"] == "invalid" else row["outcome"]
        if outcome == "measured" and found == "invalid":
            (trial,) = (trials[number] for number in row["record_ids"])
            assert spoiled(statuses(trial)), f"{how}: {row}"
            continue
        assert found == outcome, f"{how}: {row}"
        assert re.search(reason, row["why"]), f"{how}: {row['why']}"
    assert rows["build-fails"]["outcome"] == "failed"
    assert "exit code 7" in rows["build-fails"]["why"]
    assert "longer than 1 s (build_s)" in rows["build-hangs"]["why"]
    assert (rows["needs-more"]["outcome"], rows["needs-more"]["why"]) == (
        "skipped",
        "no-such-tool is not installed",
    )
    assert rows["twice"]["verdict"] == "invalid"
    ranked = any(row["verdict"] in ("valid", "suspect") for row in rows.values())
    assert ended.code == (0 if ranked else 4)
    litter = list(world.folder.rglob("left-*.txt"))
    assert litter == [], "neither in the checkout nor in the cache"


def test_the_tail_of_a_failed_build_is_kept_in_the_store(world: World) -> None:
    world.add("build-fails", build=[["sh", "-c", "echo the compiler is unhappy; exit 7"]])
    ended = world.run_suite()
    assert ended.code == 3, "nothing could be measured"
    assert "build failed with exit code 7" in ended.out
    shown = world.run("runs", "show", "last", "--json")
    assert "the compiler is unhappy" in shown.out


def test_a_row_that_misbehaves_is_shown_apart_and_the_exit_code_says_so(world: World) -> None:
    world.add("twice", "twice")
    ended = world.run_suite()
    assert ended.code == 4, ended
    assert "No row can be ranked." in ended.out
    assert "Invalid, not ranked:" in ended.out


def test_a_cache_that_cannot_be_written_is_a_reason_and_no_bug(world: World) -> None:
    world.add("fine")
    # /proc allows no new files, not even to root.
    nowhere = {"TRUELOAD_CACHE": "/proc/cache"}
    checked = world.run("subjects", "check", "fine", env=nowhere)
    assert checked.code == 4, checked
    assert "it cannot be built: " in checked.out + checked.err
    assert "/proc/cache" in checked.out + checked.err
    assert world.run("suite", "run", "quick", "--subjects", "fine", env=nowhere).code == 3


def test_a_scratch_folder_that_cannot_be_made_is_a_reason_and_no_bug(world: World) -> None:
    world.add("fine")
    assert world.run("subjects", "check", "fine").code == 0
    scratch = world.cache / "scratch"
    scratch.rmdir()
    scratch.write_text("a file where a folder should be")
    checked = world.run("subjects", "check", "fine")
    assert checked.code == 4, checked
    assert "it cannot be started: " in checked.out + checked.err
    ended = world.run_suite("--json", "-")
    assert ended.code == 3, ended
    assert "it cannot be started: " in rows_by_name(ended.json())["fine"]["why"]


def test_a_store_that_is_full_in_mid_run_says_how_to_go_on(world: World) -> None:
    world.add("fine")
    suite = ("suite", "run", "quick", "--subjects", "fine", "--share-cpus")
    words = (*suite, "--requests", "20", "-c", "2", "--repeat", "40")

    def shrink() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    done = subprocess.run(
        [sys.executable, "-B", "-m", "trueload", *words],
        cwd=world.folder,
        env=world.trueload.env(world.env),
        capture_output=True,
        text=True,
        preexec_fn=shrink,
        timeout=100,
        check=False,
    )
    assert done.returncode == 74, done
    *_, message, hint = done.stderr.splitlines()
    assert "could not be written" in message
    assert "\npython" in done.stdout, "what had been measured is shown"
    run = world.run("runs", "list", "--json").json()[-1]
    assert run["row_count"] >= 1
    assert hint.endswith(f"go on with: trueload suite run --resume {run['id']}")
    world.wait_until_nothing_is_left()


def test_a_pair_with_a_subject_that_cannot_start_is_not_measured(world: World) -> None:
    world.add("fine")
    world.add("exits-at-once", "exits-at-once")
    short = ("--requests", "20", "-c", "2", "--repeat", "1")
    ended = world.run("compare", "python/fine", "python/exits-at-once", *short)
    assert ended.code == 3, ended
    assert "exits-at-once cannot be measured: it ended before it was ready" in ended.err
    world.wait_until_nothing_is_left()


def test_a_pair_with_a_subject_that_cannot_be_built_is_not_measured(world: World) -> None:
    world.add("fine")
    world.add("build-fails", build=[["sh", "-c", "exit 7"]])
    world.add("needs-more", needs={"tools": ["no-such-tool>=2"]})
    reasons = {
        "build-fails": "the build failed with exit code 7: sh -c exit 7",
        "needs-more": "no-such-tool is not installed",
    }
    for name, reason in reasons.items():
        ended = world.run("compare", "python/fine", f"python/{name}", "--requests", "20", "-c", "2")
        assert (ended.code, ended.out) == (3, ""), ended
        error, hint = ended.err.splitlines()[-2:]
        assert error == f"error: python/{name} cannot be measured: {reason}"
        assert hint.startswith("hint: ")
        assert world.run_suite("--subjects", name).code == 3, "as a suite of it ends"
    kinds = {run["kind"] for run in world.run("runs", "list", "--json").json()}
    assert kinds == {"suite"}, "no pair was begun"
    world.wait_until_nothing_is_left()


@pytest.mark.parametrize(
    ("how", "keys", "begun"),
    [
        ("fine", {"build": [["sleep", "3600"]]}, "sleep 3600"),
        ("never-listens", {"ready_s": 60}, "program.py"),
    ],
)
def test_a_pair_that_is_interrupted_before_a_trial_says_so(
    world: World, how: str, keys: dict[str, Any], begun: str
) -> None:
    world.add("slow", how, **keys)
    words = ("compare", "python/slow", "python/slow", "--requests", "20", "-c", "2")
    process = world.trueload.start(*words, cwd=world.folder, env=world.env)
    world.wait_for_trial(begun)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "cannot be measured" not in err
    world.wait_until_nothing_is_left()


def test_a_port_that_is_taken_is_refused_and_its_owner_left_alone(world: World) -> None:
    world.add("fine")
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        port = foreign.getsockname()[1]
        ended = world.run_suite("--port", str(port))
        assert ended.code == 3
        assert f"port {port} is taken by process {os.getpid()}" in ended.out
        foreign.setblocking(False)
        with pytest.raises(BlockingIOError):
            foreign.accept()
    world.wait_until_nothing_is_left()


def test_a_subject_on_every_cpu_shares_its_port(world: World) -> None:
    world.add("many", "prefork", prefork=True)
    ended = world.run_suite("--cores", "multi", "--json", "-")
    row = rows_by_name(ended.json())["many"]
    assert row["outcome"] == "measured", row
    pids = ended.json()["trials"][0]["server"]["pids"]
    cpus = len(os.sched_getaffinity(0))
    assert len(pids) == (cpus - 1 if cpus >= 3 else cpus), "the engine has one of three or more"
    world.wait_until_nothing_is_left()


LONG = ("suite", "run", "quick", "--subjects", "python", "-c", "4", "-d", "60s", "--share-cpus")


def test_killing_trueload_leaves_nothing_running(world: World) -> None:
    world.add("daemonises", "daemonises")
    process = world.trueload.start(*LONG, cwd=world.folder, env=world.env)
    world.wait_for_trial()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    world.wait_until_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_saves_what_was_measured_and_leaves_nothing(
    world: World, number: signal.Signals
) -> None:
    world.add("fine")
    process = world.trueload.start(*LONG, cwd=world.folder, env=world.env)
    world.wait_for_trial()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "go on with: trueload suite run --resume" in err
    world.wait_until_nothing_is_left()


def test_a_second_signal_ends_at_once_and_still_leaves_nothing(world: World) -> None:
    world.add("ignores-sigterm", "ignores-sigterm")
    process = world.trueload.start(*LONG, cwd=world.folder, env=world.env)
    world.wait_for_trial()
    # Two different signals, because the kernel merges equal ones that are pending.
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    world.wait_until_nothing_is_left()


def test_two_suites_at_once_share_the_cache_and_the_store(world: World) -> None:
    world.add("built", build=[["sh", "-c", "sleep 0.2; echo done > built.txt"]])
    short = ("--requests", "100", "-c", "2", "--repeat", "2", "--share-cpus")
    words = ("suite", "run", "quick", "--subjects", "built", *short)
    pair = [world.trueload.start(*words, cwd=world.folder, env=world.env) for _ in range(2)]
    for process in pair:
        out, err = process.communicate(timeout=90)
        assert process.returncode in (0, 4), (out, err)
    stamps = list(world.cache.glob("builds/*/stamp.json"))
    assert len(stamps) == 1, "built once, or at least in one place"
    assert len(world.run("runs", "list", "--json").json()) == 2
    for process in pair:
        kill_group(process)
    world.wait_until_nothing_is_left()
