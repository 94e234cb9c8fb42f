//! Tables of opening handshakes: what opens a connection, and what does not, and why.

use trueload_wire::message::Limits;
use trueload_wire::websocket::{client, server};

/// `b"the sample nonce"` is the one of RFC 6455 §1.3.
const NONCE: [u8; 16] = *b"the sample nonce";
const GOOD: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

fn opening(headers: &[(&str, &str)]) -> client::Opening {
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    client::Opening::new("/chat", &headers).expect("an opening")
}

/// What a client makes of an answer: `open`, followed by how many bytes are left, `more`, or why
/// not.
fn answered(opening: &client::Opening, answer: &str, split: usize) -> String {
    let mut awaited = opening.write(NONCE, &mut Vec::new());
    let mut taken = 0;
    for piece in answer.as_bytes().chunks(split) {
        match awaited.feed(opening, piece, &Limits::default()) {
            Ok(None) => taken += piece.len(),
            Ok(Some(more)) => return format!("open {}", answer.len() - taken - more),
            Err(error) => return error.to_string(),
        }
    }
    "more".into()
}

fn check(sentence: &str, opening: &client::Opening, answer: &str, expected: &str) {
    let whole = answered(opening, answer, usize::MAX);
    assert!(whole.starts_with(expected), "{sentence}: told {expected:?}, heard {whole:?}");
    if !whole.starts_with("open") {
        assert_eq!(answered(opening, answer, 1), whole, "{sentence}: byte by byte");
    }
}

#[test]
fn the_request_is_that_of_the_rfc() {
    let opening = opening(&[("Host", "server.example.com"), ("Origin", "http://example.com")]);
    let mut request = b"before".to_vec();
    let awaited = opening.write(NONCE, &mut request);
    let expected = "beforeGET /chat HTTP/1.1\r\nHost: server.example.com\r\n\
                    Origin: http://example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&request), expected);
    assert!(!awaited.started());
}

#[test]
fn headers_of_the_handshake_are_the_machines_own() {
    for name in ["upgrade", "Connection", "Sec-WebSocket-Key", "sec-websocket-extensions"] {
        let headers = [(name.to_owned(), "x".to_owned())];
        let error = client::Opening::new("/", &headers).expect_err(name);
        assert_eq!(error.to_string(), format!("{name} is set by the opening handshake itself"));
    }
}

