//! Tables of response heads: what a strict reader receives, whole, byte by byte and in any split.

use trueload_wire::http1::response::HeadMemory;

use crate::common::{Asked, ONE, SMALL, check_response, responses_remembering};

/// The rest of a legal response, after its status line.
fn with_fields(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nHello")
}

#[test]
fn the_connection_goes_on_by_the_rules_of_its_version() {
    #[rustfmt::skip]
    let table = [
        ("1.1 goes on", "1.1", "X: y", "keep"),
        ("1.1 ends when told", "1.1", "Connection: close", "close"),
        ("whatever the case", "1.1", "CONNECTION: CLOSE", "close"),
        ("in a list", "1.1", "Connection: x, close ,y", "close"),
        ("in a second line", "1.1", "Connection: x\r\nConnection: close", "close"),
        ("close wins", "1.1", "Connection: close, keep-alive", "close"),
        ("close wins later too", "1.1", "Connection: keep-alive\r\nConnection: close", "close"),
        ("empty elements are no options", "1.1", "Connection: ,, close,", "close"),
        ("without the space", "1.1", "Connection:close", "close"),
        ("with tabs", "1.1", "Connection:\tclose\t", "close"),
        ("folded", "1.1", "Connection:\r\n close", "close"),
        ("folded in a list", "1.1", "Connection: x,\r\n\tclose", "close"),
        ("folded behind", "1.1", "Connection: close\r\n ", "close"),
        ("in a fold of something else", "1.1", "X: y\r\n Connection: close", "keep"),
        ("a fold within the word", "1.1", "Connection: clo\r\n se", "keep"),
        ("a fold behind the word", "1.1", "Connection: close\r\n d", "keep"),
        ("1.2 goes on", "1.2", "X: y", "keep"),
        ("1.9 ends when told", "1.9", "Connection: close", "close"),
        ("another option is none", "1.1", "Connection: closed", "keep"),
        ("nor is a part of it", "1.1", "Connection: clos", "keep"),
        ("nor are two words", "1.1", "Connection: not close", "keep"),
        ("nor a word in two", "1.1", "Connection: clo se", "keep"),
        ("nor a long one", "1.1", "Connection: closeclosecloseclosecloseclose", "keep"),
        ("another header is none", "1.1", "X-Connection: close", "keep"),
        ("nor is a longer name", "1.1", "Connections: close", "keep"),
        ("1.0 ends", "1.0", "X: y", "close"),
        ("1.0 goes on when told", "1.0", "Connection: Keep-Alive", "keep"),
        ("1.0 ends with another option", "1.0", "Connection: x", "close"),
        ("1.0 with both ends", "1.0", "Connection: keep-alive, close", "close"),
        ("a Keep-Alive header says nothing", "1.0", "Keep-Alive: timeout=5", "close"),
    ];
    for (sentence, version, fields, link) in table {
        let text = format!("HTTP/{version} 200 OK\r\n{fields}\r\nContent-Length: 5\r\n\r\nHello");
        check_response(sentence, text.as_bytes(), ONE, &[&format!("200 {link} \"Hello\""), "done"]);
    }
}

#[test]
fn a_message_that_cannot_have_a_body_has_none() {
    let head = Asked { head_request: true, ..ONE };
    #[rustfmt::skip]
    let table = [
        ("HEAD with Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", head, &["200 keep \"\"", "done"][..]),
        ("HEAD with chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", head, &["200 keep \"\"", "done"]),
        ("HEAD with neither", "HTTP/1.1 200 OK\r\n\r\n", head, &["200 keep \"\"", "done"]),
        ("HEAD with a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello", head, &["200 keep \"\"", "unsolicited"]),
        ("304 with Content-Length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", ONE, &["304 keep \"\"", "done"]),
        ("204 with body bytes", "HTTP/1.1 204 No Content\r\n\r\nHello", ONE, &["204 keep \"\"", "unsolicited"]),
        ("204 with Content-Length and body bytes", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nHello", ONE, &["204 keep \"\"", "unsolicited"]),
        ("204 with chunks", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ONE, &["204 keep \"\"", "unsolicited"]),
        ("204 alone", "HTTP/1.1 204 No Content\r\n\r\n", ONE, &["204 keep \"\"", "done"]),
        ("HEAD with a malformed length", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", head, &["framing"]),
        ("304 with both", "HTTP/1.1 304 X\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", ONE, &["framing"]),
    ];
    for (sentence, text, asked, expected) in table {
        check_response(sentence, text.as_bytes(), asked, expected);
    }
}

