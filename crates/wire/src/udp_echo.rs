//! Echo over datagrams: each must come back unchanged, in any order, and each request ends on its
//! own.
//!
//! How it works: a datagram begins with the random number of its connection and its own number on
//! that connection; the rest is a known message. An answer is identified by these two numbers,
//! wherever it comes from and whenever it comes. An answer to an outstanding request settles it. An
//! answer to a request that has ended is late or a duplicate, and settles nothing. A request that
//! is not answered in time is lost, alone. Only sending must be in order.

use std::collections::VecDeque;
use std::ops::AddAssign;

use crate::echo::Messages;
use crate::exchange::{Disposition, Ending, Exchange, Outcome, Output, PeerClose, Standing};

/// The size of the two numbers in bytes, which is the smallest datagram.
pub const SIZE_LEAST: usize = 16;
/// The largest datagram over IPv4: 65,535 bytes less the headers of IP and UDP.
pub const SIZE_MOST: usize = 65_507;
/// The maximum number of lost requests remembered per connection, to distinguish late answers from
/// duplicates. The newest are kept.
const LOST_KEPT: usize = 4096;

/// Datagrams that settled nothing or arrived out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answers to requests that had been given up as lost.
    pub late: u64,
    /// Second answers to requests that had been answered.
    pub duplicated: u64,
    /// Answers that settled a request after the answer to a later request had arrived.
    pub reordered: u64,
    /// Datagrams that answer no request sent on this connection.
    pub unsolicited: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.late += other.late;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.unsolicited += other.unsolicited;
    }
}

/// The machine of one connection. `T` is what the caller knows about a request.
#[derive(Debug)]
pub struct Client<T> {
    /// The connection's number.
    nonce: [u8; 8],
    /// The number of the next request to be asked, and of the next to be written.
    next: u64,
    to_write: u64,
    /// The requests that were asked and have not ended, by number.
    outstanding: VecDeque<(u64, T)>,
    /// The numbers of requests that were given up, in order.
    lost: VecDeque<u64>,
    /// The highest number that was answered, plus one.
    answered_below: u64,
}

impl<T> Default for Client<T> {
    fn default() -> Self {
        Client {
            nonce: [0; 8],
            next: 0,
            to_write: 0,
            outstanding: VecDeque::new(),
            lost: VecDeque::new(),
            answered_below: 0,
        }
    }
}

impl<T: Copy> Client<T> {
    /// Opens a fresh connection with this number. All outstanding requests must have been ended
    /// before.
    pub fn open(&mut self, nonce: [u8; 8]) {
        debug_assert!(self.outstanding.is_empty());
        self.lost.clear();
        (self.nonce, self.next, self.to_write, self.answered_below) = (nonce, 0, 0, 0);
    }

    /// Appends the datagrams of the `count` requests asked last, one after the other.
    pub fn write(&mut self, count: usize, messages: &Messages, out: &mut Vec<u8>) {
        for number in self.to_write..self.to_write + count as u64 {
            out.extend_from_slice(&self.nonce);
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(body(messages, number));
        }
        self.to_write += count as u64;
    }

    /// Handles a datagram. Passes the request that it ends to `on_outcome`, or counts the datagram
    /// if it ends none.
    pub fn handle_datagram(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        messages: &Messages,
        counts: &mut Counts,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let Some((number, rest)) = self.read(bytes) else {
            counts.unsolicited += 1;
            return;
        };
        let Ok(place) = self.outstanding.binary_search_by_key(&number, |(number, _)| *number)
        else {
            match self.lost.binary_search(&number) {
                Ok(place) => {
                    self.lost.remove(place);
                    counts.late += 1;
                }
                Err(_) => counts.duplicated += 1,
            }
            return;
        };
        let Some((_, tag)) = self.outstanding.remove(place) else { return };
        counts.reordered += u64::from(number < self.answered_below);
        self.answered_below = self.answered_below.max(number + 1);
        let good = rest == body(messages, number);
        let ending = if good { Ending::Ok } else { Ending::Mismatch };
        on_outcome(Outcome::answered(tag, ending, now_ns));
    }

    /// Handles the failure of the socket: every outstanding request ends with it.
    pub fn handle_end(
        &mut self,
        now_ns: u64,
        end: PeerClose,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let ending = if end == PeerClose::Refused { Ending::Refused } else { Ending::Reset };
        Exchange::cancel(self).for_each(|tag| on_outcome(Outcome::unanswered(tag, ending, now_ns)));
    }

    /// Splits a datagram into the number of the request that it answers and the rest. None if it
    /// answers no request of this connection.
    fn read<'a>(&self, bytes: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let (nonce, rest) = bytes.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let number = u64::from_be_bytes(*number);
        (*nonce == self.nonce && number < self.to_write).then_some((number, rest))
    }
}

impl<T: Copy> Exchange<T> for Client<T> {
    fn ask_alike(&mut self, tag: T, count: usize) {
        let numbers = self.next..self.next + count as u64;
        self.next = numbers.end;
        self.outstanding.extend(numbers.map(|number| (number, tag)));
    }

    fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    fn standing(&self) -> Standing {
        Standing { answered: self.answered_below > 0, ..Standing::default() }
    }

    fn change_newest(&mut self, mut change: impl FnMut(&mut T) -> bool) {
        for (_, tag) in self.outstanding.iter_mut().rev() {
            if !change(tag) {
                return;
            }
        }
    }

    /// Requests are sent in the order of their numbers, so the lowest number times out first.
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&T) -> u64) -> Option<u64> {
        self.outstanding.front().map(|(_, tag)| deadline_ns(tag))
    }

    /// Each request that times out is lost, without effect on the others.
    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&T) -> u64,
        _output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        while self.next_timeout_ns(&deadline_ns).is_some_and(|due_ns| due_ns <= now_ns)
            && let Some((number, tag)) = self.outstanding.pop_front()
        {
            if self.lost.len() == LOST_KEPT {
                self.lost.pop_front();
            }
            self.lost.push_back(number);
            on_outcome(Outcome::unanswered(tag, Ending::Lost, now_ns));
        }
        Disposition::Open
    }

    fn cancel(&mut self) -> impl Iterator<Item = T> + '_ {
        self.to_write = self.next;
        self.outstanding.drain(..).map(|(_, tag)| tag)
    }
}

/// The message that a datagram with this number carries after its two numbers.
fn body(messages: &Messages, number: u64) -> &[u8] {
    let place = (number % messages.count() as u64) as usize;
    &messages.at(place * messages.size())[SIZE_LEAST..]
}
