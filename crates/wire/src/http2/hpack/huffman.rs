//! The Huffman code of RFC 7541 Appendix B.
//!
//! How it works: the code is canonical, so the lengths of the codes determine it completely. The
//! tables are computed from the lengths at compile time. Ten bits are looked up at once, which
//! covers every symbol of a usual header. Longer codes are found by comparison with the first code
//! of each length.

use super::Error;

/// The number of symbols: all bytes, and the end-of-string symbol.
const SYMBOLS: usize = 257;
const END: u16 = 256;
const LONGEST: usize = 30;
/// The number of bits that are looked up at once.
const QUICK: usize = 10;

/// The length of each symbol's code in bits.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

struct Code {
    /// The code of each symbol, in the low bits.
    codes: [u32; SYMBOLS],
    /// All symbols, ordered by code length and then by number.
    sorted: [u16; SYMBOLS],
    /// For each length, its first code and the index in `sorted` of its first symbol.
    first: [(u32, u16); LONGEST + 2],
    /// For the next ten bits, the symbol and the length of its code; length 0 for a longer code.
    quick: [(u8, u8); 1 << QUICK],
}

static CODE: Code = build();

const fn build() -> Code {
    let mut code = Code {
        codes: [0; SYMBOLS],
        sorted: [0; SYMBOLS],
        first: [(0, 0); LONGEST + 2],
        quick: [(0, 0); 1 << QUICK],
    };
    let (mut next, mut place, mut length) = (0_u32, 0, 1);
    while length <= LONGEST {
        next <<= 1;
        code.first[length] = (next, place as u16);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code.codes[symbol] = next;
                code.sorted[place] = symbol as u16;
                if length <= QUICK {
                    fill(&mut code.quick, symbol as u8, next, length);
                }
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    code.first[LONGEST + 1] = (next << 1, place as u16);
    code
}

/// Maps every continuation of a code to its symbol.
const fn fill(quick: &mut [(u8, u8); 1 << QUICK], symbol: u8, code: u32, length: usize) {
    let mut at = (code as usize) << (QUICK - length);
    let end = at + (1 << (QUICK - length));
    while at < end {
        quick[at] = (symbol, length as u8);
        at += 1;
    }
}

/// The symbol at the start of the bits, from the highest bit down, and the length of its code.
#[inline(never)]
fn find_long(bits: u64) -> (u16, u32) {
    let mut length = QUICK + 1;
    while length < LONGEST {
        let (code, place) = CODE.first[length];
        let count = u32::from(CODE.first[length + 1].1 - place);
        let after = (bits >> (64 - length)) as u32 - code;
        if after < count {
            return (CODE.sorted[usize::from(place) + after as usize], length as u32);
        }
        length += 1;
    }
    let (code, place) = CODE.first[LONGEST];
    let after = (bits >> (64 - LONGEST)) as u32 - code;
    (CODE.sorted[usize::from(place) + after as usize], LONGEST as u32)
}

pub(super) fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    // The shortest code has five bits.
    out.reserve(bytes.len() * 8 / 5);
    let (mut rest, mut bits, mut count) = (bytes, 0_u64, 0_u32);
    loop {
        if count < LONGEST as u32 {
            (rest, bits, count) = refill(rest, bits, count);
        }
        let (symbol, length) = CODE.quick[(bits >> (64 - QUICK)) as usize];
        let (symbol, length) = match length {
            0 => find_long(bits),
            length => (u16::from(symbol), u32::from(length)),
        };
        if length > count {
            return check_padding(bits, count);
        }
        if symbol == END {
            return Err(Error::Compression("a Huffman string holds its own end"));
        }
        out.push(symbol as u8);
        bits <<= length;
        count -= length;
    }
}

/// Reads as many bytes as fit below the remaining bits.
#[inline]
fn refill(mut rest: &[u8], mut bits: u64, mut count: u32) -> (&[u8], u64, u32) {
    if let Some((next, _)) = rest.split_first_chunk::<4>() {
        bits |= u64::from(u32::from_be_bytes(*next)) << (32 - count);
        return (&rest[4..], bits, count + 32);
    }
    while let Some((&next, behind)) = rest.split_first() {
        bits |= u64::from(next) << (56 - count);
        (rest, count) = (behind, count + 8);
    }
    (rest, bits, count)
}

