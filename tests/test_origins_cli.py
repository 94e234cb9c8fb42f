"""Targets of several origins in one run: counted at each server."""

from __future__ import annotations

import contextlib
import re
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from counting import Counting
from harness import Trueload, start_server
from samples import flat
from targets_files import measure, write


@pytest.fixture
def servers() -> Iterator[tuple[Counting, ...]]:
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(Counting()) for _ in range(3))


@pytest.fixture
def nobody() -> Iterator[str]:
    """An origin that refuses connections: its port is bound, but nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def mixed(folder: Path, servers: tuple[Counting, ...]) -> Path:
    """Targets of weights 5 and 1 on the first server, 3 on the second and 1 on the third."""
    first, second, third = servers
    return write(
        folder,
        {"url": f"{first.url}/five/{{counter}}", "weight": 5},
        {"url": f"{second.url}/three/{{counter}}", "weight": 3},
        {"url": f"{first.url}/one/{{counter}}", "weight": 1},
        {"url": f"{third.url}/missing/{{counter}}", "body": "x", "expect": {"status": 404}},
    )


@pytest.mark.parametrize("load", [(), ("--rate", "5000/s"), ("--close",)])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_mix_of_a_number_of_requests_is_exact(
    trueload: Trueload,
    servers: tuple[Counting, ...],
    tmp_path: Path,
    load: tuple[str, ...],
    threads: str,
) -> None:
    flags = ("--requests", "500", "-c", "11", "--threads", threads)
    record = measure(trueload, "--targets", mixed(tmp_path, servers), *flags, *load)
    assert record["counts"]["ok"] == record["counts"]["issued"] == 500
    asked = [Counter(each.path.split("/")[1] for each in server.asked) for server in servers]
    assert asked == [{"five": 250, "one": 50}, {"three": 150}, {"missing": 50}]
    for server in servers:
        assert {each.headers["host"] for each in server.asked} == {server.authority}
    numbers = [int(each.path.split("/")[2]) for server in servers for each in server.asked]
    assert sorted(numbers) == list(range(500))
    assert [each["counts"]["ok"] for each in record["targets"]] == [250, 150, 50, 50]
    assert [each["url"] for each in record["origins"]] == [server.url for server in servers]
    assert [each["counts"]["ok"] for each in record["origins"]] == [300, 150, 50]
    assert [each["requested"] for each in record["origins"]] == [7, 3, 1]
    assert [each["established"] for each in record["origins"]] == [7, 3, 1]
    assert record["connections"]["requested"] == record["connections"]["established"] == 11
    assert record["generator"]["threads"] == int(threads)


def test_the_mix_of_an_open_loop_is_exact_over_a_time_too(
    trueload: Trueload, servers: tuple[Counting, ...], tmp_path: Path
) -> None:
    flags = ("-d", "1s", "--warmup", "0s", "--rate", "1000/s", "--arrivals", "poisson", "-c", "9")
    record = measure(trueload, "--targets", mixed(tmp_path, servers), *flags)
    counts = record["counts"]
    if counts["unsent"]:  # a busy machine may send too late, which is not tested here
        return
    of_ten = [round(each["counts"]["issued"] / counts["issued"] * 10) for each in record["origins"]]
    assert of_ten == [6, 3, 1]
    shares = [counts["issued"] * weight / 10 for weight in (6, 3, 1)]
    issued = [each["counts"]["issued"] for each in record["origins"]]
    assert all(abs(found - share) < 10 for found, share in zip(issued, shares, strict=True))


def test_connections_of_a_closed_loop_are_dealt_by_weight(
    trueload: Trueload, servers: tuple[Counting, ...], tmp_path: Path
) -> None:
    flags = ("-d", "300ms", "--warmup", "100ms", "-c", "20", "--threads", "2")
    record = measure(trueload, "--targets", mixed(tmp_path, servers), *flags)
    assert [each["established"] for each in record["origins"]] == [12, 6, 2]
    assert all(each["counts"]["ok"] for each in record["origins"])
    warmup, counts = record["warmup"]["counts"], record["counts"]
    issued = sum(part["issued"] + part["stale"] for part in (warmup, counts))
    assert sum(len(server.asked) for server in servers) == issued
    shown = trueload.run("runs", "show", "last").out
    assert re.search(r"^origin +connections +requests +ok +failed$", shown, re.MULTILINE)
    assert f"{servers[0].url} and 2 more" in shown


def test_an_origin_that_refuses_fails_by_itself(
    trueload: Trueload, servers: tuple[Counting, ...], nobody: str, tmp_path: Path
) -> None:
    file = write(tmp_path, {"url": f"{servers[0].url}/"}, {"url": f"{nobody}/"})
    flags = ("-d", "500ms", "--warmup", "0s", "-c", "4")
    done = trueload.run("http", "--targets", file, *flags, "--json", "-")
    assert done.code == 4, done
    record = done.json()
    there, gone = record["origins"]
    assert (there["requested"], there["established"], there["connect_failed"]) == (2, 2, {})
    assert (gone["requested"], gone["established"]) == (2, 0)
    assert gone["connect_failed"] == {"connect.refused": 2}
    assert there["counts"]["ok"] == record["counts"]["ok"] > 0
    assert there["counts"]["failed"] == {}
    assert set(gone["counts"]["failed"]) == set(record["counts"]["failed"]) == {"connect.refused"}
    assert gone["counts"]["issued"] == gone["counts"]["failed"]["connect.refused"]
    checks = {check["name"]: check["status"] for check in record["checks"]}
    assert checks["connections"] == "fail"


@pytest.mark.parametrize("axis", ["rate", "connections"])
def test_a_search_ends_with_its_first_step_where_one_origin_refuses(
    trueload: Trueload, servers: tuple[Counting, ...], nobody: str, tmp_path: Path, axis: str
) -> None:
    file = write(tmp_path, {"url": f"{servers[0].url}/"}, {"url": f"{nobody}/"})
    flags = ("--limit", "p99<10s", "--search", axis, "-d", "300ms", "--warmup", "0s")
    done = trueload.run("http", "--targets", file, *flags, "--json", "-")
    assert done.code == 4, done
    found = done.json()
    assert [step["step"]["outcome"] for step in found["steps"]] == ["gone"]
    assert found["result"]["outcome"] == "gone"
    assert f"no connection to {nobody} was established: connect.refused" in flat([done.err])


@pytest.mark.parametrize("search", [(), ("--limit", "p99<10s", "--search", "connections")])
def test_an_origin_that_refuses_is_never_too_small_to_count(
    trueload: Trueload,
    servers: tuple[Counting, ...],
    nobody: str,
    tmp_path: Path,
    search: tuple[str, ...],
) -> None:
    file = write(tmp_path, {"url": f"{servers[0].url}/", "weight": 149}, {"url": f"{nobody}/"})
    flags = ("-c", "150", "-d", "300ms", "--warmup", "0s", *search)
    done = trueload.run("http", "--targets", file, *flags)
    assert done.code == 4, done
    why = flat([trueload.run("runs", "show", "last", "--why").out])
    assert f"none to {nobody} was established" in why


def test_where_all_origins_refuse_nothing_is_measured(
    trueload: Trueload, nobody: str, tmp_path: Path
) -> None:
    file = write(tmp_path, {"url": f"{nobody}/"}, {"url": "http://127.0.0.1:1/"})
    done = trueload.run("http", "--targets", file, "--requests", "10", "-c", "2")
    assert done.code == 3, done
    assert "no connection became usable: connect.refused" in done.err


def test_a_hint_names_the_first_of_many_origins(trueload: Trueload, tmp_path: Path) -> None:
    file = write(tmp_path, *({"url": f"http://127.0.0.1:{port}/"} for port in range(1, 6)))
    done = trueload.run("http", "--targets", file, "--requests", "10", "-c", "5")
    assert done.code == 3, done
    shown = "127.0.0.1:1 or 127.0.0.1:2 or 127.0.0.1:3 or 2 others"
    assert done.err.splitlines()[-1] == f"hint: is a server listening on {shown}?"


def test_an_origin_without_an_address_is_named(trueload: Trueload, tmp_path: Path) -> None:
    file = write(tmp_path, {"url": "http://127.0.0.1:1/"}, {"url": "http://no.such.invalid/"})
    done = trueload.run("http", "--targets", file, "--requests", "10", "-c", "2")
    assert done.code == 3, done
    assert "error: 'no.such.invalid' does not resolve" in done.err


def test_the_servers_of_all_origins_are_accounted_for(trueload: Trueload, tmp_path: Path) -> None:
    one, other = start_server(trueload), start_server(trueload)
    file = write(tmp_path, {"url": f"{one.url}/"}, {"url": f"{other.url}/"})
    record = measure(trueload, "--targets", file, "--requests", "2000", "-c", "4")
    assert record["server"]["source"] == "found"
    assert len(record["server"]["pids"]) == 2


def test_names_are_resolved_by_origin(
    trueload: Trueload, servers: tuple[Counting, ...], tmp_path: Path
) -> None:
    ports = [server.url.rpartition(":")[2] for server in servers[:2]]
    named = [f"a.example:{ports[0]}", f"b.example:{ports[1]}"]
    lines = [{"url": f"http://{name}/"} for name in named]
    resolve = [f"--resolve={name}:127.0.0.1" for name in named]
    flags = ("--requests", "10", "-c", "2", *resolve)
    measure(trueload, "--targets", write(tmp_path, *lines), *flags)
    hosts = [{each.headers["host"] for each in server.asked} for server in servers[:2]]
    assert hosts == [{name} for name in named]


def test_the_fewest_connections_of_a_search_are_one_for_each_origin(
    trueload: Trueload, servers: tuple[Counting, ...], tmp_path: Path
) -> None:
    flags = ("--limit", "p99<1ns", "--search", "connections", "-d", "100ms", "--warmup", "0s")
    file = mixed(tmp_path, servers)
    done = trueload.run("http", "--targets", file, *flags, "--json", "-")
    assert done.code in (0, 1, 4), done
    loads = [step["connections"]["requested"] for step in done.json()["steps"]]
    assert min(loads) == 3


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("-c", "2"), "2 connections are too few for 3 origins: a:1, a:2, b:1"),
        (("--unix", "/x"), "--unix connects to one socket file, and the targets are of 3 origins"),
        (("--insecure",), "--insecure needs TLS, but the URL begins with http://"),
        (("http://c/",), "no line of the targets file"),
    ],
)
def test_what_several_origins_cannot_have_is_refused(
    trueload: Trueload, tmp_path: Path, flags: tuple[str, ...], error: str
) -> None:
    urls = ("http://a:1/", "http://a:2/", "http://b:1/")
    file = write(tmp_path, *({"url": url} for url in urls))
    done = trueload.run("http", "--targets", file, *flags)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {error}")
    assert done.err.splitlines()[1].startswith("hint: ")


def test_answers_of_several_origins_wait_for_each_other_no_longer_than_they_may(
    trueload: Trueload, servers: tuple[Counting, ...], tmp_path: Path
) -> None:
    flags = ("--targets", mixed(tmp_path, servers), "-c", "64", "--requests", "2000")
    at_once = measure(trueload, *flags, "--coalesce", "0")["generator"]
    assert at_once["coalesced_ns"] == 0
    # Whether the thread is busy enough to coalesce depends on the machine; the bound does not.
    bounded = measure(trueload, *flags, "--coalesce", "10us")
    assert bounded["generator"]["coalesced_ns"] <= 10_000
    assert bounded["counts"]["ok"] == 2000
