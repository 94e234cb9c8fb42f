//! What stands at the other end of a kernel's connections, and what it does.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use crate::scenario::Accept;

/// The peers of one kernel, one for each connection: times and bytes in, what they do out. Connections are numbered in
/// the order in which they begin.
pub trait Peers: fmt::Debug {
    /// What becomes of an attempt to connect. If it comes to a connection, that has this number.
    fn attempt(&mut self, index: u32) -> Accept;

    /// A connection is there.
    fn connected(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>);

    /// Bytes have come.
    fn hear(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>);

    /// The generator has ended its side.
    fn ended(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>);

    /// The time has come for which it asked by [`What::GoOn`].
    fn go_on(&mut self, _index: u32, _at_ns: u64, _acts: &mut Vec<Act>) {}

    /// The generator has closed: nothing more is done or heard on this connection.
    fn gone(&mut self, _index: u32) {}

    /// What is to be done on connections of other threads, with their numbers, since this was last asked.
    fn mail(&mut self) -> Vec<(u32, Act)> {
        Vec::new()
    }

    /// Whether it takes what comes.
    fn reads(&self, _index: u32) -> bool {
        true
    }

    /// Requests of which at least a part has come.
    fn requests(&self) -> u64;

    /// The same of one connection.
    fn requests_on(&self, _index: u32) -> u64 {
        0
    }

    /// The first thing that a generator did and the protocol forbids.
    fn mistake(&self) -> Option<String> {
        None
    }

    /// Answers that were sent whole, where that is known.
    fn whole(&self) -> Option<u64> {
        None
    }

    /// How often any request came, at most, where requests are known apart.
    fn repeats_most(&self) -> u32 {
        0
    }
}

/// Peers that somebody else looks at, too.
impl<P: Peers> Peers for Rc<RefCell<P>> {
    fn attempt(&mut self, index: u32) -> Accept {
        self.borrow_mut().attempt(index)
    }

    fn connected(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.borrow_mut().connected(index, at_ns, acts);
    }

    fn hear(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        self.borrow_mut().hear(index, at_ns, bytes, acts);
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
}

/// What a peer does, when, and on which connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The connection's number.
    pub on: u32,
    /// When.
    pub at_ns: u64,
    /// What.
    pub what: What,
}

/// One thing that a peer does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Says bytes; with them the right answer to the request that began at this offset of what it heard is whole.
    Say(Vec<u8>, Option<u64>),
    /// Says bytes that are not to be sealed, where the kernel does that.
    SayAsItIs(Vec<u8>),
    /// Ends its side.
    Fin,
    /// Resets the connection.
    Reset,
    /// Asks to be called again.
    GoOn,
}
