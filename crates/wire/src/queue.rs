//! The outstanding requests of one connection, in order. Most connections have one at a time. It is
//! stored in the queue itself, and only further requests take heap memory.
//!
//! With pipelining, requests that are sent together are equal. A run of equal requests is stored,
//! and taken, as one.

use std::collections::VecDeque;

/// A queue whose first run needs no heap memory.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// None only when `rest` is empty too.
    first: Option<T>,
    /// The length of the first run. No connection has more than 2^32 - 1 requests outstanding.
    count: u32,
    // The box takes only 8 bytes on the many connections that never have a second run.
    rest: Option<Box<Rest<T>>>,
}

/// The runs behind the first one.
#[derive(Debug)]
struct Rest<T> {
    runs: VecDeque<(T, u32)>,
    /// The number of elements in all these runs.
    len: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { first: None, count: 0, rest: None }
    }
}

impl<T> Default for Rest<T> {
    fn default() -> Self {
        Rest { runs: VecDeque::new(), len: 0 }
    }
}

impl<T> Queue<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count as usize + self.rest.as_ref().map_or(0, |rest| rest.len)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// Passes each run to `change`, the last one first, until it returns false.
    pub(crate) fn change_newest(&mut self, mut change: impl FnMut(&mut T) -> bool) {
        let rest = self.rest.iter_mut().flat_map(|rest| rest.runs.iter_mut().rev());
        let mut runs = rest.map(|(element, _)| element).chain(&mut self.first);
        while runs.next().is_some_and(&mut change) {}
    }

    /// Iterates over the last `count` elements, in order.
    pub(crate) fn newest(&self, count: usize) -> impl Iterator<Item = &T> {
        let rest = self.rest.iter().flat_map(|rest| rest.runs.iter());
        let runs = self.first.iter().map(|first| (first, self.count));
        let runs = runs.chain(rest.map(|(element, count)| (element, *count)));
        let all = runs.flat_map(|(element, count)| std::iter::repeat_n(element, count as usize));
        all.skip(self.len() - count)
    }
}

impl<T: Copy + PartialEq> Queue<T> {
    /// Appends `count` equal elements.
    #[inline]
    pub(crate) fn push_back(&mut self, element: T, count: usize) {
        let count = count as u32;
        match &mut self.first {
            _ if count == 0 => {}
            None => (self.first, self.count) = (Some(element), count),
            Some(first)
                if *first == element && self.rest.as_ref().is_none_or(|rest| rest.len == 0) =>
            {
                self.count += count;
            }
            Some(_) => self.rest.get_or_insert_default().push_back(element, count),
        }
    }

    /// Removes up to `most` elements of the first run and returns the element and their number.
    #[inline]
    pub(crate) fn pop_front(&mut self, most: usize) -> Option<(T, usize)> {
        let first = self.first?;
        let taken = most.min(self.count as usize);
        self.count -= taken as u32;
        if self.count == 0 {
            let next = self.rest.as_mut().and_then(|rest| rest.pop_front());
            (self.first, self.count) = next.map_or((None, 0), |(next, count)| (Some(next), count));
        }
        Some((first, taken))
    }

    /// Removes all elements, in order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        let all = std::iter::from_fn(|| self.pop_front(usize::MAX));
        all.flat_map(|(element, count)| std::iter::repeat_n(element, count))
    }
}

impl<T: PartialEq> Rest<T> {
    fn push_back(&mut self, element: T, count: u32) {
        self.len += count as usize;
        match self.runs.back_mut() {
            Some((last, more)) if *last == element => *more += count,
            _ => self.runs.push_back((element, count)),
        }
    }

    fn pop_front(&mut self) -> Option<(T, u32)> {
        let (element, count) = self.runs.pop_front()?;
        self.len -= count as usize;
        Some((element, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is done to it: some more alike, or some taken out.
    #[derive(Clone, Debug)]
    enum Step {
        Push(u8, usize),
        Pop(usize),
        Newest,
        ChangeNewest,
    }

    /// Elements from here on were changed.
    const FRESH: u8 = 3;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Three kinds of elements, so that neighbours are alike now and then.
        let push = (0..FRESH, 0..5_usize).prop_map(|(element, count)| Step::Push(element, count));
        let pop = (1..6_usize).prop_map(Step::Pop);
        proptest::collection::vec(
            prop_oneof![3 => push, 2 => pop, 1 => Just(Step::Newest), 1 => Just(Step::ChangeNewest)],
            0..60,
        )
    }

    proptest! {
        #[test]
        fn it_is_a_queue_like_any_other(steps in steps()) {
            let (mut queue, mut plain) = (Queue::default(), VecDeque::new());
            let mut changed = 0;
            for step in steps {
                match step {
                    Step::Push(element, count) => {
                        queue.push_back(element, count);
                        plain.extend(std::iter::repeat_n(element, count));
                    }
                    Step::Pop(most) => match queue.pop_front(most) {
                        Some((element, count)) => {
                            prop_assert!((1..=most).contains(&count));
                            let taken: Vec<u8> = plain.drain(..count).collect();
                            prop_assert_eq!(taken, vec![element; count]);
                            let alike = plain.front() == Some(&element);
                            prop_assert!(count == most || !alike, "a run is taken whole");
                        }
                        None => prop_assert!(plain.is_empty()),
                    },
                    Step::ChangeNewest => {
                        // Those that were never changed become something new.
                        changed += FRESH;
                        let change = |element: &mut u8| {
                            let fresh = *element < FRESH;
                            *element += if fresh { changed } else { 0 };
                            fresh
                        };
                        queue.change_newest(change);
                        while let Some(at) = plain.iter().rposition(|element| *element < FRESH) {
                            plain[at] += changed;
                        }
                    }
                    Step::Newest => {
                        let newest = plain.iter().skip(plain.len() / 2).collect::<Vec<_>>();
                        let count = newest.len();
                        prop_assert_eq!(queue.newest(count).collect::<Vec<_>>(), newest);
                    }
                }
                prop_assert_eq!((queue.len(), queue.front()), (plain.len(), plain.front()));
                prop_assert_eq!(queue.is_empty(), plain.is_empty());
            }
            prop_assert_eq!(queue.drain().collect::<Vec<_>>(), Vec::from(plain));
            prop_assert_eq!((queue.is_empty(), queue.len()), (true, 0));
        }
    }
}
