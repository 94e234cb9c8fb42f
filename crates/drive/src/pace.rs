//! Slow connections: how many bytes each may read and write by when. Pure.
//!
//! A connection passes a small piece, and then waits until the piece has taken its time. So bytes
//! go at an even rate, and not in one burst a second. A piece that was late is made up for, but
//! never more than one: a connection that was quiet for long has saved nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::net::Token;

/// A piece takes this long: each connection passes twenty a second. With ten times as many, ten
/// thousand connections would take all of a CPU for their timers.
const PIECE_NS: u64 = 50_000_000;
/// The largest piece; at a higher rate pieces come more often.
const PIECE_MOST: u64 = 16 * 1024;
/// The smallest receive buffer that is asked for: with less, the kernel sends an acknowledgement
/// for every few bytes.
const RECEIVE_BUFFER_LEAST: u64 = 4 * 1024;

/// How fast each connection reads and writes, in bytes per second; 0 for as fast as it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Reading.
    pub read_per_s: u64,
    /// Writing.
    pub write_per_s: u64,
}

impl Rates {
    /// Whether reading or writing is slowed down.
    fn is_slow(self) -> bool {
        self.read_per_s > 0 || self.write_per_s > 0
    }

    fn receive_buffer(self) -> Option<u32> {
        let bytes = piece(self.read_per_s).max(RECEIVE_BUFFER_LEAST);
        (self.read_per_s > 0).then_some(bytes as u32)
    }
}

fn piece(per_s: u64) -> u64 {
    let in_time = u128::from(per_s) * u128::from(PIECE_NS) / 1_000_000_000;
    (in_time as u64).clamp(1, PIECE_MOST)
}

/// How one direction of a connection passes its pieces.
#[derive(Clone, Copy, Debug)]
struct Pace {
    per_s: u64,
    /// The next piece may pass at this time.
    next_ns: u64,
    /// The connection waits for that time.
    waits: bool,
}

impl Pace {
    fn new(per_s: u64) -> Self {
        Pace { per_s, next_ns: 0, waits: false }
    }

    /// The number of bytes that may pass now.
    fn most(&self, now_ns: u64) -> usize {
        match self.per_s {
            0 => usize::MAX,
            _ if now_ns < self.next_ns => 0,
            per_s => piece(per_s) as usize,
        }
    }

