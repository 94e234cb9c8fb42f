//! One phase on one thread, from its start through its window and drain to its report.

use std::sync::Arc;

use trueload_drive::{Net, ThreadUse};
use trueload_load::{Load, RecordedTimes, Schedule, SendTimes, Stop, share};
use trueload_meter::{Backlog, Meter, RequestLog};
use trueload_wire::account::Account;

use super::Config;
use super::coalescing::{Done, Pacing, Wakings};
use super::lateness::LastBatch;
use super::slot::NEVER;

/// Residual bytes are awaited for this long after the last answer (design §7).
pub(super) const RESIDUAL_NS: u64 = 50_000_000;
/// The interval between ticks.
pub(super) const TICK_NS: u64 = 250_000_000;

/// Several threads are told of a phase this long before it starts, so that all of them know of it
/// by then. From then on each thread makes sure that it runs at once: one that waits for a busy CPU
/// at that moment would begin milliseconds later.
pub(crate) const START_LEAD_NS: u64 = 5_000_000;

/// Threads stay awake this long before the start: a sleeping CPU takes time to wake a thread, now
/// and then a millisecond.
pub(super) const AWAKE_LEAD_NS: u64 = 300_000;

/// The interval at which coalescing is adjusted, and connections are sought that a stage has made
/// active.
pub(super) const BEAT_NS: u64 = 10_000_000;

/// A phase as it is passed to a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseShare {
    /// When to send.
    pub load: Load,
    /// When to stop; requests are those of all threads.
    pub stop: Stop,
    /// Connections of all threads, which share the requests.
    pub connections: u32,
    /// The number of connections that never send; they are the last ones.
    pub idle: u32,
    /// Start, on the engine's clock.
    pub start_ns: u64,
    /// How long after that start this engine begins: other engines have begun before, and it joins
    /// them.
    pub from_ns: u64,
    /// The most requests that a thread keeps in its log; 0 for no log.
    pub log_rows: usize,
}

impl PhaseShare {
    /// A phase in which every connection sends and every engine begins at `start_ns`, without a log.
    pub fn new(load: Load, stop: Stop, connections: u32, start_ns: u64) -> Self {
        PhaseShare { load, stop, connections, idle: 0, start_ns, from_ns: 0, log_rows: 0 }
    }

