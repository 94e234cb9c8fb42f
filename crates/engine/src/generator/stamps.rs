//! Stamps requests with their send times, and measures how much of their time was spent in this
//! generator.
//!
//! A request counts as sent when the driver hands it to the kernel, never when it was queued. The
//! clock is read before and after a small group of sends, and each send is stamped with its part of
//! the time between. On a sample of the connections the kernel reports when answers arrived. With
//! that, both ends of the generator's own share are known.

use trueload_drive::{Conn, Net};
use trueload_load::random;
use trueload_wire::exchange::{Exchange, Outcome};

use super::Generator;
use super::accounting::Accounting;
use super::connection::ConnectionState;
use super::protocol::Protocol;
use super::slot::{Slot, Tag};
use super::written::Written;

/// Most sends that are handed over together: as many as io_uring's submission queue has room for,
/// beside some others. Smaller groups cost more, and tell no better when each send left. Measured
/// with 64 connections over loopback, against whole batches: groups of 8 cost 8 % of a request's
/// CPU time, groups of 16 cost 5 %. 100,000 connections take 81 MB with groups of 256, and 47 MB
/// with these. The p50 of round trips was within 16 us of packet timestamps with all of them.
const TOGETHER: usize = 1_000;
/// The arrival times of one connection in this many are asked for: each costs a larger receive.
const WATCHED_OF: u32 = 16;

/// The requests written since the last stamps.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    written: Vec<Written>,
}

impl Stamps {
    /// Notes requests that are being written.
    #[inline]
    pub(super) fn note(&mut self, written: Written) {
        self.written.push(written);
    }
}

impl<P: Protocol> Generator<P> {
    /// Stamps what has been written, once it is enough for a group.
    #[inline]
    pub(super) fn stamp_group(&mut self, net: &mut impl Net) {
        if self.stamps.written.len() >= TOGETHER {
            self.stamp_written(net);
        }
    }

    /// Hands over what has been written, and stamps it.
    #[inline]
    pub(super) fn stamp_written(&mut self, net: &mut impl Net) {
        if self.stamps.written.is_empty() {
            return;
        }
        let mut written = std::mem::take(&mut self.stamps.written);
        let times = net.hand_over().times(written.len());
        for (one, at_ns) in written.drain(..).zip(times) {
            if self.is_held_up(net, one.key) {
                self.note_behind_handshake(one);
                continue;
            }
            let at_ns = at_ns.max(one.could_ns);
            if let Some(slot) = self.slots.get_mut(one.key) {
                slot.client.change_newest(|tag| tag.stamp(at_ns));
            }
            self.accounting.note_send_lag(at_ns, one);
        }
        self.stamps.written = written;
    }

    /// Keeps when the first requests of a connection could have been sent. What they wait for is ours:
    /// the kernel takes the end of the handshake before them.
    fn note_behind_handshake(&mut self, written: Written) {
        let Slot { tls, state, .. } = &mut self.slots[written.key];
        if let Some(secure) = tls.as_mut().filter(|_| !state.kept && written.count > 0) {
            secure.behind_handshake = Some(written);
        }
    }

    /// Notes that the bytes that have waited on a slot have left, or are about to.
    pub(super) fn note_drained(&mut self, key: u32) {
        let secure = self.slots[key].tls.as_mut();
        let first = secure.and_then(|secure| secure.behind_handshake.take());
        self.stamps.note(first.unwrap_or_else(|| Written::without_lag(key)));
    }

    /// Whether a request written to this slot has not begun to leave, because its peer takes
    /// nothing. It is stamped when it has left.
    #[inline]
    fn is_held_up(&mut self, net: &impl Net, key: u32) -> bool {
        let Some(slot) = self.slots.get_mut(key) else { return false };
        let ConnectionState::Open { token } = slot.state.connection else { return false };
        let sealing = slot.tls.as_ref().is_some_and(|secure| !secure.waiting.is_empty());
        match net.queued_bytes(token) {
            0 if !sealing => false,
            bytes => {
                self.codec.note_queued(slot, bytes, self.accounting.drawn);
                slot.client.is_unsent()
            }
        }
    }

    /// Asks the kernel for the arrival times of a new connection, if its slot is in the sample or all
    /// are wanted.
    pub(super) fn watch_if_sampled(&self, net: &mut impl Net, conn: Conn) {
        let all = self.codec.protocol.times_arrivals();
        if all || is_watched(self.config.seed, self.config.thread, conn.key, self.slots.len()) {
            net.watch_arrivals(conn.token);
        }
    }
}

impl Tag {
    /// Notes the time at which it was handed to the kernel; false if that was known.
    #[inline]
    fn stamp(&mut self, at_ns: u64) -> bool {
        let fresh = !std::mem::replace(&mut self.handed_over, true);
        if fresh {
            self.sent_ns = at_ns;
        }
        fresh
    }
}

impl Accounting {
    /// Notes how long after they could have been sent requests were handed over.
    #[inline]
    pub(super) fn note_send_lag(&mut self, at_ns: u64, written: Written) {
        let Written { phase, count, could_ns, .. } = written;
        if count > 0 {
            let times = &mut self.phases[usize::from(phase)].meter.times;
            times.record_send_lag(at_ns.saturating_sub(could_ns), u64::from(count));
        }
    }

    /// Notes the arrival time of an answer that has been read, if the kernel reported it.
    #[inline]
    pub(super) fn note_arrival(
        &mut self,
        now_ns: u64,
        arrived_ns: Option<u64>,
        last: Option<&Outcome<Tag>>,
    ) {
        if let (Some(arrived_ns), Some(Outcome { tag, complete: true, .. })) = (arrived_ns, last) {
            let phase = &mut self.phases[usize::from(tag.phase)];
            // A quick answer may arrive before its request's group was stamped: it took almost no
            // time.
            let round_trip_ns = arrived_ns.saturating_sub(tag.sent_ns);
            let lag_ns = now_ns.saturating_sub(arrived_ns);
            phase.meter.times.record_arrival(round_trip_ns, lag_ns);
        }
    }
}

/// Whether the slot `key` of a thread with `slots` slots is in the sample: one of each sixteen,
/// drawn by the seed, and one if there are fewer.
fn is_watched(seed: u64, thread: u32, key: u32, slots: u32) -> bool {
    let block = key / WATCHED_OF;
    let most = if block == 0 { WATCHED_OF.min(slots.max(1)) } else { WATCHED_OF };
    let drawn = random(seed, u64::from(block), thread) % u64::from(most);
    u64::from(key % WATCHED_OF) == drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_connection_in_sixteen_is_watched_and_one_of_fewer() {
        for seed in 0..50 {
            for (slots, watched) in [(1, 1), (2, 1), (3, 1), (16, 1), (32, 2), (64, 4), (1600, 100)]
            {
                let found = (0..slots).filter(|key| is_watched(seed, 0, *key, slots)).count();
                assert_eq!(found, watched, "seed {seed}, {slots} slots");
            }
        }
    }

    #[test]
    fn the_seed_draws_which_are_watched() {
        let of = |seed, thread| (0..64).filter(|key| is_watched(seed, thread, *key, 64)).collect();
        let [one, again, other, elsewhere]: [Vec<u32>; 4] =
            [of(1, 0), of(1, 0), of(2, 0), of(1, 1)];
        assert_eq!(one, again);
        assert_ne!(one, other);
        assert_ne!(one, elsewhere);
    }
}
