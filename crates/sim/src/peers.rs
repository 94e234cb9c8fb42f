//! The interface between a kernel and the peers at the other end of its connections.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use crate::scenario::{Accept, Pace, Proxy};

/// The peers of one kernel, one for each connection. They take times and input, and return what
/// they do. Connections are numbered in the order in which they begin.
pub trait Peers: fmt::Debug {
    /// Decides what becomes of a connection attempt to one of several origins, or to the only one,
    /// which is 0. If a connection results, it has this number.
    fn attempt(&mut self, index: u32, origin: u32) -> Accept;

    /// Tells the peer that the connection is established.
    fn connected(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>);

    /// Tells the peer that bytes have come.
    fn receive(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>);

    /// Tells the peer that the generator has ended its side.
    fn ended(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>);

    /// Calls the peer at the time for which it asked by [`What::GoOn`].
    fn go_on(&mut self, _index: u32, _at_ns: u64, _acts: &mut Vec<Act>) {}

    /// Tells the peer that the generator has closed. Nothing more is done or received on this
    /// connection.
    fn gone(&mut self, _index: u32) {}

    /// Takes what is to be done on connections of other threads, with the thread numbers, since the
    /// last call.
    fn mail(&mut self) -> Vec<(u32, Act)> {
        Vec::new()
    }

    /// Whether the peer reads incoming bytes.
    fn reads(&self, _index: u32) -> bool {
        true
    }

    /// How slowly the peer reads and writes.
    fn pace(&self, _index: u32) -> Pace {
        Pace::default()
    }

    /// What the proxy of a connection does, if there is one.
    fn proxy(&self, _index: u32) -> Option<Proxy> {
        None
    }

    /// Requests of which at least a part has come, on all connections.
    fn requests(&self) -> u64;

    /// Requests of which at least a part has come, on one connection.
    fn requests_on(&self, _index: u32) -> u64 {
        0
    }

    /// The first protocol violation by a generator.
    fn mistake(&self) -> Option<String> {
        None
    }

    /// Answers that were sent whole; none if that is not known.
    fn whole(&self) -> Option<u64> {
        None
    }

    /// The most times that any one request came; 0 if requests cannot be told apart.
    fn repeats_most(&self) -> u32 {
        0
    }

    /// The protocols that the peer of a connection knows by ALPN; empty if it does not know ALPN.
    fn alpn(&self, _index: u32) -> &'static [&'static str] {
        &[]
    }

    /// The connections by version; none for peers that have no choice.
    fn versions(&self) -> Option<Versions> {
        None
    }
}

/// Connections by the version of HTTP that their peers speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Connections over HTTP/1.1.
    pub http1: Spoken,
    /// Connections over HTTP/2.
    pub http2: Spoken,
    /// Connections on which the peer replied with neither.
    pub other: u64,
}

/// Numbers of connections that speak one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// Established connections.
    pub established: u64,
    /// Connections on which a request has come.
    pub used: u64,
}

/// Peers that are shared, so that a test can look at them, too.
impl<P: Peers> Peers for Rc<RefCell<P>> {
    fn attempt(&mut self, index: u32, origin: u32) -> Accept {
        self.borrow_mut().attempt(index, origin)
    }

    fn connected(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.borrow_mut().connected(index, at_ns, acts);
    }

    fn receive(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        self.borrow_mut().receive(index, at_ns, bytes, acts);
    }

    fn ended(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.borrow_mut().ended(index, at_ns, acts);
    }

    fn go_on(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.borrow_mut().go_on(index, at_ns, acts);
    }

    fn gone(&mut self, index: u32) {
        self.borrow_mut().gone(index);
    }

    fn mail(&mut self) -> Vec<(u32, Act)> {
        self.borrow_mut().mail()
    }

    fn reads(&self, index: u32) -> bool {
        self.borrow().reads(index)
    }

    fn pace(&self, index: u32) -> Pace {
        self.borrow().pace(index)
    }

    fn proxy(&self, index: u32) -> Option<Proxy> {
        self.borrow().proxy(index)
    }

    fn requests(&self) -> u64 {
        self.borrow().requests()
    }

    fn requests_on(&self, index: u32) -> u64 {
        self.borrow().requests_on(index)
    }

    fn mistake(&self) -> Option<String> {
        self.borrow().mistake()
    }

    fn whole(&self) -> Option<u64> {
        self.borrow().whole()
    }

    fn repeats_most(&self) -> u32 {
        self.borrow().repeats_most()
    }

    fn alpn(&self, index: u32) -> &'static [&'static str] {
        self.borrow().alpn(index)
    }

    fn versions(&self) -> Option<Versions> {
        self.borrow().versions()
    }
}

/// One action of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The connection's number.
    pub on: u32,
    /// The time at which the peer acts.
    pub at_ns: u64,
    /// The action.
    pub what: What,
}

/// The kinds of action.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Sends bytes. With an offset, they complete the right answer to the request that began at
    /// that offset of the peer's input.
    Send(Vec<u8>, Option<u64>),
    /// Sends bytes that must not be encrypted even where the kernel does that.
    SendRaw(Vec<u8>),
    /// Ends its side.
    Fin,
    /// Resets the connection.
    Reset,
    /// Asks to be called again.
    GoOn,
}