    /// The time at which this engine begins.
    pub(super) fn begins_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.from_ns)
    }

    /// Connections that send.
    pub(super) fn senders(&self) -> u32 {
        self.connections.saturating_sub(self.idle)
    }

    /// The number of `threads` that take part in sending: under an open loop those that have a slot
    /// for it.
    pub(super) fn threads_that_send(&self, threads: u32) -> u32 {
        match self.load {
            Load::Open { .. } | Load::Recorded { .. } => threads.min(self.senders().max(1)),
            Load::Closed { .. } | Load::Turns { .. } => threads,
        }
    }

    /// The scheduled sending time of an open loop in ns; for a number of requests, from the rate
    /// that it begins with.
    fn span_ns(&self) -> u64 {
        match (self.stop, &self.load) {
            (Stop::After(ns), _) => ns,
            (Stop::Requests(_), Load::Recorded { recording, from_ns }) => {
                recording.last_ns().saturating_sub(*from_ns)
            }
            (Stop::Requests(count), Load::Open { stages, .. }) => {
                let rate = stages.first().map_or(0.0, |stage| stage.from);
                (count as f64 / rate * 1e9) as u64
            }
            (Stop::Requests(_), Load::Closed { .. } | Load::Turns { .. }) => 0,
        }
    }

    /// The send times of one thread under an open loop, from `from_ns` after the start on.
    fn send_times(&self, config: &Config, from_ns: u64) -> Option<SendTimes> {
        let (thread, threads) = (config.thread, self.threads_that_send(config.threads));
        match &self.load {
            Load::Open { stages, arrivals } => {
                let own = config.turns.as_ref().map(|turns| turns.within(threads));
                let sends = own.as_ref().map_or(thread < threads, Option::is_some);
                let stages = if sends { &stages[..] } else { &[] };
                let (thread, threads, places) = match own {
                    None => (thread, threads, config.places.clone()),
                    Some(own) => (0, 1, own),
                };
                let drawn = Schedule::from(stages, *arrivals, thread, threads, places, from_ns);
                Some(SendTimes::Drawn(drawn))
            }
            Load::Recorded { recording, from_ns } => {
                let recording = Arc::clone(recording);
                let times = RecordedTimes::new(recording, *from_ns, thread, threads);
                Some(SendTimes::Recorded(times))
            }
            Load::Closed { .. } | Load::Turns { .. } => None,
        }
    }

    /// Whether slot `global` sends at all.
    pub(super) fn sends(&self, global: u32) -> bool {
        global < self.senders()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseState {
    Waiting,
    Sending,
    Draining,
    /// Everything is settled; residual bytes are awaited.
    Lingering {
        until_ns: u64,
    },
    Done,
}

/// A phase in progress.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) share: PhaseShare,
    pub(super) state: PhaseState,
    /// The time to make the thread prompt for the start; `NEVER` once that is done, or if it starts
    /// alone.
    pub(super) prompt_ns: u64,
    /// The time from which it stays awake until the start; `NEVER` likewise.
    pub(super) awake_ns: u64,
    pub(super) started_ns: u64,
    /// The time at which this thread did begin to send.
    pub(super) began_ns: u64,
    pub(super) stopped_ns: u64,
    /// Requests issued and not yet ended.
    pub(super) open: u64,
    /// Requests that this thread's slots have still to send, whichever is free; without bound if a
    /// duration is set.
    pub(super) quota: u64,
    /// The number of slots of this thread that may still send a request. Kept only for a closed
    /// loop that ends by count.
    pub(super) sharers: u64,
    /// The time at which a request last ended well, or none was open or due.
    pub(super) hopeful_ns: u64,
    pub(super) settled_ns: u64,
    pub(super) next_tick_ns: u64,
    pub(super) partial: bool,
    /// Code outside the generator keeps the phase from ending, until this is false again.
    pub(super) held: bool,
    /// No row of data was left for the next request.
    pub(super) data_spent: bool,
    /// Idle connections that were open at the end.
    pub(super) idle_open: u32,
    pub(super) use_at_start: ThreadUse,
    pub(super) used: ThreadUse,
    /// The part of this use that went into polls without an event.
    pub(super) spun_ns: u64,
    spun_at_start_ns: u64,
    pub(super) pacing: Pacing,
    pub(super) meter: Meter,
    /// The single requests, if they are logged.
    pub(super) log: Option<Box<RequestLog>>,
    /// The counts that connections keep for themselves.
    pub(super) account: Option<Account>,
    /// The arrivals of an open loop still to be drawn, and those not yet counted by a tick.
    pub(super) schedule: Option<SendTimes>,
    pub(super) uncounted: Option<SendTimes>,
    counted: u64,
    pub(super) next_beat_ns: u64,
    pub(super) last_batch: LastBatch,
    /// Slots that a stage of connections had made active by the last heartbeat.
    pub(super) active_before: u32,
}

