"""The contract of HTTP clients: the judgement as a table, and clients that keep or break it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trueload.protocol.client import (
    Claim,
    ClientContract,
    Conversation,
    LatencyUs,
    Ready,
    Refusal,
    ServerCounts,
    Unsupported,
    judge_claim,
    judge_conversation,
    note_of,
    parse_answer,
    parse_claim,
)
from trueload.runner import client as client_module
from trueload.runner import verify_client as verifying
from trueload.runner.client import Client, start_client
from trueload.runner.environment import subject_environment
from trueload.runner.process import Orders, Processes, Program
from trueload.runner.verify_client import ClientVerdict, verify_client
from trueload.subjects.contracts import load_contract

CONTRACTS = Path(__file__).resolve().parents[2] / "contracts"
LATENCY = LatencyUs(p50=21_000, p90=22_000, p99=23_000, max=24_000)
TALK = Conversation(what="a talk", path="/wait/20", concurrency=4, pools=2, pool_size=2, go=(10,))
FINE = Claim(ok=10, failed={}, elapsed_s=0.5, latency_us=LATENCY)
SEEN = ServerCounts(requests=10, ok=10, accepted=4, open_peak=4, at_once=4)


def claim(**changes: Any) -> Claim:
    return FINE.model_copy(update=changes)


# (a claim of ten requests, what is wrong with it alone)
CLAIMS = [
    (FINE, None),
    (claim(ok=9), "claims 9 ok and 0 failed, of 10 requests"),
    (claim(ok=11), "claims 11 ok and 0 failed, of 10 requests"),
    (claim(ok=9, failed={"reset": 1}), "says that 1 of 10 failed (reset)"),
    (claim(elapsed_s=2.0), "claims to have taken 2.000 s, in 1.000 s"),
    (claim(latency_us=None), "latency_us null where requests were answered"),
    (claim(latency_us=LATENCY.model_copy(update={"p90": 1.0})), "out of order"),
    (claim(elapsed_s=0.02), "24000 µs is longer than all took"),
    (claim(latency_us=LATENCY.model_copy(update={"p50": 12.0})), "p50 of 12 µs where an answer"),
]


@pytest.mark.parametrize(("made", "fault"), CLAIMS)
def test_a_claim_adds_up_or_its_fault_is_named(made: Claim, fault: str | None) -> None:
    found = judge_claim(TALK, 10, made, 1.0)
    assert found is None if fault is None else found is not None and fault in found


def test_failures_are_called_by_the_class_that_the_run_knows() -> None:
    talk = TALK.model_copy(update={"peer": "error", "classes": ("status",)})
    failed = Claim(ok=0, failed={"status": 10}, elapsed_s=0.5, latency_us=None)
    assert judge_claim(talk, 10, failed, 1.0) is None
    other = failed.model_copy(update={"failed": {"reset": 10}})
    assert judge_claim(talk, 10, other, 1.0) == "calls a failure 'reset', not status"


CLOSING = {"keep_alive": False}
# (changes to the conversation, what the server saw, the fault, given a claim of ten requests)
COUNTS: list[tuple[dict[str, Any], ServerCounts, str | None]] = [
    ({}, SEEN, None),
    ({}, replace(SEEN, ok=9), "claims 10 ok, but the server completed 9"),
    ({}, replace(SEEN, requests=11, ok=11), "claims only 10 ok, of 11"),
    ({}, replace(SEEN, requests=14), "saw 14 requests instead of 10: hidden retries"),
    ({"retries": True}, replace(SEEN, requests=14), None),
    ({}, replace(SEEN, requests=9), "saw only 9 of 10 requests"),
    ({}, replace(SEEN, accepted=5), "opened 5 connections, where 4 are kept"),
    ({}, replace(SEEN, open_peak=5), "had 5 connections open at once, where 4 are the most"),
    ({"peak_least": 3}, replace(SEEN, open_peak=2), "had only 2 connections open at once"),
    ({"at_once_least": 4}, replace(SEEN, at_once=3), "had only 3 requests under way at once, of 4"),
    ({"loose": True}, replace(SEEN, accepted=9, open_peak=9), None),
    ({"loose": True, "at_once_least": 5}, SEEN, "had only 4 requests under way"),
    ({"peer": "go-away"}, replace(SEEN, requests=8, ok=10, accepted=9), None),
    ({"peer": "go-away"}, replace(SEEN, ok=9), "claims 10 ok, but the server completed 9"),
    ({"peer": "go-away"}, replace(SEEN, requests=14), "hidden retries"),
    (CLOSING, replace(SEEN, accepted=10), None),
    (CLOSING, replace(SEEN, accepted=9), "opened 9 connections for 10 requests"),
]


@pytest.mark.parametrize(("changes", "seen", "fault"), COUNTS)
def test_the_servers_counts_decide(
    changes: dict[str, Any], seen: ServerCounts, fault: str | None
) -> None:
    found = judge_conversation(TALK.model_copy(update=changes), [FINE], seen)
    assert found is None if fault is None else found is not None and fault in found


def test_what_a_library_does_beyond_its_room_is_noted_where_the_talk_is_loose() -> None:
    loose = TALK.model_copy(update={"loose": True})
    more, fewer = replace(SEEN, accepted=9), replace(SEEN, requests=7)
    assert note_of(loose, SEEN) is None
    assert note_of(TALK, more) is None
    assert note_of(loose, more) == "it opens 9 connections, where 4 are asked for"
    assert note_of(loose, fewer) == "3 streams are refused, and not asked again"
    assert note_of(TALK.model_copy(update={"peer": "go-away"}), SEEN) is None


def test_requests_that_are_sent_again_are_noted() -> None:
    assert note_of(TALK, SEEN) is None
    assert note_of(TALK, replace(SEEN, requests=14)) == "it sends requests again, 14 for 10"


def test_an_answer_to_a_setup_is_ready_or_unsupported_and_nothing_else() -> None:
    assert parse_answer('{"ready": true}') == Ready()
    assert parse_answer('{"unsupported": "no"}') == Unsupported("no")
    strange = ("", "ready", "[]", '{"ready": false}', '{"ready": 1, "x": 2}', '{"unsupported": ""}')
    for line in strange:
        with pytest.raises(ValueError, match=r"no JSON|neither"):
            parse_answer(line)


def test_a_claim_that_is_none_is_refused() -> None:
    good = '{"ok": 0, "failed": {}, "elapsed_s": 1, "latency_us": null}'
    assert parse_claim(good).ok == 0
    wrong = [
        *[("0,", "-1,"), ("0,", '"0",'), ("0,", "NaN,"), ("0,", "9" * 13 + ","), ("0,", "0.5,")],
        *[("{}", '{"a": -1}'), ("{}", '{"A b": 1}'), ("}", ', "x": 1}')],
        *[("1,", "NaN,"), ("1,", "Infinity,"), ("1,", "-1,"), ("null", '{"p50": NaN}')],
    ]
    for old, new in wrong:
        with pytest.raises(ValueError, match=r"."):
            parse_claim(good.replace(old, new, 1))


# A short client on http.client, which opens a connection per request unless keep-alive is asked
# for. Its argument says how it misbehaves.
PROGRAM = """
import http.client, json, os, signal, sys, time
from urllib.parse import urlsplit

