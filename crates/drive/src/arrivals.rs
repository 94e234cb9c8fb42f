//! Arrival times of received bytes: the kernel's timestamps (`SO_TIMESTAMPING`) on the driver's
//! clock.
//!
//! The kernel stamps a segment when it takes it from the network device, long before the program
//! reads it. `recvmsg` returns the stamp of the last byte read. A stamp is wall-clock time, so both
//! clocks are read beside it to convert it. A stamp that a jump of the wall clock may have
//! falsified is dropped: no time is better than a wrong one.

use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::Clock;
use crate::datagram::message::Ancillary;
use crate::datagram::receive::last_error;

/// Room for the control message of a stamp: its header and three times (`struct scm_timestamping`).
/// The first of the three is the software stamp.
pub(crate) const CONTROL_BYTES: usize = 64;
const _: () =
    assert!(size_of::<libc::cmsghdr>() + 3 * size_of::<libc::timespec>() <= CONTROL_BYTES);

/// The wall clock has jumped if two offsets differ by more than this plus their uncertainties. Both
/// clocks run at the same rate, however they are corrected (clock_gettime(2)), so nothing else
/// moves them apart.
const JUMP_NS: u64 = 1_000;
/// After a jump, no stamp is used for this long: some may still be from before the jump.
const JUMP_REST_NS: u64 = 1_000_000_000;
/// A less certain reading is not used as the first one: the thread was interrupted during it.
const UNCERTAIN_NS: u64 = 50_000;
/// Clock readings taken before the first stamp is used; the most certain one counts.
const FIRST_READINGS: usize = 8;
/// A stamp older than this when it is read is dropped: nothing waits in a socket for so long.
const AGE_NS_MOST: u64 = 10_000_000_000;

/// Asks the kernel to stamp what this socket receives, and to pass the stamps on. Where the kernel
/// does not (Unix sockets, old kernels), no stamps come.
pub(crate) fn watch(fd: &OwnedFd) {
    let flags: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    let len = size_of_val(&flags) as libc::socklen_t;
    let value = (&raw const flags).cast();
    // SAFETY: `flags` has `len` bytes and outlives the call; the kernel only reads it.
    #[allow(unsafe_code)]
    unsafe {
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, value, len);
    }
}

/// Bytes that were handed to this socket and that its peer's kernel has not acknowledged, sent or
/// not.
pub(crate) fn unacknowledged_bytes(fd: &OwnedFd) -> Option<u64> {
    // For TCP this is `SIOCOUTQ` (tcp(7)).
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one int to `bytes`, which is one and outlives the call.
    #[allow(unsafe_code)]
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ as _, &raw mut bytes) };
    u64::try_from(bytes).ok().filter(|_| answer == 0)
}

/// The kernel's minimum round-trip time of this connection, in ns: the shortest time in which the
/// peer's kernel has acknowledged anything.
pub(crate) fn least_rtt_ns(fd: &OwnedFd) -> Option<u64> {
    // `tcpi_min_rtt` of `struct tcp_info` (linux/tcp.h), in us, since Linux 4.6; ~0 until one is
    // measured.
    const AT: usize = 148;
    let mut info = [0u8; AT + 4];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes no more than `len` bytes to `info`, which has as many, and the
    // length to `len`.
    #[allow(unsafe_code)]
    let answer = unsafe {
        let info = info.as_mut_ptr().cast();
        libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info, &raw mut len)
    };
    let whole = answer == 0 && len as usize == info.len();
    let us = info[AT..].try_into().map(u32::from_ne_bytes).ok()?;
    (whole && us != u32::MAX).then_some(u64::from(us) * 1_000)
}

/// Control messages as the kernel writes them, with the kernel's alignment.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Receives like `recv`, and returns the stamp of the last byte beside the count.
pub(crate) fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> Result<(usize, Option<u64>), Errno> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: `msghdr` consists of integers and pointers, so all zeroes are a valid value. It
    // points to a part and a control buffer of the lengths it states; both outlive the call and are
    // borrowed by nobody else.
    #[allow(unsafe_code)]
    let (count, controls) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES as _;
        let count = libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT);
        (count, header.msg_controllen as usize)
    };
    let count = usize::try_from(count).map_err(|_| last_error())?;
    Ok((count, stamp_ns(&control.0[..controls.min(CONTROL_BYTES)])))
}

/// The software stamp among control messages: wall-clock time in ns; none if the kernel passed
/// none.
pub(crate) fn stamp_ns(control: &[u8]) -> Option<u64> {
    Ancillary::read(control).stamp_ns
}

