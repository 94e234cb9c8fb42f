//! Pseudo-random numbers from a seed, for handshake keys and masks (RFC 6455 §4.1, §5.3). They need
//! not be secret here.

/// A pseudo-random stream.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The stream for this seed.
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// The next eight bytes: `SplitMix64` (Steele, Lea, Flood 2014).
    #[inline]
    pub fn draw(&mut self) -> [u8; 8] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    }

    /// The next key to mask a frame with.
    #[inline]
    pub fn mask(&mut self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.draw();
        [a, b, c, d]
    }

    /// The 16 random bytes that the key of an opening handshake is made from.
    pub fn handshake(&mut self) -> [u8; 16] {
        let mut random = [0; 16];
        random.as_chunks_mut::<8>().0.iter_mut().for_each(|half| *half = self.draw());
        random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_splitmix64() {
        // The values of Rosetta Code, "Pseudo-random numbers/Splitmix64", for the seed 1234567.
        let mut chance = Chance::new(1_234_567);
        let drawn = [(); 3].map(|()| u64::from_le_bytes(chance.draw()));
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_mask_and_a_key_are_taken_from_the_stream() {
        let mut chance = Chance::new(7);
        let drawn = [(); 3].map(|()| chance.draw());
        let mut again = Chance::new(7);
        assert_eq!(again.mask(), drawn[0][..4]);
        assert_eq!(again.handshake(), [drawn[1], drawn[2]].concat()[..]);
    }
}
