//! Redirects: where one leads, and which request follows it.
//!
//! How it works: a [`super::Location`] is collected from the head of an answer. [`super::resolve()`] turns it into
//! the target of the next request (RFC 3986 §5), if that is on the same server.
//!
//! Must not know: connections, how often a request may be redirected, and what is counted.

/// Longest Location, and longest target that it leads to, in bytes.
pub const LOCATION_BYTES_MOST: usize = 8 << 10;

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
    /// Adds the value of a Location field.
    pub fn add(&mut self, value: &[u8]) {
        *self = match self {
            _ if value.len() > LOCATION_BYTES_MOST || value.contains(&b'\n') => Location::Malformed,
            Location::Missing => Location::At(value.into()),
            Location::At(before) if **before == *value => return,
            _ => Location::Malformed,
        };
    }

    /// The value as it was sent. An error if there is none that can be read.
    pub fn value(&self) -> Result<&[u8], Unfollowed> {
        match self {
            Location::Missing => Err(Unfollowed::Missing),
            Location::At(value) => Ok(value),
            Location::Malformed => Err(Unfollowed::Malformed),
        }
    }
}

/// Why a redirect cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfollowed {
    /// It does not say where it leads.
    Missing,
    /// Its Location is no URL, or there are several.
    Malformed,
    /// It leads to another server, or to another scheme or port.
    Elsewhere,
}

/// Whether an answer with this status is a redirect that clients follow (RFC 9110 §15.4).
#[inline]
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Whether the request after a redirect is a GET without a body, instead of the same again.
pub fn becomes_get(status: u16, method: &[u8]) -> bool {
    match status {
        301 | 302 => method == b"POST",
        303 => method != b"GET" && method != b"HEAD",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_changes_as_fetch_says() {
        for (status, changed) in [
            (301, &["POST"][..]),
            (302, &["POST"]),
            (303, &["POST", "PUT", "DELETE", "OPTIONS"]),
            (307, &[]),
            (308, &[]),
        ] {
            for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
                let expected = changed.contains(&method);
                assert_eq!(becomes_get(status, method.as_bytes()), expected, "{status} {method}");
            }
            assert!(is_redirect(status));
        }
        for status in [200, 201, 300, 304, 305, 306, 309, 399, 404] {
            assert!(!is_redirect(status), "{status}");
        }
    }
}
