//! What HTTP needs of the machine of one version, on one connection.
//!
//! Must not know: what is asked, and what becomes of the answers.

use std::fmt::Debug;

use trueload_drive::Net;
use trueload_wire::account::Account;
use trueload_wire::exchange::{Disposition, Exchange, Outcome, Output, PeerClose};
use trueload_wire::message::Book;

use super::carrier::Carrier;
use super::messages::DoneReport;
use super::protocol::{Facts, Received};

/// A version of HTTP on one connection. `T` is what is known about a request.
pub trait Machine<T>: Exchange<T> + Debug {
    /// What all connections of a thread share.
    type Shared: Debug;

    /// See `Protocol::TALKS`.
    const TALKS: bool = false;

    /// The machine of a slot that had no connection yet.
    fn new(shared: &Self::Shared) -> Self;

    /// See `Protocol::open`. A machine may be replaced here.
    fn open(&mut self, alpn: Option<&[u8]>, shared: &Self::Shared, output: &mut Output) -> bool;

    /// See `Protocol::facts`.
    fn facts(&self, shared: &Self::Shared) -> Facts;

    /// Handles what has come. Every request that it ends is given to `on_outcome`.
    fn handle_input(
        &mut self,
        now_ns: u64,
        received: Received<'_>,
        book: &impl Book<T>,
        shared: &mut Self::Shared,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition;

    /// Handles the end of the peer's side; every outstanding request ends with it.
    fn handle_end(
        &mut self,
        now_ns: u64,
        how: PeerClose,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    );

    /// Asks a request that the dialogue goes on with. It is sent when the machine can write
    /// ([`Machine::waits_to_write`]).
    fn ask_behind(&mut self, tag: T) {
        self.ask(tag);
    }

    /// Notes that `bytes` of what was sent have not left.
    fn note_queued(&mut self, _bytes: usize, _book: &impl Book<T>) {}

    /// See `Protocol::note_sent`.
    #[inline]
    fn note_sent(&mut self) {}

    /// The length in bytes of the request that was just answered, plus those outstanding behind it;
    /// none if that is not known.
    fn bytes_from(&self, _tag: &T, _book: &impl Book<T>) -> Option<usize> {
        None
    }

    /// See `Protocol::waits_to_write`.
    #[inline]
    fn waits_to_write(&self) -> bool {
        false
    }

    /// See `Protocol::send`.
    fn send(
        &mut self,
        count: usize,
        book: &impl Book<T>,
        shared: &mut Self::Shared,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize;

    /// See `Protocol::take_account`.
    fn take_account(&mut self, _until_ns: u64, _shared: &Self::Shared) -> Option<Account> {
        None
    }

    /// Adds to the report of a phase what only machines have seen. `follows`: redirects are
    /// followed.
    fn complete(_shared: &mut Self::Shared, _follows: bool, _report: &mut DoneReport) {}
}
