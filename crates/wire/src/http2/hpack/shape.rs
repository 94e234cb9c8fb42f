//! The effect of a block on a dynamic table, determined without a table.

use super::{fields, integer};

/// The effect of a block that does not change the table size and can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of fields that it inserts.
    pub inserts: u32,
    /// Whether it refers to entries of the dynamic table. If not, its meaning does not depend on
    /// them.
    pub refers: bool,
}

/// The shape of a block; none if it changes the table size or is cut short.
pub fn shape(block: &[u8]) -> Option<Shape> {
    let mut shape = Shape { inserts: 0, refers: false };
    let mut rest = block;
    while let Some(first) = rest.first() {
        let (prefix, strings) = match first {
            0x80..=0xff => (7, 0),
            0x40..=0x7f => (6, 1),
            0x20..=0x3f => return None,
            0x00..=0x1f => (4, 1),
        };
        let (index, taken) = integer::read(rest, prefix).ok()?;
        rest = &rest[taken..];
        shape.refers |= index > fields::FIELDS.len();
        shape.inserts += u32::from(prefix == 6);
        let strings = strings + u32::from(strings > 0 && index == 0);
        for _ in 0..strings {
            let (len, taken) = integer::read(rest, 7).ok()?;
            rest = rest.get(taken + len..)?;
        }
    }
    Some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_shape_of_its_fields() {
        let of = |inserts, refers| Some(Shape { inserts, refers });
        for (block, expected, what) in [
            (&[][..], of(0, false), "nothing"),
            (&[0x88], of(0, false), "a field of the static table"),
            (&[0xbd], of(0, false), "the last of it"),
            (&[0xbe], of(0, true), "the first of the dynamic table"),
            (&[0x76, 1, b'x'], of(1, false), "server, inserted"),
            (&[0x7e, 1, b'x'], of(1, true), "a dynamic name, inserted"),
            (&[0x40, 1, b'a', 2, b'b', b'c', 0x88], of(1, false), "a new name, inserted"),
            (&[0x0f, 0x27, 1, b'x'], of(0, false), "server, written out"),
            (&[0x0f, 0x2f, 1, b'x'], of(0, true), "a dynamic name, written out"),
            (&[0x10, 1, b'a', 0], of(0, false), "never to be inserted"),
            (&[0x3f, 0xe1, 0x1f, 0x88], None, "a change of size"),
            (&[0x76, 2, b'x'], None, "cut in a value"),
            (&[0x40, 1, b'a'], None, "cut behind a name"),
        ] {
            assert_eq!(shape(block), expected, "{what}");
        }
    }
}
