//! Texts with places for values: `{name}`.
//!
//! In a text that has a place, `{{` stands for `{`. A text without one is sent as it stands, so
//! that JSON needs no escaping.

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
}

impl Value {
    /// The built-in value of this name.
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
pub(super) struct Text(pub(super) Vec<Piece>);

/// Whether this can be the name of a value: a letter or `_`, then letters, digits, `_` and `-`.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    let starts = name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let follows = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    starts && name.len() <= NAME_BYTES_MOST && name.iter().all(follows)
}

/// The name of the place that a text begins with.
fn place(text: &[u8]) -> Option<&str> {
    let inside = text.strip_prefix(b"{")?;
    let end = inside.iter().take(NAME_BYTES_MOST + 1).position(|byte| *byte == b'}')?;
    let name = &inside[..end];
    std::str::from_utf8(name).ok().filter(|name| is_name(name.as_bytes()))
}

impl Text {
    /// Cuts a text at its places; `taken` has the names of the values that were taken before.
    ///
    /// # Errors
    /// The name of a value that is not known.
    pub(super) fn cut(text: &[u8], taken: &[String]) -> Result<Text, String> {
        let has_place = (0..text.len()).any(|at| place(&text[at..]).is_some());
        if !has_place {
            return Ok(Text(fixed(text.to_vec()).into_iter().collect()));
        }
        let (mut pieces, mut pending, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some(first) = rest.first() {
            if rest.starts_with(b"{{") {
                pending.push(b'{');
                rest = &rest[2..];
            } else if let Some(name) = place(rest) {
                let known = || taken.iter().position(|known| known == name).map(Value::Taken);
                let value = Value::built_in(name).or_else(known).ok_or_else(|| name.to_owned())?;
                pieces.extend(fixed(std::mem::take(&mut pending)));
                pieces.push(Piece::Place(value));
                rest = &rest[name.len() + 2..];
            } else {
                pending.push(*first);
                rest = &rest[1..];
            }
        }
        pieces.extend(fixed(pending));
        Ok(Text(pieces))
    }

    /// The indices of the taken values that it uses.
    pub(super) fn taken(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().filter_map(|piece| match piece {
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

    fn shown(text: &str) -> Result<String, String> {
        let cut = Text::cut(text.as_bytes(), &["token".to_owned(), "id-2".to_owned()])?;
        let piece = |piece: &Piece| match piece {
            Piece::Fixed(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Piece::Place(value) => format!("<{value:?}>"),
        };
        Ok(cut.0.iter().map(piece).collect())
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
        ] {
            assert_eq!(shown(text).as_deref(), Ok(cut), "{text}");
        }
        assert_eq!(shown("/{page}"), Err("page".to_owned()));
    }

    proptest! {
        #[test]
        fn a_text_without_braces_is_sent_as_it_stands(text in "[^{]{0,64}") {
            prop_assert_eq!(shown(&text), Ok(text));
        }

        #[test]
        fn any_bytes_are_cut_without_panic(text in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Text::cut(&text, &[]);
        }
    }
}