impl Phase {
    /// Creates a phase of `threads` threads that has not begun.
    pub(super) fn new(share: PhaseShare, threads: u32, held: bool) -> Self {
        let open = share.load.is_scheduled();
        let before = |lead_ns| {
            if threads > 1 { share.begins_ns().saturating_sub(lead_ns) } else { u64::MAX }
        };
        let (prompt_ns, awake_ns) = (before(START_LEAD_NS), before(AWAKE_LEAD_NS));
        Phase {
            share,
            state: PhaseState::Waiting,
            prompt_ns,
            awake_ns,
            started_ns: 0,
            began_ns: 0,
            stopped_ns: 0,
            open: 0,
            quota: u64::MAX,
            sharers: 0,
            hopeful_ns: 0,
            settled_ns: 0,
            next_tick_ns: u64::MAX,
            partial: false,
            held,
            data_spent: false,
            idle_open: 0,
            use_at_start: ThreadUse::default(),
            used: ThreadUse::default(),
            spun_ns: 0,
            spun_at_start_ns: 0,
            pacing: Pacing::default(),
            meter: if open { Meter::of_open_loop() } else { Meter::default() },
            log: None,
            account: None,
            schedule: None,
            uncounted: None,
            counted: 0,
            next_beat_ns: u64::MAX,
            last_batch: LastBatch { due_ns: NEVER, ..LastBatch::default() },
            active_before: 0,
        }
    }

    /// Begins to send, while `open_before` requests of earlier phases are open.
    pub(super) fn start(
        &mut self,
        net: &impl Net,
        wakings: Wakings,
        config: &Config,
        open_before: u64,
    ) {
        let now_ns = net.now_ns();
        self.state = PhaseState::Sending;
        if let Some(schedule) = self.share.send_times(config, self.share.from_ns) {
            // A number of requests was asked for explicitly, and need not be counted.
            let by_time = matches!(self.share.stop, Stop::After(_));
            self.uncounted = by_time.then(|| schedule.clone());
            self.schedule = Some(schedule);
            self.meter.backlog = Some(Backlog::of(self.share.span_ns(), open_before));
        }
        self.next_beat_ns = now_ns + BEAT_NS;
        // The nominal start, so that the windows of chained phases and of all threads meet. A
        // closed loop by requests has no schedule, and lasts from its first send.
        self.began_ns = now_ns;
        self.started_ns = match (self.share.stop, &self.share.load) {
            (Stop::Requests(_), Load::Closed { .. } | Load::Turns { .. }) => now_ns,
            _ => self.share.start_ns,
        };
        if let Stop::After(ns) = self.share.stop {
            self.meter.flow.work.end(ns);
        }
        if self.share.from_ns > 0 {
            self.meter.flow.excuse(0, self.share.from_ns);
        }
        self.hopeful_ns = now_ns;
        let begins_ns = self.started_ns.saturating_add(self.share.from_ns);
        self.next_tick_ns = begins_ns + TICK_NS;
        self.use_at_start = net.thread_use();
        self.spun_at_start_ns = net.spun_ns();
        let used = self.use_at_start;
        let waited_ns = used.wanted_ns.saturating_sub(used.cpu_ns);
        self.last_batch = LastBatch::from(begins_ns, now_ns, waited_ns, net.thread_cpu_ns());
        self.pacing = Pacing::from(self.done(net, wakings));
    }

    /// Draws the arrivals from `from_ns` after the start on for another part of the load.
    pub(super) fn hand_over(&mut self, config: &Config, from_ns: u64) {
        for times in [&mut self.schedule, &mut self.uncounted].into_iter().flatten() {
            times.hand_over(from_ns, self.share.send_times(config, from_ns));
        }
    }

    /// The number of requests that may be in flight over all connections, under turns.
    pub(super) fn concurrent(&self) -> Option<u32> {
        match self.share.load {
            Load::Turns { concurrent } => Some(concurrent),
            _ => None,
        }
    }

