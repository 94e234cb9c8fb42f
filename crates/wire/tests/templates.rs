//! Requests with places to fill in: what is written is what was meant, and frames itself.

#![allow(missing_docs, clippy::expect_used)]

use proptest::prelude::*;
use trueload_wire::http1::Limits;
use trueload_wire::http1::request::{FedRequest, RequestParser};
use trueload_wire::http1::template::{Template, Texts};

fn written(template: &Template, counter: u64) -> String {
    let mut bytes = Vec::new();
    template.write(counter, |nth| 700 + u64::from(nth), &mut |part| bytes.extend(part.bytes()));
    assert!(bytes.len() <= template.len_most());
    String::from_utf8(bytes).expect("a text")
}

fn post<'a>(path: &'a str, headers: &'a [(String, String)], body: Option<&'a [u8]>) -> Texts<'a> {
    Texts { method: "POST", path, headers, body }
}

#[test]
fn places_are_filled_in_wherever_they_stand_and_the_length_is_that_of_the_body() {
    let headers = [("Host".to_owned(), "h{random}".to_owned())];
    let body = br#"{"id":{counter},"x":{"r":{random}}}"#;
    let template = Template::filled(&post("/a?{counter}&{random}", &headers, Some(body)));
    let head = "POST /a?9&700 HTTP/1.1\r\nHost: h701\r\nContent-Length: 22\r\n\r\n";
    assert_eq!(written(&template, 9), format!(r#"{head}{{"id":9,"x":{{"r":702}}}}"#));
    let longer = written(&template, 12_345);
    assert!(longer.contains("Content-Length: 26\r\n\r\n{\"id\":12345,"), "{longer}");
    assert_eq!(template.fixed(), None);
}

#[test]
fn two_braces_stand_for_one_where_there_is_a_place() {
    for (text, sent) in [
        ("/{counter}", "/5"),
        ("/{{counter}", "/{counter}"),
        ("/{{{counter}", "/{5"),
        ("/{{{{counter}", "/{{counter}"),
        ("/{{a}{counter}", "/{a}5"),
        ("/{a}{counter}}", "/{a}5}"),
        ("/{{a}", "/{{a}"),
        ("/{{a}?no=place&in={{all}}", "/{{a}?no=place&in={{all}}"),
        ("/{", "/{"),
        ("/{counter", "/{counter"),
        ("/{Counter}", "/{Counter}"),
        ("/{random}{counter}{random}", "/7005701"),
    ] {
        let template = Template::filled(&post(text, &[], None));
        assert_eq!(written(&template, 5), format!("POST {sent} HTTP/1.1\r\n\r\n"), "{text}");
    }
}

#[test]
fn a_request_that_is_always_the_same_is_one_piece() {
    let headers = [("A".to_owned(), "b".to_owned())];
    let template = Template::filled(&post("/", &headers, Some(b"{}")));
    let fixed: &[u8] = template.fixed().expect("one piece");
    assert_eq!(fixed, b"POST / HTTP/1.1\r\nA: b\r\nContent-Length: 2\r\n\r\n{}");
    let empty = Template::filled(&post("/{counter}", &[], Some(b"")));
    assert_eq!(written(&empty, 1), "POST /1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn what_is_not_to_be_filled_in_is_sent_as_it_stands() {
    let template = Template::plain(&post("/{counter}", &[], Some(b"{random}")));
    let fixed: &[u8] = template.fixed().expect("one piece");
    assert_eq!(fixed, b"POST /{counter} HTTP/1.1\r\n\r\n{random}");
}

proptest! {
    #[test]
    fn whatever_is_filled_in_a_server_reads_one_request_with_its_body(
        body in proptest::collection::vec(
            prop_oneof![
                Just("{counter}"), Just("{random}"), Just("{{"), Just("{"), Just("}"), Just("ab"),
                Just("{counter"), Just("\r\n"),
            ],
            0..12,
        ),
        counter: u64,
        random: u64,
    ) {
        let body = body.concat();
        let host = [("Host".to_owned(), "{counter}".to_owned())];
        let texts = post("/{random}/{counter}", &host, Some(body.as_bytes()));
        let template = Template::filled(&texts);
        let mut bytes = Vec::new();
        let drawn = |nth: u32| random.wrapping_mul(u64::from(nth) + 1);
        template.write(counter, drawn, &mut |part| bytes.extend(part.bytes()));
        let mut parser = RequestParser::new();
        let (taken, fed) = parser.feed(&bytes, &Limits::default()).expect("a legal request");
        prop_assert_eq!(taken, bytes.len());
        let FedRequest::Complete(request) = fed else { panic!("{fed:?}") };
        let target = format!("/{random}/{counter}");
        prop_assert_eq!(request.target, target);
    }
}