/// Checks that the rest is the beginning of the end-of-string code and shorter than a byte (RFC
/// 7541 §5.2).
fn check_padding(bits: u64, count: u32) -> Result<(), Error> {
    if count > 7 {
        return Err(Error::Compression("a Huffman string is padded with more than 7 bits"));
    }
    let ones = !(u64::MAX >> count);
    if bits & ones != ones {
        return Err(Error::Compression("a Huffman string is padded with zeros"));
    }
    Ok(())
}

/// The length of these bytes when encoded.
pub(super) fn encoded_len(bytes: &[u8]) -> usize {
    let bits: usize = bytes.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends these bytes in encoded form.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for byte in bytes {
        let symbol = usize::from(*byte);
        bits = bits << LENGTHS[symbol] | u64::from(CODE.codes[symbol]);
        count += u32::from(LENGTHS[symbol]);
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | 0xff_u8 >> count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        decode(bytes, &mut out).map(|()| out)
    }

    fn encoded(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(bytes, &mut out);
        assert_eq!(out.len(), encoded_len(bytes));
        out
    }

    #[test]
    fn the_codes_are_those_of_the_rfc() {
        // RFC 7541 Appendix B: the first of some lengths, the longest, and the end.
        for (symbol, code, length) in [
            (0, 0x1ff8, 13),
            (1, 0x7f_ffd8, 23),
            (10, 0x3fff_fffc, 30),
            (usize::from(b'0'), 0, 5),
            (usize::from(b't'), 9, 5),
            (usize::from(b' '), 0x14, 6),
            (usize::from(b':'), 0x5c, 7),
            (usize::from(b'&'), 0xf8, 8),
            (usize::from(b'!'), 0x3f8, 10),
            (usize::from(b'\\'), 0x7_fff0, 19),
            (128, 0xf_ffe6, 20),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
            (usize::from(END), 0x3fff_ffff, 30),
        ] {
            assert_eq!((CODE.codes[symbol], LENGTHS[symbol]), (code, length), "{symbol}");
        }
        let room: u64 = LENGTHS.iter().map(|length| 1 << (LONGEST - usize::from(*length))).sum();
        assert_eq!(room, 1 << LONGEST, "every sequence of bits is a code or begins one");
    }

    #[test]
    fn every_byte_alone_and_behind_every_other_comes_back() {
        for first in 0..=255 {
            assert_eq!(decoded(&encoded(&[first])), Ok(vec![first]));
            for second in 0..=255 {
                assert_eq!(decoded(&encoded(&[first, second])), Ok(vec![first, second]));
            }
        }
        assert_eq!(decoded(b""), Ok(Vec::new()));
    }

    #[test]
    fn padding_that_is_long_or_not_all_ones_and_an_end_are_refused() {
        for (sentence, bytes, expected) in [
            ("a byte of padding", &[0xff][..], "more than 7"),
            ("behind a symbol", &[0x07, 0xff], "more than 7"),
            ("eight bits behind a whole byte", &[0xf8, 0xff], "more than 7"),
            ("thirteen bits", &[0x07, 0xff, 0xff], "more than 7"),
            ("zeros", &[0x00], "zeros"),
            ("a zero at the end", &[0b0000_0110], "zeros"),
            ("a zero at the beginning", &[0b0000_0011], "zeros"),
            ("the end alone", &[0xff, 0xff, 0xff, 0xff], "its own end"),
            ("the end in the middle", &[0xff, 0xff, 0xff, 0xfc, 0x3f], "its own end"),
        ] {
            let error = decoded(bytes).expect_err(sentence).to_string();
            assert!(error.contains(expected), "{sentence}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decoded(&encoded(&bytes)), Ok(bytes));
        }

        #[test]
        fn what_is_decoded_has_no_other_code(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(out) = decoded(&bytes) {
                prop_assert_eq!(encoded(&out), bytes);
            }
        }
    }
}
