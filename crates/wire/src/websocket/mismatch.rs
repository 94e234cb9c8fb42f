//! The first message that was not the one expected, in words.
//!
//! Long messages are cut: what is shown begins a little before the first byte that differs.

use super::Kind;

/// Most bytes that are shown of a message.
const SHOWN_BYTES: usize = 40;
/// Bytes shown before the first one that differs.
const BEFORE_BYTES: usize = 8;

/// The first mismatch, if there was one.
#[derive(Clone, Debug, Default)]
pub struct Mismatch(Option<String>);

impl Mismatch {
    /// The words. They quote the peer, with every byte visible.
    pub fn first(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Notes what came instead of what was expected, unless another mismatch came before.
    #[inline]
    pub fn note(&mut self, came: (Kind, &[u8]), expected: (Kind, &[u8])) {
        if self.0.is_none() {
            self.0 = Some(in_words(came, expected));
        }
    }

    /// Notes what came instead of a message that is known only by these words, likewise.
    #[cold]
    pub fn note_unlike(&mut self, came: &[u8], expected: &str) {
        self.0.get_or_insert_with(|| format!("{} came, {expected} was expected", shown(came, 0)));
    }
}

#[cold]
fn in_words((came_as, came): (Kind, &[u8]), (sent_as, expected): (Kind, &[u8])) -> String {
    let name = |kind| if kind == Kind::Text { "text" } else { "binary" };
    if came == expected {
        return format!("a {} message came as {}", name(sent_as), name(came_as));
    }
    let same = came.iter().zip(expected).take_while(|(one, two)| one == two).count();
    let long = came.len().max(expected.len()) > SHOWN_BYTES;
    let from = if long { same.saturating_sub(BEFORE_BYTES) } else { 0 };
    format!("{} came, {} was expected", shown(came, from), shown(expected, from))
}

/// A message from this byte on, in quotes and cut if it is long.
pub(super) fn shown(message: &[u8], from: usize) -> String {
    let rest = message.get(from..).unwrap_or_default();
    let part = &rest[..rest.len().min(SHOWN_BYTES)];
    let before = if from > 0 { "…" } else { "" };
    let behind = if part.len() < rest.len() { "…" } else { "" };
    let cut = from > 0 || part.len() < rest.len();
    let bytes = if cut { format!(" ({} bytes)", message.len()) } else { String::new() };
    format!("\"{before}{}{behind}\"{bytes}", part.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_what_was_expected_is_shown_from_where_they_differ() {
        let long = |last: &str| [&"x".repeat(90), last].concat();
        let (one, two) = (long("abc"), long("axc"));
        let more = [&one, &"y".repeat(90)[..]].concat();
        for (came, expected, words) in [
            ("hgfe", "efgh", r#""hgfe" came, "efgh" was expected"#),
            ("", "efgh", r#""" came, "efgh" was expected"#),
            ("efg", "efgh", r#""efg" came, "efgh" was expected"#),
            ("\u{1b}[2J\"", "é", r#""\x1b[2J\"" came, "\xc3\xa9" was expected"#),
            (&one, &two, r#""…xxxxxxxabc" (93 bytes) came, "…xxxxxxxaxc" (93 bytes) was expected"#),
            (
                &more,
                &one,
                "\"…xxxxxabcyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…\" (183 bytes) came, \
                 \"…xxxxxabc\" (93 bytes) was expected",
            ),
        ] {
            let mut mismatch = Mismatch::default();
            mismatch.note((Kind::Text, came.as_bytes()), (Kind::Text, expected.as_bytes()));
            mismatch.note((Kind::Text, b"later"), (Kind::Text, b"words"));
            assert_eq!(mismatch.first(), Some(words), "{came}");
        }
        let kind = in_words((Kind::Binary, b"a"), (Kind::Text, b"a"));
        assert_eq!(kind, "a text message came as binary");
        let mut mismatch = Mismatch::default();
        mismatch.note_unlike(long("").as_bytes(), "a broadcast");
        let words = format!("\"{}…\" (90 bytes) came, a broadcast was expected", "x".repeat(40));
        assert_eq!(mismatch.first(), Some(&words[..]));
    }
}
