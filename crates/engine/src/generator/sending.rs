//! What a slot sends and when: at once in a closed loop, when it is due in an open one.
//!
//! Under an open loop nothing is queued. The schedule's next arrival is the next request,
//! however late it is: it goes out as soon as its time has come and a slot can take it,
//! and its clock runs from the time that the schedule gave it.

use trueload_drive::{Coalescing, Net, Token};
use trueload_load::{Load, value_at};
use trueload_wire::exchange::Exchange;

use super::Generator;
use super::carrier::Carrier;
use super::coalescing::Wakings;
use super::phase::{BEAT_NS, Phase};
use super::protocol::Protocol;
use super::slot::{Link, NEVER, Slot};

/// Requests sent on one reading of the clock, under an open loop.
const SENDS_PER_CLOCK: u32 = 8;
/// What TLS adds to what it seals is less than a byte in so many (22 in a record of 16 KiB), and so many bytes.
const SEALED_PER_BYTE: usize = 512;
const SEALED_BYTES: usize = 64;
/// What is said in answer to a peer, as a pong is, waits for it up to here.
const ANSWERS_BYTES_MOST: usize = 256 * 1024;

impl<P: Protocol> Generator<P> {
    /// Sends what the slot may send now.
    #[inline]
    pub(super) fn fill(&mut self, net: &mut impl Net, key: u32) {
        let now_ns = net.now_ns();
        let depth = self.config.depth_used();
        let slot = &mut self.slots[key as usize];
        if !matches!(slot.state.link, Link::Open { .. }) {
            return;
        }
        let outstanding = slot.client.outstanding();
        let free = depth - outstanding.min(depth);
        let again = slot.state.waiting_again().min(free);
        if let Some(trouble) = slot.state.had_trouble() {
            for tag in trouble.again.drain(..again) {
                slot.client.ask(self.book.tag_again(now_ns, tag));
            }
        }
        let fresh = match self.book.sending(now_ns) {
            _ if self.slots[key as usize].state.quota == 0 => 0,
            Some((index, phase)) if phase.schedule.is_some() => {
                {
                    // A slot that waits for work has been free since then; one that was just answered, from now.
                    let state = &self.slots[key as usize].state;
                    let free_ns =
                        if state.ready { state.ready_since_ns.min(now_ns) } else { now_ns };
                    self.take_due(key, index, free - again, free_ns, now_ns)
                }
            }
            Some((_, phase)) if phase.concurrent().is_some() => 0,
            // A connection is filled again when enough of it is free.
            Some(_) if free < self.config.refill && outstanding > 0 => 0,
            Some((index, _)) => self.take_fresh(key, index, free - again, now_ns),
            None => 0,
        };
        self.write(net, key, again + fresh);
        self.wait_for_more(key, now_ns, free - again - fresh);
        self.note_gap(key, now_ns, free - again - fresh);
        let slot = &self.slots[key as usize];
        if slot.client.outstanding() == 0 && slot.state.quota == 0 {
            // Its share is done: what it does not use is no longer permitted.
            self.end_open(key, now_ns);
        }
    }

    /// A closed loop: whatever is free is sent.
    #[inline]
    fn take_fresh(&mut self, key: u32, index: usize, free: usize, now_ns: u64) -> usize {
        let slot = &mut self.slots[key as usize];
        let (phase, global) = (&mut self.book.phases[index], self.config.global(key));
        if !phase.active(global, now_ns) {
            // However short its pause, the next heartbeat looks at it again.
            phase.active_before = phase.active_before.min(global);
            return 0;
        }
        let fresh = free.min(usize::try_from(slot.state.quota).unwrap_or(usize::MAX));
        if fresh > 0 {
            let tag = self.book.tag(now_ns, now_ns, index);
            self.book.draw(tag, fresh, |tag, count| slot.client.ask_alike(tag, count));
            self.book.issue(index, &mut slot.state, fresh as u64);
        }
        fresh
    }

