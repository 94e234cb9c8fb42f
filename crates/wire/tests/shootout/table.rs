//! What a client makes of what servers send, message by message.

use trueload_wire::shootout::{Dialect, Joining, Key, Parsed, Wrong};

use Dialect::{ActionCable, Binary, Json, Phoenix};

const KEY: Key = Key { sender: 7, sequence: 3 };

fn check(dialect: Dialect, cases: &[(&str, Parsed, &str)]) {
    for (message, expected, why) in cases {
        assert_eq!(dialect.parse(message.as_bytes(), b"xx"), *expected, "{why}: {message}");
    }
}

#[test]
fn json_as_servers_send_it() {
    let payload = r#"{"sender":7,"sequence":3,"padding":"xx"}"#;
    let with = |kind: &str| format!(r#"{{"type":"{kind}","payload":{payload}}}"#);
    let cases: &[(&str, Parsed, &str)] = &[
        (&with("echo"), Parsed::Echo(KEY), "an echo"),
        (&with("broadcast"), Parsed::Broadcast(KEY), "a broadcast"),
        (&with("broadcastResult"), Parsed::Result(KEY, None), "a receipt without a count"),
        (
            r#"{"listenerCount":12,"payload":{"padding":"xx","sequence":3,"sender":7},"type":"broadcastResult"}"#,
            Parsed::Result(KEY, Some(12)),
            "another order",
        ),
        (
            "\n { \"type\" : \"broadcast\" ,\t\"payload\" : { \"sequence\":3, \"sender\":7, \"padding\" : \"\\u0078x\" } } ",
            Parsed::Broadcast(KEY),
            "white space and escapes",
        ),
        (
            r#"{"type":"echo","payload":{"sender":7,"sequence":3,"padding":"xx","at":1.5},"id":[{}]}"#,
            Parsed::Echo(KEY),
            "members that nobody asked for",
        ),
        (r#"{"type":"ping"}"#, Parsed::Ping, "a ping"),
        (r#"{"type":"hello","payload":1}"#, Parsed::Other, "a kind that is not the contract's"),
        ("", Parsed::Error(Wrong::Malformed), "nothing"),
        ("{", Parsed::Error(Wrong::Malformed), "a beginning"),
        ("<html>", Parsed::Error(Wrong::Malformed), "no JSON"),
        ("[]", Parsed::Error(Wrong::Malformed), "no object"),
        (
            &format!(r#"["broadcast",{payload},1]"#),
            Parsed::Error(Wrong::Malformed),
            "the members without their names",
        ),
        (
            r#"{"type":"broadcast","payload":[7,3,"xx"]}"#,
            Parsed::Error(Wrong::Foreign),
            "a payload without names",
        ),
        (r#"{"payload":1}"#, Parsed::Error(Wrong::Malformed), "no type"),
        (r#"{"type":"echo"} {}"#, Parsed::Error(Wrong::Malformed), "something behind"),
        (r#"{"type":"echo"}"#, Parsed::Error(Wrong::Foreign), "no payload"),
        (r#"{"type":"broadcast","payload":"hi"}"#, Parsed::Error(Wrong::Foreign), "not ours"),
        (
            r#"{"type":"echo","payload":{"sender":-7,"sequence":3,"padding":"xx"}}"#,
            Parsed::Error(Wrong::Foreign),
            "a sender that there cannot be",
        ),
        (
            r#"{"type":"echo","payload":{"sender":4294967296,"sequence":3,"padding":"xx"}}"#,
            Parsed::Error(Wrong::Foreign),
            "a number that wraps",
        ),
        (
            r#"{"type":"echo","payload":{"sender":7,"sequence":3,"padding":"x"}}"#,
            Parsed::Error(Wrong::Altered),
            "padding cut short",
        ),
    ];
    check(Json, cases);
}

#[test]
fn binary_as_servers_send_it() {
    let with = |head: &[u8], padding: &[u8]| [head, &[0, 0, 0, 7, 0, 0, 0, 3], padding].concat();
    let cases: &[(Vec<u8>, Parsed, &str)] = &[
        (with(b"e\0\0\0\x0a", b"xx"), Parsed::Echo(KEY), "an echo"),
        (with(b"b\0\0\0\x0a", b"xx"), Parsed::Broadcast(KEY), "a broadcast"),
        (with(b"r\0\0\0\x0a", b"xx"), Parsed::Result(KEY, None), "a receipt"),
        (with(b"x\0\0\0\x0a", b"xx"), Parsed::Error(Wrong::Malformed), "another type"),
        (with(b"b\0\0\0\x0b", b"xx"), Parsed::Error(Wrong::Malformed), "a length too long"),
        (with(b"b\0\0\0\x0a", b"xxx"), Parsed::Error(Wrong::Malformed), "a length too short"),
        (with(b"b\0\0\0\x0a", b"xy"), Parsed::Error(Wrong::Altered), "other padding"),
        (b"b\0\0\0\x04abcd".to_vec(), Parsed::Error(Wrong::Foreign), "no room for a key"),
        (b"b\0\0\0".to_vec(), Parsed::Error(Wrong::Malformed), "no room for a length"),
        (Vec::new(), Parsed::Error(Wrong::Malformed), "nothing"),
    ];
    for (message, expected, why) in cases {
        assert_eq!(Binary.parse(message, b"xx"), *expected, "{why}");
    }
}

#[test]
fn action_cable_as_rails_sends_it() {
    let id = r#""identifier":"{\"channel\":\"BenchmarkChannel\"}""#;
    let message = |action: &str| {
        let data = r#"{"sender":7,"sequence":3,"padding":"xx"}"#;
        format!(r#"{{{id},"message":{{"payload":{data},"action":"{action}"}}}}"#)
    };
    let cases: &[(&str, Parsed, &str)] = &[
        (r#"{"type":"welcome"}"#, Parsed::Welcome, "the first word"),
        (r#"{"type":"ping","message":1700000000}"#, Parsed::Ping, "every three seconds"),
        (&format!(r#"{{{id},"type":"confirm_subscription"}}"#), Parsed::Joined, "confirmed"),
        (
            &format!(r#"{{{id},"type":"reject_subscription"}}"#),
            Parsed::Error(Wrong::Refused),
            "rejected",
        ),
        (
            r#"{"type":"disconnect","reason":"unauthorized","reconnect":false}"#,
            Parsed::Error(Wrong::Closing),
            "sent away",
        ),
        (&message("echo"), Parsed::Echo(KEY), "an echo"),
        (&message("broadcast"), Parsed::Broadcast(KEY), "a broadcast"),
        (&message("broadcastResult"), Parsed::Result(KEY, None), "a receipt"),
        (&message("other"), Parsed::Other, "another action"),
        (
            &message("echo").replace("BenchmarkChannel", "Other"),
            Parsed::Other,
            "an echo on another channel",
        ),
        (
            &message("echo").replace(r#"{\"channel"#, r#"{ \"id\": 1, \"channel"#),
            Parsed::Echo(KEY),
            "our channel, written otherwise",
        ),
        (
            r#"{"identifier":"{\"channel\":\"Other\"}","type":"confirm_subscription"}"#,
            Parsed::Other,
            "another channel is confirmed",
        ),
        (&format!(r#"{{{id},"message":"hi"}}"#), Parsed::Other, "another's message"),
        ("{}", Parsed::Error(Wrong::Malformed), "neither type nor message"),
        (
            &format!(r#"{{{id},"message":{{"action":"echo","payload":{{}}}}}}"#),
            Parsed::Error(Wrong::Foreign),
            "not our payload",
        ),
    ];
    check(ActionCable, cases);
}

#[test]
fn phoenix_as_it_replies() {
    let body = r#"{"sender":7,"sequence":3,"padding":"xx"}"#;
    let reply = |status: &str, response: &str| {
        format!(
            r#"{{"topic":"room:lobby","ref":"3","payload":{{"status":"{status}","response":{response}}},"event":"phx_reply"}}"#
        )
    };
    let cases: &[(&str, Parsed, &str)] = &[
        (&reply("ok", "{}"), Parsed::Joined, "the join"),
        (&reply("error", r#"{"reason":"no"}"#), Parsed::Error(Wrong::Refused), "refused"),
        (&reply("ok", &format!(r#"{{"type":"echo","body":{body}}}"#)), Parsed::Echo(KEY), "echo"),
        (
            &reply(
                "ok",
                &format!(r#"{{"body":{body},"type":"broadcastResult","listenerCount":2}}"#),
            ),
            Parsed::Result(KEY, Some(2)),
            "a receipt",
        ),
        (
            &format!(
                r#"{{"topic":"room:lobby","ref":null,"payload":{{"type":"broadcast","body":{body}}},"event":"broadcast"}}"#
            ),
            Parsed::Broadcast(KEY),
            "a broadcast",
        ),
        (
            r#"{"topic":"room:lobby","event":"phx_error","payload":{},"ref":"join"}"#,
            Parsed::Error(Wrong::Closing),
            "the channel has crashed",
        ),
        (
            r#"{"topic":"phoenix","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"heartbeat"}"#,
            Parsed::Other,
            "the answer to a heartbeat",
        ),
        (
            r#"{"topic":"room:lobby","event":"presence_state","payload":{},"ref":null}"#,
            Parsed::Other,
            "who is there",
        ),
        (
            r#"{"topic":"room:lobby","event":"broadcast","payload":{"body":1},"ref":null}"#,
            Parsed::Error(Wrong::Foreign),
            "another's broadcast",
        ),
        (
            r#"{"topic":"room:lobby","event":"phx_reply","ref":null}"#,
            Parsed::Error(Wrong::Malformed),
            "a reply without a payload",
        ),
    ];
    check(Phoenix, cases);
}

#[test]
fn deep_nesting_ends_in_an_error_or_is_passed_over_but_takes_no_stack() {
    let deep = "[".repeat(1_000_000);
    let whole = format!("{deep}{}", "]".repeat(1_000_000));
    for dialect in [Json, ActionCable, Phoenix] {
        assert_eq!(dialect.parse(deep.as_bytes(), b""), Parsed::Error(Wrong::Malformed));
    }
    let broadcast = format!(r#"{{"type":"broadcast","payload":{whole}}}"#);
    assert_eq!(Json.parse(broadcast.as_bytes(), b""), Parsed::Error(Wrong::Foreign));
    let message = format!(r#"{{"message":{{"action":"x","payload":{whole}}}}}"#);
    assert_eq!(ActionCable.parse(message.as_bytes(), b""), Parsed::Other);
}

#[test]
fn joining_waits_for_what_is_due_and_passes_over_the_rest() {
    let echo = Key { sender: 7, sequence: 0 };
    let other = Key { sender: 8, sequence: 0 };
    let step = |joining: Joining, parsed: Parsed| {
        let mut output = Vec::new();
        let next = joining.handle_message(ActionCable, parsed, echo, b"", &mut output);
        (next, !output.is_empty())
    };
    let cases = [
        (Joining::Welcome, Parsed::Ping, Ok(Joining::Welcome), false),
        (Joining::Welcome, Parsed::Welcome, Ok(Joining::Confirmation), true),
        (Joining::Confirmation, Parsed::Ping, Ok(Joining::Confirmation), false),
        (Joining::Confirmation, Parsed::Joined, Ok(Joining::Echo), true),
        (Joining::Echo, Parsed::Broadcast(other), Ok(Joining::Echo), false),
        (Joining::Echo, Parsed::Echo(other), Ok(Joining::Echo), false),
        (Joining::Echo, Parsed::Echo(echo), Ok(Joining::Done), false),
        (Joining::Confirmation, Parsed::Error(Wrong::Refused), Err(Wrong::Refused), false),
    ];
    for (joining, parsed, next, sends) in cases {
        assert_eq!(step(joining, parsed), (next, sends), "{joining:?} hears {parsed:?}");
    }
}
