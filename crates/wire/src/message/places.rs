//! Placeholders in the texts of a request: `{counter}`, `{random}`, `{column}` and `{env:NAME}`; in a
//! session also `{repeat}`, `{vu}` and the values that are taken from answers.
//!
//! How it works: a text is cut into pieces once; filling it means going through the pieces. In a
//! text that has a placeholder, `{{` stands for `{`. A text without one is sent as it stands, so
//! that JSON needs no escaping. In a path, a column's value is percent-encoded as RFC 6570 expands
//! `{name}` and `{+name}`; elsewhere both stand for the value as it is.
//!
//! Must not know: where the values come from.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Names that a session may use without taking a value first; other requests have the first two.
pub const BUILT_IN: [&str; 4] = ["counter", "random", "repeat", "vu"];
const NAME_BYTES_MOST: usize = 64;
const ESCAPED: &[u8] = b"{{";
const ENVIRONMENT: &[u8] = b"{env:";

/// The names of values that are known before a request is sent.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The columns of data.
    pub columns: Vec<String>,
    /// The variables of the environment that requests use, and their values.
    pub environment: BTreeMap<String, String>,
}

/// The values for the placeholders of one request.
pub trait Filling {
    /// The request's number.
    fn counter(&self) -> u64;
    /// The random number for the `nth` random placeholder.
    fn random(&self, nth: u32) -> u64;
    /// The value of a column of data, by its index.
    fn column(&self, _index: usize) -> &[u8] {
        &[]
    }
    /// The value that a session has taken from an answer, by its index.
    fn taken(&self, _index: usize) -> &[u8] {
        &[]
    }
    /// The place of a session's request.
    fn turn(&self) -> Turn {
        Turn::default()
    }
    /// The path of a session's request.
    fn path(&self) -> &[u8] {
        &[]
    }
    /// Writes the Cookie line of a session's request, if it has cookies.
    fn write_cookies(&self, _out: &mut Vec<u8>) {}
}

/// Values for requests without placeholders.
impl Filling for () {
    fn counter(&self) -> u64 {
        0
    }

    fn random(&self, _nth: u32) -> u64 {
        0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Fixed(Arc<[u8]>),
    Counter,
    /// A number drawn anew for each place of each request.
    Random,
    /// The number of the repetition of a session's step.
    Repeat,
    /// The number of the virtual user.
    User,
    /// The value of a column of data, and what is kept of it as it is.
    Column(usize, Kept),
    /// A value that a step takes, by its index, and what is kept of it as it is.
    Taken(usize, Kept),
    /// The path that a session has written, and the number of its random placeholders.
    Path(u32),
    /// The Cookie line of a session.
    Cookies,
    /// The length of the body.
    Length,
}

/// The characters of a value that are sent as they are; the others are percent-encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All of them.
    All,
    /// Letters, digits and `-._~`.
    Unreserved,
    /// These and what has a meaning in a path: `:/?[]@!$&'()*+,;=`, and `%` before two hex digits.
    Reserved,
    /// All that does not end a path, so that a whole path can be a value.
    Visible,
}

impl Kept {
    /// The value percent-encoded; none if it is sent as it is.
    fn encoded(self, value: &[u8]) -> Option<Vec<u8>> {
        if self == Kept::All || value.iter().all(|byte| is_unreserved(*byte)) {
            return None;
        }
        let mut out = Vec::with_capacity(3 * value.len());
        for (at, byte) in value.iter().enumerate() {
            let kept = match self {
                Kept::All => true,
                Kept::Unreserved => is_unreserved(*byte),
                Kept::Reserved => {
                    is_unreserved(*byte)
                        || b":/?[]@!$&'()*+,;=".contains(byte)
                        || is_encoded(&value[at..])
                }
                Kept::Visible => byte.is_ascii_graphic() && *byte != b'#',
            };
            if kept {
                out.push(*byte);
            } else {
                out.extend(percent_encoded(*byte));
            }
        }
        Some(out)
    }

