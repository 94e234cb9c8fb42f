//! The dynamic table (RFC 7541 §2.3.2 and §4).
//!
//! How it works: the bytes of all entries lie one after another in one buffer, oldest first. An
//! entry is thus a slice and costs no allocation. The part before the oldest entry is dropped when
//! it is larger than the maximum table size.

use std::collections::VecDeque;

use super::ENTRY_BYTES;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The offset of the name; the value follows it.
    at: usize,
    name_len: usize,
    value_len: usize,
}

impl Entry {
    fn size(self) -> usize {
        self.name_len + self.value_len + ENTRY_BYTES
    }
}

/// The source of a name that is inserted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// The name of the entry at this place in the table itself.
    Entry(usize),
}

/// The entries; the newest is at place 0.
#[derive(Debug)]
pub(super) struct Table {
    bytes: Vec<u8>,
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
    generation: u64,
}

impl Table {
    pub(super) fn new(size_max: u32) -> Self {
        Table {
            bytes: Vec::new(),
            entries: VecDeque::new(),
            size: 0,
            size_max: size_max as usize,
            generation: 0,
        }
    }

    /// A number that changes whenever the meaning of an index changes.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    /// The bytes held on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    #[cfg(any(test, feature = "fake"))]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn resize(&mut self, size_max: usize) {
        self.generation += 1;
        self.size_max = size_max;
        self.evict_to(size_max);
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(place)?;
        let bytes = &self.bytes[entry.at..entry.at + entry.name_len + entry.value_len];
        Some(bytes.split_at(entry.name_len))
    }

    /// Inserts an entry and evicts the oldest ones for it. An entry larger than the table empties
    /// the table. Returns name and value, even if the entry did not fit.
    pub(super) fn insert(&mut self, name: Name<'_>, value: &[u8]) -> (&[u8], &[u8]) {
        self.generation += 1;
        self.drop_evicted();
        // The bytes are appended first, because the name may belong to an entry that is now
        // evicted.
        let at = self.bytes.len();
        match name {
            Name::Bytes(name) => self.bytes.extend_from_slice(name),
            Name::Entry(place) => {
                if let Some(entry) = self.entries.get(place) {
                    self.bytes.extend_from_within(entry.at..entry.at + entry.name_len);
                }
            }
        }
        let name_len = self.bytes.len() - at;
        self.bytes.extend_from_slice(value);
        let entry = Entry { at, name_len, value_len: value.len() };
        if entry.size() <= self.size_max {
            self.evict_to(self.size_max - entry.size());
            self.size += entry.size();
            self.entries.push_front(entry);
        } else {
            self.evict_to(0);
        }
        self.bytes[at..].split_at(name_len)
    }

    fn evict_to(&mut self, size: usize) {
        while self.size > size
            && let Some(entry) = self.entries.pop_back()
        {
            self.size -= entry.size();
        }
    }

    /// Drops the bytes of evicted entries, if they are many, and those of an inserted entry that
    /// did not fit.
    fn drop_evicted(&mut self) {
        let end = |entry: &Entry| entry.at + entry.name_len + entry.value_len;
        self.bytes.truncate(self.entries.front().map_or(0, end));
        let first = self.entries.back().map_or(0, |entry| entry.at);
        if first > self.size_max {
            self.bytes.drain(..first);
            self.entries.iter_mut().for_each(|entry| entry.at -= first);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, as the RFC describes it.
    #[derive(Default)]
    struct Model(Vec<(Vec<u8>, Vec<u8>)>);

    impl Model {
        fn size(&self) -> usize {
            self.0.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
        }

        fn insert(&mut self, name: Vec<u8>, value: Vec<u8>, size_max: usize) {
            self.0.insert(0, (name, value));
            while self.size() > size_max {
                self.0.pop();
            }
        }
    }

    #[test]
    fn a_name_may_be_that_of_the_entry_which_is_evicted_for_it() {
        let mut table = Table::new(40);
        table.insert(Name::Bytes(b"name"), b"old");
        assert_eq!(table.insert(Name::Entry(0), b"new"), (&b"name"[..], &b"new"[..]));
        assert_eq!((table.get(0), table.len()), (Some((&b"name"[..], &b"new"[..])), 1));
        assert_eq!(table.insert(Name::Entry(0), b"large"), (&b"name"[..], &b"large"[..]));
        assert_eq!((table.get(0), table.len()), (None, 0), "41 bytes find no room in 40");
    }

    proptest! {
        #[test]
        fn it_holds_what_the_rfc_says_in_bounded_memory(
            steps in prop::collection::vec((0..4_u8, 0..60_usize, 0..60_usize, any::<u8>()), 1..200),
        ) {
            let (mut table, mut model, mut size_max) = (Table::new(200), Model::default(), 200);
            for (step, name_len, value_len, filler) in steps {
                let before = table.generation();
                let (name, value) = (vec![filler; name_len], vec![filler; value_len]);
                match step {
                    0 => {
                        size_max = name_len * 6;
                        table.resize(size_max);
                        while model.size() > size_max {
                            model.0.pop();
                        }
                    }
                    1 if !model.0.is_empty() => {
                        let place = name_len % model.0.len();
                        let name = model.0[place].0.clone();
                        let inserted = table.insert(Name::Entry(place), &value);
                        prop_assert_eq!(inserted, (&name[..], &value[..]));
                        model.insert(name, value, size_max);
                    }
                    _ => {
                        table.insert(Name::Bytes(&name), &value);
                        model.insert(name, value, size_max);
                    }
                }
                prop_assert_ne!(table.generation(), before);
                prop_assert_eq!((table.len(), table.size), (model.0.len(), model.size()));
                for (place, (name, value)) in model.0.iter().enumerate() {
                    prop_assert_eq!(table.get(place), Some((&name[..], &value[..])));
                }
                prop_assert!(table.bytes.len() <= 2 * 360 + 120);
            }
        }
    }
}
