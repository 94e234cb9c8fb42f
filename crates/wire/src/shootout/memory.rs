//! The bytes of broadcasts in flight. Most servers send the same bytes to every listener, and
//! comparing bytes costs a fraction of parsing them.
//!
//! How it works: a parsed message is remembered with its meaning; a message with the same bytes
//! means the same. Listeners mostly receive the messages in flight in the same order, so the one
//! after the last match is tried first. If a server sends different bytes to each listener, every
//! message is parsed, and only the comparison is wasted.
//!
//! Must not know: the dialect.

use super::Key;

/// The maximum number of broadcasts remembered; the latest are kept.
const REMEMBERED_MOST: usize = 1024;
/// The maximum number of broadcasts compared with a message. Comparing more would cost as much as
/// parsing.
const COMPARED_MOST: usize = 64;

/// The broadcasts in flight, by their bytes. `T` is the caller's value for a broadcast.
#[derive(Debug)]
pub struct Memory<T> {
    entries: Vec<Entry<T>>,
    /// The index at which the next message is looked for first.
    likely: usize,
    /// Buffers of forgotten entries, for reuse.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Entry<T> {
    key: Key,
    value: T,
    bytes: Vec<u8>,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Memory { entries: Vec::new(), likely: 0, spare: Vec::new() }
    }
}

impl<T: Copy> Memory<T> {
    /// The value that was remembered for a broadcast with these bytes.
    #[inline]
    pub fn recognise(&mut self, message: &[u8]) -> Option<T> {
        let entry = self.entries.get(self.likely).filter(|entry| entry.bytes == message);
        if let Some(value) = entry.map(|entry| entry.value) {
            self.go_on(self.likely);
            return Some(value);
        }
        let (before, behind) = self.entries.split_at(self.likely);
        let near = behind.iter().chain(before).take(COMPARED_MOST);
        let off = near.into_iter().position(|entry| entry.bytes == message)?;
        let at = (self.likely + off) % self.entries.len();
        self.go_on(at);
        Some(self.entries[at].value)
    }

    #[inline]
    fn go_on(&mut self, from: usize) {
        let next = from + 1;
        self.likely = if next < self.entries.len() { next } else { 0 };
    }

    /// Remembers that these bytes mean the broadcast `key`. Only the first bytes seen for it are
    /// kept.
    pub fn remember(&mut self, key: Key, value: T, message: &[u8]) {
        let known = self.entries.iter().any(|entry| entry.key == key);
        if known {
            return;
        }
        if self.entries.len() == REMEMBERED_MOST {
            // The oldest has the fewest listeners left to reach.
            self.forget(self.entries[0].key);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(message);
        self.entries.push(Entry { key, value, bytes });
    }

    /// Forgets a broadcast that is no longer in flight.
    pub fn forget(&mut self, key: Key) {
        let Some(at) = self.entries.iter().position(|entry| entry.key == key) else { return };
        let mut bytes = self.entries.remove(at).bytes;
        bytes.clear();
        self.spare.push(bytes);
        if self.likely > at {
            self.likely -= 1;
        }
        if self.likely >= self.entries.len() {
            self.likely = 0;
        }
    }
}
