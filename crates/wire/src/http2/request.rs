//! A template for requests over HTTP/2, with placeholders that are filled at each sending:
//! `{counter}`, `{random}`, and columns of data.
//!
//! How it works: the header block is encoded once, without a dynamic table, so that its bytes are
//! valid on every connection. Only texts with placeholders are encoded each time, as plain strings.
//! The texts are those of an HTTP/1 request: fields about the connection are left out, and `Host`
//! becomes `:authority` (RFC 9113 §8.2.2, §8.3.1).
//!
//! Must not know: streams, and who counts.

use std::ops::Range;
use std::sync::Arc;

use super::hpack::Indexing;
use super::hpack::literal::{begin, field, plain_string};
pub use crate::message::Filling;
use crate::message::places::{self, DIGITS_MOST, Piece, decimal, fill};
use crate::message::{self, Head, Request};

/// A request that can be written repeatedly.
#[derive(Clone, Debug)]
pub struct Template {
    block: Box<[Item]>,
    body: Box<[Piece]>,
    /// The bytes of names and values without placeholders.
    plain_bytes: u64,
    /// The number of random placeholders in the block.
    drawn: u32,
}

/// An item of a header block.
#[derive(Clone, Debug)]
enum Item {
    Fixed(Arc<[u8]>),
    /// A value with placeholders.
    Text(Box<[Piece]>),
    /// The length of the body.
    Length,
}

impl Request {
    /// It in HTTP/2's form.
    pub fn over_http2(&self, secure: bool) -> Template {
        Template::of(if secure { "https" } else { "http" }, &self.into())
    }
}

impl Template {
    /// The form of a request over HTTP/2.
    pub fn of(scheme: &str, request: &message::Template) -> Self {
        let mut block = Block::default();
        block.plain_field(b":method", &request.method, false);
        block.plain_field(b":scheme", scheme.as_bytes(), false);
        // First, as over HTTP/1: random numbers are counted in the order of the texts.
        block.field(b":path", &request.target);
        let host = request.header(b"host");
        host.into_iter().for_each(|host| block.field(b":authority", host));
        for (name, value) in &request.headers {
            let name = name.to_ascii_lowercase();
            if !is_left_out(&name, value) {
                block.field(&name, value);
            }
        }
        if request.adds_length {
            block.length(request.fixed_len());
        }
        block.cut();
        let Block { done, plain_bytes, drawn, .. } = block;
        Template { block: done.into(), body: request.body.clone(), plain_bytes, drawn }
    }

    /// Appends the header block.
    #[inline]
    pub fn write_block(&self, filling: &impl Filling, out: &mut Vec<u8>) -> Head {
        let (mut drawn, mut plain_bytes) = (0, self.plain_bytes);
        let mut filled = Vec::new();
        for item in &self.block {
            match item {
                Item::Fixed(bytes) => out.extend_from_slice(bytes),
                Item::Text(text) => {
                    filled.clear();
                    fill(text, filling, &mut drawn, &mut filled);
                    plain_bytes += filled.len() as u64;
                    plain_string(out, &filled);
                }
                Item::Length => {
                    let mut digits = [0; DIGITS_MOST];
                    let digits = decimal(self.body_len(filling), &mut digits);
                    plain_bytes += digits.len() as u64;
                    plain_string(out, digits);
                }
            }
        }
        let body_bytes = match &*self.body {
            [] => 0,
            _ => self.body_len(filling),
        };
        Head { plain_bytes, body_bytes }
    }

    /// Appends a part of the body, given as a range of bytes.
    pub fn write_body(&self, filling: &impl Filling, part: Range<u64>, out: &mut Vec<u8>) {
        let part = part.start as usize..part.end as usize;
        if let Some(bytes) = self.fixed_body() {
            return out.extend_from_slice(bytes.get(part).unwrap_or_default());
        }
        let mut filled = Vec::new();
        fill(&self.body, filling, &mut { self.drawn }, &mut filled);
        out.extend_from_slice(filled.get(part).unwrap_or_default());
    }