#[test]
fn interim_responses_are_passed_over() {
    const FINAL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello";
    #[rustfmt::skip]
    let table = [
        ("100 Continue", "HTTP/1.1 100 Continue\r\n\r\n", &["200 keep \"Hello\"", "done"][..]),
        ("several, with fields of their own", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: close\r\n\r\nHTTP/1.1 199 \r\n\r\n", &["200 keep \"Hello\"", "done"]),
        ("one that claims a length", "HTTP/1.1 100 Continue\r\nContent-Length: 50\r\n\r\n", &["200 keep \"Hello\"", "done"]),
        ("with a malformed length", "HTTP/1.1 100 \r\nContent-Length: -1\r\n\r\n", &["framing"]),
        ("with a fold", "HTTP/1.1 103 Early Hints\r\nLink: </a>;\r\n rel=preload\r\n\r\n", &["200 keep \"Hello\"", "done"]),
        ("of HTTP/1.2", "HTTP/1.2 103 Early Hints\r\n\r\n", &["200 keep \"Hello\"", "done"]),
        ("unasked 101", "HTTP/1.1 101 Switching Protocols\r\n\r\n", &["framing"]),
        ("101 after 100", "HTTP/1.1 100 \r\n\r\nHTTP/1.1 101 \r\n\r\n", &["framing"]),
        ("with a bare LF", "HTTP/1.1 100 Continue\n\n", &["framing"]),
        ("with an empty line after it", "HTTP/1.1 100 Continue\r\n\r\n\r\n", &["framing"]),
    ];
    for (sentence, before, expected) in table {
        check_response(sentence, format!("{before}{FINAL}").as_bytes(), ONE, expected);
    }
    check_response("100 alone", b"HTTP/1.1 100 Continue\r\n\r\n", ONE, &["truncated"]);
    let hundred = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
    check_response("a hundred", format!("{hundred}{FINAL}").as_bytes(), ONE, &["200 keep", "done"]);
    let endless = format!("{hundred}HTTP/1.1 100 Continue\r\n\r\n{FINAL}");
    check_response("endless ones", endless.as_bytes(), ONE, &["limit"]);
}

