//! Slow connections of the io_uring driver. They receive one piece at a time instead of whatever
//! comes, send one piece at a time, and go on when the next one may pass.

use super::Uring;
use super::queue::Kernel;
use crate::net::Token;
use crate::outbox::Segment;
use crate::pace::{Paces, Rates, Waiting, Waits};

/// The paces of all connections, by their places.
#[derive(Debug)]
pub(super) struct Slow {
    rates: Rates,
    paces: Vec<Paces>,
    waiting: Waiting,
}

impl Slow {
    /// None if connections may go as fast as they can.
    pub(super) fn new(rates: Rates) -> Option<Box<Self>> {
        let (paces, waiting) = (Vec::new(), Waiting::default());
        rates.is_slow().then(|| Box::new(Slow { rates, paces, waiting }))
    }

    /// The time at which the first may go on.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.waiting.next_ns()
    }

    /// The size of a connection's receive buffer, if it is limited.
    pub(super) fn receive_buffer(&self) -> Option<u32> {
        self.rates.receive_buffer()
    }

    fn begin(&mut self, index: u32) {
        let (rates, index) = (self.rates, index as usize);
        if self.paces.len() <= index {
            self.paces.resize_with(index + 1, || Paces::new(rates));
        }
        self.paces[index] = Paces::new(rates);
    }
}

impl<K: Kernel> Uring<K> {
    /// Makes a new connection slow, if it is to be.
    pub(super) fn begin_slow(&mut self, index: u32) {
        if let Some(slow) = &mut self.slow {
            slow.begin(index);
        }
    }

    /// The number of bytes that a socket may read now. If there are none, it reads on later.
    pub(super) fn may_read(&mut self, index: u32) -> usize {
        let token = self.sockets.at(index).token(index);
        let Some(slow) = &mut self.slow else { return usize::MAX };
        let Some(paces) = slow.paces.get_mut(index as usize) else { return usize::MAX };
        let most = paces.read.most(self.now_ns);
        if most == 0 {
            slow.waiting.add(&mut paces.read, token, Waits::Read);
        }
        most
    }

    pub(super) fn has_read(&mut self, index: u32, bytes: usize) {
        let paces = self.slow.as_mut().and_then(|slow| slow.paces.get_mut(index as usize));
        if let Some(paces) = paces {
            paces.read.passed(self.now_ns, bytes);
        }
    }

    pub(super) fn has_written(&mut self, index: u32, bytes: usize) {
        let paces = self.slow.as_mut().and_then(|slow| slow.paces.get_mut(index as usize));
        if let Some(paces) = paces {
            paces.write.passed(self.now_ns, bytes);
        }
    }

    /// The number of bytes that a socket may write now. The first byte of something `fresh` may
    /// always leave, so that a request has begun when it is sent.
    pub(super) fn may_write(&self, index: u32, fresh: bool) -> usize {
        let paces = self.slow.as_ref().and_then(|slow| slow.paces.get(index as usize));
        let most = paces.map_or(usize::MAX, |paces| paces.write.most(self.now_ns));
        most.max(usize::from(fresh))
    }

    /// Keeps a segment until its next piece may leave.
    pub(super) fn send_later(&mut self, index: u32, segment: Segment) {
        let socket = self.sockets.at(index);
        let token = socket.token(index);
        socket.outbox.get_or_insert_default().push_front(segment);
        if let Some(slow) = &mut self.slow
            && let Some(paces) = slow.paces.get_mut(index as usize)
        {
            slow.waiting.add(&mut paces.write, token, Waits::Write);
        }
    }

    /// Takes a connection that may go on now, if there is one.
    fn next_to_go_on(&mut self) -> Option<(Token, Waits)> {
        let slow = self.slow.as_mut()?;
        let (token, waits) = slow.waiting.pop(self.now_ns)?;
        // A later connection at the same place has paces of its own, and its own entry.
        if self.sockets.live(token).is_some()
            && let Some(paces) = slow.paces.get_mut(token.index as usize)
        {
            match waits {
                Waits::Read => paces.read.goes_on(),
                Waits::Write => paces.write.goes_on(),
            }
        }
        Some((token, waits))
    }

    /// Goes on with the connections whose time has come.
    pub(super) fn go_on(&mut self) {
        while let Some((token, waits)) = self.next_to_go_on() {
            let Some(socket) = self.sockets.live(token) else { continue };
            match waits {
                Waits::Read => self.to_receive.push(token.index),
                Waits::Write if socket.in_flight_send.is_none() => self.send_next(token.index),
                Waits::Write => {}
            }
        }
    }
}
