//! Placeholders in the texts of a request: `{counter}`, `{random}`, `{column}` and `{env:NAME}`; in a
//! session also `{repeat}`, `{vu}` and the values that are taken from answers.
//!
//! How it works: a text is cut into pieces once; filling it means going through the pieces. In a
//! text that has a placeholder, `{{` stands for `{`. A text without one is sent as it stands, so
//! that JSON needs no escaping. How a value is written depends on where it goes (`fit`).
//!
//! Must not know: where the values come from.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fit::{self, Body, Fit, InJson, Spot};
use super::stamp::{STAMP_BYTES, Stamp};

/// Names that a session may use without taking a value first; other requests have the first two.
pub const BUILT_IN: [&str; 5] = ["counter", "random", "repeat", "stamp", "vu"];
const NAME_BYTES_MOST: usize = 64;
const ESCAPED: &[u8] = b"{{";
const ENVIRONMENT: &[u8] = b"env:";
/// Longest placeholder.
const PLACE_BYTES_MOST: usize = 1024;

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
    /// When a session's message is sent.
    fn stamp(&self) -> Stamp {
        Stamp::default()
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
    /// A random number of its own for each place of each request.
    Random,
    /// The number of the repetition of a session's step.
    Repeat,
    /// The number of the virtual user.
    User,
    /// When the message of a session is sent.
    Stamp,
    /// The value of a column of data, and how it is written.
    Column(usize, Fit),
    /// A value that a step takes, by its index, and how it is written.
    Taken(usize, Fit),
    /// The path that a session has written, and the number of its random placeholders.
    Path(u32),
    /// The Cookie line of a session.
    Cookies,
    /// The length of the body.
    Length,
}

/// A part of a request while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// Bytes that are the same in every request.
    Fixed(&'a Arc<[u8]>),
    /// A number in decimal digits, or a value.
    Filled(&'a [u8]),
}

impl Written<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Written::Fixed(bytes) => bytes,
            Written::Filled(bytes) => bytes,
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
        put: &mut impl FnMut(Written<'_>),
    ) {
        let number = match self {
            Piece::Fixed(bytes) => return put(Written::Fixed(bytes)),
            Piece::Column(index, fit) => return put_value(filling.column(*index), *fit, put),
            Piece::Taken(index, fit) => return put_value(filling.taken(*index), *fit, put),
            Piece::Path(randoms) => {
                *drawn += randoms;
                return put(Written::Filled(filling.path()));
            }
            Piece::Cookies => {
                let mut line = Vec::new();
                filling.write_cookies(&mut line);
                return put(Written::Filled(&line));
            }
            Piece::Stamp => return put(Written::Filled(filling.stamp().text().as_bytes())),
            Piece::Counter => filling.counter(),
            Piece::Repeat => filling.turn().repeat.into(),
            Piece::User => filling.turn().user.into(),
            Piece::Random => {
                *drawn += 1;
                filling.random(*drawn - 1)
            }
            Piece::Length => return,
        };
        put(Written::Filled(decimal(number, &mut [0; DIGITS_MOST])));
    }

    /// The most bytes that it takes, if no value is longer than `value_most`.
    pub(crate) fn len_most(&self, value_most: usize) -> usize {
        match self {
            Piece::Fixed(bytes) => bytes.len(),
            Piece::Column(_, fit) | Piece::Taken(_, fit) => fit.len_most(value_most),
            // Only requests of sessions have these, and no longest one.
            Piece::Path(_) | Piece::Cookies => 0,
            Piece::Stamp => STAMP_BYTES,
            _ => DIGITS_MOST,
        }
    }
}

