//! The peers of one thread that speak HTTP/2.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::Http2;
use crate::peer::{Act, Turns};
use crate::peers::Peers;
use crate::scenario::{Accept, Scenario};

/// The number of times that the request with each number reached any peer, over all threads.
pub(crate) type Numbers = Rc<RefCell<BTreeMap<u64, u32>>>;

/// The peers that a scenario describes.
#[derive(Debug)]
pub(crate) struct DrawnHttp2 {
    turns: Turns,
    method: &'static str,
    /// The peers by connection number.
    peers: BTreeMap<u32, Http2>,
    numbers: Numbers,
}

impl DrawnHttp2 {
    pub(crate) fn new(
        scenario: &Arc<Scenario>,
        method: &'static str,
        thread: u32,
        numbers: &Numbers,
    ) -> Self {
        let turns = Turns::new(scenario, thread);
        DrawnHttp2 { turns, method, peers: BTreeMap::new(), numbers: Rc::clone(numbers) }
    }
}

impl Peers for DrawnHttp2 {
    fn attempt(&mut self, index: u32) -> Accept {
        let (next, tls) = (self.turns.next(index), self.turns.scenario.tls);
        let accept = next.0.accept;
        self.peers.insert(index, Http2::new(index, next, self.method, tls));
        accept
    }

    fn connected(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.connected(at_ns, acts);
        }
    }

    fn receive(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.receive(at_ns, bytes, acts);
            for number in peer.reader.numbers.drain(..) {
                *self.numbers.borrow_mut().entry(number).or_default() += 1;
            }
        }
    }

    fn ended(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.ended(at_ns, acts);
        }
    }

    fn go_on(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.go_on(at_ns, acts);
        }
    }

    fn gone(&mut self, index: u32) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.over = true;
        }
    }

    fn reads(&self, index: u32) -> bool {
        self.peers.get(&index).is_none_or(|peer| !peer.reading_paused)
    }

    fn requests(&self) -> u64 {
        self.peers.values().map(|peer| peer.reader.opened).sum()
    }

    fn requests_on(&self, index: u32) -> u64 {
        self.peers.get(&index).map_or(0, Http2::permitted)
    }

    fn mistake(&self) -> Option<String> {
        let of = |(index, peer): (&u32, &Http2)| {
            peer.reader.mistake.as_ref().map(|mistake| format!("#{index}: {mistake}"))
        };
        self.peers.iter().find_map(of)
    }

    fn whole(&self) -> Option<u64> {
        Some(self.peers.values().map(|peer| peer.whole).sum())
    }

    fn repeats_most(&self) -> u32 {
        self.numbers.borrow().values().copied().max().unwrap_or(0)
    }
}