    fn put(self, value: &[u8], put: &mut impl FnMut(Part<'_>)) {
        match self.encoded(value) {
            None => put(Part::Filled(value)),
            Some(encoded) => put(Part::Filled(&encoded)),
        }
    }

    /// The most bytes that one byte of a value takes.
    fn bytes_most(self) -> usize {
        if self == Kept::All { 1 } else { 3 }
    }
}

pub(super) fn percent_encoded(byte: u8) -> [u8; 3] {
    let [high, low] = [byte >> 4, byte & 15].map(|half| b"0123456789ABCDEF"[usize::from(half)]);
    [b'%', high, low]
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether these bytes begin with a percent-encoded byte.
fn is_encoded(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// A part of a request while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes that are the same in every request.
    Fixed(&'a Arc<[u8]>),
    /// A number in decimal digits, or a value.
    Filled(&'a [u8]),
}

impl Part<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Part::Fixed(bytes) => bytes,
            Part::Filled(bytes) => bytes,
        }
    }
}

impl Piece {
    /// Passes on the bytes of this piece; the length of a body is not known here. `drawn` counts
    /// random placeholders.
    #[inline]
    pub(crate) fn write(
        &self,
        filling: &impl Filling,
        drawn: &mut u32,
        put: &mut impl FnMut(Part<'_>),
    ) {
        let number = match self {
            Piece::Fixed(bytes) => return put(Part::Fixed(bytes)),
            Piece::Column(index, kept) => return kept.put(filling.column(*index), put),
            Piece::Taken(index, kept) => return kept.put(filling.taken(*index), put),
            Piece::Path(randoms) => {
                *drawn += randoms;
                return put(Part::Filled(filling.path()));
            }
            Piece::Cookies => {
                let mut line = Vec::new();
                filling.write_cookies(&mut line);
                return put(Part::Filled(&line));
            }
            Piece::Counter => filling.counter(),
            Piece::Repeat => filling.turn().repeat.into(),
            Piece::User => filling.turn().user.into(),
            Piece::Random => {
                *drawn += 1;
                filling.random(*drawn - 1)
            }
            Piece::Length => return,
        };
        put(Part::Filled(decimal(number, &mut [0; DIGITS_MOST])));
    }

    /// The most bytes that it takes, if no value is longer than `value_most`.
    pub(crate) fn len_most(&self, value_most: usize) -> usize {
        match self {
            Piece::Fixed(bytes) => bytes.len(),
            Piece::Column(_, kept) | Piece::Taken(_, kept) => {
                value_most.saturating_mul(kept.bytes_most())
            }
            // Only requests of sessions have these, and no longest one.
            Piece::Path(_) | Piece::Cookies => 0,
            _ => DIGITS_MOST,
        }
    }
}

/// Appends these pieces to `out`; `drawn` random placeholders are before them.
pub(crate) fn fill(pieces: &[Piece], filling: &impl Filling, drawn: &mut u32, out: &mut Vec<u8>) {
    for piece in pieces {
        piece.write(filling, drawn, &mut |part| out.extend_from_slice(part.bytes()));
    }
}

/// The number of bytes of these pieces; `drawn` random placeholders are before them.
pub(crate) fn len(pieces: &[Piece], filling: &impl Filling, mut drawn: u32) -> u64 {
    let mut len = 0;
    for piece in pieces {
        piece.write(filling, &mut drawn, &mut |part| len += part.bytes().len() as u64);
    }
    len
}

/// The number of random placeholders among these pieces.
pub(crate) fn randoms(pieces: &[Piece]) -> u32 {
    let of = |piece: &Piece| match piece {
        Piece::Random => 1,
        Piece::Path(randoms) => *randoms,
        _ => 0,
    };
    pieces.iter().map(of).sum()
}

pub(crate) fn has_column(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Column(..)))
}

/// Whether this can be the name of a value: a letter or `_`, then letters, digits, `_` and `-`.
pub fn is_name(name: &[u8]) -> bool {
    let starts = name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let follows = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    starts && name.len() <= NAME_BYTES_MOST && name.iter().all(follows)
}

/// The name of the place that a text begins with.
fn name_at(text: &[u8]) -> Option<&str> {
    let inside = text.strip_prefix(b"{")?;
    let end = inside.iter().take(NAME_BYTES_MOST + 1).position(|byte| *byte == b'}')?;
    let name = &inside[..end];
    std::str::from_utf8(name).ok().filter(|name| is_name(name.as_bytes()))
}

/// Cuts texts at their placeholders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) names: &'a Names,
    /// In a session, the names of values that earlier steps take from their answers.
    pub(crate) taken: Option<&'a [String]>,
}