    /// Whether a free slot has something to send: other slots may have sent the last of a number of
    /// requests.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        self.quota > 0 || !matches!(self.share.load, Load::Closed { .. })
    }

    /// Whether a slot that lost its connection needs a new one. It does not if the other free slots
    /// can send everything that is left; then it sends nothing more in this phase.
    pub(super) fn needs_another(&mut self) -> bool {
        let counted = matches!(self.share.load, Load::Closed { .. })
            && matches!(self.share.stop, Stop::Requests(_));
        let free = self.sharers.saturating_sub(self.open);
        if !counted || (self.quota > 0 && self.quota >= free) {
            return true;
        }
        self.sharers = self.sharers.saturating_sub(1);
        false
    }

    /// The number of requests that a slot may take at first. Of a number of requests it is no more
    /// than its share, so that each slot gets some even if several fit into one.
    pub(super) fn first_most(&self, global: u32) -> u64 {
        let Stop::Requests(total) = self.share.stop else { return self.quota };
        self.quota.min(share(total, u64::from(self.share.senders()), u64::from(global)).max(1))
    }

    /// Whether everything that was to be sent has been sent and is settled.
    pub(super) fn is_spent(&self) -> bool {
        self.quota == 0 && self.open == 0
    }

    /// Whether nothing is open, and the next request of an open loop is yet to come.
    pub(super) fn awaits_arrival(&self, now_ns: u64) -> bool {
        let next_ns = self.next_arrival_ns();
        self.open == 0 && next_ns > now_ns && next_ns != NEVER
    }

    /// The time at which sending ends, if it ends by time.
    pub(super) fn stop_ns(&self) -> u64 {
        match self.share.stop {
            Stop::After(ns) => self.started_ns.saturating_add(ns),
            Stop::Requests(_) => u64::MAX,
        }
    }

    /// Notes that from now on there is not enough to send for all slots. Returns whether this is
    /// the first time.
    pub(super) fn end_flow(&mut self, now_ns: u64) -> bool {
        self.meter.flow.end(now_ns.saturating_sub(self.started_ns))
    }

    /// Notes requests of an open loop that were due at this time and were answered after this
    /// latency.
    #[inline]
    pub(super) fn note_scheduled(&mut self, scheduled_ns: u64, latency_ns: u64, count: u64) {
        if let Some(backlog) = &mut self.meter.backlog {
            backlog.note(scheduled_ns.saturating_sub(self.started_ns), latency_ns, count);
        }
    }

    /// Ends the schedule now, while `open_before` requests of earlier phases are open.
    pub(super) fn end_backlog(&mut self, open_before: u64) {
        let settled = self.meter.issued.saturating_sub(self.open);
        let unanswered = self.meter.scheduled.saturating_sub(settled) + open_before;
        if let Some(backlog) = &mut self.meter.backlog {
            backlog.at_end = unanswered;
        }
    }

    /// Counts the requests that the schedule of an open loop has asked for by `now_ns`.
    pub(super) fn count_scheduled(&mut self, now_ns: u64) {
        if let Some(uncounted) = &mut self.uncounted {
            self.counted += uncounted.skip_until(now_ns.saturating_sub(self.started_ns));
            self.meter.scheduled = match &self.meter.sessions {
                None => self.counted.max(self.meter.issued),
                // No session is due for which there is no row.
                Some(_) if self.data_spent => self.meter.issued,
                // Sessions are scheduled. One that has not begun lacks a request at least.
                Some(sessions) => self.meter.issued + self.counted.saturating_sub(sessions.begun),
            };
        }
    }

    /// Ends sending.
    pub(super) fn stop(&mut self, net: &impl Net, at_ns: u64) {
        self.look(net, net.now_ns());
        self.count_scheduled(at_ns);
        self.state = PhaseState::Draining;
        self.stopped_ns = at_ns;
        self.spun_ns = net.spun_ns().saturating_sub(self.spun_at_start_ns);
        self.used = net.thread_use().since(self.use_at_start);
    }

    /// What the thread has done by now.
    pub(super) fn done(&self, net: &impl Net, wakings: Wakings) -> Done {
        let settled = self.meter.issued.saturating_sub(self.open);
        Done { at_ns: net.now_ns(), cpu_ns: net.thread_cpu_ns(), settled, wakings }
    }

    /// The second of the phase that ends at, or contains, `now_ns`.
    pub(super) fn second(&self, now_ns: u64) -> usize {
        (now_ns.saturating_sub(self.started_ns + 1) / 1_000_000_000) as usize
    }
}
