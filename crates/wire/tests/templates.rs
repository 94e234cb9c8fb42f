//! Requests with places to fill in: what is written is what was meant, and frames itself.

use proptest::prelude::*;
use trueload_wire::http1::request::{FedRequest, RequestParser};
use trueload_wire::http1::template::Template;
use trueload_wire::message::{self, Filling, Limits, Texts};

/// A request of this number, whose random numbers are the second times 1, 2, …, or from 700 on.
struct Numbered(u64, Option<u64>, Vec<Vec<u8>>);

impl Filling for Numbered {
    fn counter(&self) -> u64 {
        self.0
    }

    fn random(&self, nth: u32) -> u64 {
        let nth = u64::from(nth);
        self.1.map_or(700 + nth, |times| times.wrapping_mul(nth + 1))
    }

    fn column(&self, index: usize) -> &[u8] {
        &self.2[index]
    }
}

fn bytes_of(template: &Template, filling: &Numbered) -> Vec<u8> {
    let mut bytes = Vec::new();
    template.write(filling, &mut |part| bytes.extend(part.bytes()));
    let longest = filling.2.iter().map(Vec::len).max().unwrap_or(0);
    assert!(bytes.len() <= template.len_most(longest));
    bytes
}

fn written(template: &Template, counter: u64) -> String {
    let bytes = bytes_of(template, &Numbered(counter, None, Vec::new()));
    String::from_utf8(bytes).expect("a text")
}

fn filled(texts: &Texts<'_>) -> Template {
    Template::of(&message::Template::new(texts, Some(&message::Names::default())))
}

fn post<'a>(path: &'a str, headers: &'a [(String, String)], body: Option<&'a [u8]>) -> Texts<'a> {
    Texts { method: "POST", path, headers, body }
}

#[test]
fn places_are_filled_in_wherever_they_stand_and_the_length_is_that_of_the_body() {
    let headers = [("Host".to_owned(), "h{random}".to_owned())];
    let body = br#"{"id":{counter},"x":{"r":{random}}}"#;
    let template = filled(&post("/a?{counter}&{random}", &headers, Some(body)));
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
        let template = filled(&post(text, &[], None));
        assert_eq!(written(&template, 5), format!("POST {sent} HTTP/1.1\r\n\r\n"), "{text}");
    }
}

#[test]
fn a_request_that_is_always_the_same_is_one_piece() {
    let headers = [("A".to_owned(), "b".to_owned())];
    let template = filled(&post("/", &headers, Some(b"{}")));
    let fixed: &[u8] = template.fixed().expect("one piece");
    assert_eq!(fixed, b"POST / HTTP/1.1\r\nA: b\r\nContent-Length: 2\r\n\r\n{}");
    let empty = filled(&post("/{counter}", &[], Some(b"")));
    assert_eq!(written(&empty, 1), "POST /1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn what_is_not_to_be_filled_in_is_sent_as_it_stands() {
    let template =
        Template::of(&message::Template::new(&post("/{counter}", &[], Some(b"{random}")), None));
    let fixed: &[u8] = template.fixed().expect("one piece");
    assert_eq!(fixed, b"POST /{counter} HTTP/1.1\r\n\r\n{random}");
}

fn with_values(path: &str, header: &str, body: &str, values: &[&str]) -> String {
    let columns = ["name", "b", "c"].map(str::to_owned).to_vec();
    let names = message::Names { columns, ..message::Names::default() };
    let headers = [("Host".to_owned(), header.to_owned())];
    let texts = post(path, &headers, Some(body.as_bytes()));
    let template = Template::of(&message::Template::new(&texts, Some(&names)));
    let values = values.iter().map(|value| value.as_bytes().to_vec()).collect();
    String::from_utf8(bytes_of(&template, &Numbered(5, None, values))).expect("a text")
}

#[test]
fn a_value_is_percent_encoded_in_a_path_and_as_it_is_elsewhere() {
    for (value, simple, reserved) in [
        ("anna", "anna", "anna"),
        ("a b", "a%20b", "a%20b"),
        ("a/b?c=d&e", "a%2Fb%3Fc%3Dd%26e", "a/b?c=d&e"),
        ("100%", "100%25", "100%25"),
        ("%41%4", "%2541%254", "%41%254"),
        ("#x", "%23x", "%23x"),
        ("ü", "%C3%BC", "%C3%BC"),
        ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"),
        ("", "", ""),
    ] {
        let sent = with_values("/{name}?q={+name}", "-", "{name}{+name}{{name}", &[value, "", ""]);
        let body = format!("{value}{value}{{name}}");
        let len = body.len();
        let head = format!("POST /{simple}?q={reserved} HTTP/1.1\r\nHost: -\r\n");
        assert_eq!(sent, format!("{head}Content-Length: {len}\r\n\r\n{body}"), "{value:?}");
    }
}

#[test]
fn a_name_without_a_column_is_text() {
    let sent = with_values("/{other}", "{name} {Name}", "{\"a\":{c}}", &["é", "", "3"]);
    let head = "POST /{other} HTTP/1.1\r\nHost: é {Name}\r\nContent-Length: 7\r\n\r\n";
    assert_eq!(sent, format!("{head}{{\"a\":3}}"));
}

proptest! {
    #[test]
    fn whatever_is_in_a_row_a_server_reads_one_request_with_its_body(
        values in proptest::collection::vec("[ -~äé%/#\\r\\n]{0,12}", 3),
    ) {
        let texts = ("/{name}/{+b}", "{counter}", "{c}{name}{random}");
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let sent = with_values(texts.0, texts.1, texts.2, &values);
        let mut parser = RequestParser::default();
        let (taken, fed) = parser.feed(sent.as_bytes(), &Limits::default()).expect("legal");
        prop_assert_eq!(taken, sent.len());
        let FedRequest::Complete(_) = fed else { panic!("{fed:?}") };
        let body = format!("\r\n\r\n{}{}700", values[2], values[0]);
        prop_assert!(sent.ends_with(&body));
    }
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
        let template = filled(&texts);
        let bytes = bytes_of(&template, &Numbered(counter, Some(random), Vec::new()));
        let mut parser = RequestParser::default();
        let (taken, fed) = parser.feed(&bytes, &Limits::default()).expect("a legal request");
        prop_assert_eq!(taken, bytes.len());
        let FedRequest::Complete(request) = fed else { panic!("{fed:?}") };
        let target = format!("/{random}/{counter}");
        prop_assert_eq!(request.target, target);
    }
}

