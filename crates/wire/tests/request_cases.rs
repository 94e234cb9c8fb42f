//! Tables of requests: what the reference server receives, whole, byte by byte and in any split.

use trueload_wire::http1::ParseError;
use trueload_wire::http1::request::{FedRequest, Request, RequestParser};
use trueload_wire::message::Limits;

use crate::common::{LIMITS, SMALL, cut, requests, splits};

/// Every `expected` line has to be the beginning of the line that was received, in every split.
fn check_within(limits: &Limits, sentence: &str, bytes: &[u8], expected: &[&str]) {
    let whole = requests([bytes], limits);
    let as_expected = whole.lines.iter().zip(expected).all(|(line, start)| line.starts_with(start));
    assert!(
        whole.lines.len() == expected.len() && as_expected,
        "{sentence}: told {expected:?}, heard {:?}",
        whole.lines
    );
    for places in splits(bytes) {
        let split = requests(cut(bytes, &places), limits);
        assert_eq!(split.lines, whole.lines, "{sentence}: cut at {places:?}");
        // A vector grows to twice what it holds, from eight bytes.
        assert!(split.held_bytes_max <= 2 * limits.head_bytes.min(bytes.len()) + 8, "{sentence}");
    }
}

fn check(sentence: &str, text: &str, expected: &[&str]) {
    check_within(&LIMITS, sentence, text.as_bytes(), expected);
}

#[test]
fn a_request_line_is_exact() {
    #[rustfmt::skip]
    let table = [
        ("plain", "GET / HTTP/1.1", "GET / 1.1 keep 0"),
        ("HTTP/1.0", "GET / HTTP/1.0", "GET / 1.0 close 0"),
        ("a query", "GET /a?b=c%20d HTTP/1.1", "GET /a?b=c%20d 1.1 keep 0"),
        ("an asterisk", "OPTIONS * HTTP/1.1", "OPTIONS * 1.1 keep 0"),
        ("an absolute target", "GET http://h/ HTTP/1.1", "GET http://h/ 1.1 keep 0"),
        ("an authority", "CONNECT h:80 HTTP/1.1", "CONNECT h:80 1.1 keep 0"),
        ("an unknown method", "x-Y_z!7 / HTTP/1.1", "x-Y_z!7 / 1.1 keep 0"),
        ("a long method", "ABCDEFGHIJKLMNOPQRSTUVWXYZ / HTTP/1.1", "ABCDEFGHIJKLMNOPQRSTUVWXYZ /"),
        ("no method", " / HTTP/1.1", "framing"),
        ("a method with a colon", "GE:T / HTTP/1.1", "framing"),
        ("two spaces", "GET  / HTTP/1.1", "framing"),
        ("two spaces before the version", "GET /  HTTP/1.1", "framing"),
        ("a tab", "GET\t/ HTTP/1.1", "framing"),
        ("no target", "GET HTTP/1.1", "framing"),
        ("an empty target", "GET  HTTP/1.1", "framing"),
        ("a space in the target", "GET /a b HTTP/1.1", "framing"),
        ("NUL in the target", "GET /\0 HTTP/1.1", "framing"),
        ("DEL in the target", "GET /\u{7f} HTTP/1.1", "framing"),
        ("obs-text in the target", "GET /\u{e9} HTTP/1.1", "framing"),
        ("a CR in the target", "GET /\rx HTTP/1.1", "framing"),
        ("no version", "GET /", "framing"),
        ("a space behind", "GET / HTTP/1.1 ", "framing"),
        ("lower case", "GET / http/1.1", "framing"),
        ("HTTP/1.2", "GET / HTTP/1.2", "GET / 1.1 keep 0"),
        ("HTTP/1.9", "GET / HTTP/1.9", "GET / 1.1 keep 0"),
        ("HTTP/1.10", "GET / HTTP/1.10", "framing"),
        ("HTTP/1.x", "GET / HTTP/1.x", "framing"),
        ("HTTP/2.0", "PRI * HTTP/2.0", "framing"),
        ("HTTP/0.9", "GET / HTTP/0.9", "framing"),
        ("a bare LF", "GET / HTTP/1.1\n", "framing"),
        ("two CRs", "GET / HTTP/1.1\r", "framing"),
        ("TLS", "\u{16}\u{3}\u{1}", "framing"),
    ];
    for (sentence, line, expected) in table {
        let text = format!("{line}\r\nHost: h\r\n\r\n");
        let expected =
            if expected == "framing" { &[expected][..] } else { &[expected, "done"][..] };
        check(sentence, &text, expected);
    }
}

