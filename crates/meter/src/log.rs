//! A log of single requests, of bounded size.
//!
//! How it works: each request that ends gets a number, and by a hash of that number a level: half of
//! all have level 0, a quarter have level 1, and so on. A full log gives up the lowest level that it
//! has. What is left is a sample of one request in 2^level, whatever the requests were. Rows are
//! kept by level, so that giving up a level moves none.

use crate::Class;

/// One request that has ended. Times are on the engine's clock, 0 if they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// The time at which the load asked for it.
    pub due_ns: u64,
    /// The time of its send.
    pub sent_ns: u64,
    /// The time of the first byte of its answer.
    pub first_byte_ns: u64,
    /// The time of the last byte, or of the failure; 0 if it was open at the very end.
    pub end_ns: u64,
    /// The number of its connection; [`u32::MAX`] if it had none.
    pub connection: u32,
    /// The index of its target or step; 0 if there is only one.
    pub target: u32,
    /// The status of its answer; 0 if there was none.
    pub status: u16,
    /// How it failed.
    pub class: Option<Class>,
    /// One request in 2^level has this level or a higher one. A log decides it.
    pub level: u8,
}

impl Logged {
    /// Appends its 44 bytes, lowest first: four times since the start in ns (all ones if unknown),
    /// connection, target, status, class (0 for none, else its place from 1) and level.
    pub fn write(&self, started_ns: u64, out: &mut Vec<u8>) {
        for at_ns in [self.due_ns, self.sent_ns, self.first_byte_ns, self.end_ns] {
            let since_ns = if at_ns == 0 { u64::MAX } else { at_ns.saturating_sub(started_ns) };
            out.extend(since_ns.to_le_bytes());
        }
        out.extend(self.connection.to_le_bytes());
        out.extend(self.target.to_le_bytes());
        out.extend(self.status.to_le_bytes());
        out.extend([self.class.map_or(0, |class| class as u8 + 1), self.level]);
    }
}

/// The requests of one thread.
#[derive(Debug, Default)]
pub struct RequestLog {
    rows_most: usize,
    rows: usize,
    /// Decides the levels of the numbers.
    seed: u64,
    /// The number of requests that have ended, here or not.
    pub ended: u64,
    /// The lowest level that is here.
    pub level: u8,
    levels: Vec<Vec<Logged>>,
    /// The level and the place there of the request that ended last on each connection.
    last: Vec<(u8, usize)>,
}

impl RequestLog {
    /// A log of at most so many rows, one at least.
    pub fn new(rows_most: usize, seed: u64) -> Self {
        RequestLog { rows_most: rows_most.max(1), seed, ..RequestLog::default() }
    }

    /// Enters a request that has just ended.
    pub fn note(&mut self, row: Logged) {
        let level = mixed(self.seed ^ self.ended).trailing_zeros() as u8;
        self.ended += 1;
        while level >= self.level && self.rows >= self.rows_most {
            let given_up = self.levels.get_mut(usize::from(self.level)).map(std::mem::take);
            self.rows -= given_up.map_or(0, |rows| rows.len());
            self.level += 1;
        }
        let at = usize::from(level);
        self.levels.resize_with(self.levels.len().max(at + 1), Vec::new);
        let place = self.levels[at].len();
        if level >= self.level {
            self.levels[at].push(Logged { level, ..row });
            self.rows += 1;
        }
        if row.connection < u32::MAX {
            let connection = row.connection as usize;
            self.last.resize(self.last.len().max(connection + 1), (0, usize::MAX));
            self.last[connection] = (level, place);
        }
    }

    /// Changes how the last request of a connection ended, if it is here.
    pub fn amend(&mut self, connection: u32, class: Class) {
        let Some((level, place)) = self.last.get(connection as usize) else { return };
        let rows = self.levels.get_mut(usize::from(*level));
        if let Some(row) = rows.and_then(|rows| rows.get_mut(*place)) {
            row.class = Some(class);
        }
    }

    /// The rows, in no order.
    pub fn rows(&mut self) -> impl Iterator<Item = &mut Logged> {
        self.levels.iter_mut().flatten()
    }
}

/// A hash whose lowest bits are as good as any (SplitMix64, prng.di.unimi.it).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(number: u64) -> Logged {
        Logged { connection: (number % 7) as u32, due_ns: number, ..Logged::default() }
    }

    proptest! {
        #[test]
        fn what_fits_is_there_whole_and_more_is_a_sample_of_one_in_a_power_of_two(
            most in 1usize..3_000, ended in 0u64..20_000, seed: u64,
        ) {
            let mut log = RequestLog::new(most, seed);
            (0..ended).for_each(|number| log.note(row(number)));
            let (level, counted) = (log.level, log.ended);
            let mut found: Vec<_> = log.rows().map(|row| (row.due_ns, row.level)).collect();
            found.sort_unstable();
            let level_of = |number: u64| mixed(seed ^ number).trailing_zeros() as u8;
            let expected = (0..ended).filter(|number| level_of(*number) >= level);
            prop_assert_eq!(counted, ended);
            prop_assert!(found.len() <= most);
            prop_assert_eq!(level == 0, ended <= most as u64);
            prop_assert!(found.iter().all(|(number, level)| *level == level_of(*number)));
            prop_assert!(found.into_iter().map(|(number, _)| number).eq(expected));
        }

        #[test]
        fn only_the_last_request_of_a_connection_is_amended(
            most in 1usize..200, ended in 1u64..400, connection in 0u32..8,
        ) {
            let mut log = RequestLog::new(most, 1);
            (0..ended).for_each(|number| log.note(row(number)));
            log.note(Logged { connection: u32::MAX, due_ns: ended, ..Logged::default() });
            log.amend(connection, Class::Unsolicited);
            let last = (0..ended).rev().find(|number| number % 7 == u64::from(connection));
            for row in log.rows() {
                let amended = row.class == Some(Class::Unsolicited);
                prop_assert_eq!(amended, Some(row.due_ns) == last);
            }
        }
    }

    #[test]
    fn a_sample_is_unbiased_in_time() {
        let (most, ended) = (1_000, 1_000_000_u64);
        for seed in 0..4 {
            let mut log = RequestLog::new(most, seed);
            (0..ended).for_each(|number| log.note(row(number)));
            let mut tenths = [0_u64; 10];
            log.rows().for_each(|row| tenths[(row.due_ns * 10 / ended) as usize] += 1);
            let expected = (ended / 10) >> log.level;
            for found in tenths {
                assert!(found.abs_diff(expected) < expected / 2, "{tenths:?} of {expected} each");
            }
        }
    }

    #[test]
    fn a_row_has_44_bytes_and_takes_48_in_memory() {
        let class = Some(Class::ConnectRefused);
        let row = Logged { due_ns: 5, sent_ns: 3, status: 0x1234, class, ..Logged::default() };
        let mut bytes = Vec::new();
        row.write(2, &mut bytes);
        let expected = [&[3, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 7], &[0xff; 16], &[0; 8]].concat();
        assert_eq!((&bytes[..40], &bytes[40..]), (&expected[..], &[0x34, 0x12, 2, 0][..]));
        assert_eq!(size_of::<Logged>(), 48);
    }
}
