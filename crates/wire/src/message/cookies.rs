//! The cookies of one session (RFC 6265), for one site.
//!
//! A site is one origin, so a cookie of another domain is ignored. What a server may make us keep
//! is capped: the oldest cookie gives way.

use std::time::{Duration, SystemTime};

/// The field that sets a cookie.
pub(crate) const SET_COOKIE: &[u8] = b"set-cookie";
/// Most cookies of one session, and most bytes of them together.
const COOKIES_MOST: usize = 64;
const COOKIE_BYTES_MOST: usize = 16 << 10;

/// The name and the value of a field.
type Field<'a> = (&'a [u8], &'a [u8]);

/// What decides which cookies are kept and sent.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// The host of the URL, in lower case, without a port.
    pub host: String,
    /// Whether TLS is spoken.
    pub secure: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: Box<[u8]>,
    value: Box<[u8]>,
    path: Box<[u8]>,
}

impl Cookie {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.path.len()
    }
}

/// The cookies that one session has been given, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jar(Vec<Cookie>);

impl Jar {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Bytes of all cookies.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(Cookie::bytes).sum()
    }

    /// Keeps the cookies that the head of an answer sets. `path` is that of its request, `unix_time` the
    /// present time.
    pub(crate) fn take<'a>(
        &mut self,
        head: impl Iterator<Item = Field<'a>>,
        site: &Site,
        path: &[u8],
        unix_time: Duration,
    ) {
        for (name, value) in head {
            if name.len() == SET_COOKIE.len() && name.eq_ignore_ascii_case(SET_COOKIE) {
                self.set(value, site, path, unix_time);
            }
        }
    }

    fn set(&mut self, line: &[u8], site: &Site, request_path: &[u8], unix_time: Duration) {
        let Some((name, value)) = name_and_value(line) else { return };
        let mut path = default_path(request_path).to_vec();
        let (mut expired_by_age, mut expired_by_date) = (None, false);
        for attribute in line.split(|byte| *byte == b';').skip(1) {
            let mut parts = attribute.splitn(2, |byte| *byte == b'=');
            let key = parts.next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
            let text = parts.next().unwrap_or_default().trim_ascii();
            match &key[..] {
                b"path" if text.starts_with(b"/") => path = text.to_vec(),
                b"domain" if !domain_matches(text, &site.host) => return,
                b"secure" if !site.secure => return,
                b"max-age" => expired_by_age = ends_at_once(text).or(expired_by_age),
                b"expires" => expired_by_date = is_past(text, unix_time),
                _ => {}
            }
        }
        self.0.retain(|known| *known.name != *name || *known.path != path[..]);
        // RFC 6265 §5.3: Max-Age has precedence.
        if expired_by_age.unwrap_or(expired_by_date) {
            return;
        }
        self.0.push(Cookie { name: name.into(), value: value.into(), path: path.into() });
        let mut bytes = self.bytes();
        while bytes > COOKIE_BYTES_MOST || self.0.len() > COOKIES_MOST {
            bytes -= self.0.remove(0).bytes();
        }
    }

    /// Writes a Cookie header for a request to this path, if there is a cookie for it.
    pub(crate) fn write(&self, path: &[u8], out: &mut Vec<u8>) {
        if self.0.is_empty() {
            return;
        }
        let before = out.len();
        out.extend_from_slice(b"Cookie: ");
        if self.write_value(path, out) {
            out.extend_from_slice(b"\r\n");
        } else {
            out.truncate(before);
        }
    }

    /// Writes the value of such a header; false if there is no cookie for it. Longer paths come first
    /// (RFC 6265 §5.4).
    pub(crate) fn write_value(&self, path: &[u8], out: &mut Vec<u8>) -> bool {
        let path = without_query(path);
        let mut sent: Vec<_> =
            self.0.iter().filter(|each| path_matches(path, &each.path)).collect();
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        for (place, cookie) in sent.iter().enumerate() {
            out.extend_from_slice(if place == 0 { b"" } else { b"; " });
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
        !sent.is_empty()
    }
}

/// The value of a cookie that the head of an answer sets.
pub(crate) fn of_head<'a>(head: impl Iterator<Item = Field<'a>>, wanted: &str) -> Option<&'a [u8]> {
    head.filter(|(name, _)| name.eq_ignore_ascii_case(SET_COOKIE))
        .filter_map(|(_, line)| name_and_value(line))
        .find(|(name, _)| *name == wanted.as_bytes())
        .map(|(_, value)| value)
}

/// The name and value of a Set-Cookie line; none if it has no name.
fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let pair = line.split(|byte| *byte == b';').next()?;
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
    (!name.is_empty()).then_some((name, value))
}

