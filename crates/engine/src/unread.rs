//! Ends an engine whose front neither says nor takes anything. A write to a full pipe would hold it
//! for ever, and with it the load, because no lease is looked at meanwhile.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// If the front is silent for this long, the engine ends (design §5).
pub(crate) const LEASE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A front that is there takes a piece of a line sooner, over any link.
const BLOCKED_MOST_MS: u64 = 500;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);
static HEARD_MS: AtomicU64 = AtomicU64::new(0);
/// The time at which the present write began; 0 if there is none.
static BLOCKED_MS: AtomicU64 = AtomicU64::new(0);

fn now_ms() -> u64 {
    START.elapsed().as_millis() as u64 + 1
}

/// Notes that the front has said something.
pub(crate) fn heard() {
    HEARD_MS.store(now_ms(), Ordering::Relaxed);
}

/// The front's words. While it says nothing, its reader looks whether it is still there: a thread
/// for this alone would be one more that a machine must grant.
#[derive(Debug)]
pub(crate) struct Heard<R>(pub(crate) R);

impl<R: AsFd> Read for Heard<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !wait_for_words(&self.0)? {
            end_if_given_up();
        }
        Ok(rustix::io::read(&self.0, into)?)
    }
}

/// Waits for `LOOK_EVERY` at most; returns whether there is something to read, or the end.
fn wait_for_words(from: &impl AsFd) -> io::Result<bool> {
    let most = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
    match poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&most)) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// Ends the process once the front, which says no more, takes nothing.
pub(crate) fn watch() -> ! {
    loop {
        thread::sleep(LOOK_EVERY);
        end_if_given_up();
    }
}

fn end_if_given_up() {
    let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
    if is_given_up(now_ms(), read(&HEARD_MS), read(&BLOCKED_MS)) {
        process::exit(1);
    }
}

fn is_given_up(now_ms: u64, heard_ms: u64, blocked_ms: u64) -> bool {
    blocked_ms > 0
        && now_ms.saturating_sub(blocked_ms) > BLOCKED_MOST_MS
        && now_ms.saturating_sub(heard_ms) > LEASE.as_millis() as u64
}

/// A way to the front, whose writes are watched.
#[derive(Debug)]
pub(crate) struct Watched<W>(pub(crate) W);

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        watched(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        watched(|| self.0.flush())
    }
}

fn watched<T>(write: impl FnOnce() -> T) -> T {
    BLOCKED_MS.store(now_ms(), Ordering::Relaxed);
    let written = write();
    BLOCKED_MS.store(0, Ordering::Relaxed);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_is_given_up_if_it_is_silent_and_a_write_does_not_end() {
        for (heard_ms, blocked_ms, given_up) in [
            (7_999, 9_499, true),
            (8_000, 9_499, false),
            (7_999, 9_500, false),
            (1, 0, false),
            (1, 1, true),
        ] {
            let answer = is_given_up(10_000, heard_ms, blocked_ms);
            assert_eq!(answer, given_up, "heard at {heard_ms} ms, blocked since {blocked_ms} ms");
        }
    }
}
