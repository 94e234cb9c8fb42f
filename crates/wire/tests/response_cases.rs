//! Tables of responses: what a strict reader hears, whole, byte by byte and in any split.

mod common;

use common::{Asked, LIMITS, ONE, cut, responses, responses_remembering, splits};
use trueload_wire::http1::Limits;
use trueload_wire::http1::response::HeadMemory;

/// Every `heard` line has to be the beginning of the line that was heard, in every split.
fn check(sentence: &str, bytes: &[u8], asked: Asked, heard: &[&str]) {
    let whole = responses([bytes], asked);
    let as_told = whole
        .lines
        .iter()
        .zip(heard)
        .all(|(line, told)| line.starts_with(told));
    assert!(
        whole.lines.len() == heard.len() && as_told,
        "{sentence}: told {heard:?}, heard {:?}",
        whole.lines
    );
    let mut memory = HeadMemory::default();
    for places in splits(bytes) {
        let again = responses_remembering([bytes], asked, Some(&mut memory));
        assert_eq!(again.lines, whole.lines, "{sentence}: heard before");
        let split = responses(cut(bytes, &places), asked);
        assert_eq!(split.lines, whole.lines, "{sentence}: cut at {places:?}");
        assert!(
            split.held_bytes_max <= 24,
            "{sentence}: a response is never buffered"
        );
    }
}

fn check_table(table: &[(&str, &str, &[&str])]) {
    for (sentence, text, heard) in table {
        check(sentence, text.as_bytes(), ONE, heard);
    }
}

/// The rest of a legal response, after its status line.
fn with_fields(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nHello")
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
        ("another option is none", "1.1", "Connection: closed", "keep"),
        ("nor is a part of it", "1.1", "Connection: clos", "keep"),
        ("nor are two words", "1.1", "Connection: not close", "keep"),
        ("nor a word in two", "1.1", "Connection: clo se", "keep"),
        ("nor a long one", "1.1", "Connection: closeclosecloseclosecloseclose", "keep"),
        ("another header is none", "1.1", "X-Connection: close", "keep"),
        ("nor is a longer name", "1.1", "Connections: close", "keep"),
        ("1.0 ends", "1.0", "X: y", "close"),
        ("1.0 goes on when told", "1.0", "Connection: Keep-Alive", "keep"),
        ("1.0 with both ends", "1.0", "Connection: keep-alive, close", "close"),
        ("a Keep-Alive header says nothing", "1.0", "Keep-Alive: timeout=5", "close"),
    ];
    for (sentence, version, fields, link) in table {
        let text = format!("HTTP/{version} 200 OK\r\n{fields}\r\nContent-Length: 5\r\n\r\nHello");
        check(
            sentence,
            text.as_bytes(),
            ONE,
            &[&format!("200 {link} \"Hello\""), "done"],
        );
    }
}

#[test]
fn a_message_that_cannot_have_a_body_has_none() {
    let head = Asked {
        head_request: true,
        ..ONE
    };
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
    for (sentence, text, asked, heard) in table {
        check(sentence, text.as_bytes(), asked, heard);
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
        ("unasked 101", "HTTP/1.1 101 Switching Protocols\r\n\r\n", &["framing"]),
        ("101 after 100", "HTTP/1.1 100 \r\n\r\nHTTP/1.1 101 \r\n\r\n", &["framing"]),
        ("with a bare LF", "HTTP/1.1 100 Continue\n\n", &["framing"]),
        ("with an empty line after it", "HTTP/1.1 100 Continue\r\n\r\n\r\n", &["framing"]),
    ];
    for (sentence, before, heard) in table {
        check(sentence, format!("{before}{FINAL}").as_bytes(), ONE, heard);
    }
    check(
        "100 alone",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        ONE,
        &["truncated"],
    );
    let hundred = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
    check(
        "a hundred",
        format!("{hundred}{FINAL}").as_bytes(),
        ONE,
        &["200 keep", "done"],
    );
    let endless = format!("{hundred}HTTP/1.1 100 Continue\r\n\r\n{FINAL}");
    check("endless ones", endless.as_bytes(), ONE, &["limit"]);
}

