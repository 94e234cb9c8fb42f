//! Where a Location leads: the request target on the same server (RFC 3986 §5.2).

use super::fit::{is_legal, percent_encoded};
use super::redirect::{LOCATION_BYTES_MOST, Unfollowed};

/// The server that is loaded. Only redirects to itself are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server<'a> {
    secure: bool,
    host: &'a [u8],
    port: u16,
}

impl<'a> Server<'a> {
    /// The server with this authority, a host and perhaps a port; `secure` with TLS. None if that
    /// is no authority.
    pub fn new(secure: bool, authority: &'a [u8]) -> Option<Self> {
        // The port is behind the last colon, unless that is part of an IPv6 address.
        let colon = authority.iter().rposition(|byte| *byte == b':');
        let colon = colon.filter(|colon| !authority[*colon..].contains(&b']'));
        let (host, port) = match colon {
            Some(colon) => (&authority[..colon], &authority[colon + 1..]),
            None => (authority, &b""[..]),
        };
        let legal = |byte: &u8| byte.is_ascii_graphic() && !b"@/?#\\<>\"^`{|}".contains(byte);
        if host.is_empty() || !host.iter().all(legal) || !port.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let port = match port {
            [] if secure => 443,
            [] => 80,
            digits => std::str::from_utf8(digits).ok()?.parse().ok()?,
        };
        Some(Server { secure, host, port })
    }

    fn is(&self, other: &Server<'_>) -> bool {
        let same_host = self.host.eq_ignore_ascii_case(other.host);
        same_host && (self.secure, self.port) == (other.secure, other.port)
    }
}

/// The target that a Location leads to, from the target `base` on a server.
pub fn resolve(server: &Server<'_>, base: &[u8], location: &[u8]) -> Result<Vec<u8>, Unfollowed> {
    let end = location.iter().position(|byte| *byte == b'#').unwrap_or(location.len());
    let mut reference = &location[..end];
    let scheme = scheme_of(reference);
    if let Some(scheme) = scheme {
        let ours: &[u8] = if server.secure { b"https" } else { b"http" };
        if !scheme.eq_ignore_ascii_case(ours) {
            return Err(Unfollowed::Elsewhere);
        }
        reference = &reference[scheme.len() + 1..];
    }
    let named = reference.strip_prefix(b"//");
    if scheme.is_some() && named.is_none() {
        return Err(Unfollowed::Malformed);
    }
    if let Some(named) = named {
        let end = named.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(named.len());
        let authority = Server::new(server.secure, &named[..end]).ok_or(Unfollowed::Malformed)?;
        if !server.is(&authority) {
            return Err(Unfollowed::Elsewhere);
        }
        reference = &named[end..];
    }
    let target = match named {
        Some(_) => joined(reference),
        None => relative(base, reference),
    };
    if target.len() > LOCATION_BYTES_MOST { Err(Unfollowed::Malformed) } else { Ok(target) }
}

/// The scheme that a reference begins with.
fn scheme_of(reference: &[u8]) -> Option<&[u8]> {
    let in_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let len = reference.iter().position(|byte| !in_scheme(byte))?;
    let scheme = &reference[..len];
    let is_one = reference[len] == b':' && scheme.first().is_some_and(u8::is_ascii_alphabetic);
    is_one.then_some(scheme)
}

/// A reference without scheme and authority, relative to a target.
fn relative(base: &[u8], reference: &[u8]) -> Vec<u8> {
    let (base_path, _) = cut(base);
    match reference.first() {
        None => joined(base),
        Some(b'/') => joined(reference),
        Some(b'?') => joined(&[base_path, reference].concat()),
        Some(_) => {
            let folder = base_path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
            joined(&[&base_path[..folder], reference].concat())
        }
    }
}

/// A path, and the rest from its question mark on.
fn cut(target: &[u8]) -> (&[u8], &[u8]) {
    let at = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    target.split_at(at)
}

