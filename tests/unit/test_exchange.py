"""TCP and WebSocket: the plan that the flags make for the engine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from samples import TO_ENGINE
from trueload.commands.job import Job
from trueload.commands.tcp import read_job as read_tcp_job
from trueload.errors import UserError
from trueload.protocol.plan import Generate, to_json, to_line
from trueload.request.message import make_messages
from trueload.request.url import parse_host_port, parse_url
from trueload.trial.plan import make_plan


def plan_of(job: Job) -> dict[str, Any]:
    """The plan as the engine reads it, also when it is written and read again."""
    plan = make_plan(job.spec, ())
    assert TO_ENGINE.validate_json(to_line(plan)) == plan
    assert isinstance(plan, Generate)
    return to_json(plan)


def digest(message: bytes) -> str:
    return hashlib.sha256(message).hexdigest()


def test_an_echo_over_tcp_is_a_plan_without_a_request() -> None:
    plan = plan_of(read_tcp_job(where="127.0.0.1:9000", size=100, pipeline=4))
    assert plan["exchange"] == {
        "kind": "tcp_echo",
        "payload_sha256": digest(make_messages(100, None).payload),
        "size": 100,
        "half_close": False,
    }
    assert plan["request"] is None
    assert plan["targets"] == []
    assert plan["expect"] == {"statuses": None, "body_sha256": None}
    assert (plan["connections"], plan["pipeline"], plan["close"]) == (64, 4, False)


def test_a_message_from_a_file_is_sent_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_bytes(b"\x00\xffsome bytes")
    job = read_tcp_job(where="[::1]:9000", data=file, close=True, half_close=True)
    exchange = plan_of(job)["exchange"]
    assert exchange["payload_sha256"] == digest(b"\x00\xffsome bytes")
    assert exchange["half_close"] is True
    assert job.spec.load.close
    assert (job.workload.endpoint.host, job.workload.endpoint.port, job.spec.url) == (
        "::1",
        9000,
        "tcp://[::1]:9000",
    )


def test_a_socket_file_can_be_loaded_over_no_network() -> None:
    job = read_tcp_job(where="unix:/run/echo.sock")
    assert job.resolved().addresses == ("unix:/run/echo.sock",)
    assert job.spec.url == "unix:/run/echo.sock"


@pytest.mark.parametrize("size_bytes", [1, 64, 1000, 2**20])
def test_messages_have_their_size_and_are_always_the_same(size_bytes: int) -> None:
    messages = make_messages(size_bytes, None)
    assert messages == make_messages(size_bytes, None)
    assert messages.size_bytes == size_bytes
    assert len(messages.payload) % size_bytes == 0
    assert make_messages(size_bytes, None, text=True).payload.decode("ascii").isalnum()


def test_messages_that_follow_each_other_differ() -> None:
    payload = make_messages(8, None).payload
    parts = [payload[at : at + 8] for at in range(0, len(payload), 8)]
    assert len(set(parts)) == len(parts) == 256


def test_each_place_of_a_message_can_be_told_from_its_neighbours() -> None:
    message = make_messages(2**16, None).payload[: 2**16]
    blocks = {message[at : at + 8] for at in range(0, len(message), 8)}
    assert len(blocks) == len(message) // 8


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"where": "127.0.0.1"}, "has no port"),
        ({"where": "http://127.0.0.1:80"}, "is not HOST:PORT"),
        ({"where": "127.0.0.1:80/path"}, "is not HOST:PORT"),
        ({"where": "me@127.0.0.1:80"}, "is not HOST:PORT"),
        ({"where": ""}, "is not HOST:PORT"),
        ({"where": "127.0.0.1:80\n"}, "is not HOST:PORT"),
        ({"where": "::1:80"}, "more than one colon"),
        ({"where": "h:0"}, "not a port"),
        ({"where": "h:80", "size": 5, "data": Path("/dev/null")}, "cannot be used together"),
        ({"where": "h:80", "data": Path("/dev/null")}, "is empty"),
        ({"where": "h:80", "data": Path("/dev/zero")}, "too large"),
        ({"where": "h:80", "data": Path("/nowhere")}, "cannot be read"),
        ({"where": "h:80", "half_close": True}, "there is no --close"),
        ({"where": "h:80", "close": True, "pipeline": 2}, "cannot be used together"),
        ({"where": "h:80", "limit": "p99<1ms", "requests": 5}, "cannot be used together"),
    ],
)
def test_flags_that_contradict_are_refused_in_one_line(flags: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        read_tcp_job(**flags)


def test_a_host_and_port_may_be_written_as_a_url() -> None:
    assert parse_host_port("tcp://localhost:9000").authority == "localhost:9000"


def test_each_command_takes_the_urls_of_its_protocol() -> None:
    with pytest.raises(UserError, match="`trueload http`") as caught:
        parse_url("ws://127.0.0.1/")
    assert caught.value.hint == "use `trueload ws` for it"
