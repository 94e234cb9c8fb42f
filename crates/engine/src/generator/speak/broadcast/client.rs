//! One client of a broadcast, as a protocol machine: its state, and its own messages that have no
//! receipt yet.

use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, Standing};
use trueload_wire::shootout::Joining;
use trueload_wire::websocket::client::Awaited;
use trueload_wire::websocket::{Receiver, Role};

use crate::generator::slot::Tag;

/// The state of a client.
#[derive(Debug)]
pub(super) enum State {
    /// It has not asked for anything.
    Fresh,
    /// The upgrade is asked for.
    Upgrading(Box<Awaited>),
    /// The joining handshake is under way: it is no listener yet.
    Joining(Joining),
    /// The peer has closed the WebSocket.
    Closed,
}

/// The machine of one connection.
#[derive(Debug)]
pub struct Client {
    pub(super) state: State,
    pub(super) receiver: Receiver,
    /// The number of its slot.
    pub(super) slot: u32,
    /// Its number as a sender, over all engines.
    pub(super) number: u32,
    /// Its messages without a receipt, in the order in which they were sent.
    outstanding: Vec<Tag>,
    answered: bool,
}

impl Default for Client {
    fn default() -> Self {
        Client {
            state: State::Fresh,
            receiver: Receiver::new(Role::Client),
            slot: 0,
            number: 0,
            outstanding: Vec::new(),
            answered: false,
        }
    }
}

impl Client {
    /// Prepares for a fresh connection. All outstanding requests must have been ended before.
    pub(super) fn reset(&mut self) {
        debug_assert!(self.outstanding.is_empty());
        *self = Client { outstanding: std::mem::take(&mut self.outstanding), ..Client::default() };
    }

    /// Handles the receipt of a message: returns the tag it was asked with, unless no message waits
    /// for this receipt.
    pub(super) fn settle(&mut self, sequence: u32) -> Option<Tag> {
        let at = self.outstanding.iter().position(|tag| tag.number == sequence)?;
        self.answered = true;
        Some(self.outstanding.remove(at))
    }

    /// The last `count` messages.
    pub(super) fn newest(&self, count: usize) -> &[Tag] {
        &self.outstanding[self.outstanding.len() - count..]
    }

    /// Fails every message without a receipt: the first with `first`, the later ones as pipelined
    /// behind it, or all as reset.
    pub(super) fn end(
        &mut self,
        now_ns: u64,
        first: Ending,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let rest = if first == Ending::Reset { first } else { Ending::ClosedPipelined };
        let endings = std::iter::once(first).chain(std::iter::repeat(rest));
        for (tag, ending) in self.outstanding.drain(..).zip(endings) {
            on_outcome(Outcome::unanswered(tag, ending, now_ns));
        }
    }
}

impl Exchange<Tag> for Client {
    fn ask_alike(&mut self, tag: Tag, count: usize) {
        self.outstanding.extend(std::iter::repeat_n(tag, count));
    }

    fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    fn standing(&self) -> Standing {
        Standing { answered: self.answered, ..Standing::default() }
    }

    fn change_newest(&mut self, mut change: impl FnMut(&mut Tag) -> bool) {
        let mut newest = self.outstanding.iter_mut().rev();
        while newest.next().is_some_and(&mut change) {}
    }

    fn next_timeout_ns(&self, deadline_ns: impl Fn(&Tag) -> u64) -> Option<u64> {
        self.outstanding.first().map(deadline_ns)
    }

    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&Tag) -> u64,
        _output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        if self.next_timeout_ns(deadline_ns).is_none_or(|due_ns| due_ns > now_ns) {
            return Disposition::Open;
        }
        for tag in self.outstanding.drain(..) {
            on_outcome(Outcome::unanswered(tag, Ending::TimeoutFirstByte, now_ns));
        }
        Disposition::Broken
    }

    fn cancel(&mut self) -> impl Iterator<Item = Tag> + '_ {
        self.outstanding.drain(..)
    }
}