/// Whether a Max-Age ends the cookie; none if it is not a number.
fn ends_at_once(text: &[u8]) -> Option<bool> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let is_zero = digits.iter().all(|byte| *byte == b'0');
    is_number.then_some(is_zero || digits.len() < text.len())
}

fn is_past(text: &[u8], unix_time: Duration) -> bool {
    let date = std::str::from_utf8(text).ok().and_then(|text| httpdate::parse_http_date(text).ok());
    date.is_some_and(|date| date <= SystemTime::UNIX_EPOCH + unix_time)
}

fn domain_matches(domain: &[u8], host: &str) -> bool {
    let domain = domain.strip_prefix(b".").unwrap_or(domain).to_ascii_lowercase();
    let is_address = host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[');
    let ends = || host.as_bytes().strip_suffix(&domain[..]).is_some_and(|sub| sub.ends_with(b"."));
    domain.is_empty() || domain == host.as_bytes() || (!is_address && ends())
}

fn without_query(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'?').next().unwrap_or_default()
}

/// The path of a cookie that names none (RFC 6265 §5.1.4).
fn default_path(request: &[u8]) -> &[u8] {
    let path = without_query(request);
    let last = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    if last == 0 { b"/" } else { &path[..last] }
}

fn path_matches(request: &[u8], cookie: &[u8]) -> bool {
    let rest = request.strip_prefix(cookie);
    rest.is_some_and(|rest| rest.is_empty() || cookie.ends_with(b"/") || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn jar(lines: &[&str], path: &str, secure: bool) -> Jar {
        let mut jar = Jar::default();
        let site = Site { host: "shop.example".to_owned(), secure };
        for line in lines {
            let head: [Field<'_>; 1] = [(b"Set-Cookie", line.as_bytes())];
            jar.take(head.into_iter(), &site, path.as_bytes(), NOW);
        }
        jar
    }

    fn sent(jar: &Jar, path: &str) -> String {
        let mut out = Vec::new();
        jar.write(path.as_bytes(), &mut out);
        String::from_utf8_lossy(&out).trim_end().to_owned()
    }

    #[test]
    fn cookies_are_kept_replaced_and_ended_as_rfc_6265_says() {
        for (lines, cookies) in [
            (&["a=1; Path=/"][..], "Cookie: a=1"),
            (&["a=1; Path=/", "a=2; Path=/", "b=3; path=/"], "Cookie: a=2; b=3"),
            (&["a=1; Path=/", "a=; Path=/; Max-Age=0"], ""),
            (&["a=1; Path=/", "a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], ""),
            (&["a=1; Path=/; Expires=Wed, 01 Jan 2099 00:00:00 GMT"], "Cookie: a=1"),
            (&["a=1; Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "Cookie: a=1"),
            (&["a=1; Domain=.example"], "Cookie: a=1"),
            (&["a=1; Domain=hop.example"], ""),
            (&["a=1; Domain=other.example"], ""),
            (&["a=1; Secure"], ""),
            (&["=1", "a", ""], ""),
            (&["a=x=y"], "Cookie: a=x=y"),
        ] {
            assert_eq!(sent(&jar(lines, "/", false), "/any?q=/x"), cookies, "{lines:?}");
        }
        assert_eq!(sent(&jar(&["a=1; Secure"], "/", true), "/"), "Cookie: a=1");
    }

    #[test]
    fn a_cookie_goes_to_its_path_and_below_the_longest_path_first() {
        let jar = jar(&["a=1; Path=/", "b=2; Path=/shop", "c=3"], "/shop/cart/add?x=1", false);
        for (path, cookies) in [
            ("/", "Cookie: a=1"),
            ("/shop", "Cookie: b=2; a=1"),
            ("/shopping", "Cookie: a=1"),
            ("/shop/cart", "Cookie: c=3; b=2; a=1"),
        ] {
            assert_eq!(sent(&jar, path), cookies, "{path}");
        }
    }

    #[test]
    fn a_jar_is_bounded_and_the_oldest_cookie_gives_way() {
        let many: Vec<String> = (0..200).map(|number| format!("n{number}=v")).collect();
        let some = jar(&many.iter().map(String::as_str).collect::<Vec<_>>(), "/", false);
        assert_eq!(some.0.len(), COOKIES_MOST);
        assert_eq!(*some.0[0].name, *b"n136");
        let large = format!("a={}", "x".repeat(COOKIE_BYTES_MOST));
        assert!(jar(&[&large], "/", false).0.is_empty());
    }

    proptest! {
        #[test]
        fn any_line_is_taken_without_panic(lines in prop::collection::vec("[ -~]{0,60}", 0..9)) {
            let jar = jar(&lines.iter().map(String::as_str).collect::<Vec<_>>(), "/a/b", false);
            sent(&jar, "/a/b");
        }
    }
}
