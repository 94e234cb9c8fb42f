"""Clients under test, end to end: one that works, and every way to lie, hang or die.

Each failure is a row with its reason, the next client runs, and no process is left.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from client_world import add_client, rows_of, run_clients
from harness import against
from subject_world import World

pytestmark = pytest.mark.engine

# (the client's behaviour, how its row ends, words of its reason)
QUICK = [
    ("fine", "ranked", ""),
    ("cannot", "unsupported", "it has no pools"),
    ("garbage", "failed", "neither ready nor unsupported"),
    ("floods", "failed", "a line longer than 65536 bytes"),
    ("floods-lines", "failed", "no JSON: 'hello'"),
    ("floods-stderr", "ranked", ""),
    ("talks", "failed", "it wrote to its output without being asked: 'and by the way"),
    ("dies", "failed", "it closed its output: it ended with exit code 7"),
    ("dies-late", "invalid", "it closed its output: it ended with exit code 7"),
    ("killed", "failed", r"it ended with signal 9 \(SIGKILL"),
    ("nan", "failed", "elapsed_s: "),
    ("negative", "failed", "ok: "),
    ("claims-more", "invalid", r"both-ends: the client claims \d+ ok, but the server completed"),
    ("claims-less", "invalid", r"audit: the client claims \d+ ok and 0 failed, of \d+ requests"),
    ("invents", "invalid", "both-ends: the client claims"),
    ("no-time", "invalid", "p50 of 3 µs where an answer takes 10 ms"),
    ("gives-up", "invalid", "errors: .* mostly timeout.total"),
    ("sends-nothing", "invalid", "errors: .* mostly connect.refused"),
    ("hides-retries", "ranked", "both-ends: hidden retries: the server saw"),
    ("leaves-connections", "invalid", r"over-pool: \d+ connections at once"),
    ("churns", "ranked", ""),
    ("one-over", "invalid", "over-pool: 3 connections at once|littles-law: "),
    ("leaves-children", "invalid", "it has ended, but leaves processes running"),
    (
        "ends-badly",
        "invalid",
        "when its input is closed, but ended with exit code 3",
    ),
]
# Clients that do nothing are waited for, some ten seconds each, so they run side by side.
SLOW = [
    ("never-ready", "failed", "no answer within 2 s"),
    ("hangs", "failed", "no answer within 11"),
    ("hangs-late", "invalid", "no answer within"),
    ("half-a-line", "failed", "no answer within .*, but "),
    ("stays", "invalid", "it goes on 10 s after its input ended"),
]


def ending(row: Any) -> str:
    """Say in one word how a row ends."""
    if row["outcome"] != "measured":
        return str(row["outcome"])
    return "invalid" if row["verdict"] == "invalid" else "ranked"


def whys(found: Any, row: Any) -> str:
    """The explanations of the checks of a row's records, one per line."""
    records = [each for each in found["trials"] if each["id"] in row["record_ids"]]
    checks = [check for record in records for check in record["checks"]]
    return "\n".join(f"{check['name']}: {check['why']}" for check in checks)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "faults",
    [QUICK, *([QUICK[0], each] for each in SLOW)],
    ids=["those that do", *(how for how, _, _ in SLOW)],
)
def test_each_fault_is_a_row_with_its_reason_and_nothing_is_left(
    world: World, faults: list[tuple[str, str, str]]
) -> None:
    for how, _outcome, _reason in faults:
        add_client(world, how, ready_s=2 if how == "never-ready" else 20)
    ended = run_clients(world, "--json", "-", timeout_s=220)
    found = ended.json()
    rows = rows_of(found)
    world.wait_until_nothing_is_left()
    for how, outcome, reason in faults:
        row = rows[how]
        if ending(row) != outcome:
            of_machine = {check["name"] for check in found["checks"] if check["status"] == "fail"}
            assert outcome == "ranked", f"{how}: {row}"
            assert of_machine & {"noise", "generator-limit"}, f"{how}: {row}"
            continue
        shown = row["why"] if outcome != "ranked" else whys(found, row)
        assert re.search(reason, shown), f"{how}: {row['why']}"
        assert (row["verdict"] in ("valid", "suspect")) == (outcome == "ranked"), row
    ranked = any(row["verdict"] in ("valid", "suspect") for row in rows.values())
    assert ended.code == (0 if ranked else 4), ended.err


