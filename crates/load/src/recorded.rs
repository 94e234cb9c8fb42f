//! The send times of a recording: recorded arrivals, and which request each of them sends.
//!
//! How it works: a recording is a list in order of time, which all threads share. Each thread takes
//! every n-th entry, so all threads together send each entry exactly once, at its own time. An
//! entry's number is its place in the list.

use std::sync::Arc;

use super::Schedule;

/// Recorded arrivals in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    at_ns: Box<[u64]>,
    requests: Box<[u32]>,
}

impl Recording {
    /// The most entries: a request in flight knows the number of its entry by 32 bits.
    pub const ENTRIES_MOST: usize = 1 << 31;

    /// Takes the time of each entry, and the index of its request. None if there are no entries, or
    /// too many, if one has no request, or if times go back.
    pub fn new(at_ns: Vec<u64>, requests: Vec<u32>) -> Option<Self> {
        let fits = (1..=Self::ENTRIES_MOST).contains(&at_ns.len());
        let good = fits && at_ns.len() == requests.len() && at_ns.is_sorted();
        good.then(|| Recording { at_ns: at_ns.into(), requests: requests.into() })
    }

    /// The number of entries.
    pub fn count(&self) -> u64 {
        self.at_ns.len() as u64
    }

    /// The number of entries before this time.
    pub fn before(&self, at_ns: u64) -> u64 {
        self.at_ns.partition_point(|entry_ns| *entry_ns < at_ns) as u64
    }

    /// The time of the last entry, in ns.
    pub fn last_ns(&self) -> u64 {
        self.at_ns.last().copied().unwrap_or(0)
    }

    /// The index of the request that an entry sends; the first one if there is no such entry.
    #[inline]
    pub fn request(&self, number: u64) -> u32 {
        usize::try_from(number).ok().and_then(|at| self.requests.get(at)).copied().unwrap_or(0)
    }

    /// The largest index of a request.
    pub fn last_request(&self) -> u32 {
        self.requests.iter().copied().max().unwrap_or(0)
    }
}

/// The entries of one thread, from some time of the recording on.
#[derive(Clone, Debug)]
pub struct RecordedTimes {
    recording: Arc<Recording>,
    from_ns: u64,
    /// The number of the next entry.
    next: u64,
    threads: u64,
}

impl RecordedTimes {
    /// The entries of thread `thread` of `threads` that are at `from_ns` or later; their times count
    /// from then. A thread beyond these has none.
    pub fn new(recording: Arc<Recording>, from_ns: u64, thread: u32, threads: u32) -> Self {
        let first = recording.before(from_ns) + u64::from(thread);
        let next = if thread < threads { first } else { recording.count() };
        RecordedTimes { recording, from_ns, next, threads: u64::from(threads.max(1)) }
    }

    fn next_ns(&self) -> Option<u64> {
        let at_ns = self.recording.at_ns.get(self.next as usize)?;
        Some(at_ns.saturating_sub(self.from_ns))
    }

    fn skip_until(&mut self, until_ns: u64) -> u64 {
        let end = self.recording.before(self.from_ns.saturating_add(until_ns));
        let skipped = end.saturating_sub(self.next).div_ceil(self.threads);
        self.next += skipped * self.threads;
        skipped
    }
}

/// The send times of one thread under an open loop, in order.
#[derive(Clone, Debug)]
pub enum SendTimes {
    /// Drawn from a rate.
    Drawn(Schedule),
    /// As they were recorded.
    Recorded(RecordedTimes),
}

