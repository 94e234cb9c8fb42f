//! The text of a request over HTTP/1, as it was written, and the request that follows a redirect.

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
#[must_use]
pub fn is_of_body(name: &[u8]) -> bool {
    OF_BODY.iter().any(|of| name.eq_ignore_ascii_case(of.as_bytes()))
}

/// A request, cut into its parts.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The request target.
    pub target: &'a [u8],
    /// The header lines.
    lines: &'a [u8],
    /// The body; its length is in a header line.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Cuts a request that we have written ourselves; none if it is not a whole one.
    #[must_use]
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let end = memchr::memmem::find(text, b"\r\n\r\n")?;
        let (head, body) = (&text[..end + 2], &text[end + 4..]);
        let (line, lines) = head.split_at(memchr::memchr(b'\n', head)? + 1);
        let mut words = line.split(|byte| *byte == b' ');
        Some(Request { method: words.next()?, target: words.next()?, lines, body })
    }

    /// The value of its Host.
    #[must_use]
    pub fn host(&self) -> Option<&'a [u8]> {
        self.headers().find(|(name, _)| name.eq_ignore_ascii_case(b"host")).map(|(_, value)| value)
    }

    /// The names and values of its headers, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let lines = self.lines.split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// The headers of the request that follows a redirect: without those of the body, if it has
    /// none any more.
    pub fn headers_after(
        &self,
        as_get: bool,
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.headers().filter(move |(name, _)| !(as_get && is_of_body(name)))
    }

    /// Writes the request for another target, as a GET without a body if `as_get`.
    pub fn write_after(&self, as_get: bool, target: &[u8], out: &mut Vec<u8>) {
        let method = if as_get { b"GET" } else { self.method };
        for text in [method, b" ", target, b" HTTP/1.1\r\n"] {
            out.extend_from_slice(text);
        }
        for (name, value) in self.headers_after(as_get) {
            for text in [name, b": ", value, b"\r\n"] {
                out.extend_from_slice(text);
            }
        }
        out.extend_from_slice(b"\r\n");
        if !as_get {
            out.extend_from_slice(self.body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POST: &str = "POST /a?b HTTP/1.1\r\nHost: h:1\r\nContent-Type: text/plain\r\n\
                        X: a: b\r\nContent-Length: 4\r\n\r\n\r\n\r\n";

    fn after(text: &str, as_get: bool) -> String {
        let mut out = Vec::new();
        let request = Request::of(text.as_bytes()).expect("a request");
        request.write_after(as_get, b"/c", &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_request_goes_to_another_target_with_its_body_or_as_a_get_without_it() {
        assert_eq!(after(POST, false), POST.replace("/a?b", "/c"));
        assert_eq!(after(POST, true), "GET /c HTTP/1.1\r\nHost: h:1\r\nX: a: b\r\n\r\n");
        let get = "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Basic x\r\n\r\n";
        assert_eq!(after(get, false), get.replace(" / ", " /c "));
    }

    #[test]
    fn a_request_is_cut_into_its_parts() {
        let request = Request::of(POST.as_bytes()).expect("a request");
        assert_eq!((request.method, request.target), (&b"POST"[..], &b"/a?b"[..]));
        assert_eq!((request.host(), request.body), (Some(&b"h:1"[..]), &b"\r\n\r\n"[..]));
        for cut in ["", "GET", "GET / HTTP/1.1\r\nHost: h\r\n"] {
            assert!(Request::of(cut.as_bytes()).is_none(), "{cut:?}");
        }
    }
}
