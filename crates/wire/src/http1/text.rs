//! Classes of bytes, and scans over runs of one class, eight bytes per step.
//!
//! Must not know: what the run belongs to.

/// HTAB, SP, VCHAR or obs-text: the bytes allowed in a value or a reason (RFC 9110 §5.5, RFC 9112
/// §4).
pub(crate) fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// tchar of RFC 9110 §5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(b, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*')
            || matches!(b, b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

/// Whether `name` equals `known`, ignoring case. The usual spelling is fastest.
#[inline]
pub(crate) fn is_named(name: &[u8], known: &[u8]) -> bool {
    name == known || name.eq_ignore_ascii_case(known)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES * 0x80;

/// The end of the run of token characters that begins at `from`. The fast path is for letters and
/// `-`.
#[inline]
pub(crate) fn token_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let other = not_letters(u64::from_le_bytes(*eight));
        if other != 0 {
            at += other.trailing_zeros() as usize / 8;
            break;
        }
        at += 8;
    }
    let rest = &bytes[at..];
    at + rest.iter().position(|&byte| !is_token(byte)).unwrap_or(rest.len())
}

/// Sets the high bit of each byte that is neither a letter nor `-`.
#[inline]
fn not_letters(eight: u64) -> u64 {
    let low = eight & !HIGHS;
    let folded = low | (ONES * 0x20);
    let from_a = folded + ONES * (0x80 - b'a' as u64);
    let beyond_z = folded + ONES * (0x7f - b'z' as u64);
    let not_dash = (low ^ (ONES * b'-' as u64)) + (ONES * 0x7f);
    (((!from_a | beyond_z) & not_dash) | eight) & HIGHS
}

/// The end of the run of text that begins at `from`.
#[inline]
pub(crate) fn text_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let odd = controls(u64::from_le_bytes(*eight));
        // A branch, not arithmetic, so that the next eight bytes are loaded before these are
        // judged.
        if odd == 0 {
            at += 8;
            continue;
        }
        at += odd.trailing_zeros() as usize / 8;
        if bytes[at] != b'\t' {
            return at;
        }
        at += 1;
    }
    let rest = &bytes[at..];
    at + rest.iter().position(|&byte| !is_text(byte)).unwrap_or(rest.len())
}

/// Sets the high bit of the lowest byte that is below SP or is DEL. Higher bytes may be marked
/// wrongly.
#[inline]
fn controls(eight: u64) -> u64 {
    let below_space = eight.wrapping_sub(ONES * 0x20) & !eight;
    let del = eight ^ (ONES * 0x7f);
    let is_del = del.wrapping_sub(ONES) & !del;
    (below_space | is_del) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place of a run of harmless ones.
    fn check(harmless: u8, end: fn(&[u8], usize) -> usize, goes_on: fn(u8) -> bool) {
        for byte in 0..=255 {
            for (place, len) in (0..20).flat_map(|place| [(place, 20), (place, place + 1)]) {
                let mut bytes = vec![harmless; len];
                bytes[place] = byte;
                let expected = if goes_on(byte) { len } else { place };
                assert_eq!(end(&bytes, 0), expected, "{byte:#x} at {place} of {len}");
            }
        }
    }

    #[test]
    fn a_stride_ends_at_the_first_byte_of_another_kind() {
        check(b'a', token_end, is_token);
        check(b'-', token_end, is_token);
        check(b' ', text_end, is_text);
        check(b'\t', text_end, is_text);
        check(0xff, text_end, is_text);
        check(b'~', text_end, is_text);
    }

    #[test]
    fn of_eight_bytes_exactly_those_are_marked_that_are_neither_letters_nor_a_dash() {
        for (byte, other) in (0..=255)
            .flat_map(|byte| [0, b'-', b'a', b'Z', b'`', 0x7f, 0xff].map(|other| (byte, other)))
        {
            for place in 0..8 {
                let mut eight = [other; 8];
                eight[place] = byte;
                let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-';
                let marks = eight.map(|byte| if is_letter(byte) { 0 } else { 0x80 });
                let found = not_letters(u64::from_le_bytes(eight));
                assert_eq!(
                    found,
                    u64::from_le_bytes(marks),
                    "{byte:#x} at {place} among {other:#x}"
                );
            }
        }
    }

    #[test]
    fn a_stride_begins_where_it_is_told() {
        assert_eq!(token_end(b"::a:", 2), 3);
        assert_eq!(text_end(b"\r\n \r", 2), 3);
        assert_eq!(text_end(b"", 0), 0);
    }
}
