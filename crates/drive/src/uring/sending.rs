//! Sending bytes: one send per socket is in flight, and later bytes queue behind it.

use rustix::io::Errno;

use super::queue::Kernel;
use super::ring::Handle;
use super::{Uring, outcome};
use crate::net::{Conn, Net, PeerClose, Token};
use crate::outbox::Segment;
use crate::pace::Direction;

impl<K: Kernel> Uring<K> {
    /// Handles the end of a send. Returns its socket if bytes had been queued behind it and the
    /// last of them is with the kernel.
    pub(super) fn sent(&mut self, index: u32, result: i32) -> Option<Conn> {
        let mut segment = self.sockets.complete_send(index)?;
        let socket = self.sockets.at(index);
        if let Some(slow) = &mut self.slow {
            let count = outcome(result).unwrap_or(0);
            slow.passed(socket.token(index), Direction::Write, self.now_ns, count);
        }
        if socket.closed {
            self.keep_spare(segment);
            self.release(index);
            return None;
        }
        let conn = socket.conn(index);
        match outcome(result) {
            Ok(count) => segment.advance(count),
            Err(errno) => {
                self.keep_spare(segment);
                self.send_failed(conn.token, errno);
                return None;
            }
        }
        if !segment.bytes().is_empty() {
            // The peer keeps it from completing: other peers' events must not wait for it.
            self.awaits_send = true;
            self.submit_send(index, segment);
            return None;
        }
        let next = socket.outbox.as_mut().and_then(|outbox| outbox.pop());
        let drained = socket.outbox.as_ref().is_some_and(|outbox| outbox.is_empty());
        if drained {
            socket.outbox = None;
            socket.release_reading();
        }
        let (finishing, ending) = (socket.finishing, socket.ending);
        self.keep_spare(segment);
        match next {
            Some(next) => self.submit_send(index, next),
            None if finishing => self.close(conn.token),
            None if ending => self.end_now(index),
            None => {}
        }
        self.set_interest(conn.token);
        // A slow connection may have kept the last segment for later.
        let drained = drained && self.sockets.at(index).outbox.is_none();
        drained.then_some(conn)
    }

    /// Goes on with the slow connections whose time has come.
    pub(super) fn go_on(&mut self) {
        while let Some(slow) = &mut self.slow
            && let Some((token, direction)) = slow.next_to_go_on(self.now_ns)
        {
            let Some(socket) = self.sockets.live(token) else { continue };
            match direction {
                Direction::Read => self.to_receive.push(token.index),
                Direction::Write if socket.in_flight_send.is_none() => self.send_next(token.index),
                Direction::Write => {}
            }
        }
    }

    /// Hands the first waiting segment to the kernel, if there is one; no send may be in flight.
    pub(super) fn send_next(&mut self, index: u32) {
        let socket = self.sockets.at(index);
        if let Some(next) = socket.outbox.as_mut().and_then(|outbox| outbox.pop()) {
            self.submit_send(index, next);
        }
    }

    /// Ends our side of a new connection, if that was asked for before and nothing is to be sent.
    /// True if bytes have waited for the connection and all of them are with the kernel; other
    /// cases are reported by [`Uring::sent`].
    pub(super) fn sent_what_waited(&mut self, token: Token) -> bool {
        let Some(socket) = self.sockets.live(token) else { return false };
        let sent = socket.outbox.take_if(|outbox| outbox.is_empty()).is_some();
        if socket.ending && socket.nothing_to_send() {
            self.end_now(token.index);
        }
        self.set_interest(token);
        sent
    }

    fn keep_spare(&mut self, segment: Segment) {
        if let Segment::Copied(bytes, _) = segment {
            self.spares.keep(bytes);
        }
    }

    /// Handles a failed send. The peer's earlier bytes are still to be read, so the next read
    /// reports the end.
    fn send_failed(&mut self, token: Token, errno: Errno) {
        let Some(socket) = self.sockets.live(token) else { return };
        socket.outbox = None;
        socket.release_reading();
        if socket.finishing {
            self.close(token);
            return;
        }
        let ended = if errno == Errno::PIPE { PeerClose::Fin } else { PeerClose::Reset };
        socket.failed.get_or_insert(ended);
        self.set_interest(token);
    }

    /// Hands more of what is being sent to the kernel.
    pub(super) fn submit_send(&mut self, index: u32, segment: Segment) {
        self.submit(index, segment, false);
    }

    /// Hands the first segment of something to the kernel.
    #[inline]
    pub(super) fn submit_fresh(&mut self, index: u32, segment: Segment) {
        self.submit(index, segment, true);
    }

    /// Hands a segment to the kernel; the socket keeps it until the completion.
    #[inline]
    fn submit(&mut self, index: u32, segment: Segment, fresh: bool) {
        let mut most = usize::MAX;
        if let Some(slow) = &mut self.slow {
            let socket = self.sockets.at(index);
            let token = socket.token(index);
            // The first byte may always leave, so that a request has begun when it is sent.
            most = slow.most(token, Direction::Write, self.now_ns).max(usize::from(fresh));
            if most == 0 {
                socket.outbox.get_or_insert_default().push_front(segment);
                return slow.wait(token, Direction::Write);
            }
        }
        if index < self.known_most
            && let Some(Handle::Plain(_)) = self.sockets.at(index).handle
        {
            self.get_to_know(index);
        }
        let socket = self.sockets.at(index);
        let Some(handle) = &socket.handle else { return };
        self.fresh_sends += 1;
        self.awaits_send |= socket.outbox.is_some() || socket.finishing || socket.ending;
        // The bytes are on the heap, and stay there when the segment moves.
        let bytes = segment.bytes();
        let piece = &bytes[..bytes.len().min(most)];
        self.rings[usize::from(socket.ring)].send(handle, index, piece);
        self.sockets.begin_send(index, segment);
    }

    /// Ends our side: everything is sent.
    pub(super) fn end_now(&mut self, index: u32) {
        let socket = self.sockets.at(index);
        socket.ending = false;
        let Some(handle) = &socket.handle else { return };
        if let Some(fd) = handle.own() {
            self.kernel.end_sending(fd);
            return;
        }
        // Its place must not be used again before, so it counts as an empty send in flight.
        self.rings[usize::from(socket.ring)].end_sending(handle, index);
        self.awaits_send = true;
        self.sockets.begin_send(index, Segment::Copied(Vec::new(), 0));
    }

    /// Whether a send has to queue; none if sending is of no use any more.
    #[inline]
    pub(super) fn has_to_queue(&mut self, token: Token) -> Option<bool> {
        let socket = self.sockets.live(token)?;
        let dead = socket.failed.is_some() || socket.finishing;
        let kept = self.slow.is_some() && socket.outbox.is_some();
        let queues = socket.is_connecting() || socket.in_flight_send.is_some() || kept;
        self.awaits_send |= queues;
        (!dead).then_some(queues)
    }
}