    fn passed(&mut self, now_ns: u64, bytes: usize) {
        if self.per_s == 0 {
            return;
        }
        let takes_ns = |bytes: u64| {
            let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.per_s);
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        let earliest_ns = now_ns.saturating_sub(takes_ns(piece(self.per_s)));
        self.next_ns = self.next_ns.max(earliest_ns).saturating_add(takes_ns(bytes as u64));
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// The connections of a driver that are slow on purpose.
#[derive(Debug)]
pub(crate) struct Slow {
    rates: Rates,
    /// By the places of the connections: their generations, and the paces of both directions.
    paces: Vec<Option<(u32, [Pace; 2])>>,
    /// Connections that wait, by the time at which they may go on.
    waiting: BinaryHeap<Reverse<(u64, u32, u32, Direction)>>,
}

impl Slow {
    /// None if connections may go as fast as they can.
    pub(crate) fn new(rates: Rates) -> Option<Box<Self>> {
        let (paces, waiting) = (Vec::new(), BinaryHeap::new());
        rates.is_slow().then(|| Box::new(Slow { rates, paces, waiting }))
    }

    /// The receive buffer of a connection that reads slowly. The kernel would take megabytes that
    /// nobody has read, and the peer would not notice.
    pub(crate) fn receive_buffer(&self) -> Option<u32> {
        self.rates.receive_buffer()
    }

    /// Makes a new connection slow.
    pub(crate) fn begin(&mut self, token: Token) {
        let index = token.index as usize;
        if self.paces.len() <= index {
            self.paces.resize(index + 1, None);
        }
        let paces = [self.rates.read_per_s, self.rates.write_per_s].map(Pace::new);
        self.paces[index] = Some((token.generation, paces));
    }

    fn pace(&mut self, token: Token, direction: Direction) -> Option<&mut Pace> {
        let (generation, paces) = self.paces.get_mut(token.index as usize)?.as_mut()?;
        (*generation == token.generation).then_some(&mut paces[direction as usize])
    }

    /// The number of bytes that may pass now.
    pub(crate) fn most(&mut self, token: Token, direction: Direction, now_ns: u64) -> usize {
        self.pace(token, direction).map_or(usize::MAX, |pace| pace.most(now_ns))
    }

    /// Returns the same; if there are none, the connection waits until there are.
    pub(crate) fn may_pass(&mut self, token: Token, direction: Direction, now_ns: u64) -> usize {
        let most = self.most(token, direction, now_ns);
        if most == 0 {
            self.wait(token, direction);
        }
        most
    }

    pub(crate) fn passed(&mut self, token: Token, direction: Direction, now_ns: u64, bytes: usize) {
        if let Some(pace) = self.pace(token, direction) {
            pace.passed(now_ns, bytes);
        }
    }

    /// Has a connection wait until its next piece may pass, unless it does so already.
    pub(crate) fn wait(&mut self, token: Token, direction: Direction) {
        if let Some(pace) = self.pace(token, direction)
            && !std::mem::replace(&mut pace.waits, true)
        {
            let at_ns = pace.next_ns;
            self.waiting.push(Reverse((at_ns, token.index, token.generation, direction)));
        }
    }

    /// The time at which the first may go on.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// Takes one whose time has come; it may have been closed meanwhile.
    pub(crate) fn next_to_go_on(&mut self, now_ns: u64) -> Option<(Token, Direction)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse((_, index, generation, direction)) = self.waiting.pop()?;
        let token = Token { index, generation };
        if let Some(pace) = self.pace(token, direction) {
            pace.waits = false;
        }
        Some((token, direction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    /// Passes as much as is allowed whenever something is, looking every `look_ns`.
    fn passed(per_s: u64, for_ns: u64, look_ns: u64) -> (u64, u64) {
        let (mut pace, mut sum, mut largest) = (Pace::new(per_s), 0, 0);
        for now_ns in (0..for_ns).step_by(look_ns as usize) {
            let bytes = pace.most(now_ns);
            if bytes > 0 {
                pace.passed(now_ns, bytes);
                (sum, largest) = (sum + bytes as u64, largest.max(bytes as u64));
            }
        }
        (sum, largest)
    }

    #[test]
    fn a_rate_is_kept_to_in_small_pieces() {
        for (per_s, largest) in
            [(20, 1), (1_000, 50), (65_536, 3_276), (1 << 20, 16_384), (64 << 20, 16_384)]
        {
            let (sum, found) = passed(per_s, 10 * S, MS / 10);
            let expected = 10 * per_s;
            assert!(sum.abs_diff(expected) <= per_s / 20 + 2 * largest, "{sum} at {per_s}/s");
            assert_eq!(found, largest, "at {per_s}/s");
        }
    }

    #[test]
    fn looks_that_come_late_cost_nothing_and_a_quiet_time_saves_nothing() {
        // A look every 70 ms finds a piece of 50 ms each time, and makes up for one at most.
        let (sum, _) = passed(1_000, 7 * S, 70 * MS);
        assert_eq!(sum, 100 * 50);
        let mut pace = Pace::new(1_000);
        pace.passed(0, 50);
        pace.passed(60 * S, 50);
        assert_eq!(pace.most(60 * S), 50, "one piece is made up for");
        pace.passed(60 * S, 50);
        assert_eq!(pace.most(60 * S), 0);
    }

    #[test]
    fn without_a_rate_everything_may_pass() {
        let mut pace = Pace::new(0);
        pace.passed(0, 1 << 30);
        assert_eq!(pace.most(0), usize::MAX);
        assert_eq!(Rates::default().receive_buffer(), None);
        assert!(!Rates::default().is_slow());
    }

    #[test]
    fn a_receive_buffer_holds_a_piece_and_is_never_tiny() {
        for (read_per_s, bytes) in [(100, 4_096), (65_536, 4_096), (1 << 20, 16_384)] {
            let rates = Rates { read_per_s, write_per_s: 0 };
            assert_eq!(rates.receive_buffer(), Some(bytes), "{read_per_s}");
        }
    }

    #[test]
    fn a_connection_waits_once_and_goes_on_at_its_time() {
        let rates = Rates { read_per_s: 1_000, write_per_s: 0 };
        let mut slow = Slow::new(rates).expect("it is slow");
        let token = Token { index: 3, generation: 7 };
        slow.begin(token);
        slow.passed(token, Direction::Read, 0, 50);
        slow.passed(token, Direction::Read, 0, 50);
        assert_eq!(slow.may_pass(token, Direction::Read, 0), 0);
        assert_eq!(slow.may_pass(token, Direction::Read, 0), 0);
        assert_eq!(slow.may_pass(token, Direction::Write, 0), usize::MAX);
        let at_ns = slow.next_ns().expect("it waits");
        assert_eq!(slow.next_to_go_on(at_ns - 1), None);
        assert_eq!(slow.next_to_go_on(at_ns), Some((token, Direction::Read)));
        assert_eq!(slow.next_to_go_on(u64::MAX), None);
        let later = Token { generation: 8, ..token };
        assert_eq!(slow.most(later, Direction::Read, 0), usize::MAX, "another connection");
    }
}
