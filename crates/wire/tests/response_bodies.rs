//! Tables of response bodies and of the caps: what a strict reader receives, whole, byte by byte
//! and in any split.

use trueload_wire::http1::ParseError;
use trueload_wire::http1::response::ResponseParser;
use trueload_wire::message::Limits;

use crate::common::{Asked, LIMITS, ONE, check_response, responses};

fn check_table(table: &[(&str, &str, &[&str])]) {
    for (sentence, text, expected) in table {
        check_response(sentence, text.as_bytes(), ONE, expected);
    }
}

#[test]
fn a_body_ends_where_its_head_says() {
    #[rustfmt::skip]
    check_table(&[
        ("Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello", &["200 keep \"Hello\"", "done"]),
        ("Content-Length, then close", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nHello", &["200 close \"Hello\"", "done"]),
        ("a body ended by close", "HTTP/1.1 200 OK\r\n\r\nHello", &["200 close \"Hello\"", "done"]),
        ("an empty body ended by close", "HTTP/1.1 200 OK\r\n\r\n", &["200 close \"\"", "done"]),
        ("no body at all", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &["200 keep \"\"", "done"]),
        ("a short body", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello", &["truncated after \"Hello\""]),
        ("extra bytes after the body", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nHello", &["200 keep \"Hell\"", "unsolicited"]),
        ("a head cut off", "HTTP/1.1 200 OK\r\nContent-Le", &["truncated after \"\""]),
        ("nothing", "", &["done"]),
        ("the largest length", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nHello", &["truncated after \"Hello\""]),
        ("leading zeros are digits", "HTTP/1.1 200 OK\r\nContent-Length: 00000000000000000000005\r\n\r\nHello", &["200 keep \"Hello\"", "done"]),
    ]);
}

#[test]
fn chunks_are_exact() {
    #[rustfmt::skip]
    let table = [
        ("one chunk", "5\r\nHello\r\n0\r\n\r\n", "200 keep \"Hello\""),
        ("chunks of one byte", "1\r\nH\r\n1\r\ni\r\n0\r\n\r\n", "200 keep \"Hi\""),
        ("no content", "0\r\n\r\n", "200 keep \"\""),
        ("many zeros", "0000\r\n\r\n", "200 keep \"\""),
        ("both cases of a digit", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "200 keep \"0"),
        ("leading zeros", "00000000000000000000005\r\nHello\r\n0\r\n\r\n", "200 keep \"Hello\""),
        ("CRLF in the data", "2\r\n\r\n\r\n0\r\n\r\n", "200 keep \"\\r\\n\""),
        ("an extension", "5;a=b\r\nHello\r\n0;c\r\n\r\n", "200 keep \"Hello\""),
        ("several extensions", "5;a;b=c;d=\"e\"\r\nHello\r\n0\r\n\r\n", "200 keep \"Hello\""),
        ("a quoted extension", "5;a=\"\\\"; \\\\ =\t\"\r\nHello\r\n0\r\n\r\n", "200 keep \"Hello\""),
        ("trailers", "5\r\nHello\r\n0\r\nA: b\r\nC: d\r\n\r\n", "200 keep \"Hello\""),
        ("a trailer with a fold", "0\r\nA: b\r\n c\r\n\r\n", "200 keep \"\""),
        ("a fold that looks like a length", "0\r\nA: b\r\n Content-Length: 9\r\n\r\n", "200 keep \"\""),
        ("a trailer that is nearly a length", "0\r\nContent-Lengths: 9\r\nX-Content-Length: 9\r\n\r\n", "200 keep \"\""),
        ("a trailer that closes nothing", "0\r\nConnection: close\r\n\r\n", "200 keep \"\""),
        ("no hexadecimal", "ZZ\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a letter behind the size", "5g\r\nHello\r\n0\r\n\r\n", "framing"),
        ("0x", "0x5\r\nHello\r\n0\r\n\r\n", "framing"),
        ("empty", "\r\nHello\r\n0\r\n\r\n", "framing"),
        ("an extension alone", ";a=b\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a minus sign", "-5\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a plus sign", "+5\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a space before", " 5\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a space after", "5 \r\nHello\r\n0\r\n\r\n", "framing"),
        ("a tab after", "5\t\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a space within", "0 5\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a space before an extension", "5 ;a\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a space in an extension", "5; a\r\nHello\r\n0\r\n\r\n", "framing"),
        ("an extension without a name", "5;\r\nHello\r\n0\r\n\r\n", "framing"),
        ("an extension without a value", "5;a=\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a quote left open", "5;a=\"b\r\nHello\r\n0\r\n\r\n", "framing"),
        ("bytes after a quote", "5;a=\"b\"c\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a bare LF after an extension", "5;a\nHello\r\n0\r\n\r\n", "framing"),
        ("NUL in an extension", "5;a=\"\0\"\r\nHello\r\n0\r\n\r\n", "framing"),
        ("2^64", "10000000000000000\r\nHello", "framing"),
        ("2^64 and more", "ffffffffffffffffff\r\nHello", "framing"),
        ("2^64 - 1", "ffffffffffffffff\r\nHello", "truncated"),
        ("underscores", "1_0\r\nHello", "framing"),
        ("a bare LF after the size", "5\nHello\r\n0\r\n\r\n", "framing"),
        ("a bare CR after the size", "5\rHello\r\n0\r\n\r\n", "framing"),
        ("data longer than the size", "4\r\nHello\r\n0\r\n\r\n", "framing"),
        ("data shorter than the size", "6\r\nHello\r\n0\r\n\r\n", "framing"),
        ("a bare LF after the data", "5\r\nHello\n0\r\n\r\n", "framing"),
        ("no CRLF after the data", "5\r\nHello0\r\n\r\n", "framing"),
        ("a trailer named Content-Length", "0\r\nContent-Length: 0\r\n\r\n", "framing"),
        ("a trailer named content-length", "0\r\ncontent-length: 0\r\n\r\n", "framing"),
        ("a trailer named CONTENT-LENGTH behind others", "0\r\nA: b\r\nCONTENT-LENGTH:\r\n\r\n", "framing"),
        ("a trailer named Transfer-Encoding", "0\r\nTransfer-Encoding: chunked\r\n\r\n", "framing"),
        ("a trailer named tRANSFER-eNCODING behind a fold", "0\r\nA: b\r\n c\r\ntRANSFER-eNCODING: x\r\n\r\n", "framing"),
        ("a fold before the first trailer", "0\r\n A: b\r\n\r\n", "framing"),
        ("a blank line of whitespace for the end", "0\r\n \r\n\r\n", "framing"),
        ("a trailer without a colon", "0\r\nA\r\n\r\n", "framing"),
        ("a bare LF at the end", "0\r\n\n", "framing"),
        ("a bare CR at the end", "0\r\n\rX", "framing"),
        ("a chunk where the end is due", "0\r\n5\r\nHello\r\n0\r\n\r\n", "framing"),
        ("EOF before the last chunk", "5\r\nHello\r\n", "truncated after \"Hello\""),
        ("EOF in the size", "5\r\nHello\r\n0", "truncated after \"Hello\""),
        ("EOF before the empty line", "5\r\nHello\r\n0\r\n", "truncated after \"Hello\""),
        ("EOF in the data", "5\r\nHel", "truncated after \"Hel\""),
    ];
    for (sentence, body, expected) in table {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        let expected =
            if expected.starts_with("200") { &[expected, "done"][..] } else { &[expected][..] };
        check_response(sentence, text.as_bytes(), ONE, expected);
    }
}