/// Converts stamps to the driver's clock.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// Wall-clock time minus the driver's, from the most certain reading, with its uncertainty.
    offset: Option<Offset>,
    unused_until_ns: u64,
    /// The latest reading of both clocks.
    latest: Option<Reading>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    ns: i64,
    uncertain_ns: u64,
}

/// The wall clock, read between two readings of the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    before_ns: u64,
    wall_ns: u64,
    after_ns: u64,
}

impl Reading {
    fn take(clock: Clock) -> Self {
        let before_ns = clock.now_ns();
        let wall = clock_gettime(ClockId::Realtime);
        let after_ns = clock.now_ns();
        let wall_ns = wall.tv_sec as u64 * 1_000_000_000 + wall.tv_nsec as u64;
        Reading { before_ns, wall_ns, after_ns }
    }

    fn more_certain(self, other: Self) -> Self {
        if other.offset().uncertain_ns < self.offset().uncertain_ns { other } else { self }
    }

    fn offset(self) -> Offset {
        let half_ns = (self.after_ns - self.before_ns) / 2;
        let ns = self.wall_ns as i64 - (self.before_ns + half_ns) as i64;
        Offset { ns, uncertain_ns: half_ns + 1 }
    }
}

impl Stamps {
    /// Converts a stamp to an arrival time on the driver's clock. Call it right after the read.
    ///
    /// Bytes that came in one batch, which began at `now_ns`, share a reading of the clocks, if
    /// they arrived before it.
    pub(crate) fn arrived_ns(&mut self, clock: Clock, now_ns: u64, stamp_ns: u64) -> Option<u64> {
        let holds = |it: &Reading| it.before_ns >= now_ns && it.wall_ns >= stamp_ns;
        if let Some(reading) = self.latest.filter(holds) {
            return self.convert(reading, stamp_ns);
        }
        let reading = Reading::take(clock);
        self.latest = Some(reading);
        if self.offset.is_none() {
            // Later readings are compared with the first one. It is the most certain of a few,
            // because each may be interrupted.
            let others = (1..FIRST_READINGS).map(|_| Reading::take(clock));
            let best = others.fold(reading, Reading::more_certain);
            return self.convert(best, stamp_ns);
        }
        self.convert(reading, stamp_ns)
    }

    fn convert(&mut self, reading: Reading, stamp_ns: u64) -> Option<u64> {
        let now_ns = reading.after_ns;
        let offset = self.offset(reading)?;
        let arrived_ns = u64::try_from(stamp_ns as i64 - offset.ns).ok()?;
        let in_time = arrived_ns <= now_ns + offset.uncertain_ns
            && now_ns.saturating_sub(arrived_ns) <= AGE_NS_MOST;
        let used = in_time && now_ns >= self.unused_until_ns;
        used.then_some(arrived_ns.min(now_ns))
    }

