//! A template for requests, with placeholders that are filled at each sending: `{counter}`,
//! `{random}`, and columns of data.
//!
//! How it works: the texts of a request are cut into pieces once; writing it means going through
//! the pieces. A text without a placeholder is sent as it stands, so that JSON needs no escaping.
//! Content-Length is the length of the filled body.
//!
//! Must not know: who counts, where randomness and data come from, and what is sent when.

use std::sync::Arc;

use crate::message::places::{self, DIGITS_MOST, Piece, Pieces, Places, decimal};
use crate::message::{Filling, Part, Texts};

/// A request that can be written repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
    /// The index of the first piece of the body.
    body_at: usize,
}

impl Template {
    /// Creates a request without placeholders; its headers must state the length of the body.
    pub fn plain(texts: &Texts<'_>) -> Self {
        let mut pieces = Pieces::default();
        head(&mut pieces, texts, None);
        pieces.fixed(b"\r\n");
        pieces.fixed(texts.body.unwrap_or_default());
        pieces.cut();
        Template { pieces: pieces.done.into_boxed_slice(), body_at: 1 }
    }

    /// Creates a request whose path, header values and body may have numbers filled in. The
    /// Content-Length of a body is added.
    pub fn filled(texts: &Texts<'_>) -> Self {
        Self::with_columns(texts, &[])
    }

    /// The same with the columns of data, by name, besides the numbers.
    pub fn with_columns(texts: &Texts<'_>, columns: &[String]) -> Self {
        let places = Places { columns };
        let mut body = Pieces::default();
        texts.body.iter().for_each(|text| body.text(text, places, false));
        let mut pieces = Pieces::default();
        head(&mut pieces, texts, Some(places));
        if texts.body.is_some() {
            pieces.fixed(b"Content-Length: ");
            if body.done.is_empty() {
                pieces.fixed(body.pending.len().to_string().as_bytes());
            } else {
                pieces.place(Piece::Length);
            }
            pieces.fixed(b"\r\n");
        }
        pieces.fixed(b"\r\n");
        body.cut();
        if let [Piece::Fixed(only)] = &body.done[..] {
            pieces.fixed(only);
            body.done.clear();
        }
        pieces.cut();
        let body_at = pieces.done.len();
        pieces.done.append(&mut body.done);
        Template { pieces: pieces.done.into_boxed_slice(), body_at }
    }

    /// The whole request, if it is always the same.
    pub fn fixed(&self) -> Option<&Arc<[u8]>> {
        match &*self.pieces {
            [Piece::Fixed(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Whether it has a placeholder of a column.
    pub fn has_column(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Column(..)))
    }

    /// Writes the parts of the request in order.
    pub fn write(&self, filling: &impl Filling, put: &mut impl FnMut(Part<'_>)) {
        let mut drawn = 0;
        for piece in &self.pieces {
            if let Piece::Length = piece {
                let body = &self.pieces[self.body_at..];
                let before = places::randoms(&self.pieces[..self.body_at]);
                let len = places::len(body, filling, before);
                put(Part::Filled(decimal(len, &mut [0; DIGITS_MOST])));
            } else {
                piece.write(filling, &mut drawn, put);
            }
        }
    }

    /// The length of the longest request that this can become, in bytes, if no value of a column is
    /// longer than `value_most`.
    pub fn len_most(&self, value_most: usize) -> usize {
        let lens = self.pieces.iter().map(|piece| piece.len_most(value_most));
        lens.fold(0, usize::saturating_add)
    }
}

/// Adds the request line and headers, without the empty line after them. Without `places` the texts
/// are taken as they stand.
fn head(pieces: &mut Pieces, texts: &Texts<'_>, places: Option<Places<'_>>) {
    let add = |pieces: &mut Pieces, text: &str, in_path| match places {
        Some(places) => pieces.text(text.as_bytes(), places, in_path),
        None => pieces.fixed(text.as_bytes()),
    };
    pieces.fixed(texts.method.as_bytes());
    pieces.fixed(b" ");
    add(pieces, texts.path, true);
    pieces.fixed(b" HTTP/1.1\r\n");
    for (name, value) in texts.headers {
        pieces.fixed(name.as_bytes());
        pieces.fixed(b": ");
        add(pieces, value, false);
        pieces.fixed(b"\r\n");
    }
}