#[test]
fn a_status_line_is_exact() {
    #[rustfmt::skip]
    let table = [
        ("a reason", "HTTP/1.1 200 OK", "200 keep"),
        ("no reason", "HTTP/1.1 200 ", "200 keep"),
        ("a reason that looks like a status line", "HTTP/1.1 200 HTTP/1.1 404 OK", "200 keep"),
        ("a beginning twice", "HTHTTP/1.1 200 OK", "framing"),
        ("a status line twice but for the reason", "HTTP/1.1 HTTP/1.1 200 OK", "framing"),
        ("a reason of many words", "HTTP/1.1 404 Not\t here, \u{e9}", "404 keep"),
        ("the lowest", "HTTP/1.1 200 ", "200 keep"),
        ("the highest that has a meaning", "HTTP/1.1 599 ", "599 keep"),
        ("the lowest without one", "HTTP/1.1 600 ", "600 keep"),
        ("the highest without one", "HTTP/1.1 999 Request denied", "999 keep"),
        ("an unknown one", "HTTP/1.1 299 ", "299 keep"),
        ("more spaces are a reason", "HTTP/1.1 200  OK", "200 keep"),
        ("no space after the code", "HTTP/1.1 200", "framing"),
        ("a misspelt name", "HTP/1.1 200 OK", "framing"),
        ("a lower-case name", "http/1.1 200 OK", "framing"),
        ("HTTP/2.0", "HTTP/2.0 200 OK", "framing"),
        ("HTTP/2", "HTTP/2 200 OK", "framing"),
        ("HTTP/0.9", "HTTP/0.9 200 OK", "framing"),
        ("HTTP/1.2", "HTTP/1.2 200 OK", "200 keep"),
        ("HTTP/1.9", "HTTP/1.9 404 ", "404 keep"),
        ("HTTP/1.10", "HTTP/1.10 200 OK", "framing"),
        ("HTTP/1.", "HTTP/1. 200 OK", "framing"),
        ("HTTP/1.:", "HTTP/1.: 200 OK", "framing"),
        ("HTTP/2.1", "HTTP/2.1 200 OK", "framing"),
        ("HTTP/01.1", "HTTP/01.1 200 OK", "framing"),
        ("HTTP/1", "HTTP/1 200 OK", "framing"),
        ("HTTP/1,1", "HTTP/1,1 200 OK", "framing"),
        ("no version", "200 OK", "framing"),
        ("another protocol", "ICY 200 OK", "framing"),
        ("a space before", " HTTP/1.1 200 OK", "framing"),
        ("two spaces", "HTTP/1.1  200 OK", "framing"),
        ("a tab", "HTTP/1.1\t200 OK", "framing"),
        ("a tab after the code", "HTTP/1.1 200\tOK", "framing"),
        ("two digits", "HTTP/1.1 99 OK", "framing"),
        ("four digits", "HTTP/1.1 1000 OK", "framing"),
        ("four digits that begin well", "HTTP/1.1 2000 OK", "framing"),
        ("below 100", "HTTP/1.1 099 OK", "framing"),
        ("000", "HTTP/1.1 000 OK", "framing"),
        ("four digits that begin with 9", "HTTP/1.1 9990 OK", "framing"),
        ("negative", "HTTP/1.1 -20 OK", "framing"),
        ("letters", "HTTP/1.1 2xx OK", "framing"),
        ("missing", "HTTP/1.1 OK", "framing"),
        ("only the version", "HTTP/1.1", "framing"),
        ("NUL in the reason", "HTTP/1.1 200 O\0K", "framing"),
        ("DEL in the reason", "HTTP/1.1 200 O\u{7f}K", "framing"),
        ("a CR in the reason", "HTTP/1.1 200 O\rK", "framing"),
        ("two CRs", "HTTP/1.1 200 OK\r", "framing"),
        ("an empty line before", "\r\nHTTP/1.1 200 OK", "framing"),
        ("a bare LF before", "\nHTTP/1.1 200 OK", "framing"),
        ("a request", "GET / HTTP/1.1", "framing"),
        ("HTTP/2 settings", "\0\0\0\u{4}\0\0\0\0\0", "framing"),
        ("a TLS alert", "\u{15}\u{3}\u{3}\0\u{2}\u{2}F", "framing"),
        ("HTML", "<html></html>", "framing"),
        ("a byte order mark", "\u{feff}HTTP/1.1 200 OK", "framing"),
    ];
    for (sentence, line, expected) in table {
        let text = format!("{line}\r\nContent-Length: 0\r\n\r\n");
        let expected =
            if expected == "framing" { &[expected][..] } else { &[expected, "done"][..] };
        check_response(sentence, text.as_bytes(), ONE, expected);
    }
}

#[test]
fn what_cannot_become_a_status_line_is_refused_without_an_end_of_line() {
    #[rustfmt::skip]
    let table = [
        ("garbage", &b"\x00\x01\x02"[..]),
        ("an endless word", &[b'a'; 300]),
        ("one wrong letter", b"HTTP/1.x"),
        ("a version too high", b"HTTP/2"),
        ("a letter in the code", b"HTTP/1.1 2O"),
        ("a fourth digit", b"HTTP/1.1 2000"),
        ("a bare LF", b"HTTP/1.1 200 OK\n"),
        ("a header line of garbage", b"HTTP/1.1 200 OK\r\n\x00"),
        ("a header name with a slash", b"HTTP/1.1 200 OK\r\nA/"),
        ("a bare CR", b"HTTP/1.1 200 OK\rX"),
    ];
    for (sentence, bytes) in table {
        check_response(sentence, bytes, ONE, &["framing"]);
    }
}

