//! Connections that are opened when their requests are due: one connection, one request, one close
//! for each arrival of an open loop.
//!
//! A slot bounds how many connections there are at once. A slot without a connection is free, and
//! takes the next arrival as soon as it is due. Its request waits on the slot while the connection
//! is set up, as a stale request waits for its new connection. So a connection that fails charges
//! its own request, and no other. An arrival that finds no free slot waits, and its time runs.
//!
//! Before the load, one slot of a thread tries the server, so that one that is not there is found
//! out. The load alone makes the attempts: there are no pauses between them, and no limit of their
//! rate.

use trueload_drive::{Conn, Net};
use trueload_meter::Openings;
use trueload_wire::exchange::Exchange;

use super::Generator;
use super::connection::ConnectionState;
use super::protocol::Protocol;
use super::sending::Due;
use super::slot::{NEVER, State, Tag};
use super::written::Written;

/// Most attempts before other events have their turn: each takes some ten microseconds.
const ATTEMPTS_PER_TURN: u32 = 32;

impl State {
    /// The request for which the connection is being opened; none for one sent again, whose time
    /// is that of an earlier connection.
    fn opened_for(&self) -> Option<Tag> {
        self.first_waiting().filter(|tag| !tag.again)
    }

    /// Whether it can take an arrival: it has no connection, and none is to come.
    fn is_free(&self) -> bool {
        self.connection == ConnectionState::Down
            && self.until_ns == NEVER
            && self.waiting_again() == 0
            && self.may_ask
    }

    /// The time from which the set-up of its connection counts: with `connect_open`, from when its
    /// request was due. None if no request waits for it then.
    pub(super) fn set_up_since_ns(&self, connect_open: bool) -> Option<u64> {
        if connect_open {
            self.opened_for().map(|tag| tag.scheduled_ns)
        } else {
            Some(self.attempted_ns)
        }
    }
}

impl<P: Protocol> Generator<P> {
    /// Opens a connection for each request that is due, on the slots that have been free longest.
    pub(super) fn connect_due(&mut self, net: &mut impl Net) {
        for _ in 0..ATTEMPTS_PER_TURN {
            // Each attempt takes so long that the next one needs a new time.
            net.read_clock();
            let now_ns = net.now_ns();
            if self.ready.next_send_ns(&self.accounting) > now_ns || !self.open_next(net, now_ns) {
                return;
            }
        }
    }

    /// Opens a connection for the next request, which is due; false if there is no slot for it, or
    /// nothing to send.
    fn open_next(&mut self, net: &mut impl Net, now_ns: u64) -> bool {
        let Some(key) = self.next_free() else { return false };
        let Some((index, phase)) = self.accounting.sending(now_ns) else { return false };
        let Some(Due { scheduled_ns, .. }) = phase.due(now_ns) else { return false };
        let drawn = if self.sessions.are_on() {
            self.open_session(key, index, scheduled_ns, now_ns)
        } else {
            let tag = self.accounting.tag(scheduled_ns, now_ns, index);
            let mut drawn = None;
            self.accounting.draw(tag, 1, |tag, _| drawn = Some(tag));
            drawn
        };
        // Without a row of data for it there is no request.
        let Some(tag) = drawn else { return false };
        let state = &mut self.slots[key].state;
        self.accounting.issue(index, state, 1);
        state.trouble().again.push(tag);
        let could_ns = scheduled_ns.max(state.ready_since_ns);
        let attempt = Written { key, phase: index as u16, count: 1, could_ns };
        self.accounting.note_send_lag(now_ns, attempt);
        self.ready.sent_due_ns = now_ns;
        self.attempt(net, key);
        true
    }

    /// Takes the slot that has been free longest out of the queue.
    fn next_free(&mut self) -> Option<u32> {
        loop {
            let key = self.ready.pop()?;
            let state = &mut self.slots[key].state;
            state.ready = false;
            if state.is_free() {
                return Some(key);
            }
        }
    }

    /// Sends the request for which a slot's connection was opened. A connection that no request
    /// waits for is closed.
    pub(super) fn send_opened(&mut self, net: &mut impl Net, conn: Conn) {
        let now_ns = net.now_ns();
        let slot = &mut self.slots[conn.key];
        if slot.client.outstanding() > 0 || slot.client.capacity(1) == 0 {
            return;
        }
        let Some(tag) = slot.state.take_waiting() else {
            if self.sessions.runs(conn.key) {
                return self.send_step(net, conn.key, now_ns);
            }
            net.close(conn.token);
            return self.lost(net, conn.key, true, 0);
        };
        slot.client.ask(self.accounting.tag_again(now_ns, tag));
        // It waited for the connection; the lag was that of the attempt.
        self.stamps.note(Written::without_lag(conn.key));
        self.write(net, conn.key, 1);
    }

    /// Sends the next step of a session on the connection that it has opened.
    fn send_step(&mut self, net: &mut impl Net, key: u32, now_ns: u64) {
        let Some((index, _)) = self.accounting.sending(now_ns) else { return };
        let free_ns = self.slots[key].state.quiet_since_ns;
        let count = self.take_step(key, index, free_ns, now_ns);
        self.write(net, key, count);
    }

    /// Handles a slot that has lost its connection: a request to be sent again gets another one,
    /// and otherwise the slot is free for the next arrival.
    pub(super) fn freed(&mut self, net: &mut impl Net, key: u32) {
        if self.slots[key].state.waiting_again() > 0 {
            return self.attempt(net, key);
        }
        let now_ns = net.now_ns();
        if self.sessions.are_on() {
            self.end_without_connection(key, now_ns);
        }
        let state = &mut self.slots[key].state;
        state.is_missed_no_longer();
        if state.is_free() && !state.ready && self.accounting.sending(now_ns).is_some() {
            self.ready.add(key, state, now_ns);
        }
    }

    /// Queues a slot that is free at the start of a phase: it has been free since then.
    pub(super) fn free_from_start(&mut self, key: u32, started_ns: u64) {
        let state = &mut self.slots[key].state;
        if state.is_free() && !state.ready {
            self.ready.add(key, state, started_ns);
        }
    }

    /// Notes that a connection is established, before any TLS.
    pub(super) fn note_established(&mut self, now_ns: u64, key: u32) {
        self.note_opening(now_ns, key, Openings::record_connect);
    }

    pub(super) fn note_handshake(&mut self, now_ns: u64, key: u32, resumed: bool) {
        self.note_opening(now_ns, key, |openings, since_due_ns| {
            openings.record_handshake(since_due_ns, resumed);
        });
    }

    /// Notes a step of a connection in the phase of its request, if it was opened for one.
    fn note_opening(&mut self, now_ns: u64, key: u32, note: impl FnOnce(&mut Openings, u64)) {
        if !self.config.connect_open {
            return;
        }
        let Some(tag) = self.slots[key].state.opened_for() else { return };
        let meter = &mut self.accounting.phases[usize::from(tag.phase)].meter;
        if let Some(openings) = &mut meter.openings {
            note(openings, now_ns.saturating_sub(tag.scheduled_ns));
        }
    }
}
