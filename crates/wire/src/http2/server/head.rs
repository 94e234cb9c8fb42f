//! The header section of a request: its meaning, and whether HTTP/2 allows it (RFC 9113 §8.2 and
//! §8.3.1).
//!
//! How it works: fields are checked as they are decoded, and the first violation is kept. The
//! remaining fields are decoded anyway, to keep the table in step.
//!
//! Must not know: how fields are encoded, and which paths exist.

use crate::http2::hpack::Field;

/// The request line of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// `GET`, `HEAD`, …; in the case sent.
    pub method: &'a str,
    /// Path and query; empty for CONNECT.
    pub target: &'a str,
}

impl<'a> RequestHead<'a> {
    /// The path of the target, without its query.
    pub fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }
}

/// Bits for the pseudo-header fields that have come.
mod seen {
    pub(super) const METHOD: u8 = 1;
    pub(super) const SCHEME: u8 = 2;
    pub(super) const AUTHORITY: u8 = 4;
    pub(super) const PATH: u8 = 8;
}

/// A header section while it is read.
#[derive(Debug, Default)]
pub(super) struct Fields {
    seen: u8,
    regular: bool,
    trailers: bool,
    method: String,
    path: String,
    authority: String,
    host: Option<String>,
    length: Option<u64>,
    expects_continue: bool,
    malformed: Option<&'static str>,
}

/// The meaning of a header section for its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The length of the body, if announced.
    pub(super) length: Option<u64>,
    /// Whether the client waits for a 100 before it sends the body.
    pub(super) expects_continue: bool,
}

impl Fields {
    /// Resets for a new request or for trailers.
    pub(super) fn begin(&mut self, trailers: bool) {
        let (mut method, mut path) =
            (std::mem::take(&mut self.method), std::mem::take(&mut self.path));
        method.clear();
        path.clear();
        *self = Fields { method, path, trailers, ..Fields::default() };
    }

    pub(super) fn add(&mut self, field: Field<'_>) {
        if self.malformed.is_none() {
            self.malformed = self.check(field.name, field.value).err();
        }
    }

    /// Returns the result after all fields.
    pub(super) fn finish(&self) -> Result<(RequestHead<'_>, Facts), &'static str> {
        if let Some(malformed) = self.malformed {
            return Err(malformed);
        }
        let connect = self.method == "CONNECT";
        let expected = match connect {
            _ if self.trailers => 0,
            true => seen::METHOD | seen::AUTHORITY,
            false => seen::METHOD | seen::SCHEME | seen::PATH,
        };
        if self.seen & expected != expected {
            return Err("a pseudo-header field is missing");
        }
        if connect && self.seen != expected {
            return Err("CONNECT with a scheme or a path");
        }
        // RFC 9113 §8.3.1.
        let host = self.host.as_deref().filter(|_| !self.authority.is_empty());
        if host.is_some_and(|host| !is_same_host(host, &self.authority)) {
            return Err("a Host that is not the :authority");
        }
        let (length, expects_continue) = (self.length, self.expects_continue);
        let head = RequestHead { method: &self.method, target: &self.path };
        Ok((head, Facts { length, expects_continue }))
    }

    fn check(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let is_ws = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Err("a field value with NUL, CR or LF");
        }
        if is_ws(value.first()) || is_ws(value.last()) {
            return Err("a field value that begins or ends with whitespace");
        }
        if let Some(pseudo) = name.strip_prefix(b":") {
            return self.pseudo(pseudo, value);
        }
        self.regular = true;
        let is_bad = |byte: &u8| !matches!(byte, 0x21..0x7f) || matches!(byte, b'A'..=b'Z' | b':');
        if name.is_empty() || name.iter().any(is_bad) {
            return Err("an invalid character in a field name");
        }
        match name {
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding"
            | b"upgrade" => Err("a field that is about the connection"),
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => Err("a TE that is not trailers"),
            b"content-length" if !self.trailers => self.content_length(value),
            b"host" if self.host.is_some() => Err("a second Host"),
            b"host" => {
                self.host = Some(String::from_utf8_lossy(value).into_owned());
                Ok(())
            }
            b"expect" if value.eq_ignore_ascii_case(b"100-continue") => {
                self.expects_continue = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let bit = match name {
            _ if self.trailers => return Err("a pseudo-header field in trailers"),
            _ if self.regular => return Err("a pseudo-header field behind other fields"),
            b"method" => seen::METHOD,
            b"scheme" => seen::SCHEME,
            b"authority" => seen::AUTHORITY,
            b"path" => seen::PATH,
            _ => return Err("a pseudo-header field that no request has"),
        };
        if self.seen & bit != 0 {
            return Err("a pseudo-header field comes twice");
        }
        self.seen |= bit;
        let text = std::str::from_utf8(value).ok();
        let text = text.filter(|text| text.bytes().all(|byte| matches!(byte, b'!'..=b'~')));
        let text = text.ok_or("an invalid character in a pseudo-header field")?;
        match bit {
            seen::METHOD if text.is_empty() => return Err("an empty :method"),
            seen::METHOD => self.method.push_str(text),
            seen::PATH if !text.starts_with('/') && text != "*" => {
                return Err("a :path that does not begin with a slash");
            }
            seen::PATH => self.path.push_str(text),
            seen::AUTHORITY => self.authority.push_str(text),
            _ => {}
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), &'static str> {
        if self.length.is_some() {
            return Err("a second content-length");
        }
        let digits = Some(value).filter(|value| value.iter().all(u8::is_ascii_digit));
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        self.length = Some(number.ok_or("the content-length is not a number")?);
        Ok(())
    }
}

/// Whether two names mean the same server. A default port (80 or 443) is ignored.
fn is_same_host(one: &str, other: &str) -> bool {
    let bare = |name: &'_ str| -> usize {
        let port = [":80", ":443"].iter().find(|port| name.ends_with(**port));
        name.len() - port.map_or(0, |port| port.len())
    };
    one[..bare(one)].eq_ignore_ascii_case(&other[..bare(other)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "http"), (":path", "/a?b")];

    fn read(fields: &[(&str, &str)], trailers: bool) -> Result<(String, Facts), &'static str> {
        let mut all = Fields::default();
        all.begin(trailers);
        for (name, value) in fields {
            all.add(Field { name: name.as_bytes(), value: value.as_bytes() });
        }
        all.finish().map(|(head, facts)| {
            assert_eq!(head.path(), head.target.split('?').next().unwrap_or_default());
            (format!("{} {}", head.method, head.target), facts)
        })
    }

