//! The hub between the threads of a server: a broadcast of one thread must be delivered by the
//! others, too.
//!
//! Each thread has a mailbox. A thread that broadcasts puts the bytes, shared by all, into the
//! mailboxes of the others and rings their wakers. A mailbox has a cap: while one is full, no
//! broadcast is begun, so that none is ever lost.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trueload_drive::Waker;

/// The cap of a mailbox: a thread that is this far behind gets nothing more.
const BOX_BYTES: usize = 32 * 1024 * 1024;

/// Frames that go to every listener, and the number of their messages.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) frames: Arc<[u8]>,
    pub(super) messages: u64,
}

/// The state that the threads of one server share.
#[derive(Debug)]
pub struct Hub {
    listeners: AtomicU64,
    boxes: Vec<Mailbox>,
}

#[derive(Debug)]
struct Mailbox {
    segments: Mutex<Vec<Segment>>,
    bytes: AtomicUsize,
    waker: Waker,
}

impl Hub {
    /// Creates a hub for the threads with these wakers, in their order. A single thread needs none.
    pub fn new(wakers: Vec<Waker>) -> Self {
        let boxes = wakers.into_iter().map(|waker| Mailbox {
            segments: Mutex::default(),
            bytes: AtomicUsize::new(0),
            waker,
        });
        Hub { listeners: AtomicU64::new(0), boxes: boxes.collect() }
    }

    /// The number of clients that every broadcast goes to.
    pub(super) fn listeners(&self) -> u64 {
        self.listeners.load(Ordering::Relaxed)
    }

    /// Adds a listener.
    pub(super) fn join(&self) {
        self.listeners.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a listener.
    pub(super) fn leave(&self) {
        self.listeners.fetch_sub(1, Ordering::Relaxed);
    }

    fn others(&self, thread: usize) -> impl Iterator<Item = &Mailbox> {
        let boxes = self.boxes.iter().enumerate();
        boxes.filter(move |(index, _)| *index != thread).map(|(_, mailbox)| mailbox)
    }

    /// Whether some other thread is so far behind that no broadcast may begin.
    pub(super) fn is_full(&self, thread: usize) -> bool {
        self.others(thread).any(|mailbox| mailbox.bytes.load(Ordering::Relaxed) >= BOX_BYTES)
    }

    /// Gives a segment to all other threads.
    pub(super) fn post(&self, thread: usize, segment: &Segment) {
        for mailbox in self.others(thread) {
            let mut segments = mailbox.segments.lock().unwrap_or_else(PoisonError::into_inner);
            segments.push(segment.clone());
            mailbox.bytes.fetch_add(segment.frames.len(), Ordering::Relaxed);
            // A thread with something in its mailbox has already been woken for it.
            if segments.len() == 1 {
                mailbox.waker.wake();
            }
        }
    }

    /// Takes what the others have posted to a thread.
    pub(super) fn take(&self, thread: usize) -> Vec<Segment> {
        let Some(mailbox) = self.boxes.get(thread) else { return Vec::new() };
        let mut segments = mailbox.segments.lock().unwrap_or_else(PoisonError::into_inner);
        mailbox.bytes.store(0, Ordering::Relaxed);
        std::mem::take(&mut *segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueload_drive::{Clock, Epoll, Settings};

    fn hub(threads: usize) -> Hub {
        let waker = |_| {
            let epoll = Epoll::new(Clock::start(), None, &Settings::default());
            epoll.expect("an epoll").waker()
        };
        Hub::new((0..threads).map(waker).collect())
    }

    #[test]
    fn a_segment_goes_once_to_every_thread_but_its_own() {
        let hub = hub(3);
        let segment = Segment { frames: Arc::from(*b"abc"), messages: 1 };
        hub.post(1, &segment);
        let taken: Vec<usize> = (0..3).map(|thread| hub.take(thread).len()).collect();
        assert_eq!(taken, [1, 0, 1]);
        assert!((0..3).all(|thread| hub.take(thread).is_empty()));
    }

    #[test]
    fn no_broadcast_begins_while_another_thread_is_far_behind() {
        let hub = hub(2);
        let segment = Segment { frames: Arc::from(vec![0; BOX_BYTES]), messages: 1 };
        assert!(!hub.is_full(0));
        hub.post(0, &segment);
        assert!(hub.is_full(0), "thread 1 has not taken it");
        assert!(!hub.is_full(1), "thread 1 does not wait for itself");
        hub.take(1);
        assert!(!hub.is_full(0));
    }
}
