//! Redirects: where one leads, and which request follows it.
//!
//! How it works: a [`super::Location`] is collected from the head of an answer. [`super::resolve()`] turns it into
//! the target of the next request (RFC 3986 §5), if that is on the same server.
//!
//! Must not know: connections, how often a request may be redirected, and what is counted.

/// Longest Location, and longest target that it leads to, in bytes.
pub const LOCATION_BYTES_MOST: usize = 8 << 10;

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