#[test]
fn header_lines_are_exact() {
    #[rustfmt::skip]
    let table = [
        ("plain", "X: y", true),
        ("no space", "X:y", true),
        ("much space", "X: \t y \t ", true),
        ("an empty value", "X:", true),
        ("a blank value", "X: \t ", true),
        ("all token characters", "!#$%&'*+-.^_`|~09AZaz: y", true),
        ("colons in the value", "X: a:b::c", true),
        ("obs-text in the value", "X: \u{e9}\u{2028}", true),
        ("a tab in the value", "X: a\tb", true),
        ("every printable character", "X: !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", true),
        ("a name that begins with Transfer-Encoding", "Transfer-Encodings: gzip", true),
        ("the same, two letters longer", "Transfer-Encodingsg: gzip", true),
        ("a name as long as Transfer-Encoding", "Transfer_Encoding: chunked", true),
        ("a name that begins with Content-Length", "Content-Lengths: 9", true),
        ("a name as long as Content-Length", "Content_Length: 9", true),
        ("the longest name", "Xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: y", true),
        ("a bare LF", "X: y\nZ: w", false),
        ("a bare CR", "X: y\rZ: w", false),
        ("two CRs", "X: y\r", false),
        ("CR at the start of a line", "X: y\r\n\rZ: w", false),
        ("obs-fold with a space", "X: y\r\n z", true),
        ("obs-fold with a tab", "X: y\r\n\tz", true),
        ("obs-fold with much whitespace", "X: y \t\r\n \t  z", true),
        ("several folds", "X: y\r\n z\r\n\tw\r\n v", true),
        ("a fold of an empty value", "X:\r\n y", true),
        ("a fold that is blank", "X: y\r\n ", true),
        ("blank folds of an empty value", "X:\r\n \r\n\t", true),
        ("a fold that looks like a field", "X: y\r\n Content-Length: 7", true),
        ("a fold that looks like a status line", "X: y\r\n HTTP/1.1 100 Continue", true),
        ("a fold in a name", "X\r\n : y", false),
        ("a fold behind a bare LF", "X: y\n z", false),
        ("a fold behind a bare CR", "X: y\r z", false),
        ("a fold that ends with a bare LF", "X: y\r\n z\n", false),
        ("NUL in a fold", "X: y\r\n \0", false),
        ("a vertical tab for a fold", "X: y\r\n\u{b}z", false),
        ("whitespace alone before the first line", " \r\nX: y", false),
        ("a tab before the first line", "\tX: y", false),
        ("whitespace before the first line", " X: y", false),
        ("a space before the colon", "X : y", false),
        ("a tab before the colon", "X\t: y", false),
        ("an empty name", ": y", false),
        ("no colon", "X", false),
        ("no colon but words", "X y z", false),
        ("a space in the name", "X y: z", false),
        ("a slash in the name", "X/y: z", false),
        ("a parenthesis in the name", "X(y): z", false),
        ("a quote in the name", "\"X\": z", false),
        ("obs-text in the name", "X\u{e9}: z", false),
        ("NUL in the name", "X\0: z", false),
        ("DEL in the name", "X\u{7f}: z", false),
        ("NUL in the value", "X: a\0b", false),
        ("DEL in the value", "X: a\u{7f}b", false),
        ("ESC in the value", "X: a\u{1b}[31mb", false),
        ("BEL far in a value", "X: abcdefghijklmnopqrstuvwxyz\u{7}", false),
        ("a vertical tab in the value", "X: a\u{b}b", false),
        ("a form feed in the value", "X: a\u{c}b", false),
        ("NUL in Connection", "Connection: a\0b", false),
        ("a bare LF in Connection", "Connection: close\nX: y", false),
        ("a second status line", "HTTP/1.1 200 OK", false),
    ];
    for (sentence, fields, ok) in table {
        let text = with_fields(&format!("{fields}\r\nContent-Length: 5"));
        let expected = if ok { &["200 keep \"Hello\"", "done"][..] } else { &["framing"][..] };
        check_response(sentence, text.as_bytes(), ONE, expected);
    }
}