#[test]
fn a_status_line_is_exact() {
    #[rustfmt::skip]
    let table = [
        ("a reason", "HTTP/1.1 200 OK", "200 keep"),
        ("no reason", "HTTP/1.1 200 ", "200 keep"),
        ("a reason of many words", "HTTP/1.1 404 Not\t here, \u{e9}", "404 keep"),
        ("the lowest", "HTTP/1.1 200 ", "200 keep"),
        ("the highest", "HTTP/1.1 599 ", "599 keep"),
        ("an unknown one", "HTTP/1.1 299 ", "299 keep"),
        ("more spaces are a reason", "HTTP/1.1 200  OK", "200 keep"),
        ("no space after the code", "HTTP/1.1 200", "framing"),
        ("a misspelt name", "HTP/1.1 200 OK", "framing"),
        ("a lower-case name", "http/1.1 200 OK", "framing"),
        ("HTTP/2.0", "HTTP/2.0 200 OK", "framing"),
        ("HTTP/2", "HTTP/2 200 OK", "framing"),
        ("HTTP/0.9", "HTTP/0.9 200 OK", "framing"),
        ("HTTP/1.2", "HTTP/1.2 200 OK", "framing"),
        ("HTTP/1.10", "HTTP/1.10 200 OK", "framing"),
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
        ("above 599", "HTTP/1.1 600 OK", "framing"),
        ("999", "HTTP/1.1 999 OK", "framing"),
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
    for (sentence, line, heard) in table {
        let text = format!("{line}\r\nContent-Length: 0\r\n\r\n");
        let heard = if heard == "framing" {
            &[heard][..]
        } else {
            &[heard, "done"][..]
        };
        check(sentence, text.as_bytes(), ONE, heard);
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
        check(sentence, bytes, ONE, &["framing"]);
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
        ("the longest name", "Xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: y", true),
        ("a bare LF", "X: y\nZ: w", false),
        ("a bare CR", "X: y\rZ: w", false),
        ("two CRs", "X: y\r", false),
        ("CR at the start of a line", "X: y\r\n\rZ: w", false),
        ("obs-fold with a space", "X: y\r\n z", false),
        ("obs-fold with a tab", "X: y\r\n\tz", false),
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
        let heard = if ok {
            &["200 keep \"Hello\"", "done"][..]
        } else {
            &["framing"][..]
        };
        check(sentence, text.as_bytes(), ONE, heard);
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
        ("two that differ", "Content-Length: 5\r\nContent-Length: 6", false),
        ("two that are the same", "Content-Length: 5\r\nContent-Length: 5", false),
        ("a list", "Content-Length: 5, 5", false),
        ("a list that differs", "Content-Length: 5, 6", false),
        ("a trailing comma", "Content-Length: 5,", false),
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
        ("with chunked first", "Transfer-Encoding: chunked\r\nContent-Length: 5", false),
        ("with an unknown coding", "Content-Length: 5\r\nTransfer-Encoding: identity", false),
        ("with an empty coding", "Content-Length: 5\r\nTransfer-Encoding:", false),
        ("in disguise: a space", "Content-Length : 5", false),
    ];
    for (sentence, fields, ok) in table {
        let heard = if ok {
            &["200 keep \"Hello\"", "done"][..]
        } else {
            &["framing"][..]
        };
        check(sentence, with_fields(fields).as_bytes(), ONE, heard);
    }
}

#[test]
fn the_only_coding_is_chunked() {
    #[rustfmt::skip]
    let table = [
        ("plain", "Transfer-Encoding: chunked", true),
        ("in another case", "transfer-ENCODING: CHUNKED", true),
        ("with space", "Transfer-Encoding:\tchunked ", true),
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
        let heard = if ok {
            &["200 keep \"Hello\"", "done"][..]
        } else {
            &["framing"][..]
        };
        check(sentence, text.as_bytes(), ONE, heard);
    }
    let old = b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check("HTTP/1.0 knows no coding", old, ONE, &["framing"]);
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
        ("a trailer that frames nothing", "0\r\nContent-Length: 9\r\n\r\n", "200 keep \"\""),
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
        ("an obs-fold in the trailers", "0\r\nA: b\r\n c\r\n\r\n", "framing"),
        ("a trailer without a colon", "0\r\nA\r\n\r\n", "framing"),
        ("a bare LF at the end", "0\r\n\n", "framing"),
        ("a bare CR at the end", "0\r\n\rX", "framing"),
        ("a chunk where the end is due", "0\r\n5\r\nHello\r\n0\r\n\r\n", "framing"),
        ("EOF before the last chunk", "5\r\nHello\r\n", "truncated after \"Hello\""),
        ("EOF in the size", "5\r\nHello\r\n0", "truncated after \"Hello\""),
        ("EOF before the empty line", "5\r\nHello\r\n0\r\n", "truncated after \"Hello\""),
        ("EOF in the data", "5\r\nHel", "truncated after \"Hel\""),
    ];
    for (sentence, body, heard) in table {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        let heard = if heard.starts_with("200") {
            &[heard, "done"][..]
        } else {
            &[heard][..]
        };
        check(sentence, text.as_bytes(), ONE, heard);
    }
}

