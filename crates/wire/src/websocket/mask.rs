//! Masking (RFC 6455 §5.3): every byte of a client's payload is combined with one of four key
//! bytes.
//!
//! How it works: eight bytes at a time, in a loop that the compiler turns into vector instructions.
//!
//! Must not know: frames.

/// Masks or unmasks `bytes`; their first byte has the index `offset` in its payload.
#[inline]
pub fn apply(bytes: &mut [u8], mut key: [u8; 4], offset: usize) {
    key.rotate_left(offset % 4);
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (eights, rest) = bytes.as_chunks_mut::<8>();
    for eight in eights {
        *eight = (u64::from_ne_bytes(*eight) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip([a, b, c, d, a, b, c, d]) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_meets_the_byte_of_the_key_that_its_place_says() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        for len in 0..70 {
            for offset in 0..9 {
                let plain: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
                let expected: Vec<u8> = plain
                    .iter()
                    .enumerate()
                    .map(|(at, byte)| byte ^ key[(at + offset) % 4])
                    .collect();
                let mut masked = plain.clone();
                apply(&mut masked, key, offset);
                assert_eq!(masked, expected, "{len} bytes from {offset}");
                apply(&mut masked, key, offset);
                assert_eq!(masked, plain, "masked twice is not masked");
            }
        }
    }

    #[test]
    fn the_example_of_the_rfc_is_hello() {
        // RFC 6455 §5.7.
        let mut payload = [0x7f, 0x9f, 0x4d, 0x51, 0x58];
        apply(&mut payload, [0x37, 0xfa, 0x21, 0x3d], 0);
        assert_eq!(&payload, b"Hello");
    }
}
