//! One request in full, from which the one behind a redirect is made: with the same method and body,
//! or as a GET without them, as fetch's standard says (§4.4, HTTP-redirect fetch).

use super::fit::{Body, Spot, is_json};
use super::places::{self, DIGITS_MOST, Filling, Names, Piece, Places, decimal, fill};

/// Fields that describe a body, and go with it (fetch §4.4), or frame it.
const OF_BODY: [&str; 6] = [
    "content-length",
    "content-type",
    "content-encoding",
    "content-language",
    "content-location",
    "transfer-encoding",
];

/// Whether a field describes a body, so that a request without one does not have it.
pub fn is_of_body(name: &[u8]) -> bool {
    OF_BODY.iter().any(|of| name.eq_ignore_ascii_case(of.as_bytes()))
}

/// The texts of a request, in their form on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// The method.
    pub method: &'a str,
    /// The request target.
    pub path: &'a str,
    /// The names and values of the headers.
    pub headers: &'a [(String, String)],
    /// The body, if any.
    pub body: Option<&'a [u8]>,
}

/// A request whose placeholders are filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Vec<u8>,
    /// The request target.
    pub target: Vec<u8>,
    /// The names and values of its headers, with the length of the body.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of its Host.
    pub fn host(&self) -> Option<&[u8]> {
        let mut named = self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"host"));
        named.next().map(|(_, value)| value.as_slice())
    }

    /// Bytes of all its texts.
    pub fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        self.method.len() + self.target.len() + headers.sum::<usize>() + self.body.len()
    }

    /// The same request for another target, as a GET without a body if `as_get`.
    pub fn redirected(&self, as_get: bool, target: Vec<u8>) -> Self {
        if !as_get {
            return Request { target, ..self.clone() };
        }
        let headers = self.headers.iter().filter(|(name, _)| !is_of_body(name)).cloned().collect();
        Request { method: b"GET".to_vec(), target, headers, body: Vec::new() }
    }

    /// Appends it in HTTP/1's form.
    pub fn write(&self, out: &mut Vec<u8>) {
        for text in [&self.method[..], b" ", &self.target, b" HTTP/1.1\r\n"] {
            out.extend_from_slice(text);
        }
        for (name, value) in &self.headers {
            for text in [&name[..], b": ", value, b"\r\n"] {
                out.extend_from_slice(text);
            }
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.body);
    }
}

/// A text that is always the same, as a piece.
fn fixed(text: &[u8]) -> Box<[Piece]> {
    [Piece::Fixed(text.into())].into()
}

/// The name and the value of a header.
type Header = (Vec<u8>, Box<[Piece]>);

/// A request with placeholders, in no version's form.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pub(crate) method: Vec<u8>,
    pub(crate) target: Box<[Piece]>,
    pub(crate) headers: Box<[Header]>,
    /// Whether a session's cookies are to be added to the headers.
    pub(crate) adds_cookies: bool,
    /// Whether the length of the body is to be added to the headers.
    pub(crate) adds_length: bool,
    pub(crate) body: Box<[Piece]>,
}

impl Template {
    /// A request; with `names` its texts may have placeholders, and the Content-Length of a body is
    /// added.
    pub fn new(texts: &Texts<'_>, names: Option<&Names>) -> Self {
        // Only the names of a session's values can be unknown.
        let places = names.map(|names| Places { names, taken: None });
        Self::made(texts, places).unwrap_or_default()
    }

    /// The request of a step whose values have the names `taken`, which are all known.
    pub fn of_step(texts: &Texts<'_>, names: &Names, taken: &[String]) -> Self {
        Self::made(texts, Some(Places { names, taken: Some(taken) })).unwrap_or_default()
    }

    /// The same request with these headers. Their values may have any bytes.
    pub fn with_headers(self, headers: Vec<(String, Vec<u8>)>) -> Self {
        let header = |(name, value): (String, Vec<u8>)| (name.into_bytes(), fixed(&value));
        Template { headers: headers.into_iter().map(header).collect(), ..self }
    }

    /// A session's request. An error is the name of a value that is not known.
    pub(crate) fn of_session(texts: &Texts<'_>, places: Places<'_>) -> Result<Self, String> {
        Self::made(texts, Some(places))
    }

    fn made(texts: &Texts<'_>, places: Option<Places<'_>>) -> Result<Self, String> {
        let cut = |text: &[u8], spot| match places {
            Some(places) => places.cut(text, spot),
            None => Ok(fixed(text)),
        };
        let header = |(name, value): &(String, String)| {
            Ok((name.clone().into_bytes(), cut(value.as_bytes(), Spot::Other)?))
        };
        let is_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
        let content_type = texts.headers.iter().find(is_type).map(|(_, value)| value.as_str());
        let body = |body| match places {
            Some(places) => places.cut_body(body, Body::of(content_type)),
            None => Ok(fixed(body)),
        };
        Ok(Template {
            method: texts.method.as_bytes().to_vec(),
            target: cut(texts.path.as_bytes(), Spot::Path)?,
            headers: texts.headers.iter().map(header).collect::<Result<_, String>>()?,
            adds_cookies: false,
            adds_length: places.is_some() && texts.body.is_some(),
            body: texts.body.map(body).transpose()?.unwrap_or_default(),
        })
    }

