"""Ray that is missing, unreachable or of another version; and the shortening of its messages."""

from __future__ import annotations

import importlib
import queue
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest
from trueload.deadline import within
from trueload.errors import HostError, UserError
from trueload.places import ChannelClosedError, HostGoneError, LinkLostError
from trueload.places.ray import cluster, reserve
from trueload.places.ray.actor import cause_of_death
from trueload.places.ray.cluster import imported, names, refusal
from trueload.places.ray.link import BROKEN, NO_HEAD, SILENT, Link, why_broken
from trueload.places.ray.outbox import WAITING_BYTES_MAX, Outbox
from trueload.places.ray.pipes import ProgramPipes


def test_nothing_imports_ray_before_it_is_asked_for() -> None:
    script = (
        "import sys, trueload, trueload.cli.app, trueload.trial, trueload.places.ray\n"
        "sys.exit(any(name.split('.')[0] in ('ray', 'grpc') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(("missing", "address"), [("ray", None), ("grpc", "ray://127.0.0.1:1")])
def test_without_ray_the_hint_says_how_to_install_it(
    missing: str, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError) as caught:
        reserve(address, 2)
    assert caught.value.message == f"a place on a cluster needs {missing}, which is not installed"
    assert caught.value.hint == "pip install 'trueload[ray]'"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("address", ["ray://", "ray://host:port"])
def test_what_is_no_address_gets_a_line(address: str) -> None:
    with pytest.raises(
        UserError, match=f"'{address}' is not an address of a Ray cluster"
    ) as caught:
        reserve(address, 1)
    assert "\n" not in caught.value.message + caught.value.hint


FAILED_FIRST = "RuntimeError: Starting Ray client server failed. See ray_client_server_23001.err"
FOUND_DEAD = "psutil.ZombieProcess: PID still exists but it's a zombie (pid=253)"
HUNG_UP = "Request can't be sent because the Ray client has already been disconnected."


class Head:
    """A stand-in for Ray whose head refuses with these messages before it accepts a client."""

    def __init__(self, *errors: str) -> None:
        self._errors = list(errors)
        self.tried = 0

    def is_initialized(self) -> bool:
        return False

    def init(self, *_: object, **__: object) -> None:
        self.tried += 1
        if self._errors:
            raise ConnectionError(self._errors.pop(0))

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize(
    ("errors", "tried", "joined"),
    [
        ((), 1, True),
        ((FAILED_FIRST, HUNG_UP, FOUND_DEAD), 4, True),
        ((FAILED_FIRST,) * 9, 4, False),
        (("ray client connection timeout",), 1, False),
        ((f"{HUNG_UP[:-1]} due to an error. Last exception: no route",), 1, False),
    ],
)
def test_a_head_that_could_not_start_what_it_needs_for_us_is_asked_again(
    errors: tuple[str, ...], tried: int, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = Head(*errors)
    monkeypatch.setattr(cluster, "imported", lambda *, client: head)
    monkeypatch.setattr(cluster, "JOIN_PAUSE_S", 0.0)
    monkeypatch.setattr(cluster, "_joined", [])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"ray://127.0.0.1:{listening.getsockname()[1]}"
        if joined:
            assert cluster.join(address) is head
        else:
            with pytest.raises(UserError, match="cannot be reached"):
                cluster.join(address)
    assert head.tried == tried


def test_who_parts_from_a_head_does_not_wait_for_its_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = importlib.import_module("ray.util.client.logsclient").LogstreamClient
    monkeypatch.setattr(logs, "close", logs.close)  # monkeypatch restores it after the test
    assert imported(client=True) is importlib.import_module("ray")
    held = threading.Event()
    stream = logs.__new__(logs)
    stream.request_queue = queue.SimpleQueue()
    stream.log_thread = threading.Thread(target=held.wait, daemon=True)
    stream.log_thread.start()
    within(30.0, stream.close)
    assert stream.request_queue.get_nowait() is None, "the head hears of the end"
    assert stream.log_thread.is_alive()
    held.set()


class Group:
    """A stand-in for a placement group that is met by a later wait."""

    def __init__(self, nodes: str, waits: int) -> None:
        self.nodes = nodes
        self._waits = waits

    def wait(self, timeout_s: float) -> bool:
        self._waits -= 1
        return self._waits < 0


def test_one_more_host_is_none_of_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [Group("c", waits=1), Group("d", waits=0), Group("e", waits=9)]
    requests: list[cluster.HostRequest] = []
    left: list[Any] = []

    def request(asked: cluster.HostRequest) -> Group:
        requests.append(asked)
        return groups[len(requests) - 1]

    monkeypatch.setattr(cluster, "request", request)
    monkeypatch.setattr(cluster, "node_ids", lambda group, hosts: list(group.nodes)[:hosts])
    monkeypatch.setattr(cluster, "start_actors", lambda _, group, *__: [f"host {group.nodes}"])
    monkeypatch.setattr(cluster, "what_it_has", lambda ray: "the cluster has 2 hosts")
    monkeypatch.setattr(cluster, "leave", lambda _, groups, places: left.extend(groups))
    first, places = Group("ab", waits=0), ["host a", "host b"]
    asked = cluster.HostRequest(2, {"role": "load"}, 30.0)
    joined = cluster.Cluster(None, Link("the Ray cluster"), ProgramPipes())
    reservation = cluster.Reservation(joined, first, places, asked)  # type: ignore[arg-type]
    with pytest.raises(HostError, match="there is no other host: the cluster has 2 hosts"):
        reservation.one_more()
    found: list[Any] = [reservation.one_more(), reservation.one_more()]
    assert found == ["host c", "host d"]
    with pytest.raises(HostError):
        reservation.one_more()
    assert [each.labels["ray.io/node-id"] for each in requests] == [
        *("!in(a,b)", "!in(a,b,c)", "!in(a,b,c,d)")
    ]
    assert all((each.hosts, each.labels["role"]) == (1, "load") for each in requests)
    reservation.close()
    assert set(left) == {first, *groups}, "the request that was not met is given up, too"


GONE = ConnectionError("GRPC connection failed\nTraceback")
REFUSED = RuntimeError("no such label\nTraceback")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "is lost: no answer for 0.05 s"),
        (GONE, f"is lost: {BROKEN}"),
        (REFUSED, "says: no such label"),
    ],
)
@pytest.mark.parametrize("when", ["request", "wait", "what_it_has", "start_actors"])
def test_a_head_that_is_lost_before_the_hosts_are_there_is_no_bug_of_ours(
    when: str, error: Exception | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        if error is None:
            threading.Event().wait()
        else:
            raise error

    group = Group("a", waits=9 if when == "what_it_has" else 0)
    monkeypatch.setattr(cluster, "request", lambda asked: group)
    monkeypatch.setattr(group if when == "wait" else cluster, when, fail)
    monkeypatch.setattr(cluster, "join", lambda address: Head())
    monkeypatch.setattr(cluster, "give_back", lambda group: None)
    monkeypatch.setattr(cluster, "HEAD_S", 0.05)
    monkeypatch.setattr(cluster, "PLACE_S", 0.0)
    monkeypatch.setattr(cluster, "LOOK_EVERY_S", 0.0)
    with pytest.raises(UserError) as caught:
        reserve("ray://head:1", 1, wait_s=0.0)
    assert caught.value.message == f"the Ray cluster at ray://head:1 {words}"
    assert caught.value.exit_code == 2


def test_the_user_may_stop_the_wait_for_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group("", waits=9)
    left: list[Any] = []
    monkeypatch.setattr(cluster, "request", lambda asked: group)
    monkeypatch.setattr(cluster, "join", lambda address: Head())
    monkeypatch.setattr(cluster, "give_back", left.append)
    with pytest.raises(KeyboardInterrupt):
        reserve("ray://head:1", 1, stopped=lambda: True)
    assert left == [group]


def test_another_version_is_told_from_what_ray_itself_says() -> None:
    check = importlib.import_module("ray._private.utils").check_version_info
    with pytest.raises(RuntimeError) as raised:
        check({"ray_version": "2.9.0", "python_version": "3.9.1"}, "Ray Client")
    error = refusal("ray://head:10001", raised.value)
    python = ".".join(map(str, sys.version_info[:3]))
    version = importlib.import_module("ray").__version__
    assert error.message == (
        f"the Ray cluster runs Ray 2.9.0 on Python 3.9.1, this is Ray {version} on Python {python}"
    )
    assert "'ray[client]==2.9.0'" in error.hint


DIED = "The actor died unexpectedly before finishing this task.\n\tclass_name: Host\n{}\n"
OF_PROCESS = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR"
OF_MEMORY = f"{OF_PROCESS.replace('SYSTEM', 'NODE_OUT_OF_MEMORY')} Task was killed"
OF_NODE = "The actor is dead because its node has died. Node Id: 7"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DIED.format(OF_PROCESS), "the process of its actor has died"),
        (DIED.format(OF_MEMORY), "its actor was killed because the host has too little memory"),
        (DIED.format(OF_NODE), "its Ray node (raylet) has died"),
        ("\n  something else\nmore", "something else"),
        ("", "Exception"),
    ],
)
def test_why_an_actor_died_is_told_in_a_few_words(text: str, words: str) -> None:
    assert cause_of_death(Exception(text)) == words


