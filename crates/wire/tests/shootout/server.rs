//! What our server makes of what clients send, message by message; and that a payload goes out as it came.

use trueload_wire::shootout::{Asked, Dialect, Wrong};

use Dialect::{ActionCable, Binary, Json, Phoenix};

use super::answered;

/// A message, what it asks for, what is due to all, what to the sender, and why.
type Case<'a> = (&'a str, Asked, &'a str, &'a str, &'a str);

fn check(dialect: Dialect, cases: &[Case<'_>]) {
    for (message, expected, to_all, to_sender, why) in cases {
        let (asked, due) = answered(dialect, message.as_bytes());
        assert_eq!(asked, *expected, "{why}: {message}");
        assert_eq!(String::from_utf8_lossy(&due.to_all), *to_all, "{why}: {message}");
        assert_eq!(String::from_utf8_lossy(&due.to_sender), *to_sender, "{why}: {message}");
    }
}

const MALFORMED: Asked = Asked::Error(Wrong::Malformed);

#[test]
fn json_of_clients() {
    check(
        Json,
        &[
            (
                r#"{"payload":{"b": 1,"a":[2]},"type":"echo"}"#,
                Asked::Echo,
                "",
                r#"{"type":"echo","payload":{"b": 1,"a":[2]}}"#,
                "a payload keeps its form",
            ),
            (
                r#"{"type":"broadcast","payload":"hi"}"#,
                Asked::Broadcast,
                r#"{"type":"broadcast","payload":"hi"}"#,
                r#"{"type":"broadcastResult","payload":"hi","listenerCount":7}"#,
                "a text is a payload",
            ),
            (r#"{"type":"echo"}"#, Asked::Echo, "", r#"{"type":"echo","payload":null}"#, "none"),
            (r#"{"type":"sing"}"#, Asked::Other, "", "", "not offered"),
            ("sing", MALFORMED, "", "", "no JSON"),
        ],
    );
}

#[test]
fn binary_of_clients() {
    check(
        Binary,
        &[
            ("e\0\0\0\x02hi", Asked::Echo, "", "e\0\0\0\x02hi", "an echo, however short"),
            ("b\0\0\0\x02hi", Asked::Broadcast, "b\0\0\0\x02hi", "r\0\0\0\x02hi", "a broadcast"),
            ("r\0\0\0\x02hi", MALFORMED, "", "", "no client sends receipts"),
            ("b\0\0\0\x03hi", MALFORMED, "", "", "shorter than it says"),
        ],
    );
}

#[test]
fn action_cable_of_clients() {
    let id = r#""identifier":"{\"channel\":\"BenchmarkChannel\"}""#;
    let of = |text: &str| text.replace("ID", id);
    let cases = [
        (
            of(r#"{"command":"subscribe",ID}"#),
            Asked::Join,
            String::new(),
            of(r#"{ID,"type":"confirm_subscription"}"#),
        ),
        (
            r#"{"command":"subscribe","identifier":"{\"channel\":\"Other\"}"}"#.to_owned(),
            Asked::Other,
            String::new(),
            r#"{"identifier":"{\"channel\":\"Other\"}","type":"reject_subscription"}"#.to_owned(),
        ),
        (
            of(r#"{"command":"message",ID,"data":"{\"action\":\"echo\",\"payload\":[1]}"}"#),
            Asked::Echo,
            String::new(),
            of(r#"{ID,"message":{"action":"echo","payload":[1]}}"#),
        ),
        (
            of(r#"{"command":"message",ID,"data":"{\"payload\":[1],\"action\":\"broadcast\"}"}"#),
            Asked::Broadcast,
            of(r#"{ID,"message":{"action":"broadcast","payload":[1]}}"#),
            of(r#"{ID,"message":{"action":"broadcastResult","payload":[1]}}"#),
        ),
        (of(r#"{"command":"unsubscribe",ID}"#), Asked::Leave, String::new(), String::new()),
        (
            r#"{"command":"unsubscribe","identifier":"{\"channel\":\"Other\"}"}"#.to_owned(),
            Asked::Other,
            String::new(),
            String::new(),
        ),
        (
            r#"{"command":"message","identifier":"{\"channel\":\"Other\"}","data":"{\"action\":\"echo\"}"}"#.to_owned(),
            Asked::Other,
            String::new(),
            String::new(),
        ),
        (
            r#"{"command":"subscribe","identifier":"{ \"id\": 1, \"channel\": \"BenchmarkChannel\" }"}"#.to_owned(),
            Asked::Join,
            String::new(),
            r#"{"identifier":"{ \"id\": 1, \"channel\": \"BenchmarkChannel\" }","type":"confirm_subscription"}"#.to_owned(),
        ),
        (of(r#"{"command":"message",ID,"data":"{"}"#), MALFORMED, String::new(), String::new()),
        (of(r#"{"command":"message",ID}"#), MALFORMED, String::new(), String::new()),
    ];
    for (message, asked, to_all, to_sender) in &cases {
        check(ActionCable, &[(message, *asked, to_all, to_sender, "of a client")]);
    }
}

#[test]
fn phoenix_of_clients() {
    check(
        Phoenix,
        &[
            (
                r#"{"topic":"room:lobby","event":"phx_join","payload":{},"ref":"1"}"#,
                Asked::Join,
                "",
                r#"{"topic":"room:lobby","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"1"}"#,
                "a join",
            ),
            (
                r#"{"topic":"room:attic","event":"phx_join","payload":{},"ref":"1"}"#,
                Asked::Other,
                "",
                r#"{"topic":"phoenix","event":"phx_reply","payload":{"status":"error","response":{"reason":"unmatched topic"}},"ref":"1"}"#,
                "a room that is not there",
            ),
            (
                r#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"9"}"#,
                Asked::Heartbeat,
                "",
                r#"{"topic":"phoenix","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"9"}"#,
                "a heartbeat",
            ),
            (
                r#"{"topic":"phoenix","event":"phx_join","payload":{},"ref":"9"}"#,
                Asked::Other,
                "",
                r#"{"topic":"phoenix","event":"phx_reply","payload":{"status":"error","response":{"reason":"unmatched topic"}},"ref":"9"}"#,
                "the connection's own topic is no room",
            ),
            (
                r#"{"topic":"room:lobby","event":"phx_leave","payload":{},"ref":"4"}"#,
                Asked::Leave,
                "",
                r#"{"topic":"room:lobby","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"4"}"#,
                "a leave",
            ),
            (
                r#"{"topic":"room:lobby","event":"echo","payload":{"body":[1]},"ref":"5"}"#,
                Asked::Echo,
                "",
                r#"{"topic":"room:lobby","event":"phx_reply","payload":{"status":"ok","response":{"type":"echo","body":[1]}},"ref":"5"}"#,
                "an echo",
            ),
            (
                r#"{"topic":"room:lobby","event":"broadcast","payload":{"body":"hi"},"ref":"2"}"#,
                Asked::Broadcast,
                r#"{"topic":"room:lobby","event":"broadcast","payload":{"type":"broadcast","body":"hi"},"ref":null}"#,
                r#"{"topic":"room:lobby","event":"phx_reply","payload":{"status":"ok","response":{"type":"broadcastResult","body":"hi"}},"ref":"2"}"#,
                "a broadcast",
            ),
        ],
    );
}

#[test]
fn phoenix_sends_nothing_for_what_a_room_does_not_offer() {
    check(
        Phoenix,
        &[
            (
                r#"{"topic":"room:lobby","event":"heartbeat","payload":{},"ref":"9"}"#,
                Asked::Other,
                "",
                "",
                "a room has no heartbeat",
            ),
            (
                r#"{"topic":"room:lobby","event":"sing","payload":{}}"#,
                Asked::Other,
                "",
                "",
                "not offered",
            ),
            (r#"{"topic":"room:lobby"}"#, MALFORMED, "", "", "no event"),
        ],
    );
}