    /// The value of the first header of this name, which is in lower case.
    pub(crate) fn header(&self, wanted: &[u8]) -> Option<&[Piece]> {
        let named = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map(|(_, value)| &**value)
    }

    /// For each column: whether a header has it, and whether it must be JSON where it goes.
    pub fn mark_columns(&self, in_header: &mut [bool], as_json: &mut [bool]) {
        let headers = self.headers.iter().flat_map(|(_, value)| places::columns(value, |_| true));
        headers.for_each(|column| in_header[column] = true);
        let values = places::columns(&self.body, |fit| fit.must_be_json());
        values.for_each(|column| as_json[column] = true);
    }

    /// The columns that stand in a body of JSON as they are.
    pub fn raw_columns(&self) -> impl Iterator<Item = usize> {
        places::columns(&self.body, |fit| fit.may_break_json())
    }

    /// Whether the body is JSON with a row of values.
    pub fn is_json(&self, row: &[&[u8]]) -> bool {
        is_json(&places::sample(&self.body, row))
    }

    pub(crate) fn has_column(&self) -> bool {
        let headers = self.headers.iter().map(|(_, value)| value);
        headers.chain([&self.target, &self.body]).any(|pieces| places::has_column(pieces))
    }

    /// The length of the body, if it is always the same.
    pub(crate) fn fixed_len(&self) -> Option<usize> {
        match &*self.body {
            [] => Some(0),
            [Piece::Fixed(bytes)] => Some(bytes.len()),
            _ => None,
        }
    }

    /// The request with these values. Random numbers are drawn as by the other templates: for the
    /// target, the headers in order, and the body.
    pub fn fill(&self, filling: &impl Filling) -> Request {
        let mut drawn = 0;
        let mut filled = |pieces: &[Piece]| {
            let mut out = Vec::new();
            fill(pieces, filling, &mut drawn, &mut out);
            out
        };
        let target = filled(&self.target);
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), filled(value)));
        let mut headers: Vec<_> = headers.collect();
        let body = filled(&self.body);
        if self.adds_length {
            let length = decimal(body.len() as u64, &mut [0; DIGITS_MOST]).to_vec();
            headers.push((b"Content-Length".to_vec(), length));
        }
        Request { method: self.method.clone(), target, headers, body }
    }
}

/// A template without placeholders.
impl From<&Request> for Template {
    fn from(request: &Request) -> Self {
        let header = |(name, value): &(Vec<u8>, Vec<u8>)| (name.clone(), fixed(value));
        Template {
            method: request.method.clone(),
            target: fixed(&request.target),
            headers: request.headers.iter().map(header).collect(),
            body: fixed(&request.body),
            ..Template::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{http1, http2};

    struct Nth;

    impl Filling for Nth {
        fn counter(&self) -> u64 {
            7
        }

        fn random(&self, nth: u32) -> u64 {
            nth.into()
        }
    }

    fn written(request: &Request) -> String {
        let mut out = Vec::new();
        request.write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_request_goes_to_another_target_with_its_body_or_as_a_get_without_it() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [pair("Host", "h:1"), pair("Content-Type", "text/plain"), pair("X", "a: b")];
        let body = Some(&b"\r\n\r\n"[..]);
        let texts = Texts { method: "POST", path: "/a?b", headers: &headers, body };
        let request = Template::new(&texts, Some(&Names::default())).fill(&());
        assert_eq!(
            written(&request),
            "POST /a?b HTTP/1.1\r\nHost: h:1\r\nContent-Type: text/plain\r\nX: a: b\r\n\
             Content-Length: 4\r\n\r\n\r\n\r\n"
        );
        let same = request.redirected(false, b"/c".to_vec());
        assert_eq!(written(&same), written(&request).replace("/a?b", "/c"));
        let get = request.redirected(true, b"/c".to_vec());
        assert_eq!(written(&get), "GET /c HTTP/1.1\r\nHost: h:1\r\nX: a: b\r\n\r\n");
        assert_eq!(request.host(), Some(&b"h:1"[..]));
    }

    #[test]
    fn it_is_filled_as_the_templates_of_the_versions_are() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [pair("Host", "h"), pair("X", "{random}")];
        let body = Some(&b"{random} of {counter}"[..]);
        let texts = Texts { method: "PUT", path: "/{random}/{counter}", headers: &headers, body };
        let cut = Template::new(&texts, Some(&Names::default()));
        let request = cut.fill(&Nth);
        let mut expected = Vec::new();
        let template = http1::template::Template::of(&cut);
        template.write(&Nth, &mut |part| expected.extend_from_slice(part.bytes()));
        assert_eq!(written(&request), String::from_utf8_lossy(&expected));
        let (mut one, mut two) = (Vec::new(), Vec::new());
        request.over_http2(true).write_body(&(), 0..6, &mut one);
        http2::request::Template::of("https", &cut).write_body(&Nth, 0..6, &mut two);
        assert_eq!((one.as_slice(), two.as_slice()), (&b"2 of 7"[..], &b"2 of 7"[..]));
    }
}