    /// An open loop: what is due is sent, and the slot waits for more if it can take it.
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
            let Some(scheduled_ns) = self.book.phases[index].due(now_ns) else { break };
            // A slot that was answered just now takes what is due before those that could have had it in time.
            let free_ns = free_ns.min(self.idle_since_ns());
            let slot = &mut self.slots[key as usize];
            let tag = self.book.tag(scheduled_ns, now_ns, index);
            self.book.draw(tag, 1, |tag, count| slot.client.ask_alike(tag, count));
            self.book.issue(index, &mut slot.state, 1);
            let could_ns = scheduled_ns.max(free_ns);
            let lag_ns = now_ns.saturating_sub(could_ns);
            self.book.phases[index].meter.times.record_send_lag(lag_ns);
            sent += 1;
        }
        sent
    }

    /// Since when the slot that has been idle longest could have taken a request; never without one.
    fn idle_since_ns(&mut self) -> u64 {
        let depth = self.config.depth_used();
        while let Some(key) = self.ready.front() {
            let Slot { client, state, .. } = &mut self.slots[*key as usize];
            let open = matches!(state.link, Link::Open { .. });
            if open && client.outstanding() < depth {
                return state.ready_since_ns;
            }
            state.ready = false;
            self.ready.pop_front();
        }
        NEVER
    }

    #[inline]
    pub(super) fn write(&mut self, net: &mut impl Net, key: u32, count: usize) {
        let Link::Open { token } = self.slots[key as usize].state.link else { return };
        if count == 0 {
            return;
        }
        let Slot { client, tls, .. } = &mut self.slots[key as usize];
        let tls = tls.as_deref_mut();
        let mut carrier = Carrier { net, token, tls, sealed: &mut self.sealed };
        let bytes = self.protocol.send(client, count, self.book.drawn, &mut carrier);
        if bytes > count * self.longest {
            self.longest = bytes.div_ceil(count);
        }
        if let Some(phase) = self.book.current_mut() {
            phase.meter.bytes_out += bytes as u64;
        }
        self.arm(key);
    }

    /// Tells a slot's machine which of its requests cannot have been answered: they have not left yet. False: the peer
    /// takes nothing, and so much waits for it that it cannot all be requests; it has to be closed.
    #[inline]
    pub(super) fn hold_back(&mut self, net: &impl Net, key: u32, token: Token) -> bool {
        match net.queued_bytes(token) {
            0 => {
                self.slots[key as usize].client.hold_back(0);
                true
            }
            bytes => self.hold_back_queued(key, bytes),
        }
    }

    #[cold]
    fn hold_back_queued(&mut self, key: u32, bytes: usize) -> bool {
        let depth = self.config.depth_used();
        let Slot { client, tls, .. } = &mut self.slots[key as usize];
        // Sealed, they are more than they were; behind them are those that wait to be.
        let bytes = tls.as_ref().map_or(bytes, |secure| {
            let sealing = bytes / SEALED_PER_BYTE + SEALED_BYTES;
            bytes.saturating_sub(sealing) + secure.waiting.len()
        });
        client.hold_back(self.protocol.unsent(client, self.book.drawn, bytes));
        bytes <= (client.outstanding() + depth) * self.longest + ANSWERS_BYTES_MOST
    }

    /// Under an open loop, sends what is due on the slots that have been idle longest.
    pub(super) fn send_due(&mut self, net: &mut impl Net) {
        let mut sent = 0u32;
        while self.next_send_ns() <= net.now_ns() {
            let Some(key) = self.ready.pop_front() else { return };
            let depth = self.config.depth_used();
            let now_ns = net.now_ns();
            let slot = &mut self.slots[key as usize];
            slot.state.ready = false;
            let open = matches!(slot.state.link, Link::Open { .. });
            let free = depth.saturating_sub(slot.client.outstanding());
            let Some((index, _)) = self.book.sending(now_ns) else { return };
            if open && free > 0 {
                // One at a time: the next one that is due goes to the next idle slot.
                let free_ns = slot.state.ready_since_ns;
                let count = self.take_due(key, index, 1, free_ns, now_ns);
                self.write(net, key, count);
                self.wait_for_more(key, now_ns, free - count);
                sent += 1;
                self.sent_due_ns = now_ns;
                if sent.is_multiple_of(SENDS_PER_CLOCK) {
                    net.read_clock();
                }
            }
        }
    }

    /// Under an open loop, a slot that can take more queues for it.
    #[inline]
    fn wait_for_more(&mut self, key: u32, now_ns: u64, free: usize) {
        let sending = self.book.sending(now_ns);
        let Some((_, Phase { schedule: Some(_), .. })) = sending else { return };
        let state = &mut self.slots[key as usize].state;
        if state.quota == 0 {
            return;
        }
        if free == 0 {
            // What the queue may still have of it is stale.
            state.ready_since_ns = NEVER;
        } else if state.ready {
            state.ready_since_ns = state.ready_since_ns.min(now_ns);
        } else {
            state.ready = true;
            state.ready_since_ns = now_ns;
            self.ready.push_back(key);
        }
    }

    /// Under an open loop, what is idle at the start of a phase has been free since then, however late this is.
    pub(super) fn free_since_start(&mut self, key: u32) {
        let Some(Phase { schedule: Some(_), started_ns, .. }) = self.book.current_mut() else {
            return;
        };
        let started_ns = *started_ns;
        let Slot { client, state, .. } = &mut self.slots[key as usize];
        let sends = state.quota > 0 && client.outstanding() == 0;
        if matches!(state.link, Link::Open { .. }) && sends && !state.ready {
            state.ready = true;
            state.ready_since_ns = started_ns;
            self.ready.push_back(key);
        }
    }

    /// When the next request of an open loop can be sent.
    #[inline]
    pub(super) fn next_send_ns(&self) -> u64 {
        let Some(index) = self.book.current else { return NEVER };
        if self.ready.is_empty() { NEVER } else { self.book.phases[index].next_arrival_ns() }
    }

    /// When to be woken for the next send. Being woken for each of 100,000 requests a second costs
    /// more than sending them, so what falls due within the quantum goes out together.
    #[inline]
    pub(super) fn send_wake_ns(&self) -> u64 {
        match self.next_send_ns() {
            NEVER => NEVER,
            at_ns => at_ns.max(self.sent_due_ns + self.config.send_quantum_ns),
        }
    }

    /// The engine's own heartbeat, and what goes with it: slots that a stage has made active.
    pub(super) fn beat(&mut self, net: &mut impl Net) {
        let (now_ns, wakings) = (net.now_ns(), self.book.wakings);
        let Some((index, phase)) = self.book.sending(now_ns) else {
            return net.coalesce(Coalescing::default());
        };
        if !phase.beat(now_ns) {
            return;
        }
        if net.can_coalesce() && self.config.coalesce_ns > 0 {
            net.coalesce(phase.coalescing(now_ns, wakings, self.config.coalesce_ns));
        }
        let Some(active) = phase.active_slots(now_ns) else { return };
        let before = std::mem::replace(&mut phase.active_before, active);
        if active > before {
            for key in 0..self.slots.len() as u32 {
                let global = self.config.global(key);
                if (before..active).contains(&global) && self.book.current == Some(index) {
                    self.fill(net, key);
                }
            }
        }
    }

    /// Under pipelining, keeps the books on places that wait for their refill.
    #[inline]
    fn note_gap(&mut self, key: u32, now_ns: u64, free: usize) {
        if self.config.depth == 1 {
            return;
        }
        let state = &mut self.slots[key as usize].state;
        let gap = std::mem::replace(&mut state.gap, free as u32);
        let since_ns = std::mem::replace(&mut state.gap_since_ns, now_ns);
        if gap > 0
            && let Some((_, phase)) = self.book.sending(now_ns)
        {
            let over_ns = now_ns - since_ns.max(phase.started_ns).min(now_ns);
            let lost_ns = u64::from(gap) * over_ns;
            phase.meter.permitted_ns = phase.meter.permitted_ns.wrapping_sub(lost_ns);
        }
    }

    /// Takes the slots of a phase that is over out of the queue.
    pub(super) fn forget_ready(&mut self) {
        self.ready.clear();
        self.slots.iter_mut().for_each(|Slot { state, .. }| state.ready = false);
    }
}