    /// The body, if it is always the same.
    pub(crate) fn fixed_body(&self) -> Option<&[u8]> {
        match &*self.body {
            [] => Some(&[]),
            [Piece::Fixed(bytes)] => Some(bytes),
            _ => None,
        }
    }

    fn body_len(&self, filling: &impl Filling) -> u64 {
        places::len(&self.body, filling, self.drawn)
    }

    /// Whether it has a placeholder of a column.
    pub fn has_column(&self) -> bool {
        let texts = self.block.iter().map(|item| match item {
            Item::Text(text) => &**text,
            Item::Fixed(_) | Item::Length => &[],
        });
        texts.chain([&*self.body]).any(places::has_column)
    }
}

/// A header block under construction.
#[derive(Default)]
struct Block {
    done: Vec<Item>,
    pending: Vec<u8>,
    plain_bytes: u64,
    drawn: u32,
}

impl Block {
    /// Adds a field without placeholders.
    fn plain_field(&mut self, name: &[u8], value: &[u8], secret: bool) {
        self.plain_bytes += (name.len() + value.len()) as u64;
        field(&mut self.pending, name, value, secret);
    }

    /// Adds the name of a field whose value is written each time.
    fn begin(&mut self, name: &[u8], indexing: Indexing) {
        self.plain_bytes += name.len() as u64;
        begin(&mut self.pending, name, indexing);
    }

    fn field(&mut self, name: &[u8], value: &[Piece]) {
        let secret = is_secret(name);
        match value {
            [] => self.plain_field(name, b"", secret),
            [Piece::Fixed(value)] => self.plain_field(name, value, secret),
            _ => {
                self.begin(name, indexing(secret));
                self.cut();
                self.drawn += places::randoms(value);
                self.done.push(Item::Text(value.into()));
            }
        }
    }

    /// Adds the length of the body; none if that has placeholders.
    fn length(&mut self, fixed: Option<usize>) {
        if let Some(len) = fixed {
            return self.plain_field(b"content-length", len.to_string().as_bytes(), false);
        }
        self.begin(b"content-length", Indexing::Without);
        self.cut();
        self.done.push(Item::Length);
    }

    fn cut(&mut self) {
        if !self.pending.is_empty() {
            self.done.push(Item::Fixed(std::mem::take(&mut self.pending).into()));
        }
    }
}

/// Appends a field that only some requests have; returns the bytes of its name and value.
pub(crate) fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> u64 {
    begin(out, name, indexing(is_secret(name)));
    plain_string(out, value);
    (name.len() + value.len()) as u64
}

/// Whether no intermediary may keep the value of this field.
fn is_secret(name: &[u8]) -> bool {
    matches!(name, b"authorization" | b"proxy-authorization" | b"cookie")
}

fn indexing(secret: bool) -> Indexing {
    if secret { Indexing::Never } else { Indexing::Without }
}

