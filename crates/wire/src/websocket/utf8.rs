//! Checks UTF-8 that arrives in pieces, and refuses it at the first illegal byte.
//!
//! Must not know: frames.

use super::frame::Error;

pub(super) const BAD_TEXT: Error = Error::Payload("a text is not UTF-8");

/// Checks a whole text.
#[inline]
pub(super) fn whole(bytes: &[u8]) -> Result<(), Error> {
    // Most texts are ASCII, which is checked faster than UTF-8.
    if bytes.is_ascii() || str::from_utf8(bytes).is_ok() { Ok(()) } else { Err(BAD_TEXT) }
}

/// Checks the beginning of a text whose first `checked` bytes are known to be complete characters.
/// Returns the new number of such bytes; after them comes at most the beginning of one character.
pub(super) fn beginning(bytes: &[u8], checked: usize) -> Result<usize, Error> {
    match str::from_utf8(&bytes[checked..]) {
        Ok(_) => Ok(bytes.len()),
        Err(error) if error.error_len().is_none() => Ok(checked + error.valid_up_to()),
        Err(_) => Err(BAD_TEXT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_refused_at_the_byte_that_spoils_it() {
        for (sentence, bytes, good) in [
            ("ASCII", &b"abc"[..], None),
            ("two bytes", "é".as_bytes(), None),
            ("four bytes", "\u{10ffff}".as_bytes(), None),
            ("beyond Unicode", b"\xf4\x90\x80\x80", Some(1)),
            ("a surrogate", b"\xed\xa0\x80", Some(1)),
            ("a lone continuation", b"a\x80", Some(1)),
            ("overlong", b"\xc0\xaf", Some(0)),
            ("overlong in three", b"\xe0\x80\x80", Some(1)),
            ("cut by a letter", b"\xce\xbaa\xe2x", Some(4)),
        ] {
            let mut checked = 0;
            let spoiled =
                (1..=bytes.len()).position(|len| match beginning(&bytes[..len], checked) {
                    Ok(more) => {
                        checked = more;
                        false
                    }
                    Err(_) => true,
                });
            assert_eq!(spoiled, good, "{sentence}");
            assert_eq!(whole(bytes).is_ok(), good.is_none(), "{sentence}");
        }
        assert_eq!(beginning(b"\xf0\x9f\x98", 0), Ok(0), "the beginning of a character");
        assert!(whole(b"\xf0\x9f\x98").is_err(), "which is not a text");
    }
}