impl Phase {
    /// Whether slot `global` may send at `now_ns`: under stages of connections only the first ones may.
    #[inline]
    fn active(&self, global: u32, now_ns: u64) -> bool {
        self.active_slots(now_ns).is_none_or(|active| global < active)
    }

    /// How many slots of all threads may send at `now_ns`; none for all of them.
    #[inline]
    fn active_slots(&self, now_ns: u64) -> Option<u32> {
        match &self.share.load {
            Load::Closed { active } if !active.is_empty() => {
                Some(value_at(active, now_ns.saturating_sub(self.started_ns)).round() as u32)
            }
            _ => None,
        }
    }

    /// Draws the next arrival if it is due: the time that the schedule gave it.
    fn due(&mut self, now_ns: u64) -> Option<u64> {
        let at_ns = self.next_arrival_ns();
        if at_ns > now_ns || at_ns >= self.stop_ns() {
            return None;
        }
        self.schedule.as_mut()?.advance();
        Some(at_ns)
    }

    /// When the next arrival is; never when there is no more, or when all that were asked for are sent.
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
        self.schedule.is_none() || self.due(now_ns).is_some()
    }

    /// How answers are coalesced until the next heartbeat: under an open loop, and in turns, not at all.
    fn coalescing(&mut self, now_ns: u64, wakings: Wakings, most_ns: u64) -> Coalescing {
        match self.share.load {
            Load::Closed { .. } => self.pacing.next(self.done(now_ns, wakings), self.open, most_ns),
            Load::Open { .. } | Load::Turns { .. } => Coalescing::default(),
        }
    }

    /// Whether a heartbeat is due; one that comes a whole beat late is a hiccup.
    fn beat(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_beat_ns {
            return false;
        }
        let late_ns = now_ns - self.next_beat_ns;
        if late_ns >= BEAT_NS {
            self.hiccup_ns += late_ns;
        }
        self.next_beat_ns = now_ns + BEAT_NS;
        true
    }
}
