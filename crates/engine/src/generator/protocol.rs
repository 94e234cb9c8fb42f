//! What is exchanged over the connections of a generator: the seam between it and a protocol.
//!
//! The generator decides when a slot asks, and keeps the books; a protocol knows what a request looks
//! like and what is a good answer to it. It holds what all connections of a thread share; each slot
//! holds a machine of its own. It must not know loads, phases or sockets.

use std::fmt::Debug;
use std::sync::Arc;

use trueload_drive::{Datagrams, Net, Transport};
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Exchange, Outcome, PeerEnd};
use trueload_wire::http2::client::Account;

use super::carrier::Carrier;
use super::messages::DoneReport;
use super::requests::Requests;
use super::slot::Tag;

/// What has come on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// When.
    pub now_ns: u64,
    /// Which slot it came to.
    pub key: u32,
    /// How many requests this thread knows to be drawn, where they are numbered.
    pub drawn: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// The end of the peer's side of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEnd {
    /// When.
    pub now_ns: u64,
    /// How many requests this thread knows to be drawn, where they are numbered.
    pub drawn: u64,
    /// How.
    pub how: PeerEnd,
}

/// Why a connection did not become usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// Its class.
    pub class: Class,
    /// In words. May quote the peer.
    pub why: String,
}

/// How it is said that a peer did not agree to a connection ([`Disposition::Opening`]).
#[derive(Clone, Copy, Debug)]
pub struct Unusable {
    /// Behind "the peer closed the connection".
    pub ended: &'static str,
    /// When it took too long.
    pub late: &'static str,
}

/// A protocol, with what all connections of a thread share.
pub trait Protocol: Debug {
    /// The machine of one connection.
    type Client: Exchange<Tag> + Default + Debug;

    /// The requests, where they differ and are counted apart.
    fn requests(&self) -> Option<Arc<Requests>> {
        None
    }

    /// What carries it.
    fn transport(&self) -> Transport {
        Transport::Stream
    }

    /// Whether it is the peer who ends a connection that was for one request.
    fn peer_closes(&self, client: &Self::Client) -> bool;

    /// TLS is agreed on, and what the server chose by ALPN. A machine may be replaced here; nothing has been asked on it.
    fn choose(&mut self, _client: &mut Self::Client, _alpn: Option<&[u8]>) {}

    /// A connection is there. Writes what is to be said before the first request; true if the peer has
    /// to agree before the connection is usable ([`Disposition::Opening`]).
    fn open(&mut self, _client: &mut Self::Client, _key: u32, _output: &mut Vec<u8>) -> bool {
        false
    }

    /// Why the last connection that was [`Disposition::Refused`] was.
    fn refusal(&mut self) -> OpenError {
        OpenError { class: Class::Framing, why: "the connection did not become usable".into() }
    }

    /// How it is said that the peer did not agree at all.
    fn unusable(&self) -> Unusable {
        Unusable {
            ended: "before it was upgraded",
            late: "the connection was not upgraded in time",
        }
    }

    /// What the request is charged with that pays for the last connection that was [`Disposition::Unsolicited`]; where that is
    /// not its name, `websocket.rs` says why.
    fn violation(&self, _client: &Self::Client) -> Class {
        Class::Unsolicited
    }

    /// Whether a lost connection is made again. If not, its slot stays down until connections are asked for again.
    fn reconnects(&self) -> bool {
        true
    }

    /// The slot's connection is gone, whoever ended it.
    fn closed(&mut self, _key: u32) {}

    /// Requests of the slot have timed out; they end, and their connection may be closed, right after this.
    fn gave_up(&mut self, _key: u32) {}

    /// Whether the phase cannot end yet, although all its requests may have.
    fn awaits(&self, _phase: u16) -> bool {
        false
    }

    /// What the connections of this slot have counted for themselves since this was asked last, up to this time; none where
    /// they count nothing.
    #[inline]
    fn take_account(&self, _client: &mut Self::Client, _until_ns: u64) -> Option<Account> {
        None
    }

    /// A phase is over: add to its report what only the protocol has counted.
    fn complete(&mut self, _report: &mut DoneReport) {}

    /// Bytes have come. Every request that they end is given to `on_outcome`, in order; what is to be
    /// answered to them at once is added to `said`.
    fn handle_input(
        &mut self,
        client: &mut Self::Client,
        input: Input<'_>,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition;

    /// Datagrams have come, over [`Transport::Datagram`]. Every request that they end is given to `on_outcome`; those that settle
    /// nothing, or not in their turn, are counted in `found`.
    fn handle_datagrams(
        &mut self,
        _client: &mut Self::Client,
        _now_ns: u64,
        _datagrams: Datagrams<'_>,
        _found: &mut trueload_meter::Datagrams,
        _hear: &mut impl FnMut(Outcome<Tag>),
    ) {
    }

    /// The peer's side has ended; every outstanding request ends with it.
    fn handle_end(
        &mut self,
        client: &mut Self::Client,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    );

    /// So many bytes of what was sent have not left: what comes is no answer to requests that lie wholly within them.
    #[inline]
    fn note_queued(&self, _client: &mut Self::Client, _drawn: u64, _bytes: usize) {}

    /// How many bytes the request of a tag has that was just answered, and those have that are outstanding behind it; none
    /// where that is not known.
    fn bytes_from(&self, _client: &Self::Client, _tag: &Tag, _drawn: u64) -> Option<usize> {
        None
    }

    /// Sends the `count` requests asked last; returns how many bytes that are. What has no room yet may be left for
    /// [`Protocol::send_waiting`], and is no part of them.
    fn send(
        &mut self,
        client: &mut Self::Client,
        count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize;

    /// Whether what came, or what ended, lets something be sent that [`Protocol::send`] had to leave.
    #[inline]
    fn waits_to_write(&self, _client: &Self::Client) -> bool {
        false
    }

    /// What waited on this connection has left, or [`Protocol::waits_to_write`] is true: sends what was left for then; returns
    /// how many bytes that are.
    fn send_waiting(
        &mut self,
        _client: &mut Self::Client,
        _carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        0
    }
}