@pytest.mark.parametrize(
    ("why", "error", "others_s", "reached", "expected"),
    [
        ("another host was heard just now", TimeoutError(), [1.0, 9.7], True, None),
        ("no other host answers either", TimeoutError(), [8.4, 8.9], True, SILENT),
        ("a single host, and a head that listens", TimeoutError(), [], True, None),
        ("a single host, and no head", TimeoutError(), [], False, NO_HEAD),
        ("an actor that died", RuntimeError("died"), [8.4], False, None),
        ("the client's connection broke", ConnectionError("GRPC"), [9.9], True, BROKEN),
        ("it broke within the call", RuntimeError("release unlocked lock"), [9.9], True, BROKEN),
        ("it had broken before", Exception("Ray Client is not connected. x"), [9.9], True, BROKEN),
    ],
)
def test_whose_fault_a_failed_call_is(
    why: str, error: Exception, others_s: list[float], reached: bool, expected: str | None
) -> None:
    assert why_broken(error, others_s, 10.0, lambda: reached) == expected, why


def test_only_hosts_that_are_listened_to_are_compared() -> None:
    link = Link("the Ray cluster", lambda: False)
    link.heard("b")
    lost = link.blame("a", TimeoutError(), "silent")
    assert (type(lost), str(lost)) == (HostGoneError, "host a is lost: silent")
    assert link.lost is None
    link.forget("b")
    cut_off = link.blame("a", TimeoutError(), "silent")
    assert (type(cut_off), str(cut_off)) == (LinkLostError, f"the Ray cluster is lost: {NO_HEAD}")
    assert link.lost == str(cut_off)


SOON_S = 0.0  # a deadline that has passed


def test_a_full_outbox_refuses_what_does_not_fit_in_time() -> None:
    outbox = Outbox()
    with pytest.raises(ChannelClosedError, match="it has not read its input for 2 s"):
        outbox.put(bytes(WAITING_BYTES_MAX + 1), SOON_S, 2.0)
    outbox.fail(HostGoneError("host a is lost"))
    assert outbox.piece() == (b"", True)
    with pytest.raises(HostGoneError, match="host a is lost"):
        outbox.put(b"x", SOON_S, 0.0)


def test_hosts_of_one_name_get_different_ones() -> None:
    def node(name: str, number: str) -> dict[str, str]:
        return {"NodeName": name, "NodeID": number * 10, "NodeManagerAddress": "10.0.0.1"}

    found = [node("a", "1"), node("b", "2"), node("a", "3"), node("", "4")]
    assert names(found) == ["a-111111", "b", "a-333333", "10.0.0.1"]