#[test]
fn a_refusal_names_what_is_wrong_with_a_chunk() {
    #[rustfmt::skip]
    let table = [
        ("x", "framing: the chunk size is not hexadecimal"),
        (" 5", "framing: the chunk size is not hexadecimal"),
        ("\n", "framing: the chunk size is not hexadecimal"),
        ("5x", "framing: the chunk size is not hexadecimal"),
        ("5 ", "framing: whitespace in a chunk-size line"),
        ("5;a\t", "framing: whitespace in a chunk-size line"),
        ("5\n", "framing: an LF without CR"),
        ("5;a\n", "framing: an LF without CR"),
        ("5\rX", "framing: a CR without LF"),
        ("5;=", "framing: a malformed chunk extension"),
        ("5;a=;", "framing: a malformed chunk extension"),
        ("5;a\"", "framing: a malformed chunk extension"),
        ("5;a=\"\0", "framing: a control character in a line"),
        ("10000000000000000", "framing: the chunk size is 2^64 or more"),
        ("5\r\nHelloX", "framing: the chunk data is not followed by CRLF"),
        ("5\r\nHello\rX", "framing: the chunk data is not followed by CRLF"),
        ("0\r\nContent-Length:", "framing: Content-Length or Transfer-Encoding in the trailers"),
    ];
    for (body, why) in table {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        check_response(body, text.as_bytes(), ONE, &[why]);
    }
}

#[test]
fn bytes_behind_the_last_chunk_are_unsolicited() {
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX";
    check_response("one byte", text.as_bytes(), ONE, &["200 keep \"\"", "unsolicited"]);
}

#[test]
fn replies_to_pipelined_requests_come_one_by_one() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
                HTTP/1.1 100 Continue\r\n\r\n\
                HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n\
                HTTP/1.1 204 No Content\r\n\r\n\
                HTTP/1.0 500 Oops\r\n\r\nrest";
    let expected =
        &["200 keep \"ab\"", "404 keep \"c\"", "204 keep \"\"", "500 close \"rest\"", "done"];
    check_response("four replies", text.as_bytes(), Asked { responses: 4, ..ONE }, expected);
    check_response(
        "two asked",
        text.as_bytes(),
        Asked { responses: 2, ..ONE },
        &["200 keep \"ab\"", "404 keep \"c\"", "unsolicited"],
    );
}

/// What is exactly as large as a cap is whole; one byte more is `limit`.
fn check_cap(sentence: &str, text: &str, cap: impl Fn(usize) -> Limits, at: usize) {
    let asked = |bytes| Asked { limits: cap(bytes), ..ONE };
    check_response(sentence, text.as_bytes(), asked(at), &["200 keep", "done"]);
    check_response(sentence, text.as_bytes(), asked(at - 1), &["limit"]);
}

