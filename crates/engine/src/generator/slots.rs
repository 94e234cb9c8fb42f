//! The slots of one thread, with the timers that tell when to look at each of them again.
//!
//! The work on every slot when a phase starts, stops or ends is here, too. Must not know: sockets
//! or protocols.

use std::ops::{Index, IndexMut, Range};
use std::slice::{Iter, IterMut};

use trueload_load::{Load, Stop, share};
use trueload_meter::Class;
use trueload_wire::exchange::Exchange;

use super::Config;
use super::accounting::Accounting;
use super::connection::ConnectionState;
use super::phase::{Phase, PhaseShare, PhaseState};
use super::slot::{NEVER, Slot, Tag};
use super::timers::Timers;

/// All slots, indexed by their keys.
#[derive(Debug)]
pub(super) struct Slots<C> {
    slots: Vec<Slot<C>>,
    timers: Timers,
    /// From the actual send to the last byte, in ns.
    timeout_ns: u64,
    pub(super) open: u32,
    /// Slots that the phase has not started yet.
    starting: Range<u32>,
    /// Slots from this one on have gone to another engine: they end what is under way.
    kept: u32,
}

impl<C> Index<u32> for Slots<C> {
    type Output = Slot<C>;

    #[inline]
    fn index(&self, key: u32) -> &Slot<C> {
        &self.slots[key as usize]
    }
}

impl<C> IndexMut<u32> for Slots<C> {
    #[inline]
    fn index_mut(&mut self, key: u32) -> &mut Slot<C> {
        &mut self.slots[key as usize]
    }
}

impl<C> Slots<C> {
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(super) fn iter_mut(&mut self) -> IterMut<'_, Slot<C>> {
        self.slots.iter_mut()
    }

    pub(super) fn iter(&self) -> Iter<'_, Slot<C>> {
        self.slots.iter()
    }

    /// Returns a slot that may have been removed meanwhile.
    #[inline]
    pub(super) fn get_mut(&mut self, key: u32) -> Option<&mut Slot<C>> {
        self.slots.get_mut(key as usize)
    }

    /// Slots that were established at least once. With `connect_open` one of them vouches for all,
    /// as a slot may never have been needed.
    pub(super) fn established(&self, connect_open: bool) -> u32 {
        let kept = self.iter().take(self.kept as usize);
        let found = kept.filter(|slot| slot.state.ever_established).count() as u32;
        if connect_open && found > 0 { self.len() } else { found }
    }

    /// Gives up the slots from `kept` on: they send nothing more. Returns which these are.
    pub(super) fn give_up_from(&mut self, kept: u32) -> Range<u32> {
        self.kept = kept;
        let given_up = kept.min(self.len())..self.len();
        given_up.clone().for_each(|key| self[key].state.may_ask = false);
        given_up
    }

    /// Whether the slot has gone to another engine.
    #[inline]
    pub(super) fn is_given_up(&self, key: u32) -> bool {
        key >= self.kept
    }

    pub(super) fn next_timer_ns(&self) -> u64 {
        self.timers.next_ns().unwrap_or(NEVER)
    }

    /// Marks all slots as still to be started by a phase.
    pub(super) fn start_all(&mut self) {
        self.starting = 0..self.len();
    }

    pub(super) fn next_to_start(&mut self) -> Option<u32> {
        self.starting.next()
    }

    /// Whether some slots have not been started yet.
    pub(super) fn are_starting(&self) -> bool {
        !self.starting.is_empty()
    }

    /// Lets no slot ask anything more in this phase.
    pub(super) fn end_asking(&mut self) {
        self.iter_mut().for_each(|slot| slot.state.may_ask = false);
    }

    /// Enters what each slot went through into the phase that ends for it.
    pub(super) fn enter(&mut self, accounting: &mut Accounting, index: usize) {
        if accounting.phases[index].state != PhaseState::Done {
            self.iter_mut().for_each(|slot| accounting.enter_slot(index, &mut slot.state));
        }
    }

    /// Charges violations that no request was charged with to other requests of a phase, of which
    /// there is one that nobody sent if there is no other: violations must show.
    pub(super) fn charge_debts(&mut self, accounting: &mut Accounting, index: usize) {
        let mut payer = 0;
        for key in 0..self.len() {
            let Some(trouble) = self[key].state.had_trouble() else { continue };
            let class = trouble.violation_class.unwrap_or(Class::Unsolicited);
            for _ in 0..std::mem::take(&mut trouble.uncharged) {
                while self.get_mut(payer).is_some_and(|slot| !accounting.pays(&slot.state, index)) {
                    payer += 1;
                }
                match self.get_mut(payer) {
                    Some(slot) => accounting.violated(&mut slot.state, class),
                    None => accounting.charge_nobody(index, class),
                }
            }
        }
    }
}

impl<C: Exchange<Tag>> Slots<C> {
    /// Starts without slots; requests are out of time `timeout_ns` after they were sent.
    pub(super) fn new(timeout_ns: u64) -> Self {
        let (slots, timers, starting) = (Vec::new(), Timers::default(), 0..0);
        Slots { slots, timers, timeout_ns, open: 0, starting, kept: u32::MAX }
    }