#[test]
fn lengths_that_are_equal_are_one() {
    #[rustfmt::skip]
    let table = [
        ("two that differ", "Content-Length: 5\r\nContent-Length: 6", false),
        ("two that are the same", "Content-Length: 5\r\nContent-Length: 5", true),
        ("three that are the same", "Content-Length:5\r\nX: y\r\ncontent-length: 5\r\nContent-Length: 5 ", true),
        ("the third differs", "Content-Length: 5\r\nContent-Length: 5\r\nContent-Length: 4", false),
        ("the same number", "Content-Length: 5\r\nContent-Length: 005", true),
        ("a beginning of the other", "Content-Length: 5\r\nContent-Length: 55", false),
        ("an end of the other", "Content-Length: 5\r\nContent-Length: 15", false),
        ("none and some", "Content-Length: 0\r\nContent-Length: 5", false),
        ("the second is not a number", "Content-Length: 5\r\nContent-Length: x", false),
        ("the second is empty", "Content-Length: 5\r\nContent-Length:", false),
        ("a list", "Content-Length: 5, 5", true),
        ("a list without spaces", "Content-Length: 5,5,5", true),
        ("a list with spaces and tabs", "Content-Length: 5\t ,\t5 ", true),
        ("a list of the same number", "Content-Length: 05, 5", true),
        ("a list, and the same again", "Content-Length: 5, 5\r\nContent-Length: 5", true),
        ("a list, and another", "Content-Length: 5, 5\r\nContent-Length: 6", false),
        ("a list that differs", "Content-Length: 5, 6", false),
        ("a list that differs late", "Content-Length: 5, 5, 6", false),
        ("a list whose second is too large", "Content-Length: 5, 18446744073709551621", false),
        ("a list with a sign", "Content-Length: 5, +5", false),
        ("a trailing comma", "Content-Length: 5,", false),
        ("a trailing comma and space", "Content-Length: 5, ", false),
        ("a leading comma", "Content-Length: ,5", false),
        ("two commas", "Content-Length: 5,,5", false),
        ("a comma", "Content-Length: ,", false),
        ("semicolons", "Content-Length: 5; 5", false),
        ("folded before it", "Content-Length:\r\n 5", true),
        ("folded behind it", "Content-Length: 5\r\n\t", true),
        ("a list with a fold", "Content-Length: 5,\r\n 5", true),
        ("a list with a fold before the comma", "Content-Length: 5\r\n , 5", true),
        ("a fold within it", "Content-Length: 0\r\n 5", false),
        ("a fold for a comma", "Content-Length: 5\r\n 5", false),
        ("a fold that differs", "Content-Length: 5\r\n ,6", false),
        ("a blank fold of nothing", "Content-Length:\r\n ", false),
    ];
    for (sentence, fields, ok) in table {
        let expected = if ok { &["200 keep \"Hello\"", "done"][..] } else { &["framing"][..] };
        check_response(sentence, with_fields(fields).as_bytes(), ONE, expected);
    }
}

#[test]
fn a_length_is_one_decimal_number() {
    #[rustfmt::skip]
    let table = [
        ("plain", "Content-Length: 5", true),
        ("without the space", "Content-Length:5", true),
        ("with more space", "Content-Length: \t 5 \t", true),
        ("in another case", "cONTENT-lENGTH: 5", true),
        ("leading zeros", "Content-Length: 0005", true),
        ("a minus sign", "Content-Length: -5", false),
        ("minus zero", "Content-Length: -0", false),
        ("a plus sign", "Content-Length: +5", false),
        ("hexadecimal", "Content-Length: 0x5", false),
        ("hexadecimal digits", "Content-Length: a", false),
        ("an exponent", "Content-Length: 5e0", false),
        ("a fraction", "Content-Length: 5.0", false),
        ("an underscore", "Content-Length: 0_5", false),
        ("two words", "Content-Length: 5 5", false),
        ("two signs", "Content-Length: --5", false),
        ("a quoted one", "Content-Length: \"5\"", false),
        ("empty", "Content-Length:", false),
        ("blank", "Content-Length:  \t", false),
        ("blank, then one", "Content-Length:\r\nContent-Length: 5", false),
        ("2^64", "Content-Length: 18446744073709551616", false),
        ("2^64 + 5", "Content-Length: 18446744073709551621", false),
        ("far above", "Content-Length: 99999999999999999999999999999", false),
        ("a vertical tab", "Content-Length: \u{b}5", false),
        ("NUL after it", "Content-Length: 5\0", false),
        ("a no-break space", "Content-Length: 5\u{a0}", false),
        ("full-width digits", "Content-Length: \u{ff15}", false),
        ("with chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked", false),
        ("a list with chunked", "Content-Length: 5, 5\r\nTransfer-Encoding: chunked", false),
        ("with chunked first", "Transfer-Encoding: chunked\r\nContent-Length: 5", false),
        ("with an unknown coding", "Content-Length: 5\r\nTransfer-Encoding: identity", false),
        ("with an empty coding", "Content-Length: 5\r\nTransfer-Encoding:", false),
        ("in disguise: a space", "Content-Length : 5", false),
    ];
    for (sentence, fields, ok) in table {
        let expected = if ok { &["200 keep \"Hello\"", "done"][..] } else { &["framing"][..] };
        check_response(sentence, with_fields(fields).as_bytes(), ONE, expected);
    }
}

