//! The seam between a generator and the protocol that its connections speak.
//!
//! The generator decides when a slot asks, and keeps the accounts. A protocol knows what a request
//! looks like, and what a good answer to it is. It holds what all connections of a thread share;
//! each slot holds a machine of its own. Must not know: loads, phases or sockets.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use trueload_drive::{Datagrams, Net, Transport};
use trueload_meter::{Class, Recorded};
use trueload_wire::account::Account;
use trueload_wire::exchange::{Disposition, Exchange, Outcome, Output, PeerClose};
use trueload_wire::message::Turn;

use super::carrier::Carrier;
use super::footprint::Footprint;
use super::messages::DoneReport;
use super::requests::Requests;
use super::slot::Tag;

/// What has come on a connection.
#[derive(Clone, Copy, Debug)]
pub enum Received<'a> {
    /// Bytes of a stream, in order.
    Bytes(&'a [u8]),
    /// Datagrams that arrived together, with their mark for congestion (ECN).
    Datagrams(Datagrams<'a>),
}

impl<'a> Received<'a> {
    /// The bytes of a stream; none if it is not one.
    #[inline]
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Received::Bytes(bytes) => bytes,
            Received::Datagrams(_) => &[],
        }
    }

    /// The number of bytes.
    #[inline]
    pub(super) fn len(self) -> usize {
        match self {
            Received::Bytes(bytes) => bytes.len(),
            Received::Datagrams(datagrams) => datagrams.bytes.len(),
        }
    }
}

/// Input of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The time at which they are read.
    pub now_ns: u64,
    /// The time at which the kernel had them, if it told.
    pub arrived_ns: Option<u64>,
    /// The slot that they came to.
    pub key: u32,
    /// The number of requests that this thread knows to be drawn, if they are numbered.
    pub drawn: u64,
    /// What has come.
    pub received: Received<'a>,
}

/// The end of the peer's side of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEnd {
    /// The time of the end.
    pub now_ns: u64,
    /// The number of requests that this thread knows to be drawn, if they are numbered.
    pub drawn: u64,
    /// The kind of the end.
    pub how: PeerClose,
}

/// A connection that can be used from now on, but for what the protocol has to agree on.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// Its slot.
    pub key: u32,
    /// The server's choice by ALPN, if there was one.
    pub alpn: Option<&'a [u8]>,
}

/// The reason why a connection did not become usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// Its class.
    pub class: Class,
    /// The reason in words. May quote the peer.
    pub why: Cow<'static, str>,
}

/// What a protocol knows of a connection.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The peer is the one to end a connection that was for one request.
    pub peer_closes: bool,
    /// The class that the request is charged with that pays for the last
    /// [`Disposition::Unsolicited`]; `websocket.rs` says why the names may differ.
    pub violation: Class,
    /// The reason for the last [`Disposition::Refused`].
    pub refused: OpenError,
    /// If a peer ends the connection that has not agreed to it: the text after "the peer closed the
    /// connection".
    pub ended: &'static str,
    /// The text if the peer took too long to agree.
    pub late: &'static str,
}

impl Default for Facts {
    fn default() -> Self {
        let why = "the connection did not become usable".into();
        Facts {
            peer_closes: false,
            violation: Class::Unsolicited,
            refused: OpenError { class: Class::Framing, why },
            ended: "before it was usable",
            late: "the connection was not usable in time",
        }
    }
}

/// A protocol, with what all connections of a thread share.
pub trait Protocol: Debug {
    /// The machine of one connection.
    type Client: Exchange<Tag> + Debug;

    /// The sessions are conversations: users have roles, and a connection ends with its last step.
    const TALKS: bool = false;

    /// The machine of a slot that had no connection yet.
    fn client(&self) -> Self::Client;

    /// Called before a request of a session is asked.
    fn begin_step(&self, _client: &mut Self::Client, _turn: Turn) {}

    /// The requests, if they differ and are counted separately.
    fn requests(&self) -> Option<Arc<Requests>> {
        None
    }

