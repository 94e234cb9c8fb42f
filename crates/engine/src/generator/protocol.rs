//! The seam between a generator and the protocol that its connections speak.
//!
//! The generator decides when a slot asks, and keeps the accounts. A protocol knows what a request
//! looks like, and what a good answer to it is. It holds what all connections of a thread share;
//! each slot holds a machine of its own. Must not know: loads, phases or sockets.

use std::fmt::Debug;
use std::sync::Arc;

use trueload_drive::{Datagrams, Net, Transport};
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Exchange, Outcome, Output, PeerClose};
use trueload_wire::http2::client::Account;
use trueload_wire::session::Turn;

use super::carrier::Carrier;
use super::messages::DoneReport;
use super::pace::StepPace;
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

/// The reason why a connection did not become usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// Its class.
    pub class: Class,
    /// The reason in words. May quote the peer.
    pub why: String,
}

/// The texts for a peer that did not agree to a connection ([`Disposition::Opening`]).
#[derive(Clone, Copy, Debug)]
pub struct Unusable {
    /// The text after "the peer closed the connection".
    pub ended: &'static str,
    /// The text if it took too long.
    pub late: &'static str,
}

/// A protocol, with what all connections of a thread share.
pub trait Protocol: Debug {
    /// The machine of one connection.
    type Client: Exchange<Tag> + Debug;

    /// Whether requests follow each other in sessions. If so, connections have one request in
    /// flight, and a request's number is the index of its step.
    const SESSIONS: bool = false;

    /// The machine of a slot that had no connection yet.
    fn client(&self) -> Self::Client;

    /// How the steps of a session follow each other.
    fn paces(&self) -> Arc<[StepPace]> {
        Arc::default()
    }

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

    /// Whether the peer is the one to end a connection that was for one request.
    fn peer_closes(&self, client: &Self::Client) -> bool;

    /// Called when TLS is agreed on, with the server's choice by ALPN. A machine may be replaced
    /// here; nothing has been asked on it.
    fn choose(&mut self, _client: &mut Self::Client, _alpn: Option<&[u8]>) {}

    /// Called for a new connection. Writes what is to be sent before the first request; true if the
    /// peer has to agree before the connection is usable ([`Disposition::Opening`]).
    fn open(&mut self, _client: &mut Self::Client, _key: u32, _output: &mut Output) -> bool {
        false
    }

    /// The reason for the last [`Disposition::Refused`].
    fn refusal(&mut self) -> OpenError {
        OpenError { class: Class::Framing, why: "the connection did not become usable".into() }
    }

    /// The texts for a peer that did not agree at all.
    fn unusable(&self) -> Unusable {
        Unusable {
            ended: "before it was upgraded",
            late: "the connection was not upgraded in time",
        }
    }

    /// The class that the request is charged with that pays for the last
    /// [`Disposition::Unsolicited`]; `websocket.rs` says why the names may differ.
    fn violation(&self, _client: &Self::Client) -> Class {
        Class::Unsolicited
    }

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

    /// The length in bytes of the request that was just answered, whose tag this is, plus those
    /// outstanding behind it; none if that is not known.
    fn bytes_from(&mut self, _client: &mut Self::Client, _tag: &Tag, _drawn: u64) -> Option<usize> {
        None
    }

    /// Sends the `count` requests asked last; returns the number of bytes. Requests without room
    /// may be left for [`Protocol::send_waiting`], and then do not count.
    fn send(
        &mut self,
        client: &mut Self::Client,
        count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize;

    /// Whether input or an ending lets something be sent that [`Protocol::send`] had to leave.
    #[inline]
    fn waits_to_write(&self, _client: &Self::Client) -> bool {
        false
    }

    /// Called when waiting bytes of this connection have left, or [`Protocol::waits_to_write`] is
    /// true: sends what was left for then. Returns the number of bytes.
    fn send_waiting(
        &mut self,
        _client: &mut Self::Client,
        _carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        0
    }
}