    /// The offset between the clocks; none if it is too uncertain or has just jumped.
    fn offset(&mut self, reading: Reading) -> Option<Offset> {
        let new = reading.offset();
        let Some(known) = self.offset else {
            self.offset = Some(new).filter(|new| new.uncertain_ns <= UNCERTAIN_NS);
            return self.offset;
        };
        let doubt_ns = new.uncertain_ns + known.uncertain_ns + JUMP_NS;
        if new.ns.abs_diff(known.ns) > doubt_ns {
            self.offset = None;
            self.unused_until_ns = reading.after_ns + JUMP_REST_NS;
            return None;
        }
        let best = if new.uncertain_ns < known.uncertain_ns { new } else { known };
        self.offset = Some(best);
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    /// Wall-clock time when the driver's clock began.
    const WALL: u64 = 1_700_000_000 * SECOND;

    /// Both clocks read at `now_ns` of the driver's clock, after the wall clock jumped by
    /// `jumped_ns`.
    fn at(now_ns: u64, jumped_ns: i64) -> Reading {
        let wall_ns = (WALL + now_ns).wrapping_add_signed(jumped_ns);
        Reading { before_ns: now_ns, wall_ns, after_ns: now_ns }
    }

    #[test]
    fn a_stamp_becomes_a_time_of_the_drivers_clock_unless_it_cannot_be_true() {
        let now_ns = 60 * SECOND;
        for (stamp_ns, arrived_ns, what) in [
            (WALL + now_ns - 20_000, Some(now_ns - 20_000), "20 us before it was read"),
            (WALL + now_ns, Some(now_ns), "just now"),
            (WALL + now_ns + 2, None, "later than it was read"),
            (WALL + now_ns - 10 * SECOND, Some(now_ns - 10 * SECOND), "10 s ago"),
            (WALL + now_ns - 10 * SECOND - 1, None, "longer ago than anything waits"),
            (WALL - 1, None, "before the clock began"),
            (5, None, "in 1970"),
        ] {
            assert_eq!(Stamps::default().convert(at(now_ns, 0), stamp_ns), arrived_ns, "{what}");
        }
    }

    #[test]
    fn bytes_of_one_batch_that_came_before_a_reading_of_the_clocks_share_it() {
        let clock = Clock::start();
        let reading = Reading::take(clock);
        let (batch_ns, wall_ns) = (reading.before_ns, reading.wall_ns);
        for (now_ns, stamp_ns, shared, what) in [
            (batch_ns, wall_ns, true, "came before"),
            (batch_ns, wall_ns + 1, false, "came later"),
            (batch_ns + 1, wall_ns, false, "belongs to the next batch"),
        ] {
            let offset = Some(reading.offset());
            let mut stamps = Stamps { offset, latest: Some(reading), ..Stamps::default() };
            let _ = stamps.arrived_ns(clock, now_ns, stamp_ns);
            assert_eq!(stamps.latest == Some(reading), shared, "{what}");
        }
    }

    #[test]
    fn after_a_jump_of_the_wall_clock_no_stamp_is_used_for_a_second() {
        for jump_ns in [-3_600 * SECOND as i64, -5_000, 5_000, SECOND as i64, 3_600 * SECOND as i64]
        {
            let mut stamps = Stamps::default();
            let convert = |stamps: &mut Stamps, now_ns: u64, jumped_ns| {
                let reading = at(now_ns, jumped_ns);
                stamps.convert(reading, reading.wall_ns - 100)
            };
            assert_eq!(convert(&mut stamps, SECOND, 0), Some(SECOND - 100));
            let after = [SECOND + 1, SECOND + 2, 2 * SECOND];
            for now_ns in after {
                assert_eq!(convert(&mut stamps, now_ns, jump_ns), None, "{jump_ns} at {now_ns}");
            }
            let later = 2 * SECOND + 1;
            assert_eq!(convert(&mut stamps, later, jump_ns), Some(later - 100), "{jump_ns}");
        }
    }

    #[test]
    fn the_wall_clock_was_read_in_the_middle_of_both_readings_give_or_take_half_their_distance() {
        let reading = Reading { before_ns: 100, wall_ns: WALL, after_ns: 121 };
        let expected = Offset { ns: (WALL - 110) as i64, uncertain_ns: 11 };
        assert_eq!(reading.offset(), expected);
    }

    #[test]
    fn the_most_certain_pair_of_readings_is_used() {
        let mut stamps = Stamps::default();
        let now_ns = 5 * SECOND;
        // The thread was interrupted between the readings: first for too long, then for 20 us.
        for (before_ns, after_ns, expected) in [
            (now_ns - 200_000, now_ns, None),
            (now_ns + SECOND - 20_000, now_ns + SECOND, Some(10_000)),
            (now_ns + 2 * SECOND, now_ns + 2 * SECOND, Some(0)),
            (now_ns + 3 * SECOND - 20_000, now_ns + 3 * SECOND, Some(0)),
        ] {
            let reading = Reading { before_ns, wall_ns: WALL + after_ns, after_ns };
            // It arrived 50 us before the last reading.
            let arrived_ns = stamps.convert(reading, WALL + after_ns - 50_000);
            let off_ns = arrived_ns.map(|arrived_ns| (after_ns - 50_000) - arrived_ns);
            assert_eq!(off_ns, expected, "read from {before_ns} to {after_ns}");
        }
    }

    fn message(level: i32, kind: i32, words: &[libc::c_long]) -> Vec<u8> {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let len = size_of::<libc::cmsghdr>() + data.len();
        let parts = [&len.to_ne_bytes()[..], &level.to_ne_bytes(), &kind.to_ne_bytes(), &data];
        parts.concat()
    }

    #[test]
    fn the_stamp_is_found_among_control_messages_and_in_none_that_is_cut_short() {
        let (socket, stamps) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
        let stamp = message(socket, stamps, &[7, 9, 0, 0, 0, 0]);
        let other = message(libc::IPPROTO_IP, libc::IP_TTL, &[64]);
        assert_eq!(stamp_ns(&stamp), Some(7 * SECOND + 9));
        assert_eq!(stamp_ns(&[other.clone(), stamp.clone()].concat()), Some(7 * SECOND + 9));
        assert_eq!(stamp_ns(&other), None);
        assert_eq!(stamp_ns(&message(socket, stamps, &[0; 6])), None, "the kernel had no stamp");
        assert_eq!(stamp_ns(&message(socket, stamps, &[-7, 9, 0, 0, 0, 0])), None);
        for end in 0..stamp.len() {
            assert_eq!(stamp_ns(&stamp[..end]), None, "cut at {end}");
        }
        assert_eq!(stamp_ns(&[0xff; CONTROL_BYTES]), None);
    }
}
