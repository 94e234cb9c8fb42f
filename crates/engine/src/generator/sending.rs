//! Decides what a slot sends and when: at once in a closed loop, when it is due in an open one.
//!
//! Under an open loop nothing is queued. The schedule's next arrival is the next request, however
//! late it is. It is sent as soon as its time has come and a slot can take it, and its latency
//! counts from its scheduled time.

use trueload_drive::{Coalescing, Conn, Net};
use trueload_load::{Load, value_at};
use trueload_wire::exchange::Exchange;

use super::Generator;
use super::coalescing::{Under, Wakings};
use super::connection::ConnectionState;
use super::phase::{BEAT_NS, Phase};
use super::protocol::Protocol;
use super::slot::{NEVER, Tag};
use super::written::Written;

/// Requests sent on one reading of the clock, under an open loop.
const SENDS_PER_CLOCK: u32 = 8;

/// An arrival of an open loop whose time has come.
pub(super) struct Due {
    pub(super) scheduled_ns: u64,
    /// Its number in the recording; 0 if there is none.
    number: u32,
}

impl<P: Protocol> Generator<P> {
    /// Sends what the slot may send now.
    #[inline]
    pub(super) fn fill(&mut self, net: &mut impl Net, key: u32) {
        let now_ns = net.now_ns();
        let depth = self.config.depth_used();
        if self.sessions.are_on() {
            self.note_step_end(key);
        }
        let slot = &mut self.slots[key];
        let ConnectionState::Open { token } = slot.state.connection else { return };
        if self.config.connect_open {
            return self.send_opened(net, Conn { key, token });
        }
        let outstanding = slot.client.outstanding();
        let free = slot.client.capacity(depth);
        let again = slot.state.waiting_again().min(free);
        if let Some(trouble) = slot.state.had_trouble() {
            for tag in trouble.again.drain(..again) {
                slot.client.ask(self.accounting.tag_again(now_ns, tag));
            }
        }
        if again > 0 {
            self.stamps.note(Written::without_lag(key));
        }
        let fresh = match self.accounting.sending(now_ns) {
            _ if !self.slots[key].state.may_ask => 0,
            _ if self.slots[key].state.is_held_back() => 0,
            // A request waits for nobody but its own session. Its connection may take no more, as
            // after a GOAWAY.
            Some((index, _)) if self.sessions.runs(key) => {
                let free_ns = self.slots[key].state.quiet_since_ns;
                if free > 0 { self.take_step(key, index, free_ns, now_ns) } else { 0 }
            }
            Some((index, phase)) if phase.schedule.is_some() => {
                // A waiting slot has been free since it began to wait; one that was just answered,
                // from now.
                let state = &self.slots[key].state;
                let free_ns = if state.ready { state.ready_since_ns.min(now_ns) } else { now_ns };
                self.take_due(key, index, free - again, free_ns, now_ns)
            }
            Some((_, phase)) if phase.concurrent().is_some() => 0,
            // A connection is filled again only when enough of it is free.
            Some(_) if free < self.config.refill && outstanding > 0 => 0,
            Some((index, _)) => self.take_fresh(key, index, free - again, now_ns),
            None => 0,
        };
        self.write(net, key, again + fresh);
        self.wait_for_more(key, now_ns, free - again - fresh);
        let slot = &self.slots[key];
        let outstanding = slot.client.outstanding();
        let (may_ask, asked) = (slot.state.may_ask, slot.state.asked);
        let unused = depth - outstanding.min(depth);
        let runs = self.sessions.runs(key);
        let done = outstanding == 0 && !runs && !(may_ask && self.accounting.has_more());
        self.note_gap(key, now_ns, unused);
        if done && self.can_leave(key) {
            self.leave(net, Conn { key, token });
        } else if done {
            self.end_share(key, now_ns, asked);
        }
    }

    /// Notes that a slot's share is done: capacity that it does not use is no longer permitted.
    fn end_share(&mut self, key: u32, now_ns: u64, asked: bool) {
        self.end_open(key, now_ns);
        if asked
            && let Some((until_ns, phase)) = self.accounting.not_stopped(now_ns)
            && phase.end_flow(until_ns)
        {
            self.accounting.end_part();
        }
    }

    /// In a closed loop, sends as much as is free.
    #[inline]
    fn take_fresh(&mut self, key: u32, index: usize, free: usize, now_ns: u64) -> usize {
        let slot = &mut self.slots[key];
        let (phase, global) = (&mut self.accounting.phases[index], self.config.global(key));
        if !phase.active(global, now_ns) {
            // However short its pause, the next heartbeat considers it again.
            phase.active_before = phase.active_before.min(global);
            return 0;
        }
        let most = if slot.state.asked { phase.quota } else { phase.first_most(global) };
        let fresh = free.min(usize::try_from(most).unwrap_or(usize::MAX));
        if self.sessions.are_on() && fresh > 0 {
            return self.begin_session(key, index, now_ns, now_ns, now_ns);
        }
        if fresh > 0 {
            if self.holds_back(key, now_ns) {
                return 0;
            }
            let slot = &mut self.slots[key];
            let tag = self.accounting.tag(now_ns, now_ns, index);
            let ask = |tag, count| slot.client.ask_alike(tag, count);
            let fresh = self.accounting.draw(tag, fresh, ask);
            if fresh == 0 {
                return 0;
            }
            self.accounting.issue(index, &mut slot.state, fresh as u64);
            let (phase, count) = (index as u16, fresh as u32);
            self.stamps.note(Written { key, phase, count, could_ns: now_ns });
            return fresh;
        }
        0
    }