impl SendTimes {
    /// The time of the next arrival, in ns since the start; none when there are no more.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        match self {
            SendTimes::Drawn(schedule) => schedule.next_ns(),
            SendTimes::Recorded(times) => times.next_ns(),
        }
    }

    /// The number of the next arrival in the recording; 0 if there is no recording.
    #[inline]
    pub fn number(&self) -> u64 {
        match self {
            SendTimes::Drawn(_) => 0,
            SendTimes::Recorded(times) => times.next,
        }
    }

    /// Advances to the arrival after the next.
    #[inline]
    pub fn advance(&mut self) {
        match self {
            SendTimes::Drawn(schedule) => schedule.advance(),
            SendTimes::Recorded(times) => times.next += times.threads,
        }
    }

    /// Hands over to another part of the arrivals at `at_ns`; those of a recording stay as they are.
    pub fn hand_over(&mut self, at_ns: u64, then: Option<SendTimes>) {
        if let (SendTimes::Drawn(schedule), Some(SendTimes::Drawn(then))) = (self, then) {
            schedule.hand_over(at_ns, then);
        }
    }

    /// Skips the arrivals before `until_ns`, beginning with the next, and returns how many they
    /// are.
    pub fn skip_until(&mut self, until_ns: u64) -> u64 {
        match self {
            SendTimes::Drawn(schedule) => schedule.skip_until(until_ns),
            SendTimes::Recorded(times) => times.skip_until(until_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recording(at_ns: &[u64]) -> Arc<Recording> {
        let requests = (0..at_ns.len() as u32).map(|number| number % 3).collect();
        Arc::new(Recording::new(at_ns.to_vec(), requests).expect("a recording"))
    }

    fn times(recording: &Arc<Recording>, from_ns: u64, thread: u32, threads: u32) -> SendTimes {
        let recording = Arc::clone(recording);
        SendTimes::Recorded(RecordedTimes::new(recording, from_ns, thread, threads))
    }

    fn all(mut times: SendTimes) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        while let Some(ns) = times.next_ns() {
            found.push((times.number(), ns));
            times.advance();
        }
        found
    }

    #[test]
    fn a_recording_that_cannot_be_sent_is_none() {
        for (at_ns, requests) in
            [(vec![], vec![]), (vec![1], vec![]), (vec![2, 1], vec![0, 0]), (vec![1], vec![0, 1])]
        {
            assert_eq!(Recording::new(at_ns.clone(), requests), None, "{at_ns:?}");
        }
    }

    #[test]
    fn an_entry_has_its_own_request_and_one_that_is_not_there_the_first() {
        let recording = Recording::new(vec![0, 0, 7], vec![2, 0, 1]).expect("a recording");
        let requests = [0, 1, 2, 3, u64::MAX].map(|number| recording.request(number));
        assert_eq!(requests, [2, 0, 1, 0, 0]);
        assert_eq!((recording.last_request(), recording.last_ns()), (2, 7));
    }

    #[test]
    fn a_recording_from_some_time_on_begins_there_at_zero() {
        let recording = recording(&[0, 5, 10, 10, 25]);
        assert_eq!(all(times(&recording, 10, 0, 1)), [(2, 0), (3, 0), (4, 15)]);
        assert_eq!(all(times(&recording, 26, 0, 1)), []);
    }

    proptest! {
        #[test]
        fn threads_together_send_each_entry_once_at_its_time(
            gaps in prop::collection::vec(0u64..50, 1..200), from_ns in 0u64..3000,
            threads in 1u32..9, idle_threads in 0u32..3,
        ) {
            let at_ns: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let recording = recording(&at_ns);
            let mut found: Vec<_> = (0..threads + idle_threads)
                .flat_map(|thread| all(times(&recording, from_ns, thread, threads)))
                .collect();
            found.sort_unstable();
            let expected: Vec<_> = (0..)
                .zip(&at_ns)
                .filter(|(_, at)| **at >= from_ns)
                .map(|(number, at)| (number, at - from_ns))
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn skipping_goes_where_advancing_would(
            gaps in prop::collection::vec(0u64..50, 1..100), threads in 1u32..5,
            cuts in prop::collection::vec(0u64..3000, 1..4),
        ) {
            let at_ns: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let recording = recording(&at_ns);
            let mut skipping = times(&recording, 0, threads - 1, threads);
            let mut advancing = skipping.clone();
            for cut in cuts {
                let mut count = 0;
                while advancing.next_ns().is_some_and(|ns| ns < cut) {
                    advancing.advance();
                    count += 1;
                }
                prop_assert_eq!(skipping.skip_until(cut), count);
                prop_assert_eq!(skipping.next_ns(), advancing.next_ns());
            }
        }
    }
}