fn put_value(value: &[u8], fit: Fit, put: &mut impl FnMut(Written<'_>)) {
    if fit.keeps(value) {
        put(Written::Filled(value));
    } else {
        put(Written::Filled(&fit.written(value)));
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

/// The columns that fill these pieces and fulfil a condition.
pub(crate) fn columns(
    pieces: &[Piece],
    is_meant: impl Fn(Fit) -> bool,
) -> impl Iterator<Item = usize> {
    pieces.iter().filter_map(move |piece| match piece {
        Piece::Column(index, fit) if is_meant(*fit) => Some(*index),
        _ => None,
    })
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

/// Cuts texts at their placeholders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) names: &'a Names,
    /// In a session, the names of values that earlier steps take from their answers.
    pub(crate) taken: Option<&'a [String]>,
}

impl Places<'_> {
    /// Cuts a text. One without placeholders is one piece, an empty one none. An error is the name
    /// of a session's value that is not known.
    pub(crate) fn cut(self, text: &[u8], spot: Spot) -> Result<Box<[Piece]>, String> {
        let mut pieces = Pieces::default();
        pieces.text(text, self, spot)?;
        pieces.cut();
        Ok(pieces.done.into())
    }

    /// Cuts a body. In one that is JSON, whatever its places become, values are written as JSON.
    pub(crate) fn cut_body(self, body: &[u8], kind: Body) -> Result<Box<[Piece]>, String> {
        if kind == Body::Json || kind == Body::Unnamed {
            let pieces = self.cut(body, Spot::Json(InJson::default()))?;
            let text = sample(&pieces, &[]);
            if fit::is_json(&text) && (kind == Body::Json || begins_json(&text)) {
                return Ok(pieces);
            }
        }
        self.cut(body, if kind == Body::Form { Spot::Form } else { Spot::Other })
    }

    /// The placeholder that a text begins with: its length, and its piece or the name of a
    /// session's value that is not known.
    fn at(self, text: &[u8], spot: Spot) -> Option<(usize, Result<Piece, String>)> {
        let inside = text.strip_prefix(b"{")?;
        let end = inside.iter().take(PLACE_BYTES_MOST).position(|byte| *byte == b'}')?;
        let inside = &inside[..end];
        let (name, fit) = fit::named(inside, spot);
        if inside.starts_with(b"+") && name.starts_with(ENVIRONMENT) {
            return None;
        }
        Some((end + 2, self.piece(name, fit)?))
    }

    /// The piece for a name, if it is that of a value.
    fn piece(self, name: &[u8], fit: Fit) -> Option<Result<Piece, String>> {
        if let Some(name) = name.strip_prefix(ENVIRONMENT) {
            // The front refuses one that is not set; of `{{env:NAME}` nobody asks the value.
            let name = str::from_utf8(name).ok().filter(|name| is_name(name.as_bytes()))?;
            let value = self.names.environment.get(name).map_or("", String::as_str);
            return Some(Ok(Piece::Fixed(fit.of_text().written(value.as_bytes()).into())));
        }
        Some(Ok(match (name, self.taken) {
            (b"counter", _) => Piece::Counter,
            (b"random", _) => Piece::Random,
            (b"repeat", Some(_)) => Piece::Repeat,
            (b"stamp", Some(_)) => Piece::Stamp,
            (b"vu", Some(_)) => Piece::User,
            (_, taken) => {
                let index = |names: &[String]| names.iter().position(|one| one.as_bytes() == name);
                if let Some(column) = index(&self.names.columns) {
                    return Some(Ok(Piece::Column(column, fit)));
                }
                let taken = taken.filter(|_| is_name(name))?;
                match index(taken) {
                    Some(index) => Piece::Taken(index, fit),
                    None => return Some(Err(String::from_utf8_lossy(name).into_owned())),
                }
            }
        }))
    }
}

/// Whether a body may be an object or a list.
fn begins_json(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// A text with the values of a row, and a digit in each other place.
pub(crate) fn sample(pieces: &[Piece], row: &[&[u8]]) -> Vec<u8> {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Fixed(bytes) => bytes.to_vec(),
        Piece::Column(index, fit) => {
            row.get(*index).map_or(b"1".into(), |value| fit.written(value))
        }
        Piece::Stamp => b"stamp".to_vec(),
        _ => b"1".into(),
    });
    texts.collect::<Vec<_>>().concat()
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
    fn text(&mut self, text: &[u8], places: Places<'_>, mut spot: Spot) -> Result<(), String> {
        if !(0..text.len()).any(|at| places.at(&text[at..], spot).is_some()) {
            self.fixed(text);
            return Ok(());
        }
        let mut rest = text;
        while let Some(first) = rest.first() {
            let taken = if rest.starts_with(ESCAPED) {
                self.pending.push(b'{');
                ESCAPED.len()
            } else if let Some((len, piece)) = places.at(rest, spot) {
                self.add(&[piece?]);
                len
            } else {
                spot.pass(*first);
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
    /// It is the last one of the session.
    pub is_last: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str, spot: Spot) -> Result<String, String> {
        let taken = ["token", "id-2"].map(str::to_owned);
        let columns = ["user", "a.b"].map(str::to_owned).to_vec();
        let environment = [("KEY".to_owned(), "k {user} \"{{".to_owned())].into();
        let names = Names { columns, environment };
        let places = Places { taken: Some(&taken), names: &names };
        let cut = places.cut(text.as_bytes(), spot)?;
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
            ("{+user}{{user}{+token}{c.d}", "<Column(0, All)>{user}<Taken(0, All)>{c.d}"),
            ("{user|raw}{token|json}", "<Column(0, All)><Taken(0, All, json)>"),
            ("{user|xml}{user|}{|raw}{counter|raw}", "{user|xml}{user|}{|raw}<Counter>"),
        ] {
            assert_eq!(shown(text, Spot::Other).as_deref(), Ok(cut), "{text}");
        }
        assert_eq!(shown("/{page}", Spot::Path), Err("page".to_owned()));
    }

    #[test]
    fn where_a_value_goes_decides_how_it_is_written() {
        let json = Spot::Json(InJson::default());
        for (spot, text, cut) in [
            (
                Spot::Path,
                "/{user}/{+user}/{user|raw}?t={token}&j={token|json}",
                "/<Column(0, Unreserved)>/<Column(0, Reserved)>/<Column(0, Legal)>\
                 ?t=<Taken(0, Unreserved)>&j=<Taken(0, Unreserved, json)>",
            ),
            (Spot::Path, "/?key={env:KEY}", "/?key=k%20%7Buser%7D%20%22%7B%7B"),
            (Spot::Form, "a={user}&{token|raw}", "a=<Column(0, Unreserved)>&<Taken(0, All)>"),
            (
                json,
                r#"{"a":"\\\"{user}{user|raw}","b":{user},"c":{token|json},"d":"{token|json}"}"#,
                r#"{"a":"\\\"<Column(0, Text)><Column(0, Raw)>","b":<Column(0, Value)>,"c":<Taken(0, All, json)>,"d":"<Taken(0, Text, json)>"}"#,
            ),
            (
                json,
                r#"{"a":"{env:KEY}","b":{env:KEY}}"#,
                r#"{"a":"k {user} \"{{","b":"k {user} \"{{"}"#,
            ),
            (json, r#"{"a":"{counter}","b":{vu}}"#, r#"{"a":"<Counter>","b":<User>}"#),
        ] {
            assert_eq!(shown(text, spot).as_deref(), Ok(cut), "{text}");
        }
    }

    #[test]
    fn a_body_is_json_if_it_says_so_or_looks_like_it_whatever_fills_it() {
        let taken = ["t".to_owned()];
        let names = Names { columns: vec!["c".to_owned()], ..Names::default() };
        let places = Places { taken: Some(&taken), names: &names };
        let text = [Piece::Column(0, Fit::TEXT)];
        for (body, kind, is_text) in [
            (r#"{"a":"{c}"}"#, Body::Json, true),
            (r#"{"a":"{c}"}"#, Body::Unnamed, true),
            ("{\"a\":\"{c}\"}\n{\"b\":{t}{counter}}\n", Body::Json, true),
            (r#""{c}""#, Body::Json, true),
            (r#""{c}""#, Body::Unnamed, false),
            (r#"{"a":"{c}""#, Body::Json, false),
            (r#"{"a":"{c}"}"#, Body::Other, false),
            (r#"[x "{c}"]"#, Body::Unnamed, false),
        ] {
            let cut = places.cut_body(body.as_bytes(), kind).expect("known names");
            assert_eq!(cut.contains(&text[0]), is_text, "{body} {cut:?}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_braces_is_sent_as_it_stands(text in "[^{]{0,64}") {
            prop_assert_eq!(shown(&text, Spot::Other), Ok(text));
        }

        #[test]
        fn any_bytes_are_cut_without_panic(text in prop::collection::vec(any::<u8>(), 0..64)) {
            let places = Places { taken: Some(&[]), names: &Names::default() };
            let _ = places.cut(&text, Spot::Path);
            let _ = places.cut_body(&text, Body::Json);
        }
    }
}
