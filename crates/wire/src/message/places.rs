//! Placeholders in the texts of a request: `{counter}`, `{random}` and `{column}`.
//!
//! How it works: a text is cut into pieces once; filling it means going through the pieces. In a
//! text that has a placeholder, `{{` stands for `{`. In a path, a column's value is percent-encoded
//! as RFC 6570 expands `{name}` and `{+name}`; elsewhere both stand for the value as it is.
//!
//! Must not know: where the values come from.

use std::sync::Arc;

const COUNTER: &[u8] = b"{counter}";
const RANDOM: &[u8] = b"{random}";
const ESCAPED: &[u8] = b"{{";

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
    Random,
    /// The value of a column of data, and what is kept of it as it is.
    Column(usize, Kept),
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
}

impl Kept {
    /// What is kept of a value in a path or elsewhere; `plus`: its place is written with a plus.
    pub(crate) fn at(in_path: bool, plus: bool) -> Self {
        match (in_path, plus) {
            (false, _) => Kept::All,
            (true, false) => Kept::Unreserved,
            (true, true) => Kept::Reserved,
        }
    }

    /// The value percent-encoded; none if it is sent as it is.
    pub(crate) fn encoded(self, value: &[u8]) -> Option<Vec<u8>> {
        if self == Kept::All || value.iter().all(|byte| is_unreserved(*byte)) {
            return None;
        }
        let mut out = Vec::with_capacity(3 * value.len());
        for (at, byte) in value.iter().enumerate() {
            let kept = is_unreserved(*byte)
                || self == Kept::Reserved
                    && (b":/?[]@!$&'()*+,;=".contains(byte) || is_encoded(&value[at..]));
            if kept {
                out.push(*byte);
            } else {
                out.push(b'%');
                out.extend([byte >> 4, byte & 15].map(|half| b"0123456789ABCDEF"[half as usize]));
            }
        }
        Some(out)
    }

    /// The most bytes that one byte of a value takes.
    fn bytes_most(self) -> usize {
        if self == Kept::All { 1 } else { 3 }
    }
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
            Piece::Column(index, kept) => {
                let value = filling.column(*index);
                return match kept.encoded(value) {
                    None => put(Part::Filled(value)),
                    Some(encoded) => put(Part::Filled(&encoded)),
                };
            }
            Piece::Counter => filling.counter(),
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
            Piece::Counter | Piece::Random | Piece::Length => DIGITS_MOST,
            Piece::Column(_, kept) => value_most.saturating_mul(kept.bytes_most()),
        }
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
    pieces.iter().filter(|piece| **piece == Piece::Random).count() as u32
}

/// Cuts texts at their placeholders; `columns` are the names of those of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) columns: &'a [String],
}

impl Places<'_> {
    /// Cuts a text. One without placeholders is one piece, an empty one none.
    pub(crate) fn cut(self, text: &[u8], in_path: bool) -> Vec<Piece> {
        let mut pieces = Pieces::default();
        pieces.text(text, self, in_path);
        pieces.cut();
        pieces.done
    }

    /// The placeholder of a column that a text begins with: its length, the column's index, and
    /// whether it is written with a plus.
    pub(crate) fn column_at(self, text: &[u8]) -> Option<(usize, usize, bool)> {
        let text = text.strip_prefix(b"{")?;
        let (plus, rest) = text.strip_prefix(b"+").map_or((false, text), |rest| (true, rest));
        let name = &rest[..rest.iter().position(|byte| *byte == b'}')?];
        let index = self.columns.iter().position(|column| column.as_bytes() == name)?;
        Some((name.len() + 2 + usize::from(plus), index, plus))
    }

    /// Whether a text has a placeholder, or the name of one after `{{`.
    fn are_in(self, text: &[u8]) -> bool {
        let is_place = |at: usize| {
            let rest = &text[at..];
            rest.starts_with(COUNTER) || rest.starts_with(RANDOM) || self.column_at(rest).is_some()
        };
        (0..text.len()).any(is_place)
    }

    /// Marks the columns that a text has a placeholder of.
    pub(crate) fn mark_used(self, text: &[u8], used: &mut [bool]) {
        for piece in self.cut(text, false) {
            if let Piece::Column(index, _) = piece {
                used[index] = true;
            }
        }
    }
}

/// Marks the columns that a text has a placeholder of; `used` has a place for each.
pub fn mark_used(columns: &[String], text: &[u8], used: &mut [bool]) {
    Places { columns }.mark_used(text, used);
}

/// Pieces under construction.
#[derive(Default)]
pub(crate) struct Pieces {
    pub(crate) done: Vec<Piece>,
    pub(crate) pending: Vec<u8>,
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

    /// Adds a text, cut at its placeholders if it has any.
    pub(crate) fn text(&mut self, text: &[u8], places: Places<'_>, in_path: bool) {
        if !places.are_in(text) {
            return self.fixed(text);
        }
        let mut rest = text;
        while let Some(first) = rest.first() {
            let taken = if rest.starts_with(ESCAPED) {
                self.pending.push(b'{');
                ESCAPED.len()
            } else if rest.starts_with(COUNTER) {
                self.place(Piece::Counter);
                COUNTER.len()
            } else if rest.starts_with(RANDOM) {
                self.place(Piece::Random);
                RANDOM.len()
            } else if let Some((len, index, plus)) = places.column_at(rest) {
                self.place(Piece::Column(index, Kept::at(in_path, plus)));
                len
            } else {
                self.pending.push(*first);
                1
            };
            rest = &rest[taken..];
        }
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