    /// In an open loop, sends what is due.
    fn take_due(
        &mut self,
        key: u32,
        index: usize,
        free: usize,
        free_ns: u64,
        now_ns: u64,
    ) -> usize {
        let mut sent = 0;
        while sent < free {
            let due = self.accounting.phases[index].due(now_ns);
            let Some(Due { scheduled_ns, number }) = due else { break };
            // A slot that was just answered takes what is due before slots that could have had it
            // in time.
            let depth = self.config.depth_used();
            let free_ns = free_ns.min(self.ready.idle_since_ns(&mut self.slots, depth));
            if self.sessions.are_on() {
                return self.begin_session(key, index, scheduled_ns, free_ns, now_ns);
            }
            let slot = &mut self.slots[key];
            let tag = Tag { number, ..self.accounting.tag(scheduled_ns, now_ns, index) };
            if self.accounting.draw(tag, 1, |tag, count| slot.client.ask_alike(tag, count)) == 0 {
                break;
            }
            self.accounting.issue(index, &mut slot.state, 1);
            let could_ns = scheduled_ns.max(free_ns);
            self.stamps.note(Written { key, phase: index as u16, count: 1, could_ns });
            sent += 1;
        }
        sent
    }

    /// Whether the slot has a connection and may send in this phase.
    pub(super) fn can_send(&self, key: u32) -> bool {
        let state = &self.slots[key].state;
        state.connection.is_open() && state.may_ask
    }

    /// Sends one request on a slot that can ([`Generator::can_send`]). The caller chooses the slot,
    /// not the load.
    pub(super) fn send_one(&mut self, net: &mut impl Net, index: usize, key: u32, number: u32) {
        let now_ns = net.now_ns();
        let tag = Tag { number, ..self.accounting.tag(now_ns, now_ns, index) };
        let slot = &mut self.slots[key];
        slot.client.ask(tag);
        self.accounting.issue(index, &mut slot.state, 1);
        self.stamps.note(Written { key, phase: index as u16, count: 1, could_ns: now_ns });
        self.write(net, key, 1);
    }

    #[inline]
    pub(super) fn write(&mut self, net: &mut impl Net, key: u32, count: usize) {
        let ConnectionState::Open { token } = self.slots[key].state.connection else { return };
        if count == 0 {
            return;
        }
        let (slot, drawn) = (&mut self.slots[key], self.accounting.drawn);
        let bytes = self.codec.send(net, slot, token, count, drawn);
        if let Some(phase) = self.accounting.current_mut() {
            phase.meter.bytes_out += bytes as u64;
        }
        self.slots.arm(key);
        self.stamp_group(net);
    }

    /// Under an open loop, sends what is due on the slots that have been idle longest.
    pub(super) fn send_due(&mut self, net: &mut impl Net) {
        if self.config.connect_open {
            return self.connect_due(net);
        }
        let mut sent = 0u32;
        while self.ready.next_send_ns(&self.accounting) <= net.now_ns() {
            let Some(key) = self.ready.pop() else { return };
            let depth = self.config.depth_used();
            let now_ns = net.now_ns();
            let slot = &mut self.slots[key];
            slot.state.ready = false;
            let open = slot.state.connection.is_open();
            let taken = self.sessions.runs(key);
            let free = if taken { 0 } else { slot.client.capacity(depth) };
            let Some((index, _)) = self.accounting.sending(now_ns) else { return };
            if open && free > 0 {
                // One at a time: the next one that is due goes to the next idle slot.
                let free_ns = slot.state.ready_since_ns;
                let count = self.take_due(key, index, 1, free_ns, now_ns);
                self.write(net, key, count);
                self.wait_for_more(key, now_ns, free - count);
                sent += 1;
                self.ready.sent_due_ns = now_ns;
                if sent.is_multiple_of(SENDS_PER_CLOCK) {
                    net.read_clock();
                }
            }
        }
    }

    /// Under an open loop, queues a slot that can take more.
    #[inline]
    fn wait_for_more(&mut self, key: u32, now_ns: u64, free: usize) {
        let free = if self.sessions.runs(key) { 0 } else { free };
        let sending = self.accounting.sending(now_ns);
        let Some((_, Phase { schedule: Some(_), .. })) = sending else { return };
        let state = &mut self.slots[key].state;
        if state.may_ask {
            self.ready.wait_for_more(key, state, now_ns, free);
        }
    }

