//! The slots that can take a request under an open loop, and when the next request is due.
//!
//! The slot that has been idle longest is the first. Queue entries may be stale: the slot itself
//! knows whether it is in the queue, and since when it could have sent.

use std::collections::VecDeque;

use trueload_wire::exchange::Exchange;

use super::accounting::Accounting;
use super::slot::{NEVER, Slot, State, Tag};
use super::slots::Slots;

/// The queue of slots that can take a request.
#[derive(Debug, Default)]
pub(super) struct Ready {
    queue: VecDeque<u32>,
    /// The time at which requests were last sent because they were due.
    pub(super) sent_due_ns: u64,
}

impl Ready {
    /// Takes the slot that has been idle longest.
    pub(super) fn pop(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// Removes the slots from `count` on.
    pub(super) fn truncate(&mut self, count: u32) {
        self.queue.retain(|key| *key < count);
    }

    /// Empties the queue after a phase.
    pub(super) fn forget<C>(&mut self, slots: &mut Slots<C>) {
        self.queue.clear();
        slots.iter_mut().for_each(|Slot { state, .. }| state.ready = false);
    }

    /// Queues a slot with `free` free places for requests, or unqueues it if it has none.
    #[inline]
    pub(super) fn wait_for_more(&mut self, key: u32, state: &mut State, now_ns: u64, free: usize) {
        if free == 0 {
            // Its entry in the queue, if any, is stale.
            state.ready_since_ns = NEVER;
        } else if state.ready {
            state.ready_since_ns = state.ready_since_ns.min(now_ns);
        } else {
            self.add(key, state, now_ns);
        }
    }

    /// Queues a slot that is idle at the start of a phase: it has been free since then, however
    /// late this is.
    pub(super) fn free_since_start<C: Exchange<Tag>>(
        &mut self,
        key: u32,
        slot: &mut Slot<C>,
        started_ns: u64,
    ) {
        let Slot { client, state, .. } = slot;
        let sends = state.may_ask && client.outstanding() == 0;
        if state.connection.is_open() && sends && !state.ready {
            self.add(key, state, started_ns);
        }
    }

    /// Adds a slot that has been free since then.
    pub(super) fn add(&mut self, key: u32, state: &mut State, since_ns: u64) {
        state.ready = true;
        state.ready_since_ns = since_ns;
        self.queue.push_back(key);
    }

    /// The time since when the slot that has been idle longest could have taken a request; `NEVER`
    /// without one.
    pub(super) fn idle_since_ns<C: Exchange<Tag>>(
        &mut self,
        slots: &mut Slots<C>,
        depth: usize,
    ) -> u64 {
        while let Some(key) = self.queue.front() {
            let Slot { client, state, .. } = &mut slots[*key];
            let open = state.connection.is_open();
            if open && client.capacity(depth) > 0 {
                return state.ready_since_ns;
            }
            state.ready = false;
            self.queue.pop_front();
        }
        NEVER
    }

    /// The time at which the next request can be sent.
    #[inline]
    pub(super) fn next_send_ns(&self, accounting: &Accounting) -> u64 {
        let Some(index) = accounting.current else { return NEVER };
        if self.queue.is_empty() { NEVER } else { accounting.phases[index].next_arrival_ns() }
    }

    /// The time at which to wake for the next send. Waking for each of 100,000 requests a second
    /// costs more than sending them, so requests that fall due within the quantum go out together.
    #[inline]
    pub(super) fn wake_ns(&self, accounting: &Accounting, quantum_ns: u64) -> u64 {
        match self.next_send_ns(accounting) {
            NEVER => NEVER,
            at_ns => at_ns.max(self.sent_due_ns + quantum_ns),
        }
    }
}