    /// The transport that carries it.
    fn transport(&self) -> Transport {
        Transport::Stream
    }

    /// What is known of a connection.
    fn facts(&self, _client: &Self::Client) -> Facts {
        Facts::default()
    }

    /// Prepares the machine of a slot for a new connection; nothing is outstanding on it. Writes
    /// what is to be sent before the first request. True if the peer has to agree before the
    /// connection is usable ([`Disposition::Opening`]).
    fn open(&mut self, client: &mut Self::Client, opened: Opened<'_>, output: &mut Output) -> bool;

    /// Whether a lost connection is opened again. If not, its slot stays down until connections are
    /// asked for again.
    fn reconnects(&self) -> bool {
        true
    }

    /// Whether the arrival times of all connections are wanted, and not only of a sample.
    #[inline]
    fn times_arrivals(&self) -> bool {
        false
    }

    /// Whether an input may bring the next deadline nearer.
    #[inline]
    fn hastens_deadlines(&self) -> bool {
        false
    }

    /// Called when the slot's connection is gone, whoever ended it.
    fn closed(&mut self, _key: u32) {}

    /// Called when requests of the slot have timed out; right after this they end, and their
    /// connection may be closed.
    fn gave_up(&mut self, _key: u32) {}

    /// Whether the phase cannot end yet, although all its requests may have.
    fn awaits(&self, _phase: u16) -> bool {
        false
    }

    /// Takes the counts that the connections of this slot have kept for themselves since the last
    /// call, up to this time; none if they count nothing.
    #[inline]
    fn take_account(&self, _client: &mut Self::Client, _until_ns: u64) -> Option<Account> {
        None
    }

    /// What is kept for a slot besides its machine.
    fn footprint(&self, _client: &Self::Client) -> Footprint {
        Footprint::default()
    }

    /// Takes what was recorded of the parts of streams since the last call: the first parts, then
    /// the gaps, where `ok` counts all parts. Empty if answers are no streams.
    fn take_parts(&mut self, _phase: u16) -> Vec<Recorded> {
        Vec::new()
    }

    /// Called when a phase is over: adds to its report what only the protocol has counted.
    fn complete(&mut self, _report: &mut DoneReport) {}

    /// Handles input, in every state that has a socket. Every request that it ends is given to
    /// `on_outcome`. What is to be answered at once is added to `output`.
    fn handle_input(
        &mut self,
        client: &mut Self::Client,
        input: Input<'_>,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition;

    /// Takes what was counted of datagrams that settled nothing, or not in their turn, since the
    /// last call.
    fn take_datagrams(&mut self) -> trueload_meter::Datagrams {
        trueload_meter::Datagrams::default()
    }

    /// Handles the end of the peer's side; every outstanding request ends with it.
    fn handle_end(
        &mut self,
        client: &mut Self::Client,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    );

    /// Notes that `bytes` of what was sent have not left: no input can be an answer to requests
    /// that lie wholly within them.
    #[inline]
    fn note_queued(&mut self, _client: &mut Self::Client, _drawn: u64, _bytes: usize) {}

    /// Notes that all output was sent, and that all input which had come before was handled.
    #[inline]
    fn note_sent(&mut self, _client: &mut Self::Client) {}

    /// The length in bytes of the request that was just answered, whose tag this is, plus those
    /// outstanding behind it; none if that is not known.
    fn bytes_from(&mut self, _client: &mut Self::Client, _tag: &Tag, _drawn: u64) -> Option<usize> {
        None
    }

    /// Whether something can be sent now that [`Protocol::send`] had to leave. Over datagrams,
    /// whatever an input gives to send: it leaves once per batch of events.
    #[inline]
    fn waits_to_write(&self, _client: &Self::Client) -> bool {
        false
    }

    /// Sends the `count` requests asked last, behind what waits; returns the number of bytes.
    /// Requests without room may be left for later, and then do not count. It is called again, with
    /// no request, when waiting bytes of the connection have left, or input or an ending lets more
    /// be sent.
    fn send(
        &mut self,
        client: &mut Self::Client,
        count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize;
}
