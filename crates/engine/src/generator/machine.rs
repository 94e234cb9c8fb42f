//! What HTTP needs of the machine of one version, on one connection.
//!
//! Must not know: what is asked, and what becomes of the answers.

use std::fmt::Debug;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Exchange, Outcome, Output, PeerClose};
use trueload_wire::http2::client::Account;
use trueload_wire::message::{Requests as Texts, Rulebook};

use super::carrier::Carrier;
use super::protocol::{OpenError, Received, Unusable};

/// A version of HTTP on one connection. `T` is what is known about a request.
pub trait Machine<T>: Exchange<T> + Debug {
    /// What all connections of a thread share.
    type Shared: Debug;

    /// The machine of a slot that had no connection yet.
    fn new(shared: &Self::Shared) -> Self;

    /// Prepares for remembering so many different answer heads.
    fn remember(_shared: &mut Self::Shared, _heads: usize) {}

    /// See `Protocol::choose`.
    fn choose(&mut self, _alpn: Option<&[u8]>, _shared: &Self::Shared) {}

    /// See `Protocol::open`.
    fn open(&mut self, _shared: &Self::Shared, _output: &mut Output) -> bool {
        false
    }

    /// See `Protocol::peer_closes`.
    fn peer_closes(&self) -> bool;

    /// Why the last connection was refused.
    fn refusal(shared: &mut Self::Shared) -> OpenError;

    /// See `Protocol::unusable`.
    fn unusable() -> Unusable;

    /// See `Protocol::violation`.
    fn violation(&self, shared: &Self::Shared) -> Class;

    /// Handles what has come. Every request that it ends is given to `on_outcome`.
    fn handle_input(
        &mut self,
        now_ns: u64,
        received: Received<'_>,
        book: &impl Rulebook<T>,
        shared: &mut Self::Shared,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition;

    /// Handles the end of the peer's side; every outstanding request ends with it.
    fn handle_end(
        &mut self,
        now_ns: u64,
        how: PeerClose,
        book: &impl Rulebook<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    );

    /// Asks a request that the dialogue goes on with. It is sent by [`Machine::send_waiting`].
    fn ask_behind(&mut self, tag: T) {
        self.ask(tag);
    }

    /// Notes that `bytes` of what was sent have not left.
    fn note_queued(&mut self, _bytes: usize, _book: &impl Texts<T>) {}

    /// The length in bytes of the request that was just answered, plus those outstanding behind it;
    /// none if that is not known.
    fn bytes_from(&self, _tag: &T, _book: &impl Texts<T>) -> Option<usize> {
        None
    }

    /// Sends the `count` requests asked last; returns the number of bytes.
    fn send(
        &mut self,
        count: usize,
        book: &impl Texts<T>,
        shared: &mut Self::Shared,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize;

    /// See `Protocol::waits_to_write`.
    #[inline]
    fn waits_to_write(&self) -> bool {
        false
    }

    /// See `Protocol::send_waiting`.
    fn send_waiting(
        &mut self,
        book: &impl Texts<T>,
        shared: &mut Self::Shared,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize;

    /// See `Protocol::take_account`.
    fn take_account(&mut self, _until_ns: u64, _shared: &Self::Shared) -> Option<Account> {
        None
    }

    /// A redirect that was not followed, if one was remembered.
    fn redirect(_shared: &Self::Shared) -> Option<&str> {
        None
    }
}
