//! A complete answer of HTTP/1, read once more for what a session takes from it. The head of an
//! answer of HTTP/2 is noted in the same form.
//!
//! The client machine has checked the bytes already, and knows that they are one legal answer.

use crate::http1::Limits;
use crate::http1::response::{Fed, ResponseParser};
use crate::redirect::Location;

const HEAD_END: &[u8] = b"\r\n\r\n";

/// The final head of an answer, and the bytes behind it.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Everything from the final head on.
    raw: &'a [u8],
    head_len: usize,
}

impl<'a> Answer<'a> {
    /// Finds the final head, behind any 1xx answers; none if it is not complete.
    #[must_use]
    pub fn of(mut raw: &'a [u8]) -> Option<Answer<'a>> {
        loop {
            let head_len = memchr::memmem::find(raw, HEAD_END)? + HEAD_END.len();
            if raw.get(9) != Some(&b'1') {
                return Some(Answer { raw, head_len });
            }
            raw = &raw[head_len..];
        }
    }

    /// Begins the head of an answer of HTTP/2.
    pub(super) fn begin_noted(head: &mut Vec<u8>) {
        head.extend_from_slice(b"HTTP/2\r\n");
    }

    /// Adds a field to it. A legal value has no line breaks.
    pub(super) fn note_field(head: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        for part in [name, b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    }

    /// The answer with a noted head.
    pub(super) fn noted(head: &'a [u8]) -> Self {
        Answer { raw: head, head_len: head.len() }
    }

    /// Names and values of its headers, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = &self.raw[..self.head_len];
        let mut line = move || {
            let end = memchr::memchr(b'\n', rest)?;
            let found = &rest[..end];
            rest = &rest[end + 1..];
            Some(found.strip_suffix(b"\r").unwrap_or(found))
        };
        line();
        std::iter::from_fn(line).filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// The value of the first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers()
            .find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Where it says that it leads.
    #[must_use]
    pub fn location(&self) -> Location {
        Location::of_head(&self.raw[..self.head_len])
    }

    /// Puts the decoded body into `body`; false if it is longer than `most` bytes, or not whole.
    /// `until_end`: the peer has ended its side, which may end the body.
    pub fn body(&self, most: usize, until_end: bool, body: &mut Vec<u8>) -> bool {
        let (mut parser, mut fits) = (ResponseParser::new(), true);
        body.clear();
        let fed = parser.feed(self.raw, false, &Limits::default(), &mut |slice| {
            fits &= body.len() + slice.len() <= most;
            if fits {
                body.extend_from_slice(slice);
            }
        });
        let whole = match fed {
            Ok((_, Fed::Complete(_))) => true,
            Ok((_, Fed::Partial)) => until_end && parser.lasts_until_end(),
            Err(_) => false,
        };
        whole && fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_final_head_is_found_behind_others() {
        let raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-Id:  7 \r\nx-id: 8\r\n\
                    Content-Length: 2\r\n\r\nhi";
        let answer = Answer::of(raw).expect("a head");
        assert_eq!(answer.header("X-ID"), Some(&b"7"[..]));
        assert_eq!(answer.headers().count(), 3);
        assert!(Answer::of(&raw[..24]).is_none(), "a 1xx alone");
    }

    #[test]
    fn a_body_is_decoded_whatever_its_framing() {
        let chunked = "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
        for (rest, until_end, most, found) in [
            ("Content-Length: 5\r\n\r\nhello", false, 5, Some("hello")),
            ("Content-Length: 5\r\n\r\nhello", false, 4, None),
            ("Content-Length: 6\r\n\r\nhello", true, 9, None),
            (chunked, false, 9, Some("hello")),
            ("Connection: close\r\n\r\nhello", true, 9, Some("hello")),
            ("Connection: close\r\n\r\nhello", false, 9, None),
        ] {
            let raw = format!("HTTP/1.1 200 OK\r\n{rest}");
            let mut body = vec![1];
            let whole =
                Answer::of(raw.as_bytes()).expect("a head").body(most, until_end, &mut body);
            assert_eq!(whole.then_some(&body[..]), found.map(str::as_bytes), "{rest:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(raw in prop::collection::vec(any::<u8>(), 0..200)) {
            let raw = [&b"HTTP/1.1 200 OK\r\n"[..], &raw, b"\r\n\r\n"].concat();
            if let Some(answer) = Answer::of(&raw) {
                answer.headers().for_each(drop);
                answer.body(100, true, &mut Vec::new());
            }
        }
    }
}
