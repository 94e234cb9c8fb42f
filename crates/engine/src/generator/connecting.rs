//! Connects slots: the first set-up, spread over time, and every reconnect.

use std::collections::{BTreeMap, VecDeque};

use trueload_drive::{Address, Conn, ConnectError, Net, PeerClose, Remote};
use trueload_meter::Class;
use trueload_wire::exchange::{Exchange, RequestTimeout};
use trueload_wire::tls::Secured;

use super::close_policy::CloseBy;
use super::connection::{ConnectionState, Event};
use super::protocol::Protocol;
use super::slot::{NEVER, Slot};
use super::{CLOSING_NS, Connected, Generator, Report};

/// Most attempts made at one moment, when the set-up has fallen behind its rate.
const CATCH_UP: u32 = 32;
/// The interval at which the other slots check whether the first has found the address that
/// answers.
const PROBE_LOOK_NS: u64 = 1_000_000;
/// A Unix socket whose queue is full is tried again after this time.
const BUSY_PAUSE_NS: u64 = 1_000_000;
/// The reason given if a machine has no address of the server's family to connect from.
const NO_SOURCE: &str =
    "this machine has no address of the server's family; IPv6 may be switched off";

/// The first set-up of slots, at a limited rate. An accept queue that overflows drops connections,
/// and the retry a second later would be measured as the server's.
#[derive(Debug, Default)]
pub(super) struct Pace {
    waiting: VecDeque<u32>,
    undecided: u32,
    /// The first slot has found out which address answers, if any does.
    probed: bool,
    asked: bool,
    began_ns: u64,
    latest_ns: u64,
    next_ns: u64,
    failed: Vec<(Class, u64)>,
    address: Option<Address>,
    /// What the first handshake agreed on.
    pub(super) secured: Option<Secured>,
    /// The first reason of each class why connections failed.
    reasons: BTreeMap<Class, String>,
}

impl Pace {
    /// The time at which the next slot may try.
    pub(super) fn next_ns(&self) -> u64 {
        if self.waiting.is_empty() { NEVER } else { self.next_ns }
    }

    pub(super) fn answered_by(&mut self, address: &Address) {
        self.address.get_or_insert_with(|| address.clone());
    }

    pub(super) fn note_reason(&mut self, class: Class, why: &str) {
        self.reasons.entry(class).or_insert_with(|| why.to_owned());
    }

    /// The reasons why connections have failed up to now.
    pub(super) fn reasons(&self) -> Vec<(Class, String)> {
        self.reasons.iter().map(|(class, why)| (*class, why.clone())).collect()
    }

    fn failed(&mut self, class: Class) {
        match self.failed.iter_mut().find(|(known, _)| *known == class) {
            Some((_, count)) => *count += 1,
            None => self.failed.push((class, 1)),
        }
    }
}

impl<P: Protocol> Generator<P> {
    /// Sets up this thread's part of `total` connections; reports once each has been tried.
    pub(super) fn resize(&mut self, net: &mut impl Net, total: u32) {
        let mine = self.config.own_slots(total);
        while let Some(slot) = self.slots.pop_beyond(mine) {
            slot.state.connection.token().into_iter().for_each(|token| net.close(token));
        }
        // Arrivals that are due after the last phase must not find slots that are gone.
        self.ready.truncate(mine);
        let before = self.slots.len();
        self.pace.waiting.extend(before..self.tried_first(mine));
        self.slots.grow(mine, || self.codec.protocol.client());
        (self.tried_first(mine)..mine).for_each(|key| self.slots[key].state.tried = true);
        if self.sessions.are_on() {
            self.sessions.resize(mine);
        }
        self.call_back();
        self.pace.undecided = self.pace.waiting.len() as u32;
        self.pace.asked = true;
        self.pace.began_ns = net.now_ns();
        self.pace.latest_ns = 0;
        self.pace.next_ns = net.now_ns();
        self.set_up(net);
    }

    /// The number of slots that are connected before the load: of those whose connections are
    /// opened by the load only one, which tries the server.
    fn tried_first(&self, slots: u32) -> u32 {
        if self.config.connect_open { slots.min(1) } else { slots }
    }

    /// Queues lost connections that do not reconnect by themselves for another set-up.
    fn call_back(&mut self) {
        if self.codec.protocol.reconnects() {
            return;
        }
        for (key, slot) in (0..).zip(self.slots.iter_mut()) {
            if slot.state.tried && slot.state.connection == ConnectionState::Down {
                slot.state.tried = false;
                self.pace.waiting.push_back(key);
            }
        }
    }