#[test]
fn bytes_behind_the_last_chunk_are_unsolicited() {
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX";
    check(
        "one byte",
        text.as_bytes(),
        ONE,
        &["200 keep \"\"", "unsolicited"],
    );
}

#[test]
fn replies_to_pipelined_requests_come_one_by_one() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
                HTTP/1.1 100 Continue\r\n\r\n\
                HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n\
                HTTP/1.1 204 No Content\r\n\r\n\
                HTTP/1.0 500 Oops\r\n\r\nrest";
    let heard = &[
        "200 keep \"ab\"",
        "404 keep \"c\"",
        "204 keep \"\"",
        "500 close \"rest\"",
        "done",
    ];
    check(
        "four replies",
        text.as_bytes(),
        Asked {
            responses: 4,
            ..ONE
        },
        heard,
    );
    check(
        "two asked",
        text.as_bytes(),
        Asked {
            responses: 2,
            ..ONE
        },
        &["200 keep \"ab\"", "404 keep \"c\"", "unsolicited"],
    );
}

/// What is exactly as large as a cap is whole; one byte more is `limit`.
fn check_cap(sentence: &str, text: &str, cap: impl Fn(usize) -> Limits, at: usize) {
    let asked = |bytes| Asked {
        limits: cap(bytes),
        ..ONE
    };
    check(sentence, text.as_bytes(), asked(at), &["200 keep", "done"]);
    check(sentence, text.as_bytes(), asked(at - 1), &["limit"]);
}

#[test]
fn every_cap_is_exact() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let text = format!("{head}ab");
    check_cap(
        "head",
        &text,
        |head_bytes| Limits {
            head_bytes,
            ..LIMITS
        },
        head.len(),
    );
    let text = "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\nContent-Length: 2\r\n\r\nab";
    check_cap(
        "lines",
        text,
        |header_count| Limits {
            header_count,
            ..LIMITS
        },
        3,
    );
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = format!("{head}2;a=b\r\nab\r\n0\r\n\r\n");
    check_cap(
        "chunk line",
        &text,
        |bytes| Limits {
            chunk_line_bytes: bytes,
            ..LIMITS
        },
        7,
    );
    let text = format!("{head}0\r\nA: b\r\n\r\n");
    check_cap(
        "trailers",
        &text,
        |trailer_bytes| Limits {
            trailer_bytes,
            ..LIMITS
        },
        8,
    );
    let text = format!("{head}0\r\nA: b\r\nC: d\r\n\r\n");
    check_cap(
        "trailer lines",
        &text,
        |header_count| Limits {
            header_count,
            ..LIMITS
        },
        2,
    );
}

/// As [`check`], but in a few splits only, for megabytes.
fn check_large(sentence: &str, bytes: &[u8], heard: &str) {
    for size in [bytes.len(), 1, 7, 1000, 65536] {
        let split = responses(bytes.chunks(size), ONE);
        assert!(
            split.lines[0].starts_with(heard),
            "{sentence}: {:.60}",
            split.lines[0]
        );
        assert!(
            split.held_bytes_max <= 24,
            "{sentence}: memory stays bounded"
        );
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
        ("a chunk extension of 1 MB", format!("{chunked}5;{endless}\r\nHello"), "limit"),
        ("an endless chunk size", format!("{chunked}{}", "0".repeat(1 << 20)), "limit"),
        ("an endless trailer", format!("{chunked}0\r\nA: {endless}"), "limit"),
        ("endless trailers", format!("{chunked}0\r\n{fields}"), "limit"),
    ];
    for (sentence, text, heard) in table {
        check_large(sentence, text.as_bytes(), heard);
    }
    let big = &endless[..200 * 1024];
    let text = format!("HTTP/1.1 200 OK\r\nA: {big}\r\nContent-Length: 0\r\n\r\n");
    check_large("a big but legal head", text.as_bytes(), "200 keep");
    let many = "A: b\r\n".repeat(4000);
    let text = format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 0\r\n\r\n");
    check_large("many but legal lines", text.as_bytes(), "200 keep");
    let text = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{endless}",
        1 << 20
    );
    check_large("a big body", text.as_bytes(), "200 keep");
}
