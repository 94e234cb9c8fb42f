//! The speed of CPUs over time: how long a short piece of work takes on each.
//!
//! A virtual CPU is often one of two threads of a core. Work on the other thread takes up to a
//! third of its speed, for seconds at a time, and none of that counts as stolen time. A thread on
//! each watched CPU wakes 20 times a second and does the same work.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::pin_to_cpu;

const EVERY_NS: u64 = 50_000_000;
/// Takes some 14 us on a CPU of 3 GHz: 0.03 % of its time.
const WORK_STEPS: u64 = 10_000;
/// One look every 50 ms for 6 minutes, then half as many in the same memory, and so on.
const LOOKS_MOST: usize = 8192;
const STACK_BYTES: usize = 64 * 1024;

/// The time that the work took at each look, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looks {
    /// The time from one look to the next.
    pub every_ns: u64,
    /// The time of the work; 0 for a missed look: the thread did not get its CPU in time.
    pub work_ns: Vec<u32>,
}

impl Looks {
    /// Allocates all that it will need.
    fn new() -> Self {
        Looks { every_ns: EVERY_NS, work_ns: Vec::with_capacity(LOOKS_MOST) }
    }

    /// Notes a look taken this long after the watch began.
    fn note(&mut self, after_ns: u64, work_ns: u32) {
        while after_ns / self.every_ns >= LOOKS_MOST as u64 {
            self.thin_out();
        }
        let at = (after_ns / self.every_ns) as usize;
        if at >= self.work_ns.len() {
            self.work_ns.resize(at, 0);
            self.work_ns.push(work_ns);
        }
    }

    /// Keeps one of each two looks: the first that was taken. Keeping the slower one would make the
    /// past look slower.
    fn thin_out(&mut self) {
        let first = |pair: &[u32]| pair.iter().copied().find(|&work_ns| work_ns > 0).unwrap_or(0);
        let kept: Vec<u32> = self.work_ns.chunks(2).map(first).collect();
        self.work_ns.clear();
        self.work_ns.extend(kept);
        self.every_ns *= 2;
    }
}

/// Looks at the speed of CPUs until it is ended.
#[derive(Debug)]
pub struct SpeedWatch {
    over: Arc<AtomicBool>,
    threads: Vec<(u32, JoinHandle<Looks>)>,
}

impl SpeedWatch {
    /// Starts the watch. A CPU that this process may not use has no looks; a CPU whose thread
    /// cannot be started is left out.
    pub fn begin(cpus: &[u32]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let look = |&cpu: &u32| {
            // Allocated here: a thread that allocates gets a heap of its own, which would raise the
            // process's peak.
            let (looks, over) = (Looks::new(), Arc::clone(&over));
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            Some((cpu, thread.spawn(move || watch(cpu, looks, began, &over)).ok()?))
        };
        let threads = cpus.iter().filter_map(look).collect();
        SpeedWatch { over, threads }
    }

    /// Ends the watch, and returns the looks at each CPU.
    pub fn end(self) -> Vec<(u32, Looks)> {
        self.over.store(true, Ordering::Release);
        self.threads.iter().for_each(|(_, thread)| thread.thread().unpark());
        let seen = |(cpu, thread): (u32, JoinHandle<Looks>)| Some((cpu, thread.join().ok()?));
        self.threads.into_iter().filter_map(seen).collect()
    }
}

fn watch(cpu: u32, mut looks: Looks, began: Instant, over: &AtomicBool) -> Looks {
    if pin_to_cpu(cpu).is_err() {
        return looks;
    }
    while !over.load(Ordering::Acquire) {
        let after_ns = began.elapsed().as_nanos() as u64;
        looks.note(after_ns, take_once());
        let next_ns = (after_ns / looks.every_ns + 1) * looks.every_ns;
        let left = Duration::from_nanos(next_ns).saturating_sub(began.elapsed());
        thread::park_timeout(left);
    }
    looks
}

/// Does the work once, and returns the time it took, in ns.
fn take_once() -> u32 {
    let began = Instant::now();
    work(WORK_STEPS);
    u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX).max(1)
}

/// Computes four independent sums: they fill the units of a core, so that work on its other thread
/// shows.
#[inline(never)]
fn work(steps: u64) {
    let mut sums = [1_u64, 2, 3, 4];
    for step in 0..steps {
        for (sum, shift) in sums.iter_mut().zip([3, 5, 7, 2]) {
            *sum = sum.wrapping_add(step ^ (*sum >> shift));
        }
    }
    black_box(sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_were_missed_are_reported() {
        let mut looks = Looks::new();
        for (after_ns, work_ns) in [(0, 7), (EVERY_NS, 8), (3 * EVERY_NS + 1, 9)] {
            looks.note(after_ns, work_ns);
        }
        assert_eq!(looks, Looks { every_ns: EVERY_NS, work_ns: vec![7, 8, 0, 9] });
    }

    #[test]
    fn a_second_look_in_the_same_time_is_left_out() {
        let mut looks = Looks::new();
        looks.note(1, 7);
        looks.note(2, 8);
        assert_eq!(looks.work_ns, [7]);
    }

    #[test]
    fn a_long_watch_looks_less_often_in_the_same_memory() {
        let mut looks = Looks::new();
        let capacity = looks.work_ns.capacity();
        for look in 0..4 * LOOKS_MOST as u64 {
            looks.note(look * EVERY_NS, 1 + (look >= LOOKS_MOST as u64) as u32);
        }
        assert_eq!(looks.every_ns, 4 * EVERY_NS);
        assert_eq!(looks.work_ns.len(), LOOKS_MOST);
        assert_eq!(looks.work_ns.capacity(), capacity);
        let slow = looks.work_ns.iter().filter(|&&work_ns| work_ns == 2).count();
        assert_eq!(slow, LOOKS_MOST * 3 / 4);
    }

    #[test]
    fn of_two_looks_the_first_that_was_taken_is_left() {
        let mut looks = Looks { every_ns: EVERY_NS, work_ns: vec![7, 9, 0, 8, 0, 0, 6] };
        looks.thin_out();
        assert_eq!(looks, Looks { every_ns: 2 * EVERY_NS, work_ns: vec![7, 8, 0, 6] });
    }

    #[test]
    fn a_cpu_that_is_not_there_has_no_looks() {
        let seen = SpeedWatch::begin(&[u32::MAX]).end();
        assert_eq!(seen, [(u32::MAX, Looks::new())]);
    }

    #[test]
    fn a_watch_ends_at_once_with_what_it_has_seen() {
        let cpu = rustix::thread::sched_getaffinity(None)
            .map(|set| (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| set.is_set(cpu)));
        let cpu = cpu.ok().flatten().expect("a CPU") as u32;
        let watch = SpeedWatch::begin(&[cpu]);
        let seen = watch.end();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].0, cpu);
        assert!(seen[0].1.work_ns.iter().all(|&work_ns| work_ns > 0));
    }
}