#[test]
fn one_empty_line_before_a_request_is_passed_over() {
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    check("one", &format!("\r\n{get}"), &["GET / 1.1 keep 0", "done"]);
    check("one between", &format!("{get}\r\n{get}"), &["GET /", "GET /", "done"]);
    check("two", &format!("\r\n\r\n{get}"), &["framing"]);
    check("no method behind it", &format!("\r\n{}", &get[3..]), &["framing"]);
    check("a bare LF", &format!("\n{get}"), &["framing"]);
    check("a bare CR", &format!("\r{get}"), &["framing"]);
}

#[test]
fn a_body_is_skipped() {
    #[rustfmt::skip]
    let table = [
        ("none", "X: y", "", &["POST /a 1.1 keep 0", "done"][..]),
        ("a length", "Content-Length: 5", "Hello", &["POST /a 1.1 keep 5", "done"]),
        ("a length of none", "Content-Length: 0", "", &["POST /a 1.1 keep 0", "done"]),
        ("chunks and trailers", "Transfer-Encoding: chunked", "2;x=y\r\nHe\r\n3\r\nllo\r\n0\r\nA: b\r\n\r\n", &["POST /a 1.1 keep 5", "done"]),
        ("cut short", "Content-Length: 6", "Hello", &["truncated"]),
        ("bytes beyond", "Content-Length: 4", "Hello", &["POST /a 1.1 keep 4", "truncated"]),
        ("both", "Content-Length: 5\r\nTransfer-Encoding: chunked", "", &["framing"]),
        ("two lengths", "Content-Length: 5\r\nContent-Length: 5", "Hello", &["framing"]),
        ("a list of lengths", "Content-Length: 5, 5", "Hello", &["framing"]),
        ("a folded length", "Content-Length:\r\n 5", "Hello", &["framing"]),
        ("a signed length", "Content-Length: +5", "Hello", &["framing"]),
        ("an unknown coding", "Transfer-Encoding: gzip", "", &["framing"]),
        ("not last", "Transfer-Encoding: chunked, gzip", "", &["framing"]),
        ("a bad chunk", "Transfer-Encoding: chunked", "5\r\nHello0\r\n", &["framing"]),
        ("a fold", "X: y\r\n z", "", &["framing"]),
        ("a blank fold", "X: y\r\n\t", "", &["framing"]),
        ("a fold in the trailers", "Transfer-Encoding: chunked", "0\r\nA: b\r\n c\r\n\r\n", &["framing"]),
        ("a length in the trailers", "Transfer-Encoding: chunked", "0\r\ncontent-length: 0\r\n\r\n", &["framing"]),
        ("a coding in the trailers", "Transfer-Encoding: chunked", "0\r\nTransfer-encoding: chunked\r\n\r\n", &["framing"]),
    ];
    for (sentence, fields, body, expected) in table {
        let text = format!("POST /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{body}");
        check(sentence, &text, expected);
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check("HTTP/1.0 knows no coding", old, &["framing"]);
}

#[test]
fn a_client_that_waits_before_its_body_is_told_of_once() {
    let expects = |fields: &str| format!("PUT / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n");
    #[rustfmt::skip]
    let table = [
        ("a body follows", expects("Expect: 100-continue\r\nContent-Length: 2") + "ab", &["continue?", "PUT / 1.1 keep 2", "done"][..]),
        ("chunks follow", expects("expect: 100-Continue\r\nTransfer-Encoding: chunked") + "1\r\na\r\n0\r\n\r\n", &["continue?", "PUT / 1.1 keep 1", "done"]),
        ("no body", expects("Expect: 100-continue"), &["PUT / 1.1 keep 0", "done"]),
        ("an empty body", expects("Expect: 100-continue\r\nContent-Length: 0"), &["PUT / 1.1 keep 0", "done"]),
        ("another expectation", expects("Expect: 200-ok\r\nContent-Length: 2") + "ab", &["PUT / 1.1 keep 2", "done"]),
        ("a name as long as Expect", expects("Expec_: 100-continue\r\nContent-Length: 2") + "ab", &["PUT / 1.1 keep 2", "done"]),
        ("HTTP/1.0", "PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab".into(), &["PUT / 1.0 close 2", "done"]),
        ("the body never comes", expects("Expect: 100-continue\r\nContent-Length: 2"), &["continue?", "truncated"]),
    ];
    for (sentence, text, expected) in table {
        check(sentence, &text, expected);
    }
}

#[test]
fn a_request_has_one_host() {
    let get = |version: &str, fields: &str| format!("GET / HTTP/{version}\r\n{fields}\r\n");
    #[rustfmt::skip]
    let table = [
        ("one", get("1.1", "hOST: h\r\n"), &["GET / 1.1 keep 0", "done"][..]),
        ("an empty one", get("1.1", "Host:\r\n"), &["GET / 1.1 keep 0", "done"]),
        ("none", get("1.1", ""), &["framing"]),
        ("none in 1.0", get("1.0", ""), &["GET / 1.0 close 0", "done"]),
        ("two", get("1.1", "Host: h\r\nHost: h\r\n"), &["framing"]),
        ("three", get("1.0", "Host: h\r\nHost: h\r\nHost: h\r\n"), &["framing"]),
    ];
    for (sentence, text, expected) in table {
        check(sentence, &text, expected);
    }
}

#[test]
fn the_connection_goes_on_by_the_rules_of_its_version() {
    #[rustfmt::skip]
    let table = [
        ("1.1", "X: y", "keep"),
        ("1.1", "Connection: close", "close"),
        ("1.1", "Connection: keep-alive, Close", "close"),
        ("1.0", "X: y", "close"),
        ("1.0", "Connection: Keep-Alive", "keep"),
        ("1.0", "Connection: keep-alive\r\nConnection: close", "close"),
    ];
    for (version, fields, link) in table {
        let text = format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n\r\n");
        check(fields, &text, &[&format!("GET / {version} {link} 0"), "done"]);
    }
}

#[test]
fn pipelined_requests_come_one_by_one() {
    let text = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n\
                POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nGET\
                POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n\
                HEAD /4 HTTP/1.1\r\nHost: h\r\n\r\nGE";
    check(
        "four and a half",
        text,
        &[
            "GET /1 1.1 keep 0",
            "POST /2 1.1 keep 3",
            "POST /3 1.1 keep 1",
            "HEAD /4 1.1 keep 0",
            "truncated",
        ],
    );
}

#[test]
fn every_cap_is_exact() {
    let text = "GET /abc HTTP/1.1\r\nHost: h\r\nA: b\r\nC: d\r\n\r\n";
    assert_eq!(text.len(), 42);
    let within = |head_bytes, header_count| Limits { head_bytes, header_count, ..SMALL };
    let ok = &["GET /abc 1.1 keep 0", "done"];
    check_within(&within(42, 3), "all at their caps", text.as_bytes(), ok);
    check_within(&within(41, 3), "the head", text.as_bytes(), &["limit"]);
    check_within(&within(42, 2), "the lines", text.as_bytes(), &["limit"]);
    let endless = format!("GET /{}", "a".repeat(1000));
    check_within(&SMALL, "an endless target", endless.as_bytes(), &["limit"]);
    check_within(&SMALL, "an endless method", &[b'A'; 1000], &["limit"]);
}

#[test]
fn a_whole_request_is_borrowed_and_a_split_one_is_not_kept() {
    let bytes = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut parser = RequestParser::default();
    let Ok((_, FedRequest::Complete(request))) = parser.feed(bytes, &LIMITS) else {
        panic!("a whole request is complete");
    };
    assert!(std::ptr::eq(request.target.as_ptr(), &raw const bytes[4]), "no copy is made");
    assert_eq!(parser.buffered_bytes(), 0);
    assert_eq!(parser.feed(&bytes[..9], &LIMITS), Ok((9, FedRequest::Partial)));
    assert!(parser.buffered_bytes() > 0);
    assert!(matches!(parser.feed(&bytes[9..], &LIMITS), Ok((_, FedRequest::Complete(_)))));
    assert!(matches!(parser.feed(bytes, &LIMITS), Ok((_, FedRequest::Complete(_)))));
    assert_eq!(parser.buffered_bytes(), 0, "the next request lets go of it");
}

#[test]
fn a_refusal_is_all_that_a_parser_holds() {
    for bytes in [&b"\0"[..], b"GET /a\0"] {
        let mut parser = RequestParser::default();
        assert!(!parser.started());
        let error = parser.feed(bytes, &LIMITS).err();
        assert!(error.is_some());
        assert!(parser.started(), "who is refused awaits no request");
        assert_eq!(parser.buffered_bytes(), size_of::<ParseError>());
    }
}

#[test]
fn a_path_is_what_stands_before_the_query() {
    #[rustfmt::skip]
    let table = [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a?b", "/a"),
        ("/?b", "/"),
        ("/a?b?c", "/a"),
        ("/a?u=http://h/b", "/a"),
        ("/http://h/b", "/http://h/b"),
        ("http://h", "/"),
        ("http://h/", "/"),
        ("http://h/a?b", "/a"),
        ("http://h?b", "/"),
        ("*", "*"),
        ("h:80", "h:80"),
    ];
    for (target, path) in table {
        let request =
            Request { method: "GET", target, keep_alive: true, http10: false, body_bytes: 0 };
        assert_eq!(request.path(), path, "{target}");
    }
}