/// Whether HTTP/2 has no such field or expresses it otherwise.
fn is_left_out(name: &[u8], value: &[Piece]) -> bool {
    match name {
        b"host" | b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding"
        | b"upgrade" => true,
        b"te" => match value {
            [Piece::Fixed(value)] => !value.trim_ascii().eq_ignore_ascii_case(b"trailers"),
            _ => true,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::hpack::Decoder;
    use crate::message::Texts;

    fn filled(texts: &Texts<'_>) -> Template {
        Template::of("http", &message::Template::new(texts, Some(&message::Names::default())))
    }

    /// A request of this number, whose random numbers are 1000, 1001, ….
    struct Numbered(u64);

    impl Filling for Numbered {
        fn counter(&self) -> u64 {
            self.0
        }

        fn random(&self, nth: u32) -> u64 {
            1000 + u64::from(nth)
        }

        fn column(&self, index: usize) -> &[u8] {
            [&b"a/b"[..], b"\xc3\xbc"][index]
        }
    }

    fn fields(template: &Template, number: u64) -> (Vec<String>, u64) {
        let (mut block, mut fields) = (Vec::new(), Vec::new());
        let head = template.write_block(&Numbered(number), &mut block);
        let mut plain_bytes = 0;
        let mut add = |field: crate::http2::hpack::Field<'_>| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            plain_bytes += (field.name.len() + field.value.len()) as u64;
            fields.push(format!("{}={}", text(field.name), text(field.value)));
        };
        Decoder::default().decode(&block, 1 << 20, &mut add).expect("a block");
        assert_eq!(head.plain_bytes, plain_bytes, "as they are before they are coded");
        (fields, head.body_bytes)
    }

    fn headers(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_about_a_connection_of_http_1_is_left_out_and_names_are_in_lower_case() {
        let headers = headers(&[
            ("Host", "a:80"),
            ("Connection", "close"),
            ("X-Y", "Z"),
            ("TE", "gzip"),
            ("te", "trailers"),
            ("Authorization", "x"),
            ("Empty", ""),
        ]);
        let texts = Texts { method: "GET", path: "/a{b}", headers: &headers, body: None };
        let (fields, body) =
            fields(&Template::of("https", &message::Template::new(&texts, None)), 1);
        let expected = [
            ":method=GET",
            ":scheme=https",
            ":path=/a{b}",
            ":authority=a:80",
            "x-y=Z",
            "te=trailers",
            "authorization=x",
            "empty=",
        ];
        assert_eq!((fields, body), (expected.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn places_are_filled_in_order_and_a_body_has_its_length() {
        let headers = headers(&[("Host", "a{random}"), ("X", "{random}")]);
        let body = Some(&b"[{counter},{random}]"[..]);
        let texts = Texts { method: "PUT", path: "/{counter}/{random}", headers: &headers, body };
        let template = filled(&texts);
        let (fields, len) = fields(&template, 77);
        let expected = [":path=/77/1000", ":authority=a1001", "x=1002", "content-length=9"];
        assert_eq!(fields[2..], expected);
        let mut out = Vec::new();
        template.write_body(&Numbered(77), 0..4, &mut out);
        template.write_body(&Numbered(77), 4..len, &mut out);
        assert_eq!((out, len), (b"[77,1003]".to_vec(), 9));
    }

    #[test]
    fn columns_are_filled_in_as_over_http_1() {
        let headers = headers(&[("Host", "a"), ("X", "{b}{+a}")]);
        let body = Some(&b"{a}{{a}"[..]);
        let texts = Texts { method: "PUT", path: "/{a}/{+a}/{b}", headers: &headers, body };
        let columns = ["a", "b"].map(str::to_owned).to_vec();
        let names = message::Names { columns, ..message::Names::default() };
        let template = Template::of("http", &message::Template::new(&texts, Some(&names)));
        assert!(template.has_column() && !filled(&texts).has_column());
        let (fields, len) = fields(&template, 1);
        assert_eq!(fields[2], ":path=/a%2Fb/a/b/%C3%BC");
        assert_eq!(fields[4..], ["x=\u{fc}a/b", "content-length=6"]);
        let mut out = Vec::new();
        template.write_body(&Numbered(1), 0..len, &mut out);
        assert_eq!(out, b"a/b{a}");
    }

    #[test]
    fn a_long_text_with_a_place_has_its_length_in_more_than_one_byte() {
        let path = format!("/{}/{{counter}}", "p".repeat(200));
        let texts = Texts { method: "GET", path: &path, headers: &[], body: None };
        let (fields, _) = fields(&filled(&texts), 5);
        assert_eq!(fields[2], format!(":path=/{}/5", "p".repeat(200)));
    }

    #[test]
    fn a_body_without_places_is_sent_as_it_stands() {
        let texts = Texts { method: "POST", path: "/", headers: &[], body: Some(b"{\"a\":1}") };
        let template = filled(&texts);
        let (fields, len) = fields(&template, 1);
        assert_eq!((fields.last().map(String::as_str), len), (Some("content-length=7"), 7));
        let mut out = Vec::new();
        template.write_body(&(), 0..7, &mut out);
        assert_eq!(out, b"{\"a\":1}");
        let empty = Texts { body: Some(b""), ..texts };
        let (fields, len) = self::fields(&filled(&empty), 1);
        assert_eq!((fields.last().map(String::as_str), len), (Some("content-length=0"), 0));
    }
}
