//! The Location of an answer, found in its head.

use super::{LOCATION_BYTES_MOST, Unfollowed};

/// Where an answer says that it leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// It does not say.
    #[default]
    Missing,
    /// Here.
    At(Box<[u8]>),
    /// It is too long, goes over several lines, or there are several that differ.
    Malformed,
}

impl Location {
    /// Reads it from a complete head of HTTP/1, from the status line to the empty line.
    #[must_use]
    pub fn of_head(head: &[u8]) -> Self {
        let (mut found, mut continues) = (Location::Missing, false);
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                break;
            }
            if matches!(line[0], b' ' | b'\t') {
                if continues {
                    return Location::Malformed;
                }
                continue;
            }
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            continues = line[..colon].eq_ignore_ascii_case(b"location");
            if continues {
                found.add(line[colon + 1..].trim_ascii());
            }
        }
        found
    }

    /// Adds the value of a Location field.
    pub fn add(&mut self, value: &[u8]) {
        *self = match self {
            _ if value.len() > LOCATION_BYTES_MOST => Location::Malformed,
            Location::Missing => Location::At(value.into()),
            Location::At(before) if **before == *value => return,
            _ => Location::Malformed,
        };
    }

    /// The value as it was sent.
    ///
    /// # Errors
    /// If there is none that can be read.
    pub fn value(&self) -> Result<&[u8], Unfollowed> {
        match self {
            Location::Missing => Err(Unfollowed::Missing),
            Location::At(value) => Ok(value),
            Location::Malformed => Err(Unfollowed::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_location_is_read_and_several_must_agree() {
        let at = |value: &str| Location::At(value.as_bytes().into());
        let long = format!("Location: /{}\r\n", "a".repeat(LOCATION_BYTES_MOST));
        for (lines, expected) in [
            ("Date: now\r\nLocation: /login\r\nX: y\r\n", at("/login")),
            ("location:https://h/a?b=c\r\n", at("https://h/a?b=c")),
            ("LOCATION: \t/a \r\n", at("/a")),
            ("Location:\r\n", at("")),
            ("Location: /a\r\nLocation: /a\r\n", at("/a")),
            ("Location: /a\r\nLocation: /b\r\n", Location::Malformed),
            ("Location: /a\r\n /b\r\n", Location::Malformed),
            ("X: y\r\n Location: /a\r\n", Location::Missing),
            ("X-Location: /a\r\n", Location::Missing),
            ("Content-Location: /a\r\n", Location::Missing),
            (&long, Location::Malformed),
            ("", Location::Missing),
        ] {
            let head = format!("HTTP/1.1 302 Found: Location: /no\r\n{lines}\r\nLocation: /body");
            assert_eq!(Location::of_head(head.as_bytes()), expected, "{lines:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            value in "[!-~]{1,40}",
        ) {
            let _ = Location::of_head(&bytes);
            let head = [b"HTTP/1.1 302 X\r\nLocation: ", value.as_bytes(), b"\r\n\r\n"].concat();
            prop_assert_eq!(Location::of_head(&head), Location::At(value.as_bytes().into()));
        }
    }
}