    /// Opens the connections that are due; with several addresses, one slot goes ahead.
    pub(super) fn set_up(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        let probing = self.config.addresses.len() > 1 && !self.pace.probed;
        let mut attempts = 0;
        while self.pace.next_ns <= now_ns && attempts < CATCH_UP {
            if probing && self.pace.undecided as usize > self.pace.waiting.len() {
                self.pace.next_ns = now_ns + PROBE_LOOK_NS;
                break;
            }
            let Some(key) = self.pace.waiting.pop_front() else { break };
            self.attempt(net, key);
            attempts += 1;
            self.pace.next_ns += self.config.connect_interval_ns;
        }
        if attempts == CATCH_UP {
            self.pace.next_ns = self.pace.next_ns.max(now_ns);
        }
        self.report_connected();
    }

    fn report_connected(&mut self) {
        if !self.pace.asked || self.pace.undecided > 0 {
            return;
        }
        self.pace.asked = false;
        let established = self.slots.established(self.config.connect_open);
        let failed = std::mem::take(&mut self.pace.failed);
        let (address, secured) = (self.pace.address.clone(), self.pace.secured.clone());
        let reasons = self.pace.reasons();
        self.link.report(Report::Connected(Connected {
            established,
            failed,
            began_ns: self.pace.began_ns,
            latest_ns: self.pace.latest_ns,
            address,
            reasons,
            secured,
        }));
    }

    /// Makes one attempt to connect a slot.
    pub(super) fn attempt(&mut self, net: &mut impl Net, key: u32) {
        let now_ns = net.now_ns();
        let from = self.config.local_address(key);
        let state = &mut self.slots[key].state;
        let tried = &self.config.addresses[usize::from(state.address)];
        let address = self.pace.address.as_ref().unwrap_or(tried);
        if state.connection != ConnectionState::Busy {
            state.attempted_ns = now_ns;
        }
        let deadline_ns = self.config.deadline_ns(state.attempted_ns);
        let to = Remote { from, ..address.over(self.codec.protocol.transport()) };
        match net.connect(self.config.socket_key(key), to) {
            Ok(token) => {
                state.change(Event::Attempted(token));
                state.until_ns = deadline_ns;
                self.slots.arm(key);
            }
            Err(ConnectError::Busy) if now_ns < deadline_ns => {
                state.change(Event::QueueFull);
                state.until_ns = (now_ns + BUSY_PAUSE_NS).min(deadline_ns);
                self.slots.arm(key);
            }
            Err(why) => self.refused(net, key, why),
        }
    }

    pub(super) fn connected(&mut self, net: &mut impl Net, conn: Conn) {
        self.watch_if_sampled(net, conn);
        self.note_established(net.now_ns(), conn.key);
        match &self.config.tls {
            Some(tls) if tls.tunnel().is_some() => self.begin_tunnel(net, conn),
            Some(_) => self.begin_handshake(net, conn),
            None => {
                self.begin(net, conn);
                self.fill(net, conn.key);
            }
        }
    }

    /// Notes that the slot has a connection, on which nothing has been asked yet.
    pub(super) fn opened(&mut self, net: &mut impl Net, key: u32) {
        let now_ns = net.now_ns();
        self.slots.open += 1;
        let Slot { state, tls, .. } = &mut self.slots[key];
        let since_ns = state.set_up_since_ns(self.config.connect_open);
        // TLS takes more than one round trip.
        let there_ns = tls.as_ref().map_or(now_ns, |secure| secure.began_ns);
        state.change(Event::Opened);
        state.until_ns = NEVER;
        self.pace.answered_by(&self.config.addresses[usize::from(state.address)]);
        let times = match self.accounting.current_mut() {
            Some(phase) => {
                state.note_down(now_ns, phase.started_ns);
                phase.meter.reconnects += u64::from(state.ever_established);
                &mut phase.meter.times
            }
            None => &mut self.accounting.early,
        };
        if let Some(since_ns) = since_ns {
            times.record_connect(now_ns - since_ns);
        }
        self.close_policy.note_connected(now_ns - state.attempted_ns);
        self.accounting.crossings.note_connected(there_ns - state.attempted_ns);
        state.found_again();
        state.ever_established = true;
        state.open_since_ns = now_ns;
        (state.quiet_since_ns, state.kept) = (now_ns, false);
        (state.gap, state.gap_since_ns) = (0, now_ns);
        if !state.tried && !self.config.connect_open {
            self.pace.latest_ns = now_ns;
        }
        self.decided(key);
        self.charge_violations(net, key);
    }

    /// Handles a failed attempt: tries the next address, or fails the request that needed the
    /// connection.
    pub(super) fn refused(&mut self, net: &mut impl Net, key: u32, why: ConnectError) {
        let state = &mut self.slots[key].state;
        state.down_until(NEVER);
        if self.pace.address.is_none()
            && usize::from(state.address) + 1 < self.config.addresses.len()
        {
            state.address += 1;
            self.attempt(net, key);
            return;
        }
        if why == ConnectError::NoSource {
            self.pace.note_reason(class_of_connect_error(why), NO_SOURCE);
        }
        self.attempt_failed(net, key, class_of_connect_error(why));
    }