    /// Under an open loop, notes that a slot idle at the start of a phase has been free since then,
    /// however late this is.
    pub(super) fn free_since_start(&mut self, key: u32) {
        if let Some(Phase { schedule: Some(_), started_ns, .. }) = self.accounting.current_mut() {
            if self.config.connect_open {
                let started_ns = *started_ns;
                return self.free_from_start(key, started_ns);
            }
            self.ready.free_since_start(key, &mut self.slots[key], *started_ns);
        }
    }

    /// Runs the heartbeat: adjusts coalescing, and fills slots that a stage has made active.
    pub(super) fn beat(&mut self, net: &mut impl Net) {
        let (now_ns, wakings) = (net.now_ns(), self.accounting.wakings);
        let Some((index, phase)) = self.accounting.sending(now_ns) else {
            return self.coalesce(net, Coalescing::default());
        };
        if !phase.beat(now_ns) {
            return;
        }
        if net.can_coalesce() && self.config.coalesce_ns > 0 {
            let under = Under {
                open: phase.open,
                several: self.config.depth_used() > 1,
                streams: self.codec.protocol.times_arrivals() && self.config.has_arrivals(),
                most_ns: self.config.coalesce_ns,
            };
            self.coalescing = phase.coalescing(net, wakings, under);
            net.coalesce(self.coalescing);
        }
        let Some(active) = phase.active_slots(now_ns) else { return };
        let before = std::mem::replace(&mut phase.active_before, active);
        if active > before {
            for key in 0..self.slots.len() {
                let global = self.config.global(key);
                if (before..active).contains(&global) && self.accounting.current == Some(index) {
                    self.fill(net, key);
                }
            }
        }
    }

    /// With more than one request in flight, or in sessions, accounts for places that stand empty:
    /// they wait for their refill, the peer does not permit them, or a user pauses.
    #[inline]
    pub(super) fn note_gap(&mut self, key: u32, now_ns: u64, unused: usize) {
        let state = &mut self.slots[key].state;
        if (self.config.depth_used() == 1 && !self.sessions.are_on())
            || state.open_since_ns == NEVER
        {
            return;
        }
        let gap = std::mem::replace(&mut state.gap, unused as u32);
        let since_ns = std::mem::replace(&mut state.gap_since_ns, now_ns);
        if gap > 0
            && let Some((until_ns, phase)) = self.accounting.not_stopped(now_ns)
        {
            let over_ns = until_ns.saturating_sub(since_ns.max(phase.started_ns));
            phase.meter.permitted_ns -= i128::from(gap) * i128::from(over_ns);
        }
    }
}

impl Phase {
    /// Whether slot `global` may send at `now_ns`: under stages of connections only the first ones
    /// may.
    #[inline]
    fn active(&self, global: u32, now_ns: u64) -> bool {
        self.active_slots(now_ns).is_none_or(|active| global < active)
    }

    /// The number of slots of all threads that may send at `now_ns`; `None` means all of them.
    #[inline]
    fn active_slots(&self, now_ns: u64) -> Option<u32> {
        match &self.share.load {
            Load::Closed { active } if !active.is_empty() => {
                Some(value_at(active, now_ns.saturating_sub(self.started_ns)).round() as u32)
            }
            _ => None,
        }
    }

    /// Draws the next arrival if it is due.
    pub(super) fn due(&mut self, now_ns: u64) -> Option<Due> {
        let at_ns = self.next_arrival_ns();
        if at_ns > now_ns || at_ns >= self.stop_ns() {
            return None;
        }
        let schedule = self.schedule.as_mut()?;
        let number = schedule.number() as u32;
        schedule.advance();
        Some(Due { scheduled_ns: at_ns, number })
    }

    /// The time of the next arrival; `NEVER` if there is no more, or all requests that were asked
    /// for are sent.
    #[inline]
    pub(super) fn next_arrival_ns(&self) -> u64 {
        if self.quota == 0 {
            return NEVER;
        }
        let next_ns = self.schedule.as_ref().and_then(|schedule| schedule.next_ns());
        next_ns.map_or(NEVER, |next_ns| self.started_ns.saturating_add(next_ns))
    }

    /// Draws the next arrival for a request that cannot even be sent.
    pub(super) fn draw_due(&mut self, now_ns: u64) -> bool {
        // Under turns no slot knows that everything has been sent.
        self.quota > 0 && (self.schedule.is_none() || self.due(now_ns).is_some())
    }

    /// The coalescing until the next heartbeat: none in turns, and under an open loop only for the
    /// parts of streams.
    fn coalescing(&mut self, net: &impl Net, wakings: Wakings, under: Under) -> Coalescing {
        match self.share.load {
            Load::Turns { .. } => Coalescing::default(),
            Load::Open { .. } | Load::Recorded { .. } if !under.streams => Coalescing::default(),
            _ => self.pacing.next(self.done(net, wakings), under),
        }
    }

    /// Whether a heartbeat is due.
    fn beat(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_beat_ns {
            return false;
        }
        self.next_beat_ns = now_ns + BEAT_NS;
        true
    }
}
