//! Integers with a prefix (RFC 7541 §5.1).

use super::Error;

/// The maximum number of bytes after the prefix. Four of them hold 28 bits, more than any size or
/// index here needs.
const BYTES_MOST: usize = 4;

const CUT: Error = Error::Compression("the block ends in the middle of a field");
const OVERFLOW: Error = Error::Compression("an integer has more than five bytes");

/// Reads the integer at the start of `bytes`: the low `prefix` bits of the first byte and the bytes
/// after it. Returns the value and the number of bytes read.
#[inline]
pub(super) fn read(bytes: &[u8], prefix: u32) -> Result<(usize, usize), Error> {
    let full = (1_usize << prefix) - 1;
    let (first, rest) = bytes.split_first().ok_or(CUT)?;
    let mut value = usize::from(*first) & full;
    if value < full {
        return Ok((value, 1));
    }
    for at in 0..BYTES_MOST {
        let byte = usize::from(*rest.get(at).ok_or(CUT)?);
        value += (byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, at + 2));
        }
    }
    Err(OVERFLOW)
}

/// Appends an integer below 2^28. The bits of `first` above the prefix are kept.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let full = (1_usize << prefix) - 1;
    if value < full {
        out.push(first | value as u8);
        return;
    }
    out.push(first | full as u8);
    let mut rest = value - full;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_are_read_and_written() {
        // RFC 7541 Appendix C.1.
        for (prefix, value, bytes) in
            [(5, 10, &[0x0a][..]), (5, 1337, &[0x1f, 0x9a, 0x0a]), (8, 42, &[0x2a])]
        {
            let mut out = Vec::new();
            write(&mut out, 0, prefix, value);
            assert_eq!(out, bytes, "{value} behind {prefix} bits");
            assert_eq!(read(bytes, prefix), Ok((value, bytes.len())));
        }
    }

    #[test]
    fn every_prefix_leaves_the_bits_above_it_alone_and_every_value_comes_back() {
        for prefix in 4..=7 {
            for value in [0, 1, 14, 15, 16, 30, 31, 126, 127, 128, 255, 16_511, (1 << 28) - 1] {
                let (mut out, first) = (Vec::new(), (0xff_u16 << prefix) as u8);
                write(&mut out, first, prefix, value);
                assert_eq!(out[0] & first, first);
                assert_eq!(read(&out, prefix), Ok((value, out.len())), "{value} in {prefix}");
                for cut in 0..out.len() {
                    assert_eq!(read(&out[..cut], prefix), Err(CUT), "{value} cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn more_than_five_bytes_are_refused_even_if_they_say_nothing() {
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00], 7), Err(OVERFLOW));
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f], 7), Err(OVERFLOW));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x00], 7), Ok((127, 5)));
    }
}
