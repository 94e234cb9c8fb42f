//! The header section of an answer: its meaning, and whether HTTP/2 allows it (RFC 9113 §8.2,
//! §8.3.2, RFC 9110 §8.6).
//!
//! How it works: fields are checked as they are decoded, and the first violation is kept. The
//! remaining fields are decoded anyway, to keep the table in step.
//!
//! Must not know: how fields are encoded, and what a violation is counted as elsewhere.

use crate::coding::Coding;
use crate::exchange::Ending;

/// The values that frame an answer, and the coding of its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The status, 100 to 999; 0 for trailers.
    pub(super) status: u16,
    pub(super) length: Option<u64>,
    pub(super) coding: Coding,
}

impl Head {
    /// Whether the answer is interim (1xx), so that the final one is still to come.
    pub(super) fn is_interim(self) -> bool {
        self.status < 200
    }
}

/// Why a header section is refused: the ending of its request, and the reason in our own words.
pub(super) type Malformed = (Ending, &'static str);

/// A header section while it is read.
#[derive(Debug, Default)]
pub(super) struct Fields {
    head: Head,
    trailers: bool,
    regular: bool,
    malformed: Option<Malformed>,
}

impl Fields {
    /// A section of trailers, the fields that follow a body.
    pub(super) fn of_trailers() -> Self {
        Fields { trailers: true, ..Fields::default() }
    }

    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        if self.malformed.is_none() {
            self.malformed = self.check(name, value).err();
        }
    }

    /// Returns the result after all fields.
    pub(super) fn finish(self) -> Result<Head, Malformed> {
        match self.malformed {
            Some(malformed) => Err(malformed),
            None if self.head.status == 0 && !self.trailers => {
                Err((Ending::H2Stream, "an answer without :status"))
            }
            None => Ok(self.head),
        }
    }

    fn check(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        let stream = |why| Err((Ending::H2Stream, why));
        let is_ws = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return stream("a field value with NUL, CR or LF");
        }
        if is_ws(value.first()) || is_ws(value.last()) {
            return stream("a field value that begins or ends with whitespace");
        }
        if let Some(pseudo) = name.strip_prefix(b":") {
            return self.pseudo(pseudo, value);
        }
        self.regular = true;
        if name.is_empty() {
            return stream("a field name is empty");
        }
        if name.iter().any(u8::is_ascii_uppercase) {
            return stream("a field name with an upper-case letter");
        }
        if name.iter().any(|byte| !matches!(byte, 0x21..0x7f) || *byte == b':') {
            return stream("an invalid character in a field name");
        }
        match name {
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding"
            | b"upgrade" => stream("a field that is about the connection"),
            b"content-length" if !self.trailers => self.length(value),
            b"content-encoding" if !self.trailers => {
                self.head.coding.add(value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        let stream = |why| Err((Ending::H2Stream, why));
        if self.trailers {
            return stream("a pseudo-header field in trailers");
        }
        if self.regular {
            return stream("a pseudo-header field behind other fields");
        }
        if name != b"status" {
            return stream("a pseudo-header field that no answer has");
        }
        if self.head.status != 0 {
            return stream("a second :status");
        }
        let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = value else {
            return stream("the :status is not a number from 100 to 999");
        };
        let digit = |byte: &u8| u16::from(byte - b'0');
        self.head.status = digit(hundreds) * 100 + digit(tens) * 10 + digit(ones);
        if self.head.status == 101 {
            return stream("a status 101, which HTTP/2 does not have");
        }
        Ok(())
    }

    /// Reads a content-length. Several equal lengths count as one (RFC 9110 §8.6).
    fn length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        for element in value.split(|byte| *byte == b',') {
            let digits = element.trim_ascii();
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return Err((Ending::Framing, "the content-length is not a decimal number"));
            }
            let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
            // The largest number is reserved for an unknown length.
            let Some(number) = number.filter(|number| *number < u64::MAX) else {
                return Err((Ending::Framing, "the content-length is too large"));
            };
            if self.head.length.is_some_and(|length| length != number) {
                return Err((Ending::Framing, "two values of content-length differ"));
            }
            self.head.length = Some(number);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)], trailers: bool) -> Result<Head, Ending> {
        let mut all = if trailers { Fields::of_trailers() } else { Fields::default() };
        fields.iter().for_each(|(name, value)| all.add(name.as_bytes(), value.as_bytes()));
        all.finish().map_err(|(ending, _)| ending)
    }

    #[test]
    fn a_header_section_is_read_as_rfc_9113_has_it() {
        use Ending::{Framing, H2Stream};
        let ok = (":status", "200");
        let head = |status, length| Ok(Head { status, length, ..Head::default() });
        for (fields, expected) in [
            (&[ok][..], head(200, None)),
            (&[(":status", "103")], head(103, None)),
            (&[(":status", "999")], head(999, None)),
            (&[ok, ("content-length", "0")], head(200, Some(0))),
            (&[ok, ("content-length", "18446744073709551614")], head(200, Some(u64::MAX - 1))),
            (&[ok, ("content-length", "5"), ("content-length", "5, 5")], head(200, Some(5))),
            (&[ok, ("te", "a"), ("x", ""), ("x-y!", "a\tb \u{fc}")], head(200, None)),
            (&[], Err(H2Stream)),
            (&[("server", "x")], Err(H2Stream)),
            (&[("server", "x"), ok], Err(H2Stream)),
            (&[ok, ok], Err(H2Stream)),
            (&[(":status", "20")], Err(H2Stream)),
            (&[(":status", "099")], Err(H2Stream)),
            (&[(":status", "2000")], Err(H2Stream)),
            (&[(":status", "20a")], Err(H2Stream)),
            (&[(":status", "101")], Err(H2Stream)),
            (&[(":path", "/"), ok], Err(H2Stream)),
            (&[ok, ("Server", "x")], Err(H2Stream)),
            (&[ok, ("", "x")], Err(H2Stream)),
            (&[ok, ("a b", "x")], Err(H2Stream)),
            (&[ok, ("a:b", "x")], Err(H2Stream)),
            (&[ok, ("a\u{7f}", "x")], Err(H2Stream)),
            (&[ok, ("a", "x\r")], Err(H2Stream)),
            (&[ok, ("a", "x\0y")], Err(H2Stream)),
            (&[ok, ("a", " x")], Err(H2Stream)),
            (&[ok, ("a", "x\t")], Err(H2Stream)),
            (&[ok, ("connection", "close")], Err(H2Stream)),
            (&[ok, ("keep-alive", "timeout=5")], Err(H2Stream)),
            (&[ok, ("proxy-connection", "close")], Err(H2Stream)),
            (&[ok, ("transfer-encoding", "chunked")], Err(H2Stream)),
            (&[ok, ("upgrade", "h2c")], Err(H2Stream)),
            (&[ok, ("content-length", "5"), ("content-length", "6")], Err(Framing)),
            (&[ok, ("content-length", "+5")], Err(Framing)),
            (&[ok, ("content-length", "")], Err(Framing)),
            (&[ok, ("content-length", "5,")], Err(Framing)),
            (&[ok, ("content-length", "18446744073709551615")], Err(Framing)),
            (&[ok, ("content-length", "99999999999999999999")], Err(Framing)),
        ] {
            assert_eq!(read(fields, false), expected, "{fields:?}");
        }
    }

    #[test]
    fn trailers_have_neither_pseudo_header_fields_nor_a_length_that_counts() {
        assert_eq!(read(&[], true), Ok(Head::default()));
        assert_eq!(
            read(&[("grpc-status", "0"), ("content-length", "x")], true),
            Ok(Head::default())
        );
        assert_eq!(read(&[(":status", "200")], true), Err(Ending::H2Stream));
        assert_eq!(read(&[("Grpc", "0")], true), Err(Ending::H2Stream));
    }
}