def test_what_both_ends_saw_is_in_the_record(world: World) -> None:
    add_client(world, "fine")
    add_client(world, "churns", cores=["single"])
    ended = run_clients(world, "--json", "-")
    found = ended.json()
    assert against(found) - {"errors"} == set(), found["checks"]
    for record in found["trials"]:
        end = record["client"]
        assert end["seen"]["ok"] == end["claim"]["ok"] == record["counts"]["ok"]
        assert end["retries"] == 0
        assert end["seen"]["connections"]["mean"] <= 2.2
        assert end["pool_ceiling_per_s"] == end["ceiling_per_s"] == 200
        assert 0 < end["ceiling_share"] < 1.1
        assert record["generator"]["cpu_s"] > 0
        assert record["latency_ns"]["count"] == 0
    rows = rows_of(found)
    assert rows["fine"]["figures"]["client"]["opened"] == 0, "connections are kept between orders"
    assert rows["churns"]["figures"]["client"]["opened"] > 10
    shown = world.run("runs", "show", "last").out
    assert "1 pool of 2, 4 at once" in shown
    assert re.search(r"claims +\d+ ok; p50", shown)
    assert "client" in shown


def test_a_client_that_keeps_no_connections_is_measured_and_its_row_says_so(world: World) -> None:
    add_client(world, "churns", keep_alive=False)
    found = run_clients(world, "--json", "-").json()
    assert "it opens a connection for each request" in rows_of(found)["churns"]["why"]
    for record in found["trials"]:
        assert record["client"]["asked"]["setup"]["keep_alive"] is False
        assert record["plan"]["generate"]["close"] is True
        [pool] = [check for check in record["checks"] if check["name"] == "over-pool"]
        assert pool["limit"] == 4, "as many connections as requests at once, beyond the pools"


def test_a_larger_grid_lists_what_cannot_be_done_here_with_its_reason(world: World) -> None:
    add_client(world, "cannot-large")
    planned = run_clients(world, "--full", "--dry-run").out
    assert "1 pool of 2, 4 at once, 64 open files: unsupported: local.fds: 2 conn" in planned
    ended = run_clients(world, "--full", "--repeat", "1", "--json", "-")
    rows = ended.json()["rows"]
    assert len(rows) == 8
    reasons = {(row["pools"]["pool_size"], row["pools"]["files"]): row["why"] for row in rows}
    assert reasons[(4, 0)] == "it has no pools"
    for size in (2, 4):
        assert reasons[(size, 64)].startswith("local.fds: ")
    outcomes = [row["outcome"] for row in rows]
    assert outcomes.count("unsupported") == 6
    assert outcomes.count("measured") == 2
    text = world.run("runs", "show", "last").out
    loads = "1 pool of 4, 4 at once and 1 pool of 4, 5,000 at once"
    assert f"python/cannot-large, {loads}: it has no pools" in text
    assert "HTTP clients, each with 64 open files" in text


def test_a_run_that_was_cut_short_goes_on_where_it_was(world: World) -> None:
    add_client(world, "fine")
    first = run_clients(world, "--json", "-")
    assert first.code in (0, 4), first  # 4 on a machine with much else to do
    again = world.run("suite", "run", "--resume", "last", "--json", "-")
    assert again.code == first.code
    assert len(again.json()["trials"]) == 2, "nothing is done twice"
    assert "fine, 1 pool" not in again.err


# (flags, words of the error)
WRONG = [
    (("-c", "4"), "--connections is for suites of servers"),
    (("--rate", "100/s"), "--rate is for suites of servers"),
    (("--pools", "0"), "'--pools': '0' is not from 1 to"),
]


@pytest.mark.parametrize(("args", "why"), WRONG, ids=lambda value: str(value)[:20])
def test_options_of_servers_are_refused(world: World, args: tuple[str, ...], why: str) -> None:
    add_client(world, "fine")
    ended = run_clients(world, *args)
    assert ended.code == 2
    assert why in ended.err
    assert "hint: " in ended.err


def test_options_of_clients_are_refused_for_servers(world: World) -> None:
    world.add("fine")
    for args in (("--pools", "1"), ("--full",)):
        ended = world.run("suite", "run", "quick", "--subjects", "python", *args)
        assert ended.code == 2, ended
        assert args[0] in ended.err


def test_if_no_client_can_be_measured_the_exit_code_says_so(world: World) -> None:
    add_client(world, "cannot")
    assert run_clients(world).code == 3
    world.wait_until_nothing_is_left()


def test_if_every_row_is_invalid_the_exit_code_says_so(world: World) -> None:
    add_client(world, "gives-up")
    ended = run_clients(world)
    assert ended.code == 4
    assert "No row can be ranked." in ended.out
    assert re.search(r" [78]\d\.\d ", ended.out), "its errors are shown all the same"