    #[test]
    fn a_request_says_what_it_wants() {
        let facts = Facts { length: Some(3), expects_continue: true };
        let body = [("content-length", "3"), ("expect", "100-continue"), ("te", "trailers")];
        for (fields, expected) in [
            (&GET[..], ("GET /a?b", Facts::default())),
            (&[GET.as_slice(), &body].concat(), ("GET /a?b", facts)),
            (
                &[(":method", "OPTIONS"), (":path", "*"), (":scheme", "x"), (":authority", "h")],
                ("OPTIONS *", Facts::default()),
            ),
            (&[(":method", "CONNECT"), (":authority", "host:1")], ("CONNECT ", Facts::default())),
        ] {
            let expected = (expected.0.to_string(), expected.1);
            assert_eq!(read(fields, false), Ok(expected), "{fields:?}");
        }
    }

    #[test]
    fn what_no_request_may_have_is_refused() {
        for (more, expected) in [
            (("connection", "close"), "about the connection"),
            (("proxy-connection", "x"), "about the connection"),
            (("keep-alive", "x"), "about the connection"),
            (("transfer-encoding", "chunked"), "about the connection"),
            (("upgrade", "x"), "about the connection"),
            (("te", "trailers, deflate"), "TE"),
            (("Accept", "x"), "field name"),
            (("a b", "x"), "field name"),
            (("a:b", "x"), "field name"),
            (("", "x"), "field name"),
            (("b\u{e9}", "x"), "field name"),
            (("a", "x\ny"), "NUL, CR or LF"),
            (("a", "x\0"), "NUL, CR or LF"),
            (("a", " x"), "whitespace"),
            (("a", "x\t"), "whitespace"),
            ((":status", "200"), "no request has"),
            ((":method", "GET"), "twice"),
            ((":path", "/"), "twice"),
            ((":scheme", "http"), "twice"),
            (("content-length", ""), "not a number"),
            (("content-length", "+1"), "not a number"),
            (("content-length", "18446744073709551616"), "not a number"),
        ] {
            let error = read(&[&GET[..], &[more]].concat(), false).expect_err(more.0);
            assert!(error.contains(expected), "{more:?}: {error}");
        }
        let twice = [&GET[..], &[("content-length", "1"), ("content-length", "1")]].concat();
        assert_eq!(read(&twice, false), Err("a second content-length"));
        let late = [&GET[..2], &[("a", "b")], &GET[2..]].concat();
        assert_eq!(read(&late, false), Err("a pseudo-header field behind other fields"));
        for missing in 0..3 {
            let rest: Vec<_> = (0..3).filter(|at| *at != missing).map(|at| GET[at]).collect();
            assert_eq!(read(&rest, false), Err("a pseudo-header field is missing"), "{missing}");
        }
        for (path, expected) in [("", "slash"), ("a", "slash"), ("/ /", "invalid character")] {
            let error = read(&[GET[0], GET[1], (":path", path)], false).expect_err(path);
            assert!(error.contains(expected), "{path}: {error}");
        }
        let connect = [(":method", "CONNECT"), (":authority", "h"), (":path", "/")];
        assert_eq!(read(&connect, false), Err("CONNECT with a scheme or a path"));
        assert!(read(&[(":method", "")], false).is_err());
    }

    #[test]
    fn a_host_beside_the_authority_has_to_name_the_same_server() {
        for (authority, host, same) in [
            ("a.b:8080", "a.b:8080", true),
            ("a.b", "A.B", true),
            ("a.b:80", "a.b", true),
            ("a.b", "a.b:443", true),
            ("a.b", "b.a", false),
            ("a.b:8080", "a.b", false),
            ("a.b", "", false),
        ] {
            let fields = [&GET[..], &[(":authority", authority), ("host", host)]].concat();
            assert_eq!(read(&fields, false).is_ok(), same, "{authority} {host}");
        }
        let alone = [&GET[..], &[("host", "x")]].concat();
        assert!(read(&alone, false).is_ok());
        let twice = [&alone[..], &[("host", "x")]].concat();
        assert_eq!(read(&twice, false), Err("a second Host"));
    }

    #[test]
    fn trailers_have_no_pseudo_header_fields() {
        assert_eq!(read(&[("checksum", "1")], true), Ok((" ".into(), Facts::default())));
        assert_eq!(read(&GET[..1], true), Err("a pseudo-header field in trailers"));
        assert_eq!(read(&[("Checksum", "1")], true), Err("an invalid character in a field name"));
    }
}
