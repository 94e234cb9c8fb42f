//! Requests outstanding on one connection, in order. Most connections have one at a time: it lies in the
//! queue itself, and memory is taken only by those behind it.

use std::collections::VecDeque;

/// A queue whose first element needs no memory of its own.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// None only when `rest` is empty too.
    first: Option<T>,
    // Boxed, it takes 8 bytes of the many connections that never have a second.
    #[expect(clippy::box_collection)]
    rest: Option<Box<VecDeque<T>>>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { first: None, rest: None }
    }
}

impl<T> Queue<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    #[inline]
    pub(crate) fn push_back(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.rest.get_or_insert_default().push_back(element);
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let next = self.rest.as_mut().and_then(|rest| rest.pop_front());
        std::mem::replace(&mut self.first, next)
    }

    /// The last `count` elements, in order.
    pub(crate) fn newest(&self, count: usize) -> impl Iterator<Item = &T> {
        let rest = self.rest.iter().flat_map(|rest| rest.iter());
        self.first.iter().chain(rest).skip(self.len() - count)
    }

    /// Takes out all, in order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        let rest = self.rest.iter_mut().flat_map(|rest| rest.drain(..));
        self.first.take().into_iter().chain(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_queue_like_any_other(steps in proptest::collection::vec(0..4_u8, 0..60)) {
            let (mut queue, mut plain) = (Queue::default(), VecDeque::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        queue.push_back(number);
                        plain.push_back(number);
                    }
                    2 => prop_assert_eq!(queue.pop_front(), plain.pop_front()),
                    _ => {
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
