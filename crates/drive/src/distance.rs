//! The distance between two CPUs: the time a cache line takes from one to the other and back.
//!
//! Two threads, each pinned to its CPU, take turns at one number. A round is much shorter than the
//! time for which a host takes a CPU away. Few rounds are hit by that, and the median is not.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::pin_to_cpu;

const ROUNDS: usize = 41;
const HANDOVERS: u32 = 256;
/// The whole measurement takes 1 ms on CPUs that share a cache, and 4 ms on CPUs that share none.
/// If other threads compete for the CPUs, one handover would take some 4 ms.
const LASTS_MOST: Duration = Duration::from_millis(50);
/// Rounds to measure: in fewer, an interrupt could decide the median.
const ROUNDS_LEAST: usize = 5;
/// The threads put almost nothing on it; a stack of the usual size would take a huge page.
const STACK_BYTES: usize = 64 * 1024;
/// Polls between two readings of the clock.
const SPINS: u32 = 1 << 12;

const OURS: u32 = 0;
const THEIRS: u32 = 1;
const OVER: u32 = 2;

/// A cache line of its own, so that nothing else moves with it. It has 128 bytes because CPUs fetch
/// two lines at a time.
#[repr(align(128))]
struct Turn(AtomicU32);

/// Measures the round trip of a cache line between two CPUs, in ns: the median of short rounds. It
/// takes some ms and keeps both CPUs busy. It fails if the CPUs are the same, or if other threads
/// leave too little time for enough rounds.
pub fn distance_ns(cpus: [u32; 2]) -> io::Result<f64> {
    if cpus[0] == cpus[1] {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let (turn, until) = (Turn(AtomicU32::new(THEIRS)), Instant::now() + LASTS_MOST);
    // Allocated here: a thread that allocates gets a heap of its own, which would raise the
    // process's peak.
    let mut means_ns = Vec::with_capacity(ROUNDS);
    thread::scope(|scope| {
        let other = small_thread().spawn_scoped(scope, || hand_back(cpus[1], &turn.0, until))?;
        let one = small_thread()
            .spawn_scoped(scope, || hand_over(cpus[0], &turn.0, until, &mut means_ns));
        let handed_over = one.and_then(outcome);
        turn.0.store(OVER, Ordering::Release);
        outcome(other).and(handed_over)
    })?;
    median(means_ns).ok_or_else(|| io::ErrorKind::TimedOut.into())
}

fn small_thread() -> thread::Builder {
    thread::Builder::new().stack_size(STACK_BYTES)
}

fn outcome(thread: ScopedJoinHandle<'_, io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// Adds the mean handover time of each round, in ns, for as many rounds as there is time for.
fn hand_over(cpu: u32, turn: &AtomicU32, end: Instant, means_ns: &mut Vec<f64>) -> io::Result<()> {
    pin_to_cpu(cpu)?;
    // The other thread gives its first turn away once it runs.
    if !await_turn(turn, OURS, end) {
        return Ok(());
    }
    while means_ns.len() < ROUNDS {
        let began = Instant::now();
        for _ in 0..HANDOVERS {
            turn.store(THEIRS, Ordering::Release);
            if !await_turn(turn, OURS, end) {
                return Ok(());
            }
        }
        means_ns.push(mean_ns(began.elapsed()));
    }
    Ok(())
}

/// The mean time of one handover in a round, in ns.
fn mean_ns(round: Duration) -> f64 {
    round.as_nanos() as f64 / f64::from(HANDOVERS)
}

fn hand_back(cpu: u32, turn: &AtomicU32, until: Instant) -> io::Result<()> {
    let pinned = pin_to_cpu(cpu);
    if pinned.is_err() {
        turn.store(OVER, Ordering::Release);
        return pinned;
    }
    while await_turn(turn, THEIRS, until) {
        // Change it only from `THEIRS`: the end (`OVER`) may have been signalled meanwhile.
        let _ = turn.compare_exchange(THEIRS, OURS, Ordering::AcqRel, Ordering::Relaxed);
    }
    Ok(())
}

/// Spins until it is this side's turn, and returns false at the end. A pause would be longer than
/// what is measured.
fn await_turn(turn: &AtomicU32, whose: u32, until: Instant) -> bool {
    loop {
        for _ in 0..SPINS {
            match turn.load(Ordering::Acquire) {
                OVER => return false,
                now if now == whose => return true,
                _ => {}
            }
        }
        if Instant::now() >= until {
            return false;
        }
    }
}

fn median(mut means_ns: Vec<f64>) -> Option<f64> {
    means_ns.sort_by(f64::total_cmp);
    (means_ns.len() >= ROUNDS_LEAST).then(|| means_ns[means_ns.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_rounds_enough() {
        let table: [(&[f64], Option<f64>); 4] = [
            (&[], None),
            (&[90.0; ROUNDS_LEAST - 1], None),
            (&[90.0, 4000.0, 91.0, 89.0, 92.0], Some(91.0)),
            (&[92.0, 91.0, 90.0, 89.0, 4000.0, 5000.0], Some(92.0)),
        ];
        for (means_ns, expected) in table {
            assert_eq!(median(means_ns.to_vec()), expected, "{means_ns:?}");
        }
    }

    #[test]
    fn a_round_takes_as_long_as_its_handovers_together() {
        assert_eq!(mean_ns(Duration::from_nanos(100) * HANDOVERS), 100.0);
    }

    #[test]
    fn one_cpu_or_one_that_is_not_there_has_no_distance() {
        let refused = |cpus| distance_ns(cpus).expect_err("no distance").kind();
        assert_eq!(refused([0, 0]), io::ErrorKind::InvalidInput);
        for cpus in [[0, u32::MAX], [u32::MAX, 0], [u32::MAX, u32::MAX - 1]] {
            assert_eq!(refused(cpus), io::ErrorKind::InvalidInput, "{cpus:?}");
        }
    }

    #[test]
    fn who_is_not_answered_gives_up() {
        let turn = AtomicU32::new(THEIRS);
        assert!(!await_turn(&turn, OURS, Instant::now()));
        turn.store(OVER, Ordering::Release);
        assert!(!await_turn(&turn, OURS, Instant::now() + LASTS_MOST));
    }
}
