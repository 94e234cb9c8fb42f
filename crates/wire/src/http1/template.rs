//! A request template as HTTP/1 writes it.
//!
//! How it works: the pieces of all texts are joined, in order. Content-Length is the length of the
//! filled body.
//!
//! Must not know: who counts, where randomness and data come from, and what is sent when.

use std::sync::Arc;

use crate::message::places::{self, DIGITS_MOST, Piece, Pieces, decimal};
use crate::message::{self, Filling, Written};

/// A request that can be written repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
    /// The index of the first piece of the body.
    body_at: usize,
}

impl Template {
    /// The form of a request over HTTP/1.
    pub fn of(request: &message::Template) -> Self {
        let mut pieces = Pieces::default();
        pieces.fixed(&request.method);
        pieces.fixed(b" ");
        pieces.add(&request.target);
        pieces.fixed(b" HTTP/1.1\r\n");
        for (name, value) in &request.headers {
            pieces.fixed(name);
            pieces.fixed(b": ");
            pieces.add(value);
            pieces.fixed(b"\r\n");
        }
        if request.adds_cookies {
            pieces.place(Piece::Cookies);
        }
        if request.adds_length {
            pieces.fixed(b"Content-Length: ");
            match request.fixed_len() {
                Some(len) => pieces.fixed(len.to_string().as_bytes()),
                None => pieces.place(Piece::Length),
            }
            pieces.fixed(b"\r\n");
        }
        pieces.fixed(b"\r\n");
        if request.fixed_len().is_none() {
            pieces.cut();
        }
        let body_at = pieces.done.len();
        pieces.add(&request.body);
        pieces.cut();
        Template { pieces: pieces.done.into(), body_at }
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
        places::has_column(&self.pieces)
    }

    /// Writes the parts of the request in order.
    pub fn write(&self, filling: &impl Filling, put: &mut impl FnMut(Written<'_>)) {
        let mut drawn = 0;
        for piece in &self.pieces {
            if let Piece::Length = piece {
                let body = &self.pieces[self.body_at..];
                let before = places::randoms(&self.pieces[..self.body_at]);
                let len = places::len(body, filling, before);
                put(Written::Filled(decimal(len, &mut [0; DIGITS_MOST])));
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
