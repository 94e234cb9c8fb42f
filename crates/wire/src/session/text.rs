//! Texts with places for values: `{name}`.
//!
//! In a text that has a place, `{{` stands for `{`. A text without one is sent as it stands, so
//! that JSON needs no escaping. Columns of data are written as everywhere else, also as `{+name}`
//! in a path.

use crate::message::places::{Kept, Places};

/// Names that every request may use without taking a value first.
pub const BUILT_IN: [&str; 4] = ["counter", "random", "repeat", "vu"];
const NAME_BYTES_MOST: usize = 64;

/// A value that fills a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// The number of the session.
    Counter,
    /// A number drawn anew for each place of each request.
    Random,
    /// The number of the repetition of the step, from 1.
    Repeat,
    /// The number of the virtual user.
    User,
    /// A value that a step takes, by its index.
    Taken(usize),
    /// The value of a column of data, by its index, and what is kept of it as it is.
    Column(usize, Kept),
}

/// The names that a text may use, besides those of built-in values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    /// Names of values that earlier steps take from their answers.
    pub(super) taken: &'a [String],
    /// Names of the columns of the data file.
    pub(super) columns: &'a [String],
}

impl Value {
    fn built_in(name: &str) -> Option<Value> {
        Some(match name {
            "counter" => Value::Counter,
            "random" => Value::Random,
            "repeat" => Value::Repeat,
            "vu" => Value::User,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Fixed(Box<[u8]>),
    Place(Value),
}

/// A text, cut at its places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) pieces: Vec<Piece>,
    /// It is a path, in which some bytes of values are percent-encoded.
    pub(super) in_path: bool,
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

impl Names<'_> {
    /// The place that a text begins with: its length, and the value that fills it, or else the name
    /// of one that is not known.
    fn place(self, text: &[u8], in_path: bool) -> Option<(usize, Result<Value, String>)> {
        let columns = Places { columns: self.columns };
        if let Some((len, index, plus)) = columns.column_at(text) {
            return Some((len, Ok(Value::Column(index, Kept::at(in_path, plus)))));
        }
        let name = name_at(text)?;
        let taken = || self.taken.iter().position(|known| known == name).map(Value::Taken);
        let value = Value::built_in(name).or_else(taken).ok_or_else(|| name.to_owned());
        Some((name.len() + 2, value))
    }
}

impl Text {
    /// Cuts a text at its places. An error is the name of a value that is not known.
    pub(super) fn cut(text: &[u8], names: Names<'_>, in_path: bool) -> Result<Text, String> {
        let has_place = (0..text.len()).any(|at| names.place(&text[at..], in_path).is_some());
        if !has_place {
            return Ok(Text { pieces: fixed(text.to_vec()).into_iter().collect(), in_path });
        }
        let (mut pieces, mut pending, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some(first) = rest.first() {
            if rest.starts_with(b"{{") {
                pending.push(b'{');
                rest = &rest[2..];
            } else if let Some((len, value)) = names.place(rest, in_path) {
                pieces.extend(fixed(std::mem::take(&mut pending)));
                pieces.push(Piece::Place(value?));
                rest = &rest[len..];
            } else {
                pending.push(*first);
                rest = &rest[1..];
            }
        }
        pieces.extend(fixed(pending));
        Ok(Text { pieces, in_path })
    }

    /// Its bytes, if they are always the same.
    pub(super) fn fixed(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [] => Some(&[]),
            [Piece::Fixed(bytes)] => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn has_column(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Place(Value::Column(..))))
    }

    /// The indices of the taken values that it uses.
    pub(super) fn taken(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(Value::Taken(index)) => Some(*index),
            _ => None,
        })
    }
}

fn fixed(bytes: Vec<u8>) -> Option<Piece> {
    (!bytes.is_empty()).then(|| Piece::Fixed(bytes.into_boxed_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: Names<'static> = Names { taken: &[], columns: &[] };

    fn shown(text: &str, in_path: bool) -> Result<String, String> {
        let taken = ["token", "id-2"].map(str::to_owned);
        let columns = ["user", "a.b"].map(str::to_owned);
        let names = Names { taken: &taken, columns: &columns };
        let cut = Text::cut(text.as_bytes(), names, in_path)?;
        let piece = |piece: &Piece| match piece {
            Piece::Fixed(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Piece::Place(value) => format!("<{value:?}>"),
        };
        Ok(cut.pieces.iter().map(piece).collect())
    }

    #[test]
    fn a_text_is_cut_at_its_places_and_json_needs_no_escaping() {
        for (text, cut) in [
            ("", ""),
            ("plain", "plain"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
            (r#"{"user":"{token}"}"#, r#"{"user":"<Taken(0)>"}"#),
            ("/a/{id-2}?c={counter}", "/a/<Taken(1)>?c=<Counter>"),
            ("{{token}} {vu}", "{token}} <User>"),
            ("{{token}}", "{token}}"),
            ("{{x", "{{x"),
            ("{ token }{repeat}{random", "{ token }<Repeat>{random"),
            (r#"{"user":"{user}"}"#, r#"{"user":"<Column(0, All)>"}"#),
            (r#"{"a":{"b":{a.b}}}"#, r#"{"a":{"b":<Column(1, All)>}}"#),
            ("{+user}{{user}{+token}{c.d}", "<Column(0, All)>{user}{+token}{c.d}"),
        ] {
            assert_eq!(shown(text, false).as_deref(), Ok(cut), "{text}");
        }
        assert_eq!(shown("/{page}", false), Err("page".to_owned()));
    }

    #[test]
    fn in_a_path_a_plus_keeps_the_reserved_characters_of_a_column() {
        let cut = shown("/{user}/{+user}?t={token}", true);
        let found = "/<Column(0, Unreserved)>/<Column(0, Reserved)>?t=<Taken(0)>";
        assert_eq!(cut.as_deref(), Ok(found));
    }

    proptest! {
        #[test]
        fn a_text_without_braces_is_sent_as_it_stands(text in "[^{]{0,64}") {
            prop_assert_eq!(shown(&text, false), Ok(text));
        }

        #[test]
        fn any_bytes_are_cut_without_panic(text in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Text::cut(&text, NONE, true);
        }
    }
}