#[test]
fn the_only_coding_is_chunked() {
    #[rustfmt::skip]
    let table = [
        ("plain", "Transfer-Encoding: chunked", true),
        ("in another case", "transfer-ENCODING: CHUNKED", true),
        ("with space", "Transfer-Encoding:\tchunked ", true),
        ("folded", "Transfer-Encoding:\r\n chunked", true),
        ("folded behind it", "Transfer-Encoding: chunked\r\n\t", true),
        ("another behind a fold", "Transfer-Encoding: chunked\r\n , gzip", false),
        ("a fold within it", "Transfer-Encoding: chun\r\n ked", false),
        ("unknown", "Transfer-Encoding: gzip", false),
        ("identity", "Transfer-Encoding: identity", false),
        ("not last", "Transfer-Encoding: chunked, gzip", false),
        ("last of two, the first never asked for", "Transfer-Encoding: gzip, chunked", false),
        ("twice in a line", "Transfer-Encoding: chunked, chunked", false),
        ("twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", false),
        ("over two lines", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", false),
        ("empty", "Transfer-Encoding:", false),
        ("an empty element before", "Transfer-Encoding: , chunked", false),
        ("an empty element after", "Transfer-Encoding: chunked,", false),
        ("with a parameter", "Transfer-Encoding: chunked;q=1", false),
        ("quoted", "Transfer-Encoding: \"chunked\"", false),
        ("a longer word", "Transfer-Encoding: chunkedx", false),
        ("a much longer word", "Transfer-Encoding: chunkedchunkedchunkedchunked", false),
        ("in two words", "Transfer-Encoding: chun ked", false),
        ("a shorter word", "Transfer-Encoding: chunke", false),
        ("with a vertical tab", "Transfer-Encoding: \u{b}chunked", false),
    ];
    for (sentence, fields, ok) in table {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n5\r\nHello\r\n0\r\n\r\n");
        let expected = if ok { &["200 keep \"Hello\"", "done"][..] } else { &["framing"][..] };
        check_response(sentence, text.as_bytes(), ONE, expected);
    }
    let old = b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check_response("HTTP/1.0 knows no coding", old, ONE, &["framing"]);
    let new = b"HTTP/1.2 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check_response("HTTP/1.2 knows it", new, ONE, &["200 keep", "done"]);
}

#[test]
fn a_remembered_head_is_read_only_where_a_head_begins_and_under_the_same_caps() {
    let legal = "HTTP/1.1 200 OK\r\nA: bbbbbbbbbbbbbbbbbbbb\r\nContent-Length: 5\r\n\r\nHello";
    let (status_line, rest) = legal.split_at(17);
    let [legal, status_line, rest] = [legal, status_line, rest].map(str::as_bytes);
    let small = Asked { limits: SMALL, ..ONE };
    for (sentence, pieces, asked, expected) in [
        ("the same", vec![legal], ONE, "200 keep \"Hello\""),
        ("the same in pieces", vec![status_line, rest], ONE, "200 keep \"Hello\""),
        ("after a beginning", vec![b"HT", legal], ONE, "framing"),
        ("after a status line", vec![status_line, legal], ONE, "framing"),
        ("after another head", vec![b"HTTP/1.1 100 \r\n\r\n", legal], ONE, "200 keep \"Hello\""),
        ("under lower caps", vec![legal], small, "limit"),
    ] {
        let mut memory = HeadMemory::default();
        responses_remembering([legal], ONE, Some(&mut memory));
        let lines = responses_remembering(pieces, asked, Some(&mut memory)).lines;
        assert!(lines[0].starts_with(expected), "{sentence}: {lines:?}");
    }
}

/// Two heads that differ only behind a fold of Connection, where the second one says `close`.
#[test]
fn what_stands_in_a_fold_is_parsed_each_time() {
    let text = |fold: &str| {
        let fields = format!("Connection: x\r\n\ta:{fold}\r\nContent-Length: 5\r\n");
        format!("HTTP/1.1 200 OK\r\n{fields}\r\nHello").into_bytes()
    };
    let mut memory = HeadMemory::default();
    let folds = [("abcdef", "keep"), ("ghijkl", "keep"), ("mnopqr", "keep"), (",close", "close")];
    for (fold, link) in folds {
        let lines = responses_remembering([&text(fold)[..]], ONE, Some(&mut memory)).lines;
        assert_eq!(lines, [format!("200 {link} \"Hello\""), "done".into()], "{fold}");
    }
}

#[test]
fn a_head_that_came_in_pieces_is_remembered_from_its_beginning_or_not_at_all() {
    let legal = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello";
    for cut in 1..legal.len() - 5 {
        let (beginning, rest) = legal.split_at(cut);
        let mut memory = HeadMemory::default();
        responses_remembering([beginning, rest], ONE, Some(&mut memory));
        let without = responses_remembering([&b"HTTP"[..], rest], ONE, None).lines;
        let with = responses_remembering([&b"HTTP"[..], rest], ONE, Some(&mut memory)).lines;
        assert_eq!(with, without, "cut at {cut}");
    }
}

#[test]
fn a_refusal_names_what_is_wrong_with_a_head() {
    #[rustfmt::skip]
    let table = [
        ("HTTP/2", "framing: the status line does not begin with HTTP/1., a digit and a space"),
        ("HTTP/1.1 20x", "framing: the status code is not a number from 100 to 999"),
        ("HTTP/1.1 2000", "framing: no space after the three digits of the status code"),
        ("HTTP/1.1 200 O\0", "framing: a control character in a line"),
        ("HTTP/1.1 200 O\n", "framing: an LF without CR"),
        ("HTTP/1.1 200 O\rX", "framing: a CR without LF"),
        ("HTTP/1.1 200 OK\r\n X", "framing: the first header line begins with whitespace"),
        ("HTTP/1.1 200 OK\r\n\tX", "framing: the first header line begins with whitespace"),
        ("HTTP/1.1 200 OK\r\n: y", "framing: a header name is empty"),
        ("HTTP/1.1 200 OK\r\n\n", "framing: an LF without CR"),
        ("HTTP/1.1 200 OK\r\n\0", "framing: an invalid character in a header name"),
        ("HTTP/1.1 200 OK\r\nX : y", "framing: whitespace before the colon of a header line"),
        ("HTTP/1.1 200 OK\r\nX\r", "framing: a header line without a colon"),
        ("HTTP/1.1 200 OK\r\nX\n", "framing: an LF without CR"),
        ("HTTP/1.1 200 OK\r\nX/", "framing: an invalid character in a header name"),
        ("HTTP/1.1 200 OK\r\nX: y\n", "framing: an LF without CR"),
        ("HTTP/1.1 200 OK\r\nX: y\0", "framing: a control character in a line"),
        ("HTTP/1.1 200 OK\r\nConnection: y\n", "framing: an LF without CR"),
        ("HTTP/1.1 200 OK\r\nConnection: y\0", "framing: a control character in a line"),
    ];
    for (text, why) in table {
        check_response(text, text.as_bytes(), ONE, &[&format!("{why} after \"\"")]);
    }
}