impl<'a> Places<'a> {
    /// Cuts a text. One without placeholders is one piece, an empty one none. An error is the name
    /// of a session's value that is not known.
    pub(crate) fn cut(self, text: &[u8], in_path: bool) -> Result<Box<[Piece]>, String> {
        let mut pieces = Pieces::default();
        pieces.text(text, self, in_path)?;
        pieces.cut();
        Ok(pieces.done.into())
    }

    /// The placeholder that a text begins with: its length, and its piece or the name of a
    /// session's value that is not known.
    fn at(self, text: &[u8], in_path: bool) -> Option<(usize, Result<Piece, String>)> {
        if let Some((name, value)) = self.variable_at(text) {
            let kept = if in_path { Kept::Unreserved } else { Kept::All };
            let value = kept.encoded(value).unwrap_or_else(|| value.to_vec());
            return Some((ENVIRONMENT.len() + name.len() + 1, Ok(Piece::Fixed(value.into()))));
        }
        let name = name_at(text);
        let piece = match (name, self.taken) {
            (Some("counter"), _) => Piece::Counter,
            (Some("random"), _) => Piece::Random,
            (Some("repeat"), Some(_)) => Piece::Repeat,
            (Some("vu"), Some(_)) => Piece::User,
            (_, taken) => {
                if let Some((len, index, plus)) = self.column_at(text) {
                    let kept = match (in_path, plus) {
                        (false, _) => Kept::All,
                        (true, false) => Kept::Unreserved,
                        (true, true) => Kept::Reserved,
                    };
                    return Some((len, Ok(Piece::Column(index, kept))));
                }
                let (name, kept) = (name?, if in_path { Kept::Visible } else { Kept::All });
                match taken?.iter().position(|known| known == name) {
                    Some(index) => Piece::Taken(index, kept),
                    None => return Some((name.len() + 2, Err(name.to_owned()))),
                }
            }
        };
        Some((name?.len() + 2, Ok(piece)))
    }

    /// The variable of the environment whose placeholder a text begins with, and its value.
    fn variable_at<'t>(self, text: &'t [u8]) -> Option<(&'t str, &'a [u8])> {
        let name = text.strip_prefix(ENVIRONMENT)?;
        let name = str::from_utf8(&name[..name.iter().position(|byte| *byte == b'}')?]).ok()?;
        if !is_name(name.as_bytes()) {
            return None;
        }
        // The front refuses one that is not set; of `{{env:NAME}` nobody asks the value.
        Some((name, self.names.environment.get(name).map_or(&[], String::as_bytes)))
    }

    /// The placeholder of a column that a text begins with: its length, the column's index, and
    /// whether it is written with a plus.
    fn column_at(self, text: &[u8]) -> Option<(usize, usize, bool)> {
        let text = text.strip_prefix(b"{")?;
        let (plus, rest) = text.strip_prefix(b"+").map_or((false, text), |rest| (true, rest));
        let name = &rest[..rest.iter().position(|byte| *byte == b'}')?];
        let index = self.names.columns.iter().position(|column| column.as_bytes() == name)?;
        Some((name.len() + 2 + usize::from(plus), index, plus))
    }
}

/// Marks the columns that a text has a placeholder of; `used` has a place for each.
pub fn mark_used(names: &Names, text: &[u8], used: &mut [bool]) {
    let places = Places { names, taken: None };
    for piece in places.cut(text, false).iter().flatten() {
        if let Piece::Column(index, _) = piece {
            used[*index] = true;
        }
    }
}

/// Pieces under construction.
#[derive(Default)]
pub(crate) struct Pieces {
    pub(crate) done: Vec<Piece>,
    pending: Vec<u8>,
}

impl Pieces {
    pub(crate) fn fixed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    pub(crate) fn place(&mut self, piece: Piece) {
        self.cut();
        self.done.push(piece);
    }

    pub(crate) fn cut(&mut self) {
        if !self.pending.is_empty() {
            self.done.push(Piece::Fixed(Arc::from(std::mem::take(&mut self.pending))));
        }
    }

