"""Files of conversations over WebSocket: what they mean, and what is refused before anything is
sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trueload.commands.ws import read_job
from trueload.errors import UserError
from trueload.protocol.plan import Generate
from trueload.protocol.scenario import (
    AnyMessage,
    BinaryMessage,
    FromJson,
    FromRegex,
    HasMessage,
    PrefixMessage,
    TextMessage,
    UsersPlan,
)
from trueload.trial.plan import make_plan

URL = "ws://127.0.0.1:8080/chat?room=1"
SAY = '[[step]]\nname = "say"\nsend = "hello"\nexpect = "any"\n'


def plan(folder: Path, written: str, url: str = URL, **flags: Any) -> Generate:
    """Return the plan of a conversation."""
    file = folder / "chat.toml"
    file.write_text(written)
    return make_plan(read_job(url=url, scenario=file, **flags).spec, ())


def test_requests_come_first_then_the_connection_then_messages(tmp_path: Path) -> None:
    text = """
    ignore = true
    replies = { "2" = "3" }
    [[step]]
    name = "log in"
    request = { method = "POST", url = "/login", body = "{}" }
    take = { token = "json:/token" }
    [[step]]
    name = "open"
    connect = { url = "/chat?t={token}", headers = { A = "b" }, subprotocols = ["v1", "v2"] }
    [[step]]
    name = "join"
    send = '{"room":"{token}"}'
    expect = "json:/type=joined"
    take = { id = "json:/id" }
    think = "1ms..2ms"
    repeat = 3
    [[step]]
    name = "leave"
    send = { base64 = "AAEC" }
    """
    planned = plan(tmp_path, text)
    assert planned.ignore_unexpected
    assert planned.replies == (("2", "3"),)
    log_in, connect, join, leave = planned.scenario
    assert (log_in.request.path, log_in.upgrade, log_in.messages) == ("/login", False, None)
    assert (connect.request.path, connect.upgrade) == ("/chat?t={token}", True)
    assert connect.request.headers == (
        ("Host", "127.0.0.1:8080"),
        ("A", "b"),
        ("Sec-WebSocket-Protocol", "v1, v2"),
    )
    assert join.messages is not None
    assert join.messages.text
    expected = HasMessage.model_validate({"from": FromJson(pointer="/type"), "text": "joined"})
    assert join.messages.expected == expected
    assert (join.repeat, join.think.least_ns, join.think.most_ns) == (3, 1_000_000, 2_000_000)
    assert leave.messages is not None
    assert (leave.messages.text, leave.messages.expected) == (False, None)


def test_without_a_step_that_connects_the_url_is_connected_to(tmp_path: Path) -> None:
    connect, say = plan(tmp_path, SAY, header=["A: b"], subprotocol=["v1"]).scenario
    assert (connect.name, connect.upgrade, connect.request.path) == (
        "connect",
        True,
        "/chat?room=1",
    )
    assert connect.request.headers[1:] == (("A", "b"), ("Sec-WebSocket-Protocol", "v1"))
    assert say.messages is not None
    assert say.messages.expected == AnyMessage()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("any", AnyMessage()),
        ("binary", BinaryMessage()),
        ("text:any", TextMessage(text="any")),
        ("text:", TextMessage(text="")),
        ("prefix:42[", PrefixMessage(text="42[")),
        ("json:/id", HasMessage.model_validate({"from": FromJson(pointer="/id")})),
        (
            "json:/a=b=c",
            HasMessage.model_validate({"from": FromJson(pointer="/a"), "text": "b=c"}),
        ),
        ("regex:n=(.)", HasMessage.model_validate({"from": FromRegex(pattern="n=(.)")})),
    ],
)
def test_what_is_expected_is_written_as_what_is_taken(
    tmp_path: Path, written: str, expected: Any
) -> None:
    step = plan(tmp_path, SAY.replace("any", written)).scenario[-1]
    assert step.messages is not None
    assert step.messages.expected == expected


ROLES = """
roles = { ear = 9, mouth = 1 }
[[step]]
name = "feed"
role = "ear"
expect = "json:/id"
take = { id = "json:/id" }
repeat = 1000
[[step]]
name = "say"
role = "mouth"
send = "hello {stamp}"
[[step]]
name = "end"
expect = "any"
within = "250ms"
"""


def test_steps_are_of_the_users_of_their_role(tmp_path: Path) -> None:
    connect, feed, say, end = plan(tmp_path, ROLES).scenario
    assert (connect.users, end.users) == (None, None)
    assert feed.users == UsersPlan(first=0, count=9, of=10)
    assert say.users == UsersPlan(first=9, count=1, of=10)
    assert end.messages is not None
    assert end.messages.within_ns == 250_000_000


LISTEN = '[[step]]\nname = "listen"\nexpect = "any"\n'
ENDLESS = 'repeat = "until the end"\n'
REQUEST = '[[step]]\nname = "get"\nrequest = { url = "/" }\n'
CONNECT = '[[step]]\nname = "open"\nconnect = { url = "/" }\n'


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (REQUEST, "no step with a message"),
        (SAY + REQUEST, "step 'get' comes after a message and is none"),
        (SAY + CONNECT, "step 'open' comes after a message and is none"),
        (CONNECT + REQUEST + SAY, "step 'open' connects before a request"),
        (CONNECT + CONNECT.replace("open", "again") + SAY, "step 'again' connects again"),
        (SAY.replace("say", "connect"), "a step is called 'connect', and does not"),
        ('[[step]]\nname = "x"\n', "neither 'send' nor 'expect'"),
        (SAY + "wait = 3\n", "'wait' is not a key"),
        ("ignores = true\n" + SAY, "'ignores' is not a key"),
        ("ignore = 1\n" + SAY, "'ignore' is not true or false"),
        (ROLES.replace("roles =", "#"), "'roles' does not name the roles of its steps"),
        (ROLES.replace("{ ear = 9, mouth = 1 }", "{}"), "'roles' does not name the roles"),
        (ROLES.replace("9", "0"), "a weight of 'roles' is not 1 to 1,000,000"),
        (ROLES.replace("9", "true"), "a weight of 'roles' is not 1 to 1,000,000"),
        (ROLES.replace('role = "ear"', 'role = "eye"'), "'eye' is not among the roles"),
        (ROLES.replace('role = "ear"', ""), "no step has the role 'ear'"),
        (ROLES.replace('role = "ear"', "role = 7"), "'role' is not a string"),
        (ROLES.replace("hello", "{id}"), "role 'mouth', step 'say': no step before it takes {id}"),
        (SAY + 'within = "soon"\n', "'within': "),
        (SAY + "within = 3\n", "'within' is not a string"),
        (SAY.replace('expect = "any"', 'within = "1s"'), "'within' needs a message"),
        ('replies = "2"\n' + SAY, "'replies' is not a table of texts"),
        ("replies = { a = 3 }\n" + SAY, "'replies' is not a table of texts"),
        (SAY.replace('"any"', "7"), "'expect' is not a string"),
        (SAY.replace("any", "words"), "'words' does not say which message is expected"),
        (SAY.replace("any", "json:id"), "'id' is not a JSON pointer"),
        (SAY.replace("any", "regex:abc"), "the pattern has no group"),
        (SAY.replace('"hello"', "7"), "'send' is not a text"),
        (SAY.replace('"hello"', '{ base64 = "?" }'), "'send' is not base64"),
        (SAY.replace('expect = "any"', 'take = { a = "json:/a" }'), "'take' needs a message"),
        (SAY + 'take = { a = "header:A" }\n', "a message has no headers and cookies"),
        (SAY.replace("hello", "{id}"), "no step before it takes {id}"),
        (SAY.replace("any", "text:{id}"), "no step before it takes {id}"),
        (CONNECT.replace('"/"', '"/", subprotocols = "v1"') + SAY, "'subprotocols' is not a list"),
        (CONNECT.replace('"/"', '"http://127.0.0.1:9/"') + SAY, "another server"),
        (SAY + ENDLESS, "'repeat' is 'until the end', and it does not only expect"),
        (LISTEN + ENDLESS + SAY, "step 'say' comes after 'listen', which does not end"),
        (SAY + 'repeat = "forever"\n', "'repeat' is not a whole number"),
    ],
)
def test_a_mistake_is_one_line_and_a_hint(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UserError) as caught:
        plan(tmp_path, text)
    assert what in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("flags", [{"text": True}, {"size": "64"}, {"dialect": "json"}])
def test_an_option_of_one_message_is_refused_beside_a_conversation(
    tmp_path: Path, flags: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match="cannot be used together"):
        plan(tmp_path, SAY, **flags)
