//! A template for requests, with placeholders that are filled at each sending: `{counter}` and
//! `{random}`.
//!
//! How it works: the texts of a request are cut into pieces once; writing it means going through
//! the pieces. In a text that has a placeholder, `{{` stands for `{`. A text without one is sent as
//! it stands, so that JSON needs no escaping. Content-Length is the length of the filled body.
//!
//! Must not know: who counts, where randomness comes from, and what is sent when.

use std::sync::Arc;

const COUNTER: &[u8] = b"{counter}";
const RANDOM: &[u8] = b"{random}";
const ESCAPED: &[u8] = b"{{";

/// A request that can be written repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
    /// The index of the first piece of the body.
    body_at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Fixed(Arc<[u8]>),
    Counter,
    Random,
    /// The length of the body.
    Length,
}

/// The texts of a request, in their form on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// The method.
    pub method: &'a str,
    /// The request target.
    pub path: &'a str,
    /// The names and values of the headers.
    pub headers: &'a [(String, String)],
    /// The body, if any.
    pub body: Option<&'a [u8]>,
}

/// A part of a request while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes that are the same in every request.
    Fixed(&'a Arc<[u8]>),
    /// A number in decimal digits.
    Digits(&'a [u8]),
}

impl Part<'_> {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Part::Fixed(bytes) => bytes,
            Part::Digits(digits) => digits,
        }
    }
}

impl Template {
    /// Creates a request without placeholders; its headers must state the length of the body.
    #[must_use]
    pub fn plain(texts: &Texts<'_>) -> Self {
        let mut pieces = Pieces::default();
        pieces.head(texts, Pieces::fixed);
        pieces.fixed(b"\r\n");
        pieces.fixed(texts.body.unwrap_or_default());
        pieces.cut();
        Template { pieces: pieces.done.into_boxed_slice(), body_at: 1 }
    }

    /// Creates a request whose path, header values and body may have placeholders. The
    /// Content-Length of a body is added.
    #[must_use]
    pub fn filled(texts: &Texts<'_>) -> Self {
        let mut body = Pieces::default();
        texts.body.iter().for_each(|text| body.text(text));
        let mut pieces = Pieces::default();
        pieces.head(texts, Pieces::text);
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
    #[must_use]
    pub fn fixed(&self) -> Option<&Arc<[u8]>> {
        match &*self.pieces {
            [Piece::Fixed(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Writes the parts of the request in order. `random` returns the number for the first, second,
    /// … random placeholder.
    pub fn write(&self, counter: u64, random: impl Fn(u32) -> u64, put: &mut impl FnMut(Part<'_>)) {
        let mut digits = [0; DIGITS_MOST];
        let mut drawn = 0;
        for piece in &self.pieces {
            let number = match piece {
                Piece::Fixed(bytes) => {
                    put(Part::Fixed(bytes));
                    continue;
                }
                Piece::Counter => counter,
                Piece::Random => {
                    drawn += 1;
                    random(drawn - 1)
                }
                Piece::Length => self.body_len(counter, &random),
            };
            put(Part::Digits(decimal(number, &mut digits)));
        }
    }

    fn body_len(&self, counter: u64, random: &impl Fn(u32) -> u64) -> u64 {
        let is_random = |piece: &&Piece| matches!(piece, Piece::Random);
        let mut drawn = self.pieces[..self.body_at].iter().filter(is_random).count() as u32;
        let mut digits = [0; DIGITS_MOST];
        let mut len = 0;
        for piece in &self.pieces[self.body_at..] {
            len += match piece {
                Piece::Fixed(bytes) => bytes.len(),
                Piece::Counter => decimal(counter, &mut digits).len(),
                Piece::Random => {
                    drawn += 1;
                    decimal(random(drawn - 1), &mut digits).len()
                }
                Piece::Length => 0,
            };
        }
        len as u64
    }

    /// The length of the longest request that this can become, in bytes.
    #[must_use]
    pub fn len_most(&self) -> usize {
        let len = |piece: &Piece| match piece {
            Piece::Fixed(bytes) => bytes.len(),
            Piece::Counter | Piece::Random | Piece::Length => DIGITS_MOST,
        };
        self.pieces.iter().map(len).fold(0, usize::saturating_add)
    }
}

/// Cuts a text at its placeholders. A text without placeholders is one piece, an empty one none.
pub(crate) fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut pieces = Pieces::default();
    pieces.text(text);
    pieces.cut();
    pieces.done
}

/// Pieces under construction.
#[derive(Default)]
struct Pieces {
    done: Vec<Piece>,
    pending: Vec<u8>,
}

impl Pieces {
    /// Adds the request line and headers, without the empty line after them. `text` adds texts that
    /// may have placeholders.
    fn head(&mut self, texts: &Texts<'_>, text: fn(&mut Self, &[u8])) {
        self.fixed(texts.method.as_bytes());
        self.fixed(b" ");
        text(self, texts.path.as_bytes());
        self.fixed(b" HTTP/1.1\r\n");
        for (name, value) in texts.headers {
            self.fixed(name.as_bytes());
            self.fixed(b": ");
            text(self, value.as_bytes());
            self.fixed(b"\r\n");
        }
    }

    fn fixed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    fn place(&mut self, piece: Piece) {
        self.cut();
        self.done.push(piece);
    }

    fn cut(&mut self) {
        if !self.pending.is_empty() {
            self.done.push(Piece::Fixed(Arc::from(std::mem::take(&mut self.pending))));
        }
    }

    /// Adds a text, cut at its placeholders if it has any.
    fn text(&mut self, text: &[u8]) {
        if !has_place(text) {
            return self.fixed(text);
        }
        let mut rest = text;
        while let Some(first) = rest.first() {
            let taken = if rest.starts_with(ESCAPED) {
                self.pending.push(b'{');
                ESCAPED
            } else if rest.starts_with(COUNTER) {
                self.place(Piece::Counter);
                COUNTER
            } else if rest.starts_with(RANDOM) {
                self.place(Piece::Random);
                RANDOM
            } else {
                self.pending.push(*first);
                &rest[..1]
            };
            rest = &rest[taken.len()..];
        }
    }
}

/// Whether a text has a placeholder, or the name of one after `{{`.
fn has_place(text: &[u8]) -> bool {
    let holds = |place: &[u8]| text.windows(place.len()).any(|window| window == place);
    holds(COUNTER) || holds(RANDOM)
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