    /// Removes the last slot if there are more than `count`.
    pub(super) fn pop_beyond(&mut self, count: u32) -> Option<Slot<C>> {
        if self.len() > count { self.slots.pop() } else { None }
    }

    /// Adds slots with these machines up to `count`, and counts again how many are open.
    pub(super) fn grow(&mut self, count: u32, client: impl Fn() -> C) {
        self.slots.reserve_exact((count as usize).saturating_sub(self.slots.len()));
        for key in self.len()..count {
            self.slots.push(Slot::new(client()));
            self.slots[key as usize].state.key = key;
        }
        self.open = self.iter().filter(|slot| slot.is_open()).count() as u32;
    }

    /// Sets the slot's timer to the time at which something is due on it.
    #[inline]
    pub(super) fn arm(&mut self, key: u32) {
        let slot = &mut self.slots[key as usize];
        let due_ns = slot.due_ns(self.timeout_ns);
        self.timers.arm(&mut slot.state.armed_ns, due_ns, key);
    }

    /// The next slot whose timer has gone off. It must be armed again.
    pub(super) fn pop_timer(&mut self, now_ns: u64) -> Option<u32> {
        while let Some((at_ns, key)) = self.timers.pop(now_ns) {
            // The slot may have been removed, or armed for an earlier time.
            if let Some(slot) = self.get_mut(key).filter(|slot| slot.state.armed_ns == at_ns) {
                slot.state.armed_ns = NEVER;
                return Some(key);
            }
        }
        None
    }

    /// Whether the reason for the timer still holds: most requests have been answered by then.
    pub(super) fn is_due(&self, key: u32, now_ns: u64) -> bool {
        self[key].due_ns(self.timeout_ns) <= now_ns
    }

    /// Sets which slots may send in a phase that starts. Returns the number of requests that these
    /// share, and the number of these slots. Whichever is free takes the next request, so a slow
    /// answer holds up no others.
    pub(super) fn begin_asking(&mut self, config: &Config, phase_share: &PhaseShare) -> (u64, u64) {
        let closed_loop = matches!(phase_share.load, Load::Closed { .. });
        let (mut sum, mut sharers) = (0, 0);
        for (key, slot) in (0..).zip(&mut self.slots) {
            slot.state.asked = slot.client.outstanding() > 0;
            let global = config.global(key);
            let sends = phase_share.sends(global);
            let open = slot.state.connection.is_open() && sends;
            slot.state.open_since_ns = if open { phase_share.begins_ns() } else { NEVER };
            slot.state.may_ask = sends;
            sharers += u64::from(sends);
            sum += match phase_share.stop {
                Stop::Requests(total) if closed_loop && sends => {
                    share(total, u64::from(phase_share.senders()), u64::from(global))
                }
                _ => 0,
            };
        }
        (sum, sharers)
    }

    /// Stops a phase at `at_ns`: enters into it how long each slot could have sent, and which slots
    /// were idle.
    pub(super) fn stop(&mut self, config: &Config, phase: &mut Phase, at_ns: u64) {
        let (started_ns, depth) = (phase.started_ns, config.depth_used() as u64);
        for (key, slot) in (0..).zip(&mut self.slots) {
            let holds = !phase.share.sends(config.global(key));
            phase.idle_open += u32::from(holds && slot.is_open());
            let state = &mut slot.state;
            let permitted_ns = state.permitted_ns(depth, started_ns, at_ns);
            phase.meter.permitted_ns += permitted_ns;
            state.gap_since_ns = at_ns;
            if state.connection == ConnectionState::Down && state.waiting_again() == 0 {
                state.down_until(NEVER);
            }
        }
    }

    /// Cancels requests that still wait for a connection at the end of a drain.
    pub(super) fn cancel_waiting(
        &mut self,
        accounting: &mut Accounting,
        index: usize,
        now_ns: u64,
    ) {
        for slot in self.iter_mut() {
            let Some(trouble) = slot.state.had_trouble() else { continue };
            let these = trouble.again.extract_if(.., |tag| usize::from(tag.phase) == index);
            let these: Vec<_> = these.collect();
            for tag in these {
                slot.client.forget(&tag);
                accounting.cancel(&mut slot.state, now_ns, tag);
            }
        }
    }

    /// Cancels every request, outstanding or waiting for a connection.
    pub(super) fn cancel_all(&mut self, accounting: &mut Accounting, now_ns: u64) {
        (0..self.len()).for_each(|key| self.cancel(accounting, key, now_ns));
    }

    /// Cancels the requests of one slot.
    pub(super) fn cancel(&mut self, accounting: &mut Accounting, key: u32, now_ns: u64) {
        let slot = &mut self[key];
        let open: Vec<_> = slot.client.cancel().collect();
        let trouble = slot.state.had_trouble();
        let waiting = trouble.map(|trouble| std::mem::take(&mut trouble.again));
        let waiting = waiting.unwrap_or_default();
        waiting.iter().for_each(|tag| slot.client.forget(tag));
        for tag in open.into_iter().chain(waiting) {
            accounting.cancel(&mut slot.state, now_ns, tag);
        }
    }
}
