//! One client of a broadcast, as a machine: where it stands, and its own messages that have no receipt yet.

use trueload_wire::exchange::{Ending, Exchange, Heard};
use trueload_wire::shootout::Joining;
use trueload_wire::websocket::client::Awaited;
use trueload_wire::websocket::{Receiver, Role};

use super::super::slot::Tag;

/// Where a client stands.
#[derive(Debug)]
pub(super) enum Stage {
    /// It has not asked for anything.
    Fresh,
    /// The upgrade is asked for.
    Upgrading(Box<Awaited>),
    /// It is no listener yet.
    Joining(Joining),
    /// The peer has closed the WebSocket.
    Closed,
}

/// The machine of one connection.
#[derive(Debug)]
pub struct Client {
    pub(super) stage: Stage,
    pub(super) receiver: Receiver,
    /// Which slot it is.
    pub(super) slot: u32,
    /// What it sends by: its number over all engines.
    pub(super) number: u32,
    /// Its messages without a receipt, in the order in which they were sent.
    outstanding: Vec<Tag>,
    answered: bool,
}

impl Default for Client {
    fn default() -> Self {
        Client {
            stage: Stage::Fresh,
            receiver: Receiver::new(Role::Client),
            slot: 0,
            number: 0,
            outstanding: Vec::new(),
            answered: false,
        }
    }
}

impl Client {
    /// The receipt of a message has come: what it was asked with, unless it waits for none.
    pub(super) fn settle(&mut self, sequence: u32) -> Option<Tag> {
        let at = self.outstanding.iter().position(|tag| tag.number == sequence)?;
        self.answered = true;
        Some(self.outstanding.remove(at))
    }

    /// The last `count` messages.
    pub(super) fn newest(&self, count: usize) -> &[Tag] {
        &self.outstanding[self.outstanding.len() - count..]
    }

    /// Every message without a receipt has failed: the first of them by this, the others behind it.
    pub(super) fn end(&mut self, now_ns: u64, first: Ending, hear: &mut impl FnMut(Heard<Tag>)) {
        let rest = if first == Ending::Reset { first } else { Ending::ClosedPipelined };
        let endings = std::iter::once(first).chain(std::iter::repeat(rest));
        for (tag, ending) in self.outstanding.drain(..).zip(endings) {
            hear(Heard::unanswered(tag, ending, now_ns));
        }
    }
}

impl Exchange<Tag> for Client {
    fn reopen(&mut self) {
        debug_assert!(self.outstanding.is_empty());
        *self = Client { outstanding: std::mem::take(&mut self.outstanding), ..Client::default() };
    }

    fn ask_alike(&mut self, tag: Tag, count: usize) {
        self.outstanding.extend(std::iter::repeat_n(tag, count));
    }

    fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    fn oldest(&self) -> Option<&Tag> {
        self.outstanding.first()
    }

    fn has_answered(&self) -> bool {
        self.answered
    }

    fn handle_timeout(&mut self, now_ns: u64, _in_record: bool, hear: &mut impl FnMut(Heard<Tag>)) {
        for tag in self.outstanding.drain(..) {
            hear(Heard::unanswered(tag, Ending::TimeoutFirstByte, now_ns));
        }
    }

    fn cancel(&mut self) -> impl Iterator<Item = Tag> + '_ {
        self.outstanding.drain(..)
    }
}