/// The value of percent-encoded text.
fn decoded(text: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let [byte, behind @ ..] = rest {
        let hex = behind.get(..2).filter(|_| *byte == b'%').map(|hex| str::from_utf8(hex).unwrap());
        out.push(hex.map_or(*byte, |hex| u8::from_str_radix(hex, 16).unwrap()));
        rest = if hex.is_some() { &behind[2..] } else { behind };
    }
    out
}

proptest! {
    #[test]
    fn a_value_comes_back_from_wherever_it_was_written(
        bytes in proptest::collection::vec(any::<u8>(), 0..24),
        text in "[ -~]{0,8}\\PC{0,8}",
        is_text: bool,
    ) {
        let value = if is_text { text.into_bytes() } else { bytes };
        let names = message::Names { columns: vec!["v".to_owned()], ..message::Names::default() };
        let written = |body: &str, kind: &str| {
            let headers = [("Content-Type".to_owned(), kind.to_owned())];
            let texts = post("/a/{v}/b?c={v}&d={v|raw}", &headers, Some(body.as_bytes()));
            let template = message::Template::new(&texts, Some(&names));
            template.fill(&Numbered(0, None, vec![value.clone()]))
        };
        let form = written("a={v}&b={+v}", "application/x-www-form-urlencoded");
        prop_assert!(form.target.iter().all(u8::is_ascii_graphic), "{:?}", form.target);
        let between = |text: &[u8], from: &[u8], to: &[u8]| {
            let begin = text.windows(from.len()).position(|part| part == from).unwrap() + from.len();
            let len = text[begin..].windows(to.len()).position(|part| part == to).unwrap();
            text[begin..begin + len].to_vec()
        };
        prop_assert_eq!(&decoded(&between(&form.target, b"/a/", b"/b?c=")), &value);
        prop_assert_eq!(&decoded(&between(&form.target, b"/b?c=", b"&d=")), &value);
        prop_assert_eq!(&decoded(&between(&form.body, b"a=", b"&b=")), &value);
        let json = written(r#"{"in":"{v}","as":"{v|json}"}"#, "application/json").body;
        if let Ok(text) = str::from_utf8(&value) {
            let found: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
            prop_assert_eq!(found["in"].as_str(), Some(text));
        }
        let alone = written(r#"{"as":{v|json}}"#, "application/json").body;
        prop_assert!(str::from_utf8(&value).is_err() || message::is_json_value(&alone));
    }
}