#[test]
fn a_client_opens_on_a_right_101_and_on_nothing_else() {
    let status = "HTTP/1.1 101 Switching Protocols\r\n";
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    let upgrade = "Upgrade: websocket\r\n";
    let connection = "Connection: Upgrade\r\n";
    let plain = opening(&[("Host", "h")]);
    #[rustfmt::skip]
    let table = [
        ("right", format!("{status}{GOOD}\r\n"), "open 0"),
        ("a frame behind", format!("{status}{GOOD}\r\n\u{1}\u{2}ab"), "open 4"),
        ("other fields", format!("{status}Server: x\r\n{GOOD}Date: y\r\n\r\n"), "open 0"),
        ("other cases", format!("{status}UPGRADE: WebSocket\r\nconnection: upgrade\r\n{accept}\r\n"), "open 0"),
        ("one of a list", format!("{status}{upgrade}Connection: keep-alive, Upgrade\r\n{accept}\r\n"), "open 0"),
        ("folded fields", format!("{status}Upgrade:\r\n websocket\r\nConnection: keep-alive,\r\n\tUpgrade\r\nSec-WebSocket-Accept:\r\n  s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\t\r\n\r\n"), "open 0"),
        ("a field in a fold of another", format!("{status}{upgrade}{connection}X: y\r\n {accept}\r\n"), "the server's 101 has no Sec-WebSocket-Accept"),
        ("a second accept in a fold of another", format!("{status}{GOOD}X: y\r\n {accept}\r\n"), "open 0"),
        ("HTTP/1.2", format!("HTTP/1.2 101 x\r\n{GOOD}\r\n"), "open 0"),
        ("999", "HTTP/1.1 999 Request denied\r\n\r\n".into(), "the server answered 999 instead of 101"),
        ("two empty bodies", format!("{status}{GOOD}Content-Length: 0, 0\r\n\r\n"), "open 0"),
        ("no reason", format!("HTTP/1.1 101 \r\n{GOOD}\r\n"), "open 0"),
        ("an interim answer", format!("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n{status}{GOOD}\r\n"), "open 0"),
        ("no extension", format!("{status}{GOOD}Sec-WebSocket-Extensions:\r\n\r\n"), "open 0"),
        ("an empty body, as many servers say", format!("{status}{GOOD}Content-Length: 0\r\n\r\n"), "open 0"),
        ("an interim answer with a length", format!("HTTP/1.1 103 x\r\nContent-Length: 4\r\n\r\n{status}{GOOD}\r\n"), "open 0"),
        ("not whole", format!("{status}{GOOD}"), "more"),
        ("content", format!("{status}{GOOD}Content-Length: 4\r\n\r\nabcd"), "the server's 101 says that it has content"),
        ("chunks", format!("{status}{GOOD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "the server's 101 says that it has content"),
        ("chunks and a length", format!("{status}{GOOD}Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"), "the server's 101 says"),
        ("a length that is not a number", format!("{status}{GOOD}Content-Length: -1\r\n\r\n"), "framing: "),
        ("200", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into(), "the server answered 200 instead of 101"),
        ("403", "HTTP/1.1 403 Forbidden\r\n\r\n".into(), "the server answered 403 instead of 101"),
        ("a redirect", "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n".into(), "the server answered 302 instead of 101"),
        ("HTTP/1.0", format!("HTTP/1.0 101 x\r\n{GOOD}\r\n"), "the server's 101 is HTTP/1.0"),
        ("no Upgrade", format!("{status}{connection}{accept}\r\n"), "the server's 101 does not upgrade to websocket"),
        ("another Upgrade", format!("{status}Upgrade: h2c\r\n{connection}{accept}\r\n"), "the server's 101 does not upgrade"),
        ("two Upgrades", format!("{status}Upgrade: websocket, h2c\r\n{connection}{accept}\r\n"), "the server's 101 does not upgrade"),
        ("no Connection", format!("{status}{upgrade}{accept}\r\n"), "the server's 101 does not say Connection: Upgrade"),
        ("close", format!("{status}{upgrade}Connection: close\r\n{accept}\r\n"), "the server's 101 does not say Connection"),
        ("no accept", format!("{status}{upgrade}{connection}\r\n"), "the server's 101 has no Sec-WebSocket-Accept"),
        ("the accept of another", format!("{status}{upgrade}{connection}Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n"), "the server's 101 has a Sec-WebSocket-Accept that does not fit"),
        ("an accept in other case", format!("{status}{upgrade}{connection}{}\r\n", accept.to_uppercase()), "the server's 101 has a Sec-WebSocket-Accept that"),
        ("two accepts", format!("{status}{GOOD}{accept}\r\n"), "the server's 101 has a second Sec-WebSocket-Accept"),
        ("an extension", format!("{status}{GOOD}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"), "the server's 101 has an extension"),
        ("a subprotocol", format!("{status}{GOOD}Sec-WebSocket-Protocol: chat\r\n\r\n"), "the server's 101 has a subprotocol"),
        ("no HTTP", "SSH-2.0-x\r\n".into(), "framing: "),
        ("a control character", format!("{status}X: \u{1}\r\n"), "framing: "),
        ("a bare LF", format!("{status}X: a\n"), "framing: "),
        ("without end", format!("{status}X: {}", "a".repeat(256 * 1024)), "limit: the head is too long"),
        ("too many interim answers", "HTTP/1.1 102 x\r\n\r\n".repeat(101), "limit: too many 1xx responses"),
    ];
    for (sentence, answer, expected) in table {
        check(sentence, &plain, &answer, expected);
    }
}

#[test]
fn compression_is_offered_and_agreed_to_declined_or_refused_with_the_reason() {
    let opening = opening(&[("Host", "h")]).deflating(true);
    let mut request = Vec::new();
    let _ = opening.write(NONCE, &mut request);
    let offer = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: \
                 permessage-deflate; client_no_context_takeover; server_no_context_takeover\r\n\r\n";
    assert!(String::from_utf8_lossy(&request).ends_with(offer));
    let agrees = "permessage-deflate; server_no_context_takeover";
    for (extensions, expected) in [
        ("", Ok(false)),
        (agrees, Ok(true)),
        (&format!("{agrees}; client_max_window_bits=9"), Err("client_max_window_bits")),
        (&format!("{agrees}, {agrees}"), Err("a second extension")),
        (&format!("{agrees}\r\nSec-WebSocket-Extensions: mux"), Err("a second extension")),
        ("permessage-deflate", Err("leaves out server_no_context_takeover")),
        ("mux", Err("an extension that was not asked for")),
    ] {
        let status = "HTTP/1.1 101 x\r\n";
        let answer = format!("{status}{GOOD}Sec-WebSocket-Extensions: {extensions}\r\n\r\n");
        let mut awaited = opening.write(NONCE, &mut Vec::new());
        let fed = awaited.feed(&opening, answer.as_bytes(), &Limits::default());
        match expected {
            Ok(agreed) => assert_eq!((fed, awaited.deflates()), (Ok(Some(answer.len())), agreed)),
            Err(why) => assert!(fed.is_err_and(|error| error.to_string().contains(why)), "{why}"),
        }
    }
}

#[test]
fn an_answer_has_begun_with_its_first_byte_and_an_interim_one_counts() {
    let opening = opening(&[("Host", "h")]);
    for (come, started) in [
        ("", false),
        ("H", true),
        ("HTTP/1.1 101 x\r\n", true),
        ("HTTP/1.1 103 x\r\n\r\n", true),
        ("HTTP/1.1 103 x\r\n\r\nH", true),
    ] {
        let mut awaited = opening.write(NONCE, &mut Vec::new());
        assert_eq!(awaited.feed(&opening, come.as_bytes(), &Limits::default()), Ok(None));
        assert_eq!(awaited.started(), started, "{come:?}");
    }
}

#[test]
fn a_subprotocol_is_one_of_those_asked_for() {
    let opening = opening(&[("Sec-WebSocket-Protocol", "chat, superchat")]);
    let status = "HTTP/1.1 101 Switching Protocols\r\n";
    for (sentence, fields, expected) in [
        ("none", "", "open"),
        ("the second", "Sec-WebSocket-Protocol: superchat\r\n", "open"),
        ("another", "Sec-WebSocket-Protocol: x\r\n", "the server's 101 has a subprotocol that"),
        ("in other case", "Sec-WebSocket-Protocol: Chat\r\n", "the server's 101 has a subprotocol"),
        ("both", "Sec-WebSocket-Protocol: chat, superchat\r\n", "the server's 101 has a subpr"),
        (
            "both apart",
            "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: superchat\r\n",
            "the server's 101 has a second subprotocol",
        ),
    ] {
        check(sentence, &opening, &format!("{status}{GOOD}{fields}\r\n"), expected);
    }
}

/// What a server makes of a request: `101`, or the status and why.
fn asked(request: &str, split: usize) -> String {
    let mut opening = server::Opening::default();
    for piece in request.as_bytes().chunks(split) {
        match opening.feed(piece, &Limits::default()) {
            Ok(None) => {}
            Ok(Some(_)) => {
                return match opening.judge() {
                    Ok(_) => format!("101 {} {}", opening.method(), opening.target()),
                    Err(rejection) => format!("{} {rejection}", &rejection.status().0[..3]),
                };
            }
            Err(error) => return error.to_string(),
        }
    }
    "more".into()
}

#[test]
fn a_server_opens_on_what_the_rfc_asks_for_and_says_what_is_missing() {
    let host = "Host: h\r\n";
    let upgrade = "Upgrade: websocket\r\n";
    let connection = "Connection: Upgrade\r\n";
    let version = "Sec-WebSocket-Version: 13\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let all = format!("{host}{upgrade}{connection}{version}{key}");
    #[rustfmt::skip]
    let table = [
        ("right", format!("GET /ws HTTP/1.1\r\n{all}\r\n"), "101 GET /ws"),
        ("an empty line before", format!("\r\nGET /ws HTTP/1.1\r\n{all}\r\n"), "101 GET /ws"),
        ("Firefox's Connection", format!("GET / HTTP/1.1\r\n{host}{upgrade}Connection: keep-alive, Upgrade\r\n{version}{key}\r\n"), "101"),
        ("an extension offered", format!("GET / HTTP/1.1\r\n{all}Sec-WebSocket-Extensions: x; y=\"a,b\"\r\n\r\n"), "101"),
        ("an empty body", format!("GET / HTTP/1.1\r\n{all}Content-Length: 0\r\n\r\n"), "101"),
        ("not whole", format!("GET / HTTP/1.1\r\n{all}"), "more"),
        ("HTTP/1.2", format!("GET / HTTP/1.2\r\n{all}\r\n"), "101"),
        ("a fold", format!("GET / HTTP/1.1\r\n{all}X: y\r\n z\r\n\r\n"), "framing: "),
        ("a plain GET", format!("GET / HTTP/1.1\r\n{host}\r\n"), "426 here a client has to ask"),
        ("another upgrade", format!("GET / HTTP/1.1\r\n{host}Upgrade: h2c\r\n{connection}{version}{key}\r\n"), "426 here a client"),
        ("version 8", format!("GET / HTTP/1.1\r\n{host}{upgrade}{connection}Sec-WebSocket-Version: 8\r\n{key}\r\n"), "426 the Sec-WebSocket-Version"),
        ("no version", format!("GET / HTTP/1.1\r\n{host}{upgrade}{connection}{key}\r\n"), "400 not one Sec-WebSocket-Version"),
        ("POST", format!("POST / HTTP/1.1\r\n{all}\r\n"), "400 the method is not GET"),
        ("HTTP/1.0", format!("GET / HTTP/1.0\r\n{all}\r\n"), "400 the request is HTTP/1.0"),
        ("a body", format!("GET / HTTP/1.1\r\n{all}Content-Length: 1\r\n\r\nx"), "400 the request has a body"),
        ("chunks", format!("GET / HTTP/1.1\r\n{all}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "400 the request has a body"),
        ("no Host", format!("GET / HTTP/1.1\r\n{upgrade}{connection}{version}{key}\r\n"), "400 an HTTP/1.1 request without Host"),
        ("no Connection", format!("GET / HTTP/1.1\r\n{host}{upgrade}{version}{key}\r\n"), "400 no Connection: Upgrade"),
        ("no key", format!("GET / HTTP/1.1\r\n{host}{upgrade}{connection}{version}\r\n"), "400 not one Sec-WebSocket-Key"),
        ("two keys", format!("GET / HTTP/1.1\r\n{all}{key}\r\n"), "400 not one Sec-WebSocket-Key"),
        ("a short key", format!("GET / HTTP/1.1\r\n{host}{upgrade}{connection}{version}Sec-WebSocket-Key: AAAA\r\n\r\n"), "400 the Sec-WebSocket-Key is not"),
        ("no HTTP", "hello\r\n".into(), "framing: "),
        ("without end", format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(256 * 1024)), "limit: the head is too long"),
    ];
    for (sentence, request, expected) in table {
        let whole = asked(&request, usize::MAX);
        assert!(whole.starts_with(expected), "{sentence}: told {expected:?}, heard {whole:?}");
        assert_eq!(asked(&request, 1), whole, "{sentence}: byte by byte");
    }
}

#[test]
fn the_answer_is_that_of_the_rfc() {
    let mut opening = server::Opening::default();
    let request = "GET /chat?room=1 HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Protocol: chat, superchat\r\n\r\n";
    assert_eq!(opening.feed(request.as_bytes(), &Limits::default()), Ok(Some(request.len())));
    assert_eq!((opening.target(), opening.path()), ("/chat?room=1", "/chat"));
    assert_eq!(opening.protocols().collect::<Vec<_>>(), [&b"chat"[..], b"superchat"]);
    let mut answer = Vec::new();
    opening.judge().expect("a handshake").write(Some("chat"), &mut answer);
    let status = "HTTP/1.1 101 Switching Protocols\r\n";
    let expected = format!("{status}{GOOD}Sec-WebSocket-Protocol: chat\r\n\r\n");
    assert_eq!(String::from_utf8_lossy(&answer), expected);
}