    /// Handles an attempt that failed with no other address to try.
    pub(super) fn attempt_failed(&mut self, net: &mut impl Net, key: u32, class: Class) {
        let now_ns = net.now_ns();
        let Slot { state, tls, .. } = &mut self.slots[key];
        *tls = None;
        state.down_until(NEVER);
        // However orderly it closed: a server that then refuses was away. A connection of its own
        // that fails is a failed request, and no slot is down.
        if state.ever_established && !self.config.connect_open {
            state.trouble().this_phase.outage = true;
        }
        let (tried, sends) = (state.tried, state.may_ask && self.accounting.has_more());
        let charged = sends && self.accounting.sending(now_ns).is_some();
        if !tried && !charged {
            self.pace.failed(class);
        }
        self.charge(key, now_ns, class);
        self.decided(key);
        let state = &mut self.slots[key].state;
        let pause_ns = state.trouble().backoff.pause();
        self.retry(net, key, now_ns + pause_ns);
    }

    /// Charges the request that waits for this slot's connection, if there is one.
    fn charge(&mut self, key: u32, now_ns: u64, class: Class) {
        if self.sessions.are_on() {
            self.note_step_end(key);
        }
        let Slot { client, state, .. } = &mut self.slots[key];
        if let Some(tag) = state.take_waiting() {
            client.forget(&tag);
            self.accounting.fail(state, now_ns, tag, class);
            state.last = None;
        } else if state.may_ask
            && !self.config.connect_open
            && let Some((phase, running)) = self.accounting.sending(now_ns)
            && (self.sessions.runs(key) || running.draw_due(now_ns))
        {
            self.charge_next(key, phase, now_ns, class);
        }
    }

    /// Charges the next request of a slot, which cannot be sent.
    fn charge_next(&mut self, key: u32, phase: usize, now_ns: u64, class: Class) {
        if self.sessions.are_on() {
            return self.charge_session(key, phase, now_ns, class);
        }
        self.accounting.charge(phase, &mut self.slots[key].state, now_ns, (0, class));
    }

    fn decided(&mut self, key: u32) {
        let state = &mut self.slots[key].state;
        if !std::mem::replace(&mut state.tried, true) {
            self.pace.undecided -= 1;
            self.pace.probed = true;
            self.report_connected();
        }
    }

    /// Closes a connection on which nothing more is asked. The peer's end is waited for, so that
    /// bytes before it are seen, unless the peers have shown that it does not come. `ending`: it
    /// has come already.
    pub(super) fn closing(&mut self, net: &mut impl Net, conn: Conn, ending: bool) {
        let now_ns = net.now_ns();
        self.end_open(conn.key, now_ns);
        let closed_by = if ending {
            self.close_policy.ended_with_answer();
            CloseBy::Peer
        } else {
            self.close_policy.close_by(now_ns)
        };
        if closed_by == CloseBy::Reset {
            return self.end_alone(net, conn);
        }
        let slot = &mut self.slots[conn.key];
        let fin_sent = closed_by == CloseBy::Us;
        if fin_sent {
            self.codec.take_leave(net, slot, conn.token);
        }
        let state = &mut slot.state;
        state.change(Event::Ending { fin_sent });
        state.until_ns = now_ns + self.close_policy.wait_ns(closed_by);
        self.slots.arm(conn.key);
    }

    /// Waits for what follows from a peer that gives up an idle connection, or may be about to, and
    /// for its end.
    pub(super) fn heed(&mut self, net: &mut impl Net, key: u32, request_timeout: RequestTimeout) {
        let now_ns = net.now_ns();
        let wait_ns = match request_timeout {
            RequestTimeout::Begun => self.config.timeout_ns,
            RequestTimeout::Received | RequestTimeout::None => CLOSING_NS,
        };
        self.end_open(key, now_ns);
        let state = &mut self.slots[key].state;
        let until_ns = match state.connection {
            ConnectionState::Closing { .. } => state.until_ns,
            _ => NEVER,
        };
        state.change(Event::Ending { fin_sent: false });
        state.until_ns = until_ns.min(now_ns + wait_ns);
        self.slots.arm(key);
    }