#[test]
fn every_cap_is_exact() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let text = format!("{head}ab");
    check_cap("head", &text, |head_bytes| Limits { head_bytes, ..LIMITS }, head.len());
    let text = "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\nContent-Length: 2\r\n\r\nab";
    check_cap("lines", text, |header_count| Limits { header_count, ..LIMITS }, 3);
    let text = "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nab";
    check_cap("a fold is a line", text, |header_count| Limits { header_count, ..LIMITS }, 3);
    let head = &text[..text.len() - 2];
    check_cap("a fold in the head", text, |head_bytes| Limits { head_bytes, ..LIMITS }, head.len());
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = format!("{head}2;a=b\r\nab\r\n0\r\n\r\n");
    check_cap("chunk line", &text, |bytes| Limits { chunk_line_bytes: bytes, ..LIMITS }, 7);
    let text = format!("{head}0\r\nA: b\r\n\r\n");
    check_cap("trailers", &text, |trailer_bytes| Limits { trailer_bytes, ..LIMITS }, 8);
    let text = format!("{head}0\r\nA: b\r\nC: d\r\n\r\n");
    check_cap("trailer lines", &text, |header_count| Limits { header_count, ..LIMITS }, 2);
    let text = format!("{head}0\r\nA: b\r\n \r\n\r\n");
    check_cap(
        "a fold is a trailer line",
        &text,
        |lines| Limits { header_count: lines, ..LIMITS },
        2,
    );
    check_cap(
        "a fold in the trailers",
        &text,
        |bytes| Limits { trailer_bytes: bytes, ..LIMITS },
        11,
    );
}

/// As [`check`], but in a few splits only, for megabytes.
fn check_large(sentence: &str, bytes: &[u8], expected: &str) {
    for size in [bytes.len(), 1, 7, 1000, 65536] {
        let split = responses(bytes.chunks(size), ONE);
        assert!(split.lines[0].starts_with(expected), "{sentence}: {:.60}", split.lines[0]);
        assert!(split.held_bytes_max <= 24, "{sentence}: memory stays bounded");
    }
}

#[test]
fn what_has_no_end_is_limited() {
    let endless = "a".repeat(1 << 20);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let fields = "A: b\r\n".repeat(1 << 17);
    #[rustfmt::skip]
    let table = [
        ("an endless reason", format!("HTTP/1.1 200 {endless}"), "limit"),
        ("an endless name", format!("HTTP/1.1 200 OK\r\n{endless}"), "limit"),
        ("an endless value", format!("HTTP/1.1 200 OK\r\nA: {endless}"), "limit"),
        ("an endless Connection", format!("HTTP/1.1 200 OK\r\nConnection: {endless}"), "limit"),
        ("an endless length", format!("HTTP/1.1 200 OK\r\nContent-Length: {}", "0".repeat(1 << 20)), "limit"),
        ("endless lines", format!("HTTP/1.1 200 OK\r\n{fields}"), "limit"),
        ("endless folds", format!("HTTP/1.1 200 OK\r\nA: b{}", "\r\n c".repeat(1 << 17)), "limit"),
        ("an endless list of lengths", format!("HTTP/1.1 200 OK\r\nContent-Length: 5{}", ",5".repeat(1 << 19)), "limit"),
        ("endless folds in the trailers", format!("{chunked}0\r\nA: b{}", "\r\n c".repeat(1 << 17)), "limit"),
        ("a chunk extension of 1 MB", format!("{chunked}5;{endless}\r\nHello"), "limit"),
        ("an endless chunk size", format!("{chunked}{}", "0".repeat(1 << 20)), "limit"),
        ("an endless trailer", format!("{chunked}0\r\nA: {endless}"), "limit"),
        ("endless trailers", format!("{chunked}0\r\n{fields}"), "limit"),
    ];
    for (sentence, text, expected) in table {
        check_large(sentence, text.as_bytes(), expected);
    }
    let big = &endless[..200 * 1024];
    let text = format!("HTTP/1.1 200 OK\r\nA: {big}\r\nContent-Length: 0\r\n\r\n");
    check_large("a big but legal head", text.as_bytes(), "200 keep");
    let many = "A: b\r\n".repeat(4000);
    let text = format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 0\r\n\r\n");
    check_large("many but legal lines", text.as_bytes(), "200 keep");
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{endless}", 1 << 20);
    check_large("a big body", text.as_bytes(), "200 keep");
}

#[test]
fn a_refusal_is_all_that_a_parser_holds_and_a_reset_forgets_it() {
    let mut parser = ResponseParser::default();
    assert_eq!((parser.started(), parser.buffered_bytes()), (false, 0));
    let error = parser.feed(b"\0", false, &LIMITS, &mut |_| {}).err();
    assert!(error.is_some());
    assert_eq!((parser.started(), parser.refused()), (true, error));
    assert_eq!(parser.buffered_bytes(), size_of::<ParseError>());
    parser.reset();
    assert_eq!((parser.started(), parser.refused(), parser.buffered_bytes()), (false, None, 0));
}
