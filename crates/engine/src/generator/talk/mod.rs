//! What is asked over HTTP, and what is made of the answers, in any version.
//!
//! A dialogue is told each outcome while its connection's machine reads input. It is asked what comes
//! next after that, so that it may ask on the same connection. A dialogue that does not listen is
//! told outcomes alone: recognised answers are not read again for it.
//!
//! Must not know: frames, sockets, loads and phases.

mod courses;
mod hops;
mod plain;
mod redirects;
mod session;
mod watch;

use std::borrow::{Borrow, BorrowMut};
use std::fmt::Debug;
use std::sync::Arc;

use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, Standing, Timer};
use trueload_wire::message;
use trueload_wire::message::Turn;

use super::footprint::Footprint;
use super::machine::Machine;
use super::messages::DoneReport;
use super::requests::Requests;
use super::slot::Tag;
pub use hops::Hops;
pub use plain::{Alike, Plain, Sending};
pub use session::{Scenario, Users};

/// The time of an input, and what is known then.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time at which it is read.
    pub now_ns: u64,
    /// The time at which the kernel had it; the time at which it is read if that is not known.
    pub arrived_ns: u64,
    /// The number of requests that this thread knows to be drawn, if they are numbered.
    pub drawn: u64,
}

impl Moment {
    /// The time of something that did not come from the kernel.
    pub(super) fn of(now_ns: u64, drawn: u64) -> Self {
        Moment { now_ns, arrived_ns: now_ns, drawn }
    }
}

/// What a dialogue asks, as far as its protocol has to know.
#[derive(Clone, Copy, Debug)]
pub struct Asks<'a> {
    /// The requests, if they differ and are counted separately.
    pub requests: Option<&'a Arc<Requests>>,
    /// What is noted of answers that are streams, if they are.
    pub watch: Option<&'a watch::StreamWatch>,
    /// Redirects are followed.
    pub follows: bool,
}

/// What all connections of a thread ask, and what becomes of it.
pub trait Dialogue: Debug + Sized {
    /// What a machine knows about a request: the tag of the whole, at least.
    type Tag: Copy + PartialEq + BorrowMut<Tag> + Debug + 'static;
    /// What is kept for each slot.
    type State: Default + Debug;
    /// The requests of one slot, and the rules for its answers.
    type Book<'a>: message::Book<Self::Tag>
    where
        Self: 'a;

    /// Whether answers are told, and may lead to other requests.
    const LISTENS: bool;
    /// Whether a request may go on behind others, with the time that it had.
    const HOPS: bool = false;

    /// What it asks.
    fn asks(&self) -> Asks<'_>;

    /// The requests and rules of a slot at this time.
    fn book<'a>(&'a mut self, state: &'a mut Self::State, at: Moment) -> Self::Book<'a>;

    /// What takes the outcomes of requests. It passes on the outcome of the whole, unless that goes
    /// on.
    fn hears<'a, 'b: 'a, F: FnMut(Outcome<Tag>)>(
        book: &'a Self::Book<'b>,
        on_outcome: &'a mut F,
    ) -> impl FnMut(Outcome<Self::Tag>) + 'a
    where
        Self: 'b;

    /// Takes the next request that the dialogue goes on with, such as the hop behind a redirect:
    /// `here`, on this connection, or over the slot's next one.
    fn next(_state: &mut Self::State, _here: bool) -> Option<Self::Tag> {
        None
    }

    /// Whether the dialogue has gone on with this request behind another one.
    fn goes_on(_tag: &Self::Tag) -> bool {
        false
    }

    /// Forgets a request that was to go on over the next connection, and has ended before it.
    fn forget(_state: &mut Self::State, _tag: &Tag) {}

    /// Called before a request of a session is asked.
    fn begin_step(_state: &mut Self::State, _turn: Turn) {}

    /// The machine's tag for `count` requests that are asked with this one.
    fn begin(state: &mut Self::State, tag: Tag, count: usize) -> Self::Tag;

    /// Forgets a request that has ended without being told. Returns the tag of the whole.
    fn end(state: &mut Self::State, tag: Self::Tag) -> Tag;

    /// What is kept for a slot.
    fn footprint(_state: &Self::State) -> Footprint {
        Footprint::default()
    }

    /// Adds to the report of a phase what only the dialogue has seen.
    fn complete(&mut self, report: &mut DoneReport);
}

/// The machine of a slot's connection, and what the dialogue keeps for the slot.
#[derive(Debug)]
pub struct Talking<M, D: Dialogue> {
    pub(super) machine: M,
    pub(super) state: D::State,
}

/// The outcome of a whole request, whose last part has this one.
pub(super) fn of_whole<T>(outcome: Outcome<T>, tag: Tag, ending: Ending) -> Outcome<Tag> {
    let Outcome { count, complete, status, first_byte_ns, content, .. } = outcome;
    Outcome { tag, count, ending, complete, status, first_byte_ns, content }
}

impl<D: Dialogue, M: Machine<D::Tag>> Exchange<Tag> for Talking<M, D> {
    #[inline]
    fn ask_alike(&mut self, tag: Tag, count: usize) {
        self.machine.ask_alike(D::begin(&mut self.state, tag, count), count);
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.machine.outstanding()
    }

    #[inline]
    fn capacity(&self, depth: usize) -> usize {
        self.machine.capacity(depth)
    }

    fn standing(&self) -> Standing {
        self.machine.standing()
    }

    #[inline]
    fn change_newest(&mut self, mut change: impl FnMut(&mut Tag) -> bool) {
        // A hop has its time from its first request, but those before it may be new.
        self.machine.change_newest(|tag| change(tag.borrow_mut()) || D::goes_on(tag));
    }

    #[inline]
    fn is_unsent(&self) -> bool {
        self.machine.is_unsent()
    }

    /// A request may go on behind others that were sent after its first part. It then times out
    /// late, when those before it have ended.
    #[inline]
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&Tag) -> u64) -> Option<u64> {
        self.machine.next_timeout_ns(|tag| deadline_ns(tag.borrow()))
    }

    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&Tag) -> u64,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Talking { machine, state } = self;
        let deadline_ns = |tag: &D::Tag| deadline_ns(tag.borrow());
        machine.handle_timeout(now_ns, deadline_ns, output, &mut |outcome| {
            let tag = D::end(state, outcome.tag);
            on_outcome(of_whole(outcome, tag, outcome.ending));
        })
    }

    #[inline]
    fn next_timer(&self) -> Option<(u64, Timer)> {
        self.machine.next_timer()
    }

    fn handle_timer(
        &mut self,
        now_ns: u64,
        timer: Timer,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Talking { machine, state } = self;
        machine.handle_timer(now_ns, timer, output, &mut |outcome| {
            let tag = D::end(state, outcome.tag);
            on_outcome(of_whole(outcome, tag, outcome.ending));
        })
    }

    fn forget(&mut self, tag: &Tag) {
        D::forget(&mut self.state, tag);
    }

    fn cancel(&mut self) -> impl Iterator<Item = Tag> + '_ {
        let Talking { machine, state } = self;
        machine.cancel().map(|tag| D::end(state, tag))
    }
}