    /// Handles a connection on which bytes were waited for, and the peer's end has not come.
    pub(super) fn ended_by_nobody(&mut self, net: &mut impl Net, conn: Conn, fin_sent: bool) {
        if self.slots[conn.key].client.standing().request_timeout != RequestTimeout::None {
            return self.ended(net, conn, PeerClose::Fin, None);
        }
        self.close_policy.waited_in_vain(fin_sent, net.now_ns());
        if fin_sent {
            return self.end_alone(net, conn);
        }
        net.close(conn.token);
        self.lost(net, conn.key, true, 0);
    }

    /// Resets a connection that the peer does not end. Its answer is complete, and a reset leaves
    /// no port waiting for the peer's end.
    fn end_alone(&mut self, net: &mut impl Net, conn: Conn) {
        if let Some(phase) = self.accounting.current_mut() {
            phase.meter.unended += 1;
        }
        net.reset(conn.token);
        self.lost(net, conn.key, true, 0);
    }

    /// Handles the loss of a connection; opens the next one if there is something to send on it.
    pub(super) fn lost(&mut self, net: &mut impl Net, key: u32, orderly: bool, pause_ns: u64) {
        let now_ns = net.now_ns();
        self.slots.open -= 1;
        self.end_open(key, now_ns);
        self.codec.protocol.closed(key);
        let Slot { state, tls, .. } = &mut self.slots[key];
        *tls = None;
        state.down_until(NEVER);
        state.note_lost(now_ns, orderly);
        self.charge_violations(net, key);
        self.retry(net, key, now_ns + pause_ns);
    }

    /// Plans the next attempt, if the slot needs a connection.
    fn retry(&mut self, net: &mut impl Net, key: u32, at_ns: u64) {
        if !self.codec.protocol.reconnects() {
            return;
        }
        if self.config.connect_open {
            return self.freed(net, key);
        }
        let now_ns = net.now_ns();
        let runs = self.sessions.are_on() && self.session_goes_on(key, now_ns);
        let state = &mut self.slots[key].state;
        let (again, may_ask) = (state.waiting_again() > 0, state.may_ask);
        let mut needed = || {
            may_ask
                && self.accounting.sending(now_ns).is_some_and(|(_, phase)| phase.needs_another())
        };
        if !(again || runs || needed()) {
            // No request needs this connection, so it is not down.
            state.is_missed_no_longer();
            return;
        }
        if at_ns <= now_ns {
            self.attempt(net, key);
            return;
        }
        state.down_until(at_ns);
        self.slots.arm(key);
    }

    /// Opens a slot's connection at the start of a phase.
    pub(super) fn reopen(&mut self, net: &mut impl Net, key: u32) {
        let opens = !self.config.connect_open;
        if opens && self.slots[key].state.connection == ConnectionState::Down {
            let now_ns = net.now_ns();
            self.retry(net, key, now_ns);
        }
    }

    /// Charges violations that no request could be charged with before: to requests that are to be
    /// sent again, or else to the next ones.
    pub(super) fn charge_violations(&mut self, net: &mut impl Net, key: u32) {
        let now_ns = net.now_ns();
        while self.slots[key].state.has_uncharged() {
            let Slot { client, state, .. } = &mut self.slots[key];
            let class = state.trouble().violation_class.unwrap_or(Class::Unsolicited);
            if state.first_waiting().is_some_and(|tag| tag.again)
                && let Some(tag) = state.take_waiting()
            {
                client.forget(&tag);
                self.accounting.fail(state, now_ns, tag, class);
                state.trouble().uncharged -= 1;
                continue;
            }
            let may_ask = state.may_ask;
            let Some((phase, running)) = self.accounting.sending(now_ns).filter(|_| may_ask) else {
                return;
            };
            if !running.draw_due(now_ns) {
                return;
            }
            self.slots[key].state.trouble().uncharged -= 1;
            self.charge_next(key, phase, now_ns, class);
        }
    }

    /// Notes that a slot is no longer open: the load permits nothing on it until it is open again.
    pub(super) fn end_open(&mut self, key: u32, now_ns: u64) {
        let depth = self.config.depth_used() as u64;
        let state = &mut self.slots[key].state;
        if let Some((until_ns, phase)) = self.accounting.not_stopped(now_ns) {
            let permitted_ns = state.permitted_ns(depth, phase.started_ns, until_ns);
            phase.meter.permitted_ns += permitted_ns;
        }
        (state.open_since_ns, state.gap) = (NEVER, 0);
    }
}

fn class_of_connect_error(why: ConnectError) -> Class {
    match why {
        ConnectError::Refused => Class::ConnectRefused,
        ConnectError::Timeout | ConnectError::Busy => Class::ConnectTimeout,
        ConnectError::Unreachable | ConnectError::NoSource => Class::ConnectUnreachable,
        ConnectError::Ports => Class::LocalPorts,
        ConnectError::Fds => Class::LocalFds,
        ConnectError::Reset => Class::Reset,
    }
}
