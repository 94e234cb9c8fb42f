"""``trueload ws --scenario`` as a user runs it, against a chat whose own log is the truth."""

from __future__ import annotations

from threading import Barrier
from typing import Any

from chat_server import Chat, chatting
from harness import Finished, Trueload, statuses

TALK = """
[[step]]
name = "greeting"
expect = "text:welcome"
[[step]]
name = "join"
send = '{"type":"join","room":"r{vu}"}'
expect = "json:/type=join ok"
take = { room = "json:/room" }
[[step]]
name = "say"
send = '{"type":"say","room":"{room}","n":{repeat}}'
expect = "json:/n={repeat}"
repeat = 5
[[step]]
name = "raw"
send = { base64 = "AAEC" }
expect = "binary"
[[step]]
name = "bye"
send = '{"type":"bye"}'
"""


def talk_to(
    trueload: Trueload,
    chat: Chat,
    text: str,
    path: str = "/chat",
    *flags: str,
    requests: int = 40,
) -> Finished:
    """Have conversations, and return what the command said."""
    trueload.folder.mkdir(exist_ok=True)
    file = trueload.folder / "chat.toml"
    file.write_text(text)
    with chatting(chat) as at:
        words = ("ws", f"ws://{at}{path}", "--scenario", str(file), "-c", "4")
        quota = () if {"-d", "--connect-open"} & {*flags} else ("--requests", str(requests))
        return trueload.run(*words, *quota, "--json", "-", *flags)


def counts_of(found: Any) -> dict[str, tuple[int, int, int]]:
    """Return how often each step went well, failed, and was skipped."""
    return {
        step["name"]: (
            step["counts"]["ok"],
            sum(step["counts"]["failed"].values()),
            step["counts"]["skipped"],
        )
        for step in found["targets"]
    }


def test_every_step_is_counted_as_the_server_counts_it(trueload: Trueload) -> None:
    chat = Chat()
    found = talk_to(trueload, chat, TALK).json()
    assert counts_of(found) == {
        "connect": (40, 0, 0),
        "greeting": (40, 0, 0),
        "join": (40, 0, 0),
        "say": (200, 0, 0),
        "raw": (40, 0, 0),
        "bye": (40, 0, 0),
    }
    assert found["sessions"]["ok"] == 40
    assert chat.seen == {"join": 40, "say": 200, "binary": 40, "bye": 40}
    assert chat.closed == {1000: 40}


def test_a_log_in_over_http_comes_first_and_its_cookie_is_sent(trueload: Trueload) -> None:
    log_in = '[[step]]\nname = "log in"\nrequest = { url = "/login" }\n'
    connect = '[[step]]\nname = "open"\nconnect = { url = "/guarded" }\n'
    chat = Chat()
    done = talk_to(trueload, chat, log_in + connect + TALK)
    assert done.json()["sessions"]["ok"] == 40, done.err
    assert chat.seen["login"] == 40
    without = talk_to(trueload, Chat(), TALK, "/guarded")
    assert counts_of(without.json())["connect"] == (0, 40, 0)
    assert "the server answered 403 instead of 101" in without.err


def test_what_nobody_awaits_fails_unless_it_is_ignored(trueload: Trueload) -> None:
    found = talk_to(trueload, Chat(chatters=True), TALK)
    assert counts_of(found.json())["say"] == (0, 40, 160)
    assert "no step expects it" in found.err
    ignored = talk_to(trueload, Chat(chatters=True), "ignore = true\n" + TALK).json()
    assert ignored["sessions"]["ok"] == 40


def test_a_server_that_forgets_or_closes_is_told(trueload: Trueload) -> None:
    silent = talk_to(trueload, Chat(forgets=True), TALK, "/chat", "--timeout", "300ms").json()
    assert counts_of(silent)["say"] == (0, 40, 160)
    assert set(silent["counts"]["failed"]) == {"timeout.first_byte"}
    closed = talk_to(trueload, Chat(closes=True), TALK)
    assert set(closed.json()["counts"]["failed"]) == {"ws.closed"}
    assert 'the server closed the WebSocket with 1008: "be quiet"' in closed.err


