//! Repeated messages: under load the same request comes again and again, with pipelining many times
//! in one read.
//!
//! How it works: a parser that awaits a new message and gets all of it always gives the same result
//! for the same bytes, whatever follows them. Bytes equal to a parsed message therefore need no
//! parser; comparing costs a fraction of parsing. Only equal bytes are treated as equal; everything
//! else is parsed.
//!
//! Must not know: what a message says.

use super::request::RequestParser;

/// A longer request is rare, and mostly has a body that differs.
const REQUEST_BYTES_MAX: usize = 1024;

/// The number of times in a row that `message` occurs at the start of `bytes`.
#[inline]
pub(super) fn repeats(bytes: &[u8], message: &[u8]) -> usize {
    let len = message.len();
    if len == 0 || !bytes.starts_with(message) {
        return 0;
    }
    // Mostly all bytes are repetitions. Comparing them with themselves, shifted by one message,
    // shows that in a single comparison.
    let most = bytes.len() / len;
    if bytes[len..most * len] == bytes[..(most - 1) * len] {
        return most;
    }
    1 + bytes[len..].chunks_exact(len).take_while(|next| *next == message).count()
}

/// The last request that came whole in one read, and what its reader made of it.
///
/// One memory serves all connections that are read under the same [`Limits`](super::Limits).
#[derive(Debug)]
pub struct RequestMemory<T> {
    request: Vec<u8>,
    made: Option<T>,
}

/// Requests at the start of an input that all equal the remembered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated<T> {
    /// The number of requests; at least one.
    pub count: usize,
    /// The total length of these requests in bytes.
    pub len: usize,
    /// The value made of the remembered request.
    pub made: T,
}

impl<T> Default for RequestMemory<T> {
    fn default() -> Self {
        RequestMemory { request: Vec::new(), made: None }
    }
}

impl<T: Clone> RequestMemory<T> {
    /// The requests at the start of `bytes`, if they equal the remembered one. `parser` is the one
    /// that would read them; none if it is in the middle of a request.
    #[inline]
    pub fn recognise(&self, parser: &RequestParser, bytes: &[u8]) -> Option<Repeated<T>> {
        let made = self.made.as_ref().filter(|_| !parser.started())?;
        let count = repeats(bytes, &self.request);
        let len = count * self.request.len();
        (count > 0).then(|| Repeated { count, len, made: made.clone() })
    }

    /// Remembers a request that a fresh parser took whole, and what was `made` of it.
    #[inline]
    pub fn remember(&mut self, request: &[u8], made: T) {
        self.request.clear();
        self.made = (request.len() <= REQUEST_BYTES_MAX).then_some(made);
        if self.made.is_some() {
            self.request.extend_from_slice(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_is_counted_up_to_the_first_difference() {
        for (bytes, message, count) in [
            ("", "ab", 0),
            ("a", "ab", 0),
            ("ab", "ab", 1),
            ("abab", "ab", 2),
            ("ababa", "ab", 2),
            ("ababac", "ab", 2),
            ("abacab", "ab", 1),
            ("acabab", "ab", 0),
            ("aaaa", "a", 4),
            ("aaab", "aa", 1),
            ("abab", "", 0),
        ] {
            assert_eq!(
                repeats(bytes.as_bytes(), message.as_bytes()),
                count,
                "{message} in {bytes}"
            );
        }
    }

    #[test]
    fn a_long_request_is_not_remembered_and_the_one_before_is_forgotten() {
        let mut memory = RequestMemory::default();
        let (parser, long) = (RequestParser::default(), vec![b'a'; REQUEST_BYTES_MAX + 1]);
        memory.remember(&long[1..], 1);
        assert_eq!(memory.recognise(&parser, &long).map(|known| known.count), Some(1));
        memory.remember(&long, 2);
        assert_eq!(memory.recognise(&parser, &long), None);
    }

    #[test]
    fn in_the_middle_of_a_request_nothing_is_recognised() {
        let (mut memory, mut parser) = (RequestMemory::default(), RequestParser::default());
        memory.remember(b"GET / HTTP/1.0\r\n\r\n", ());
        let twice = b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\nG";
        let known = memory.recognise(&parser, twice);
        assert_eq!(known, Some(Repeated { count: 2, len: 36, made: () }));
        assert!(parser.feed(b"G", &crate::message::Limits::default()).is_ok());
        assert_eq!(memory.recognise(&parser, twice), None);
    }
}