how = sys.argv[1]
try:
    setup = json.loads(sys.stdin.readline())
    url = urlsplit(setup["url"])
except (ValueError, KeyError, TypeError):
    sys.exit(0 if how == "shrugs" else "no setup")

def say(line):
    print(json.dumps(line), flush=True)

if how == "cannot":
    say({"unsupported": "it cannot"})
    sys.exit()
if how == "never-ready":
    signal.pause()
if how == "talks":  # in one piece, so that both are there before the first order
    os.write(1, b'{"ready": true}\\nand by the way\\n')
else:
    say({"ready": True} if how != "garbage" else "hello")
connection = http.client.HTTPConnection(url.hostname, url.port, timeout=setup["timeout_ms"] / 1000)

def get():
    try:
        connection.request("GET", url.path)
        answer = connection.getresponse()
        answer.read()
        if not setup["keep_alive"] or how == "reconnects":
            connection.close()
        return None if answer.status == 200 or how == "optimist" else "status"
    except ConnectionRefusedError:
        failed = "connect.refused"
    except OSError:
        failed = "reset"
    connection.close()
    return failed

for line in sys.stdin:
    number = int(line.split()[1])
    if how == "dies":
        os._exit(7)
    if how == "hangs":
        signal.pause()
    if how == "floods":
        sys.stdout.write("x" * (1 << 20))
    begun, failed, took = time.perf_counter(), {}, []
    for _ in range(number - (how == "lazy")):
        sent = time.perf_counter()
        if how == "hides-retries":
            get()
        if (name := get()) and how != "liar":
            failed[name] = failed.get(name, 0) + 1
        else:
            took.append((time.perf_counter() - sent) * 1e6)
    if how == "lazy":
        took.append(took[-1])
    took.sort()
    middle, last = (took[len(took) // 2], took[-1]) if took else (0, 0)
    figures = {"p50": middle, "p90": last, "p99": last, "max": last}
    elapsed = time.perf_counter() - begun
    say({"ok": len(took) + (how == "boasts"), "failed": failed, "elapsed_s": elapsed,
         "latency_us": figures if took else None})
if how == "stays":
    signal.pause()
ended, open_until_then = os.pipe()
if how in ("leaves", "trails") and os.fork() == 0:
    os.close(open_until_then)
    os.close(1)
    os.setsid()
    os.read(ended, 1)
    if how == "leaves":
        signal.pause()
    os._exit(0)
sys.exit(3 if how == "ends-badly" else 0)
"""

SMALL = ClientContract(
    about="a small one",
    role="client",
    conversations=(
        Conversation(what="kept", path="/", concurrency=1, go=(5, 3)),
        Conversation(what="closed", path="/", concurrency=1, keep_alive=False, go=(4,)),
        Conversation(
            what="errors", peer="mixed", path="/", concurrency=1, go=(6,), classes=("status",)
        ),
        Conversation(
            what="refused",
            peer="refuse",
            path="/",
            concurrency=1,
            go=(3,),
            classes=("connect.refused",),
        ),
        Conversation(
            what="reset", peer="reset", path="/", concurrency=1, go=(3,), classes=("reset",)
        ),
    ),
    refusals=(Refusal(what="no setup", line="[]"),),
)

# (the client's behaviour, the fault that is reported)
CLIENTS = [
    ("fine", None),
    ("never-ready", "kept: no answer within 3 s"),
    ("garbage", "kept: neither ready nor unsupported"),
    ("talks", "kept: it wrote to its output without being asked"),
    ("cannot", "it supports nothing"),
    ("boasts", "kept: claims 6 ok and 0 failed, of 5"),
    ("lazy", "kept: claims 8 ok, but the server completed 6"),
    ("hides-retries", "kept: claims only 8 ok, of 16"),
    ("reconnects", "kept: opened 8 connections, where 1 are kept"),
    ("optimist", "errors: claims 6 ok, but the server completed "),
    ("liar", "errors: claims 6 ok, but the server completed "),
    ("dies", "kept: it closed its output: it ended with exit code 7"),
    ("hangs", "kept: no answer within 3 s"),
    ("floods", "kept: a line longer than 65536 bytes"),
    ("stays", "kept: it goes on 3 s after its input ended"),
    ("leaves", "kept: it has ended, but leaves processes running"),
    ("trails", None),
    (
        "ends-badly",
        "kept: it must end with exit code 0 when its input is closed, but ended with",
    ),
    ("shrugs", "no setup: it ends as if nothing were wrong"),
]


def verified(
    how: str, folder: Path, *, keep_alive: bool = True
) -> tuple[ClientVerdict, list[Processes]]:
    (folder / "program.py").write_text(PROGRAM)
    started: list[Processes] = []

    @contextmanager
    def start() -> Iterator[Client]:
        orders = Orders(
            programs=(Program((sys.executable, "program.py", how)),),
            cwd=folder,
            env=subject_environment({}),
            log=folder / "log",
        )
        ready_s = 3 if how == "never-ready" else 60
        with start_client(orders, ready_s, lambda: False) as client:
            started.append(client.processes)
            yield client

    return verify_client(SMALL, start, keep_alive=keep_alive), started


@pytest.mark.engine
@pytest.mark.parametrize(("how", "fault"), CLIENTS)
def test_a_client_that_lies_hangs_or_dies_is_found_out_and_gone(
    how: str, fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how in ("hangs", "stays"):
        monkeypatch.setattr(verifying, "GO_S", 3.0)
        monkeypatch.setattr(client_module, "END_S", 3.0)
    found, started = verified(how, tmp_path)
    if fault is None:
        assert found.fault is None, found.log_tail
    else:
        assert found.fault is not None
        assert found.fault.startswith(fault)
    assert started
    assert not any(each.pids() for each in started)


@pytest.mark.engine
def test_a_client_that_keeps_no_connections_may_say_so(tmp_path: Path) -> None:
    found, _ = verified("reconnects", tmp_path, keep_alive=False)
    assert (found.fault, found.notes) == (None, ("it opens a connection for each request",))


def test_the_contract_itself_can_be_read() -> None:
    contract = load_contract(CONTRACTS, "http-client")
    assert isinstance(contract, ClientContract)
    assert {talk.peer for talk in contract.conversations} == {
        *("reference", "mixed", "error", "reset", "refuse", "silent")
    }
