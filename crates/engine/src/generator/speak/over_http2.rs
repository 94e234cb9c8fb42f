//! HTTP/2 on a connection: requests go out on streams, each of which ends on its own.
//!
//! A request is written only if the socket may soon take it, the peer permits a stream for it, and
//! the windows have room. The others follow later.

use std::fmt::Debug;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::account::Account;
use trueload_wire::exchange::{Disposition, Exchange, Outcome, Output, PeerClose};
use trueload_wire::http2::client::{Client, Terms};
use trueload_wire::message::Book;

use crate::generator::carrier::Carrier;
use crate::generator::classes::class_of_ending;
use crate::generator::machine::Machine;
use crate::generator::protocol::{Facts, OpenError, Received};

/// Frames are collected into one write until they have this many bytes.
const WRITTEN_AT_ONCE_BYTES: usize = 64 * 1024;

/// What all connections of a thread share.
#[derive(Debug)]
pub struct Http2 {
    terms: Terms,
    /// A buffer to write frames in.
    frames: Vec<u8>,
    /// Why the last connection was refused, or broken off with nothing outstanding.
    fault: Option<OpenError>,
}

impl Http2 {
    /// Creates connections that announce `terms` to their peers.
    pub fn new(terms: impl Into<Terms>) -> Self {
        Http2 { terms: terms.into(), frames: Vec::new(), fault: None }
    }

    /// Keeps the reason why a connection is of no use.
    #[cold]
    fn keep_reason<T: Copy>(&mut self, client: &Client<T>) {
        let (class, why) = match client.standing().broken {
            Some((ending, why)) => (class_of_ending(ending), why),
            None => (None, "the peer sent what belongs to no request"),
        };
        self.fault =
            Some(OpenError { class: class.unwrap_or(Class::Unsolicited), why: why.into() });
    }
}

impl<T: Copy + Debug> Machine<T> for Client<T> {
    type Shared = Http2;

    fn new(_shared: &Http2) -> Self {
        Client::default()
    }

    fn open(&mut self, _alpn: Option<&[u8]>, shared: &Http2, output: &mut Output) -> bool {
        Client::open(self, shared.terms, &mut output.bytes);
        true
    }

    fn facts(&self, shared: &Http2) -> Facts {
        let late = "the SETTINGS that HTTP/2 begins with did not come in time";
        let fault = shared.fault.clone();
        Facts {
            peer_closes: false,
            violation: fault.as_ref().map_or(Class::Unsolicited, |fault| fault.class),
            refused: fault.unwrap_or(OpenError { class: Class::H2Protocol, why: late.into() }),
            ended: "before it sent the SETTINGS that HTTP/2 begins with",
            late,
        }
    }

    #[inline]
    fn handle_input(
        &mut self,
        now_ns: u64,
        received: Received<'_>,
        book: &impl Book<T>,
        shared: &mut Http2,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let disposition = Client::handle_input(
            self,
            now_ns,
            received.bytes(),
            book,
            &mut output.bytes,
            on_outcome,
        );
        if matches!(disposition, Disposition::Refused | Disposition::Unsolicited) {
            shared.keep_reason(self);
        }
        disposition
    }

    fn handle_end(
        &mut self,
        now_ns: u64,
        how: PeerClose,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        Client::handle_end(self, now_ns, how, book, on_outcome);
    }

    #[inline]
    fn note_sent(&mut self) {
        Client::note_sent(self);
    }

    #[inline]
    fn waits_to_write(&self) -> bool {
        Client::waits_to_write(self)
    }

    /// Which requests were asked last makes no difference: the machine knows which wait.
    #[inline]
    fn send(
        &mut self,
        _count: usize,
        book: &impl Book<T>,
        shared: &mut Http2,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let frames = &mut shared.frames;
        let mut sent = 0;
        while Client::waits_to_write(self) && carrier.has_room() {
            frames.clear();
            self.write(book, WRITTEN_AT_ONCE_BYTES, frames);
            carrier.send(frames);
            sent += frames.len();
        }
        self.note(carrier.net.now_ns());
        sent
    }

    fn take_account(&mut self, until_ns: u64, _shared: &Http2) -> Option<Account> {
        Some(Client::take_account(self, until_ns))
    }
}
