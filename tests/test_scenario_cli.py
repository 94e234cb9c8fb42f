"""Sessions, checked at a server that knows what each session may ask."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from harness import Trueload, statuses
from session_http2 import Http2SessionServer
from session_server import SessionServer

DOCS = Path(__file__).parents[1] / "docs" / "scenarios.md"
OWN = 'headers = { Authorization = "Bearer {token}", X-Id = "{id}" }'
SHOP = f"""
[[step]]
name    = "log in"
request = {{ method = "POST", url = "/login", body = '{{"user":"user-{{vu}}","try":{{counter}}}}' }}
take    = {{ token = "json:/token", id = "header:X-Id" }}

[[step]]
name    = "list"
request = {{ url = "/items?page={{repeat}}", {OWN} }}
repeat  = 3

[[step]]
name    = "buy"
request = {{ method = "POST", url = "/cart", body = "{{random}}", {OWN} }}
"""


def run(trueload: Trueload, folder: Path, text: str, url: str, *words: str) -> Any:
    """Run a scenario for a moment and return the record; a busy machine may make it invalid."""
    file = folder / "scenario.toml"
    file.write_text(text)
    flags = ("-c", "3", "-d", "400ms", "--warmup", "0s", *words)
    done = trueload.run("http", "--scenario", file, url, *flags, "--json", "-")
    assert done.code in (0, 4), done
    return done.json()


def test_each_session_has_its_own_values_and_cookies_and_all_is_counted_by_step(
    trueload: Trueload, tmp_path: Path
) -> None:
    with SessionServer() as server:
        record = run(trueload, tmp_path, SHOP, server.url)
        seen = server.counted()
    assert {status for _, _, status in seen} == {200}, "no token or cookie of another session"
    assert not record["counts"]["failed"]
    steps = record["targets"]
    assert [step["name"] for step in steps] == ["log in", "list", "buy"]
    assert [step["weight"] for step in steps] == [1, 3, 1]
    paths = [("POST", "/login", 200), ("GET", "/items", 200), ("POST", "/cart", 200)]
    assert [step["counts"]["issued"] for step in steps] == [seen[path] for path in paths]
    for step, track in zip(steps, record["tracks"], strict=True):
        assert track["name"] == step["name"]
        assert sum(second["ok"] for second in track["series"]) == step["counts"]["ok"]
    sessions = record["sessions"]
    assert sessions["begun"] == server.log_ins
    assert sessions["ok"] + sessions["unfinished"] == sessions["begun"]
    assert sum(sessions["latency"].values()) == sessions["ok"]
    assert sum(sessions["cut"].values()) == sessions["unfinished"]
    latency = sessions["latency_ns"]
    assert latency["count"] + latency["slower"] == sessions["begun"]
    assert sessions["unfinished"] <= 3
    pages = {one.path for one in server.seen if one.method == "GET"}
    assert pages == {"/items?page=1", "/items?page=2", "/items?page=3"}
    users = {found[1] for one in server.seen if (found := re.search("user-([0-9]+)", one.body))}
    assert users == {"1", "2", "3"}
    tries = sorted(
        int(found[1]) for one in server.seen if (found := re.search('try":(.*)}', one.body))
    )
    assert tries == list(range(server.log_ins)), "each session has its own number"


@pytest.mark.parametrize("secure", [False, True])
def test_over_http2_a_user_has_a_connection_and_sends_one_request_at_a_time(
    trueload: Trueload, tmp_path: Path, secure: bool
) -> None:
    users = tmp_path / "users.csv"
    users.write_text("user\n" + "".join(f"u {row}\n" for row in range(30)))
    flags = ("--http", "2", "--data", str(users), "--data-order", "unique", "-d", "60s")
    trust = ("--insecure",) if secure else ()
    scenario = SHOP.replace("user-{vu}", "{user}")
    with Http2SessionServer(secure=secure) as server:
        record = run(trueload, tmp_path, scenario, server.url, *flags, *trust)
    assert {one.status for one in server.seen} == {200}, "no token or cookie of another session"
    assert server.streams == {1}
    order = ["/login", "/items", "/items", "/items", "/cart"]
    for connection in {one.connection for one in server.seen}:
        own = [one for one in server.seen if one.connection == connection]
        paths = [one.path.partition("?")[0] for one in own]
        assert paths == order * (len(own) // 5)
    bodies = [one.body for one in server.seen if one.path == "/login"]
    assert sorted(re.findall('"u ([0-9]+)"', " ".join(bodies))) == sorted(map(str, range(30)))
    assert (record["sessions"]["begun"], record["sessions"]["ok"]) == (30, 30)
    assert [step["counts"]["ok"] for step in record["targets"]] == [30, 90, 30]


def test_over_http2_a_session_goes_on_over_a_new_connection(
    trueload: Trueload, tmp_path: Path
) -> None:
    with Http2SessionServer(goaway_every=3, fail_every=7) as server:
        record = run(trueload, tmp_path, SHOP, server.url, "--http", "2")
    failed = server.log_ins // 7
    assert record["counts"]["failed"] == {"status": failed}
    assert record["counts"]["skipped"] == 4 * failed
    assert record["sessions"]["ok"] > 0
    assert {one.status for one in server.seen} == {200, 401}


@pytest.mark.parametrize("how", ["kept", "closed", "HTTP/2", "GOAWAY"])
def test_a_step_follows_its_redirects_with_their_cookies(
    trueload: Trueload, tmp_path: Path, how: str
) -> None:
    scenario = SHOP.replace('"/login"', '"/sign-in"')
    made: Http2SessionServer | SessionServer = SessionServer(close=how == "closed")
    flags: tuple[str, ...] = ()
    if how in ("HTTP/2", "GOAWAY"):
        # A session has six requests, so that the fifth answer is a redirect now and then.
        made = Http2SessionServer(goaway_every=5 if how == "GOAWAY" else 0)
        flags = ("--http", "2")
    with made as server:
        record = run(trueload, tmp_path, scenario, server.url, "--follow", "3", *flags)
        seen = server.counted()
    assert not record["counts"]["failed"], "the cookie of the redirect goes along"
    assert {status for _, _, status in seen} == {200, 302}
    first, *others = record["targets"]
    assert first["counts"]["redirects"] == record["redirects"]["followed"] > 0
    assert not any("redirects" in step["counts"] for step in others)
    assert first["counts"]["ok"] == record["redirects"]["hops"]["1"], "taken of the last answer"
    assert first["counts"]["statuses"] == {"200": first["counts"]["ok"]}
    assert seen["GET", "/welcome", 200] <= seen["POST", "/sign-in", 302]


@pytest.mark.parametrize("load", [(), ("--rate", "40/s"), ("--http", "2")], ids=str)
def test_a_number_of_sessions_are_sent_to_their_ends(
    trueload: Trueload, tmp_path: Path, load: tuple[str, ...]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SHOP.replace("repeat  = 3", 'repeat  = 3\nthink   = "1ms..5ms"'))
    flags = ("--requests", "10", "-c", "4", "--threads", "2", "--json", "-", *load)
    with Http2SessionServer() if "2" in load else SessionServer(fail_every=5) as server:
        record = trueload.run("http", "--scenario", file, server.url, *flags).json()
        seen = server.counted()
    sessions, failed = record["sessions"], 0 if "2" in load else 2
    assert (sessions["begun"], sessions["ok"], sessions["failed"]) == (10, 10 - failed, failed)
    assert (sessions["unfinished"], server.log_ins) == (0, 10)
    assert record["counts"]["scheduled"] == record["counts"]["issued"] == seen.total()
    assert [step["counts"]["skipped"] for step in record["targets"]] == [0, 3 * failed, failed]


def test_steps_follow_in_order_on_one_connection(trueload: Trueload, tmp_path: Path) -> None:
    with SessionServer() as server:
        run(trueload, tmp_path, SHOP, server.url, "-c", "2")
        connections = {one.connection for one in server.seen}
        for connection in connections:
            paths = [
                one.path.partition("?")[0] for one in server.seen if one.connection == connection
            ]
            order = ["/login", "/items", "/items", "/items", "/cart"]
            assert paths == [order[place % 5] for place in range(len(paths))]
    assert len(connections) == 2


def test_a_session_goes_on_over_a_new_connection(trueload: Trueload, tmp_path: Path) -> None:
    with SessionServer(close=True) as server:
        record = run(trueload, tmp_path, SHOP, server.url)
    assert record["sessions"]["ok"] > 0
    assert not record["counts"]["failed"]


@pytest.mark.parametrize(
    ("how", "failure"),
    [({"fail_every": 20}, "status"), ({"bare_every": 20}, "extract")],
)
def test_requests_behind_a_failure_are_skipped_and_never_look_fast(
    trueload: Trueload, tmp_path: Path, how: dict[str, Any], failure: str
) -> None:
    with SessionServer(**how) as server:
        record = run(trueload, tmp_path, SHOP, server.url, "--fail-on", "p99>1h")
    failed = server.log_ins // 20
    assert failed > 0, "the run was too short"
    counts, sessions = record["counts"], record["sessions"]
    assert counts["failed"] == {failure: failed}
    assert counts["skipped"] == 4 * failed
    assert sessions["failed"] == failed
    assert [step["counts"].get("skipped", 0) for step in record["targets"]] == [
        0,
        3 * failed,
        failed,
    ]
    assert statuses(record)["sessions"] == "fail"
    assert record["verdict"] == "invalid"
    # 5 % of all requests were not answered, and are slower than any other.
    assert record["latency_ns"]["p99"] is None or "p99" in record["latency_ns"]["at_least"]


def test_an_open_loop_schedules_sessions(trueload: Trueload, tmp_path: Path) -> None:
    with SessionServer() as server:
        flags = ("--rate", "50/s", "-c", "8", "-d", "1s")
        record = run(trueload, tmp_path, SHOP, server.url, *flags)
    sessions, counts = record["sessions"], record["counts"]
    assert sessions["begun"] == server.log_ins == 50
    assert counts["unsent"] == 0
    assert counts["scheduled"] == counts["issued"]


def test_a_run_under_way_more_users_than_sessions_wait_with_their_clock_running(
    trueload: Trueload, tmp_path: Path
) -> None:
    scenario = SHOP.replace("repeat  = 3", 'repeat  = 3\nthink   = "100ms"')
    with SessionServer() as server:
        flags = ("--rate", "100/s", "-c", "1", "-d", "1s")
        record = run(trueload, tmp_path, scenario, server.url, *flags)
    sessions, counts = record["sessions"], record["counts"]
    # One user has 300 ms of pauses in each session; a hundred sessions are due.
    assert sessions["begun"] <= 4
    assert counts["unsent"] == 100 - sessions["begun"]


def test_pauses_count_in_no_latency(trueload: Trueload, tmp_path: Path) -> None:
    scenario = SHOP.replace("repeat  = 3", 'repeat  = 3\nthink   = "1s"')
    with SessionServer() as server:
        record = run(trueload, tmp_path, scenario, server.url)
    assert record["sessions"]["unfinished"] == 3
    assert server.counted() == {("POST", "/login", 200): 3}


def examples() -> list[tuple[str, str]]:
    """The scenarios of the documentation, by their first line."""
    return re.findall(r"```toml\n# ([^\n]*)\n(.*?)```", DOCS.read_text(), re.DOTALL)


@pytest.mark.parametrize(("title", "text"), examples(), ids=[title for title, _ in examples()])
def test_each_example_of_the_documentation_runs(
    trueload: Trueload, tmp_path: Path, title: str, text: str
) -> None:
    users = tmp_path / "users.csv"
    users.write_text("user,password\nanna,1\nb c,2\n")
    data = ("--data", str(users)) if "{user}" in text else ()
    with SessionServer() as server:
        record = run(trueload, tmp_path, text.replace("250ms", "25ms"), server.url, *data)
    assert not record["counts"]["failed"], title
    assert record["sessions"]["ok"] > 0, title


def test_each_session_has_a_row_and_a_run_ends_when_all_are_used_up(
    trueload: Trueload, tmp_path: Path
) -> None:
    rows = 40
    users = tmp_path / "users.csv"
    users.write_text("user,note\n" + "".join(f'u {row},"{{vu}}"\n' for row in range(rows)))
    scenario = SHOP.replace('"user":"user-{vu}"', '"user":"{user}","note":"{note}"')
    scenario = scenario.replace("page={repeat}", "page={repeat}&of={user}")
    flags = ("--data", str(users), "--data-order", "unique", "--threads", "2", "-d", "60s")
    with SessionServer() as server:
        record = run(trueload, tmp_path, scenario, server.url, *flags)
    of_login = re.compile('{"user":"u ([0-9]+)","note":"{vu}",')
    present, taken = dict[int, str](), list[int]()
    for one in server.seen:
        if found := of_login.match(one.body):
            present[one.connection] = found[1]
            taken.append(int(found[1]))
        if one.method == "GET":
            assert one.path.endswith(f"&of=u%20{present[one.connection]}"), "the row of its log-in"
    assert sorted(taken) == list(range(rows))
    counts = record["sessions"]
    assert (counts["begun"], counts["ok"], counts["unfinished"]) == (rows, rows, 0)
    assert record["data"] == {"rows": rows, "taken": rows, "spent": True}
    assert statuses(record)["data"] == "warn"
