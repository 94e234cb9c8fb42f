//! The bytes of broadcasts under way: most servers send the same bytes to every listener, and comparing them costs a
//! fraction of parsing them.
//!
//! How it works: what was parsed once is remembered with what it meant; a message with the same bytes means the same.
//! Listeners mostly get the messages under way in one order, so the one after the last is tried first. A server that
//! sends other bytes to each is parsed each time, and loses nothing but the comparison.
//!
//! What it must not know: the dialect.

use super::Key;

/// Broadcasts that are remembered, the latest.
const REMEMBERED_MOST: usize = 1024;
/// So many are compared with a message: looking at more would cost as much as parsing it.
const COMPARED_MOST: usize = 64;

/// Broadcasts under way, by their bytes. `T` is what the caller knows them by.
#[derive(Debug)]
pub struct Memory<T> {
    entries: Vec<Entry<T>>,
    /// Where the next message is looked for first.
    likely: usize,
    /// Rooms of entries that are over, to be used again.
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
    /// What a broadcast with these bytes was remembered with.
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

    /// These bytes mean the broadcast `key`. Only what was heard first of it is remembered.
    pub fn remember(&mut self, key: Key, value: T, message: &[u8]) {
        let known = self.entries.iter().any(|entry| entry.key == key);
        if known {
            return;
        }
        if self.entries.len() == REMEMBERED_MOST {
            // The oldest waits for the fewest listeners.
            self.forget(self.entries[0].key);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(message);
        self.entries.push(Entry { key, value, bytes });
    }

    /// The broadcast is no longer under way.
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