CHANNEL = """
ignore = true
roles = { listener = 3, speaker = 1 }
[[step]]
name = "listen"
role = "listener"
expect = "regex:(stamp)"
repeat = 20
[[step]]
name = "say"
role = "speaker"
send = '{"type":"tell","at":"{stamp}"}'
think = "5ms"
repeat = 20
"""


def test_what_speakers_say_is_timed_at_every_listener(trueload: Trueload) -> None:
    chat = Chat()
    found = talk_to(trueload, chat, CHANNEL, "/room", requests=4).json()
    counts = counts_of(found)
    assert (counts["say"], counts["listen"]) == ((20, 0, 0), (60, 0, 0))
    assert chat.seen["tell"] == 20
    messages = found["messages"]
    # The speaker has its own messages, too, if it is still there.
    assert 60 <= messages["delivery_ns"]["count"] <= 80
    assert messages["delivery_ns"]["max"] < found["window"]["wall_s"] * 1e9
    assert messages["received"] >= messages["gap_ns"]["count"] >= 57


def test_who_listens_until_the_end_is_no_session_that_failed_to_end(trueload: Trueload) -> None:
    text = CHANNEL.replace("repeat = 20\n", 'repeat = "until the end"\n', 1)
    chat = Chat(together=Barrier(1))
    found = talk_to(trueload, chat, text, "/room", "-d", "1s", "--warmup", "0s").json()
    assert found["counts"]["failed"] == {}
    assert counts_of(found)["listen"][0] > 3, "more than one message each"
    checks = statuses(found)
    assert (checks["sessions"], checks["censored"]) == ("pass", "pass")
    refused = talk_to(trueload, Chat(), text, "/room")
    assert (refused.code, "--requests" in refused.err) == (2, True)


def test_each_conversation_opens_its_connection_when_it_is_due(trueload: Trueload) -> None:
    chat = Chat()
    asked = ("--connect-open", "100/s", "--requests", "50", "-c", "20")
    found = talk_to(trueload, chat, TALK, "/chat", *asked).json()
    assert (found["sessions"]["ok"], found["counts"]["failed"]) == (50, {})
    assert found["openings"]["connect_ns"]["count"] == 50
    assert (found["openings"]["first_byte_ns"]["count"], chat.closed) == (0, {1000: 50})
    closing = talk_to(trueload, Chat(closes=True), TALK, "/chat", *asked).json()
    assert closing["counts"]["failed"] == {"ws.closed": 50}
    assert closing["counts"]["skipped"] == 50 * 6
    log_in = '[[step]]\nname = "log in"\nrequest = { url = "/login" }\n'
    refused = talk_to(trueload, Chat(), log_in + TALK, "/chat", *asked)
    assert (refused.code, "step 'log in' is a request before it" in refused.err) == (2, True)
    alone = trueload.run("ws", "ws://127.0.0.1:9/", "--connect-open", "9/s")
    assert (alone.code, "add --scenario FILE" in alone.err) == (2, True)


def test_rows_of_a_file_fill_what_is_sent_and_what_is_expected(trueload: Trueload) -> None:
    rows = trueload.folder / "rows.csv"
    trueload.folder.mkdir(exist_ok=True)
    rows.write_text("room,n\n" + "".join(f"r{n},{n * 7}\n" for n in range(9)))
    text = """
    ignore = true
    [[step]]
    name = "join"
    send = '{"type":"join","room":"{room}"}'
    expect = "json:/room={room}"
    [[step]]
    name = "say"
    send = '{"type":"say","room":"{room}","n":{n}}'
    expect = "json:/n={n}"
    """
    chat = Chat()
    each_once = ("--data", str(rows), "--data-order", "unique")
    found = talk_to(trueload, chat, text, "/chat", *each_once).json()
    assert counts_of(found)["say"] == (9, 0, 0)
    assert chat.seen == {"join": 9, "say": 9}


def test_a_message_has_a_time_of_its_own(trueload: Trueload) -> None:
    text = TALK.replace(
        'expect = "json:/n={repeat}"', 'expect = "json:/n={repeat}"\nwithin = "50ms"'
    )
    silent = talk_to(trueload, Chat(forgets=True), text)
    assert counts_of(silent.json())["say"] == (0, 40, 160)
    assert set(silent.json()["counts"]["failed"]) == {"timeout.first_byte"}
