//! What is exchanged over the connections of a generator: the seam between it and a protocol.
//!
//! The generator decides when a slot asks, and keeps the books; a protocol knows what a request looks
//! like and what is a good answer to it. It holds what all connections of a thread share; each slot
//! holds a machine of its own. It must not know loads, phases or sockets.

use std::fmt::Debug;
use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{End, Exchange, Heard, Link};

use super::broadcast::UnderWay;
use super::carrier::Carrier;
use super::requests::Requests;
use super::slot::{NEVER, Tag};

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
pub struct Over {
    /// When.
    pub now_ns: u64,
    /// How many requests this thread knows to be drawn, where they are numbered.
    pub drawn: u64,
    /// How.
    pub end: End,
}

/// Why a connection did not become usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its class.
    pub class: Class,
    /// In words. May quote the peer.
    pub why: String,
}

/// A protocol, with what all connections of a thread share.
pub trait Protocol: Debug {
    /// The machine of one connection.
    type Client: Exchange<Tag> + Default + Debug;

    /// The requests, where they differ and are counted apart.
    fn requests(&self) -> Option<Arc<Requests>> {
        None
    }

    /// Whether it is the peer who ends a connection that was for one request.
    fn peer_closes(&self) -> bool;

    /// A connection is there. Writes what is to be said before the first request; true if the peer has
    /// to agree before the connection is usable ([`Link::Opening`]).
    fn open(&mut self, _client: &mut Self::Client, _key: u32, _said: &mut Vec<u8>) -> bool {
        false
    }

    /// Why the last connection that was [`Link::Refused`] was.
    fn refusal(&mut self) -> Refused {
        Refused { class: Class::Framing, why: "the connection did not become usable".into() }
    }

    /// What the request is charged with that pays for the last connection that was [`Link::Unsolicited`]; where that is
    /// not its name, `websocket.rs` says why.
    fn violation(&self) -> Class {
        Class::Unsolicited
    }

    /// The messages under way, where what one connection sends goes to all. A connection that is lost
    /// stays away then, until connections are asked for again.
    fn under_way(&mut self) -> Option<&mut UnderWay> {
        None
    }

    /// When it has to be looked at, whatever comes; never by default.
    fn next_ns(&self) -> u64 {
        NEVER
    }

    /// How often each client has to give a sign of life, in ns.
    fn heartbeat_ns(&self) -> Option<u64> {
        None
    }

    /// Writes that sign of life.
    fn write_heartbeat(&mut self, _said: &mut Vec<u8>) {}

    /// Bytes have come. Every request that they end is given to `hear`, in order; what is to be
    /// answered to them at once is added to `said`.
    fn handle_input(
        &mut self,
        client: &mut Self::Client,
        input: Input<'_>,
        said: &mut Vec<u8>,
        hear: &mut impl FnMut(Heard<Tag>),
    ) -> Link;

    /// The peer's side has ended; every outstanding request ends with it.
    fn handle_end(
        &mut self,
        client: &mut Self::Client,
        over: Over,
        hear: &mut impl FnMut(Heard<Tag>),
    );

    /// How many of the requests asked last are among so many bytes that have not left; rather too few than too many.
    fn unsent(&self, _client: &Self::Client, _drawn: u64, _bytes: usize) -> usize {
        0
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

    /// What waited on this connection has left: sends what was left for then; returns how many bytes that are.
    fn send_waiting(
        &mut self,
        _client: &mut Self::Client,
        _carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        0
    }
}