    /// Adds pieces; fixed ones are joined.
    pub(crate) fn add(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Fixed(bytes) => self.fixed(bytes),
                place => self.place(place.clone()),
            }
        }
    }

    /// Adds a text, cut at its placeholders if it has any.
    fn text(&mut self, text: &[u8], places: Places<'_>, in_path: bool) -> Result<(), String> {
        if !(0..text.len()).any(|at| places.at(&text[at..], in_path).is_some()) {
            self.fixed(text);
            return Ok(());
        }
        let mut rest = text;
        while let Some(first) = rest.first() {
            let taken = if rest.starts_with(ESCAPED) {
                self.pending.push(b'{');
                ESCAPED.len()
            } else if let Some((len, piece)) = places.at(rest, in_path) {
                self.add(&[piece?]);
                len
            } else {
                self.pending.push(*first);
                1
            };
            rest = &rest[taken..];
        }
        Ok(())
    }
}

/// The number of decimal digits of the largest u64.
pub(crate) const DIGITS_MOST: usize = 20;

pub(crate) fn decimal(mut number: u64, digits: &mut [u8; DIGITS_MOST]) -> &[u8] {
    let mut at = DIGITS_MOST;
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Which request of which session is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The number of the session: `{counter}`.
    pub session: u64,
    /// The number of the virtual user: `{vu}`.
    pub user: u32,
    /// The index of the step.
    pub step: u32,
    /// The number of the step's repetition, from 1: `{repeat}`.
    pub repeat: u32,
    /// The number of the request within the session, from 0.
    pub request: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str, in_path: bool) -> Result<String, String> {
        let taken = ["token", "id-2"].map(str::to_owned);
        let columns = ["user", "a.b"].map(str::to_owned).to_vec();
        let environment = [("KEY".to_owned(), "k {user} \"{{".to_owned())].into();
        let names = Names { columns, environment };
        let places = Places { taken: Some(&taken), names: &names };
        let cut = places.cut(text.as_bytes(), in_path)?;
        let piece = |piece: &Piece| match piece {
            Piece::Fixed(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            place => format!("<{place:?}>"),
        };
        Ok(cut.iter().map(piece).collect())
    }

    #[test]
    fn a_text_is_cut_at_its_places_and_json_needs_no_escaping() {
        for (text, cut) in [
            ("", ""),
            ("plain", "plain"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
            (r#"{"user":"{token}"}"#, r#"{"user":"<Taken(0, All)>"}"#),
            ("/a/{id-2}?c={counter}", "/a/<Taken(1, All)>?c=<Counter>"),
            ("{{token}} {vu}", "{token}} <User>"),
            ("{{token}}", "{token}}"),
            ("{{x", "{{x"),
            ("{ token }{repeat}{random", "{ token }<Repeat>{random"),
            (r#"{"user":"{user}"}"#, r#"{"user":"<Column(0, All)>"}"#),
            (r#"{"a":{"b":{a.b}}}"#, r#"{"a":{"b":<Column(1, All)>}}"#),
            ("Bearer {env:KEY}", r#"Bearer k {user} "{{"#),
            ("{{env:KEY} {env:} {env:KEY", "{env:KEY} {env:} {env:KEY"),
            ("{+user}{{user}{+token}{c.d}", "<Column(0, All)>{user}{+token}{c.d}"),
        ] {
            assert_eq!(shown(text, false).as_deref(), Ok(cut), "{text}");
        }
        assert_eq!(shown("/{page}", false), Err("page".to_owned()));
    }

    #[test]
    fn in_a_path_a_plus_keeps_the_reserved_characters_of_a_column() {
        let cut = shown("/{user}/{+user}?t={token}", true);
        let found = "/<Column(0, Unreserved)>/<Column(0, Reserved)>?t=<Taken(0, Visible)>";
        assert_eq!(cut.as_deref(), Ok(found));
        let cut = shown("/?key={env:KEY}", true);
        assert_eq!(cut.as_deref(), Ok("/?key=k%20%7Buser%7D%20%22%7B%7B"));
    }

    proptest! {
        #[test]
        fn a_text_without_braces_is_sent_as_it_stands(text in "[^{]{0,64}") {
            prop_assert_eq!(shown(&text, false), Ok(text));
        }

        #[test]
        fn any_bytes_are_cut_without_panic(text in prop::collection::vec(any::<u8>(), 0..64)) {
            let places = Places { taken: Some(&[]), names: &Names::default() };
            let _ = places.cut(&text, true);
        }
    }
}