/// A target whose path has no `.` and `..`, and which can stand in a request line.
fn joined(target: &[u8]) -> Vec<u8> {
    let (path, query) = cut(target);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut rest = path.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = rest.next() {
        let is_last = rest.peek().is_none();
        match segment {
            b"." => {}
            b".." => drop(segments.pop()),
            other => {
                segments.push(other);
                continue;
            }
        }
        if is_last {
            segments.push(b"");
        }
    }
    let mut out = Vec::with_capacity(target.len() + 1);
    for segment in segments {
        out.push(b'/');
        encode(segment, &mut out);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    encode(query, &mut out);
    out
}

/// Appends bytes, percent-encoded where they cannot stand in a path or a query.
fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        if is_legal(*byte) {
            out.push(*byte);
        } else {
            out.extend(percent_encoded(*byte));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Unfollowed::{Elsewhere, Malformed};
    use super::*;

    fn resolved(secure: bool, base: &str, location: &str) -> Result<String, Unfollowed> {
        let server = Server::new(secure, b"a:8080").expect("an authority");
        let found = resolve(&server, base.as_bytes(), location.as_bytes())?;
        Ok(String::from_utf8(found).expect("ASCII"))
    }

    #[test]
    fn references_are_resolved_as_rfc_3986_has_it() {
        // The examples of section 5.4, without the server.
        for (reference, target) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p?q"),
            ("g#s", "/b/c/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("g;x?y#s", "/b/c/g;x?y"),
            ("", "/b/c/d;p?q"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            (".g", "/b/c/.g"),
            ("g..", "/b/c/g.."),
            ("..g", "/b/c/..g"),
            ("./../g", "/b/g"),
            ("./g/.", "/b/c/g/"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g;x=1/./y", "/b/c/g;x=1/y"),
            ("g;x=1/../y", "/b/c/y"),
            ("g?y/./x", "/b/c/g?y/./x"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("g#s/../x", "/b/c/g"),
        ] {
            let found = resolved(false, "/b/c/d;p?q", reference);
            assert_eq!(found.as_deref(), Ok(target), "{reference}");
        }
    }

    #[test]
    fn only_the_same_server_is_followed() {
        for (secure, location, expected) in [
            (false, "http://a:8080/x?y", Ok("/x?y")),
            (false, "HTTP://A:8080", Ok("/")),
            (false, "http://a:8080?y", Ok("/?y")),
            (false, "//a:8080/x/../z", Ok("/z")),
            (false, "http://a/x", Err(Elsewhere)),
            (false, "http://b:8080/x", Err(Elsewhere)),
            (false, "https://a:8080/x", Err(Elsewhere)),
            (true, "http://a:8080/x", Err(Elsewhere)),
            (true, "https://a:8080/x", Ok("/x")),
            (false, "mailto:me", Err(Elsewhere)),
            (false, "http:/x", Err(Malformed)),
            (false, "http:x", Err(Malformed)),
            (false, "http:///x", Err(Malformed)),
            (false, "http://me@a:8080/x", Err(Malformed)),
            (false, "http://a:80800/x", Err(Malformed)),
            (false, "http://a:8x/x", Err(Malformed)),
            (false, "//", Err(Malformed)),
            (false, "/\u{e9} \"x", Ok("/%C3%A9%20%22x")),
            (false, "1:2", Ok("/b/1:2")),
            (false, "/a:b", Ok("/a:b")),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(resolved(secure, "/b/c", location), expected, "{location}");
        }
    }

    #[test]
    fn a_port_may_be_left_out_and_an_address_has_colons() {
        for (secure, ours, theirs, same) in [
            (false, "h", "h:80", true),
            (false, "h:", "h", true),
            (true, "h:443", "h", true),
            (true, "h:80", "h", false),
            (false, "[::1]:80", "[::1]", true),
            (false, "[::1]", "[::2]", false),
        ] {
            let of = |authority: &'static str| Server::new(secure, authority.as_bytes());
            let (ours, theirs) = (of(ours).expect("one"), of(theirs).expect("one"));
            assert_eq!(ours.is(&theirs), same, "{ours:?} {theirs:?}");
        }
    }

    #[test]
    fn a_target_has_a_longest_length() {
        let long = "\u{e9}".repeat(LOCATION_BYTES_MOST / 3);
        assert_eq!(resolved(false, "/", &long), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_location_leads_to_a_target_without_dots_or_nowhere(
            location in prop::collection::vec(any::<u8>(), 0..60),
            base in "/[a-c./?]{0,12}",
        ) {
            let server = Server::new(false, b"a").expect("an authority");
            if let Ok(target) = resolve(&server, base.as_bytes(), &location) {
                prop_assert_eq!(target[0], b'/');
                prop_assert!(target.iter().all(u8::is_ascii_graphic));
                let (path, _) = cut(&target);
                for segment in path.split(|byte| *byte == b'/') {
                    prop_assert!(!matches!(segment, b"." | b".."), "{:?}", path);
                }
            }
        }

        #[test]
        fn a_resolved_target_stays_where_it_is(reference in "[a-c./?;:]{0,20}") {
            if let Ok(once) = resolved(false, "/b/c", &reference) {
                let here = format!("http://a:8080{once}");
                prop_assert_eq!(resolved(false, "/other", &here), Ok(once));
            }
        }
    }
}
