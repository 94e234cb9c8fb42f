//! Moves a generator from phase to phase: start, stop, drain, residual bytes, report.

use trueload_drive::{Coalescing, Conn, Net};
use trueload_load::{Load, Stop, dealt, share};
use trueload_meter::Recorded;
use trueload_wire::exchange::Exchange;

use super::connection::ConnectionState;
use super::phase::{Phase, PhaseShare, PhaseState, RESIDUAL_NS, TICK_NS};
use super::protocol::Protocol;
use super::slot::{NEVER, Tag};
use super::{DoneReport, Generator, Report, TickReport};

/// A run by requests gives up if nothing has ended well for three timeouts plus this time, while
/// there was something to send or to wait for. A peer that answers nothing must not be asked a
/// million times, one timeout each.
const GIVE_UP_NS: u64 = 2_000_000_000;
/// A request that is open this long after the last timeout of a drain will never end.
const DRAIN_MARGIN_NS: u64 = 200_000_000;
/// Slots started on one reading of the clock: starting 10,000 at once takes many milliseconds.
const SLOTS_PER_CLOCK: u32 = 32;
/// Slots that a phase starts before other work has its turn: some milliseconds, less than a beat.
const SLOTS_PER_TURN: u32 = 1024;

impl<P: Protocol> Generator<P> {
    /// Adds a phase; one that is `held` does not end before [`super::phase::Phase::held`] is false
    /// again.
    pub(super) fn add_phase(&mut self, share: PhaseShare, held: bool) {
        let log_rows = share.log_rows;
        self.accounting.add(share, self.config.threads, held);
        if log_rows > 0 {
            self.accounting.begin_log(log_rows, self.config.thread);
        }
    }

    /// Moves every phase on as far as it can go now.
    pub(super) fn advance(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        if let Some(current) = self.accounting.current {
            self.give_up(net, current, now_ns);
            self.end_flow_if_spent(current, now_ns);
            self.end_if_data_spent(net, current);
            self.stop_if_due(net, current);
        }
        self.part_if_due(net);
        self.start_next_if_due(net);
        self.prepare_next_if_due(net);
        for index in self.accounting.unfinished() {
            self.drain(net, index);
        }
    }

    fn stop_if_due(&mut self, net: &impl Net, index: usize) {
        let now_ns = net.now_ns();
        let awaits = self.codec.protocol.awaits(index as u16);
        let phase = &self.accounting.phases[index];
        let due_ns = match phase.share.stop {
            Stop::After(_) => phase.stop_ns(),
            Stop::Requests(_) if awaits => return,
            Stop::Requests(_) if self.sessions.any_runs() => return,
            // Under turns the last delivery counts, not the time spent waiting for others in vain.
            Stop::Requests(_) if phase.is_spent() && phase.concurrent().is_some() => {
                phase.settled_ns.max(phase.started_ns)
            }
            // A run by requests lasts until the last one is answered.
            Stop::Requests(_) if phase.is_spent() => now_ns,
            Stop::Requests(_) => return,
        };
        if phase.state == PhaseState::Sending && due_ns <= now_ns {
            self.stop_phase(net, index, due_ns);
        }
    }

    fn stop_phase(&mut self, net: &impl Net, index: usize, at_ns: u64) {
        let open_before = self.accounting.open_before(index);
        self.accounting.end_part();
        self.enter_accounts(index, at_ns);
        let phase = &mut self.accounting.phases[index];
        self.slots.stop(&self.config, phase, at_ns);
        if let Some(concurrent) = phase.concurrent() {
            let window_ns = at_ns.saturating_sub(phase.started_ns);
            let concurrent = dealt(concurrent, self.config.threads, self.config.thread);
            phase.meter.permitted_ns = i128::from(concurrent) * i128::from(window_ns);
        }
        phase.stop(net, at_ns);
        if let Stop::After(_) = phase.share.stop {
            phase.end_backlog(open_before);
        }
        self.link.report(Report::Stopped(index, at_ns));
    }

    /// Adds to a phase the counts that connections have kept for themselves up to this time.
    fn enter_accounts(&mut self, index: usize, until_ns: u64) {
        let phase = &mut self.accounting.phases[index];
        for slot in self.slots.iter_mut() {
            let Some(mut found) = self.codec.protocol.take_account(&mut slot.client, until_ns)
            else {
                return;
            };
            match phase.state {
                PhaseState::Done => continue,
                PhaseState::Sending => {}
                _ => found = found.behind_window(),
            }
            phase.account.get_or_insert_default().merge(&found);
        }
    }

    fn start_next_if_due(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        let next = self.accounting.next();
        let open_before = self.accounting.open_before(next);
        let over = self.accounting.current.is_none_or(|current| {
            !matches!(
                self.accounting.phases[current].state,
                PhaseState::Waiting | PhaseState::Sending
            )
        });
        let Some(phase) = self.accounting.phases.get_mut(next).filter(|_| over) else { return };
        if phase.state != PhaseState::Waiting || phase.share.begins_ns() > now_ns {
            return;
        }
        let share = phase.share.clone();
        phase.start(net, self.accounting.wakings, &self.config, open_before);
        let started_ns = phase.started_ns;
        // A late send is our own latency; a closed loop has nothing to be late for.
        net.wake_promptly(phase.schedule.is_some() || self.sessions.are_on());
        // The coalescing of the phase before is not in the accounts of this one.
        self.coalesce(net, Coalescing::default());
        if next > 0 {
            self.enter_accounts(next - 1, now_ns);
            self.slots.enter(&mut self.accounting, next - 1);
        } else {
            self.accounting.take_over_early();
        }
        self.accounting.current = Some(next);
        if self.sessions.any_runs() {
            self.carry_sessions(now_ns);
        }
        self.link.report(Report::Started(next, started_ns));
        self.begin_asking(next, &share);
        self.ready.forget(&mut self.slots);
        self.slots.start_all();
        self.start_slots(net);
        self.stop_if_due(net, next);
    }

    /// Prepares for a start that other threads share. Shortly before it, this thread begins to run
    /// as soon as it is woken, and then stops sleeping.
    fn prepare_next_if_due(&mut self, net: &mut impl Net) {
        let next = self.accounting.next();
        let now_ns = net.now_ns();
        let Some(phase) = self.accounting.phases.get_mut(next) else { return };
        if phase.prompt_ns <= now_ns {
            phase.prompt_ns = NEVER;
            net.wake_promptly(true);
        }
        if phase.awake_ns <= now_ns {
            phase.awake_ns = NEVER;
            net.stay_awake_until(phase.share.begins_ns());
        }
    }

    /// Starts some of the slots that a phase has not started yet; between calls answers are handled
    /// and the heartbeat runs.
    pub(super) fn start_slots(&mut self, net: &mut impl Net) {
        for _ in 0..SLOTS_PER_TURN {
            let Some(key) = self.slots.next_to_start() else { return };
            if key % SLOTS_PER_CLOCK == 0 {
                net.read_clock();
            }
            self.reopen(net, key);
            self.charge_violations(net, key);
            self.free_since_start(key);
            self.fill(net, key);
        }
    }

    fn begin_asking(&mut self, index: usize, phase_share: &PhaseShare) {
        let (sum, sharers) = self.slots.begin_asking(&self.config, phase_share);
        if let Stop::Requests(total) = phase_share.stop {
            let phase = &mut self.accounting.phases[index];
            let (thread, threads) = (self.config.thread, self.config.threads);
            // Under an open loop, or turns, the arrivals are divided, not the slots' work.
            let those = phase_share.threads_that_send(threads);
            let mine = match self.config.turns.as_ref().map(|turns| turns.within(those)) {
                None if thread < those => share(total, those.into(), thread.into()),
                None => 0,
                Some(own) => own.map_or(0, |own| own.among(total)),
            };
            let closed_loop = matches!(phase_share.load, Load::Closed { .. });
            (phase.quota, phase.sharers) = (if closed_loop { sum } else { mine }, sharers);
            // Of sessions, each request counts as scheduled when it is sent.
            phase.meter.scheduled = if self.sessions.are_on() { 0 } else { phase.quota };
        }
    }

    /// Ends a run by requests against a peer that answers nothing well.
    fn give_up(&mut self, net: &impl Net, index: usize, now_ns: u64) {
        let phase = &mut self.accounting.phases[index];
        if phase.awaits_arrival(now_ns) {
            phase.hopeful_ns = now_ns;
        }
        let patience_ns = 3u64.saturating_mul(self.config.timeout_ns).saturating_add(GIVE_UP_NS);
        let hopeless = now_ns.saturating_sub(phase.hopeful_ns) > patience_ns;
        let by_requests = matches!(phase.share.stop, Stop::Requests(_));
        if phase.state == PhaseState::Sending && by_requests && hopeless {
            phase.quota = 0;
            self.slots.end_asking();
            if self.sessions.are_on() {
                // Some may never get a connection for their next request.
                self.stop_phase(net, index, now_ns);
            }
        }
    }

    /// Ends the flow when the last request has been sent, under `--requests` with an open loop, in
    /// turns, or with a connection per request.
    fn end_flow_if_spent(&mut self, index: usize, now_ns: u64) {
        let phase = &mut self.accounting.phases[index];
        // A kept connection of a closed loop works until its own answer, and ends the flow itself
        // when it has no more.
        if matches!(phase.share.load, Load::Closed { .. }) && !self.config.close {
            return;
        }
        let runs = self.sessions.any_runs();
        let spent = phase.quota == 0
            && !runs
            && phase.meter.issued > 0
            && phase.state == PhaseState::Sending;
        if spent && phase.end_flow(now_ns) {
            self.accounting.end_part();
            let open_before = self.accounting.open_before(index);
            self.accounting.phases[index].end_backlog(open_before);
        }
    }

    /// Ends a phase that would go on, but for whose next request no row of data is left. A window
    /// of some time ends now, or with the last session under way. A number of requests turns out to
    /// be smaller than was asked for.
    fn end_if_data_spent(&mut self, net: &impl Net, index: usize) {
        let (is_spent, now_ns) = (self.accounting.is_data_spent(), net.now_ns());
        let phase = &mut self.accounting.phases[index];
        if phase.state != PhaseState::Sending || phase.quota == 0 || !is_spent {
            return;
        }
        phase.data_spent = true;
        if phase.end_flow(now_ns) {
            self.accounting.end_part();
        }
        if self.sessions.any_runs() {
            return;
        }
        let phase = &mut self.accounting.phases[index];
        match phase.share.stop {
            Stop::After(_) => {
                let at_ns = now_ns.min(phase.stop_ns());
                self.stop_phase(net, index, at_ns);
            }
            Stop::Requests(_) => {
                (phase.quota, phase.meter.scheduled) = (0, phase.meter.issued);
                self.slots.end_asking();
            }
        }
    }

    fn drain(&mut self, net: &mut impl Net, index: usize) {
        let now_ns = net.now_ns();
        let last = self.accounting.current == Some(index);
        let drain_most_ns = self.drain_most_ns();
        let awaits = self.codec.protocol.awaits(index as u16);
        // The phases end in order: requests that a warm-up has left open are waited for, too.
        let alone = self.accounting.unfinished().start >= index;
        if last && alone && self.accounting.phases[index].state == PhaseState::Draining {
            self.cancel_listening(index, now_ns);
        }
        let phase = &mut self.accounting.phases[index];
        match phase.state {
            PhaseState::Draining if phase.open == 0 && (awaits || phase.held) => {}
            PhaseState::Draining if phase.open == 0 && last && !alone => {}
            PhaseState::Draining if phase.open == 0 && last => {
                phase.state = PhaseState::Lingering { until_ns: now_ns + RESIDUAL_NS };
            }
            PhaseState::Draining if phase.open == 0 => self.finish_phase(index),
            PhaseState::Draining if now_ns >= phase.stopped_ns.saturating_add(drain_most_ns) => {
                self.slots.cancel_waiting(&mut self.accounting, index, now_ns);
                if last {
                    self.cut_off(net, index);
                }
            }
            PhaseState::Lingering { until_ns } if !last || now_ns >= until_ns => {
                self.finish_phase(index);
            }
            _ => {}
        }
    }

    fn drain_most_ns(&self) -> u64 {
        self.config.timeout_ns.saturating_add(DRAIN_MARGIN_NS)
    }

    /// Cuts off what is still open. A request that was sent again during the drain gets no further
    /// timeout of its own: the end of a run is promised.
    fn cut_off(&mut self, net: &mut impl Net, index: usize) {
        let over_ns = |tag: &Tag| if usize::from(tag.phase) == index { 0 } else { NEVER };
        for key in 0..self.slots.len() {
            let slot = &self.slots[key];
            let ours = slot.client.next_timeout_ns(over_ns) == Some(0);
            if ours && let ConnectionState::Open { token } = slot.state.connection {
                self.out_of_time(net, Conn { key, token }, over_ns);
            }
        }
    }

    fn finish_phase(&mut self, index: usize) {
        if self.accounting.current == Some(index) {
            if self.sessions.are_on() {
                let phase = &self.accounting.phases[index];
                self.cut_sessions(phase.settled_ns.max(phase.stopped_ns));
            }
            self.enter_accounts(index, self.accounting.phases[index].settled_ns);
            self.slots.enter(&mut self.accounting, index);
            self.slots.charge_debts(&mut self.accounting, index);
        }
        let established = self.slots.established(self.config.connect_open);
        let requests = self.accounting.requests.as_ref();
        let data = requests.and_then(|each| each.taken(self.accounting.phases[index].data_spent));
        let phase = &mut self.accounting.phases[index];
        let mut log = phase.log.take();
        let rows = log.iter_mut().flat_map(|log| log.rows());
        rows.filter(|row| row.connection < u32::MAX)
            .for_each(|row| row.connection = self.config.global(row.connection));
        phase.state = PhaseState::Done;
        let done_ns = phase.settled_ns.max(phase.stopped_ns);
        let second = phase.second(done_ns);
        let last = phase.meter.tick(second);
        let last_tracks = take_tracks(&mut self.codec.protocol, index, phase, &last);
        let mut report = DoneReport {
            phase: index,
            meter: std::mem::take(&mut phase.meter),
            last,
            last_tracks,
            started_ns: phase.started_ns,
            began_ns: phase.began_ns,
            stopped_ns: phase.stopped_ns,
            done_ns,
            used: phase.used,
            spun_ns: phase.spun_ns,
            coalesced_ns: phase.pacing.longest_ns,
            partial: phase.partial,
            established,
            idle_open: phase.idle_open,
            lateness: phase.last_batch.lateness,
            account: phase.account.take(),
            data,
            deliveries: None,
            reasons: self.pace.reasons(),
            log,
        };
        self.codec.protocol.complete(&mut report);
        self.link.report(Report::Done(Box::new(report)));
    }

    /// Ends everything now: open requests are cancelled.
    pub(super) fn stop(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        for index in 0..self.accounting.phases.len() {
            let phase = &mut self.accounting.phases[index];
            let draining = phase.state == PhaseState::Draining && (phase.open > 0 || phase.held);
            phase.partial = draining || phase.state == PhaseState::Sending;
        }
        self.sessions.cancel();
        self.slots.cancel_all(&mut self.accounting, now_ns);
        for index in 0..self.accounting.phases.len() {
            match self.accounting.phases[index].state {
                PhaseState::Waiting | PhaseState::Done => continue,
                PhaseState::Sending => self.stop_phase(net, index, now_ns),
                PhaseState::Draining | PhaseState::Lingering { .. } => {}
            }
            self.finish_phase(index);
        }
        self.link.finished = true;
        self.link.report(Report::Ended);
    }

    /// Reports the state of the current phase.
    pub(super) fn tick(&mut self, net: &impl Net) {
        let now_ns = net.now_ns();
        let open = self.slots.open;
        let Some(index) = self.accounting.current else { return };
        let phase = &mut self.accounting.phases[index];
        if phase.state == PhaseState::Done || now_ns < phase.next_tick_ns {
            return;
        }
        let second = phase.second(phase.next_tick_ns);
        while phase.next_tick_ns <= now_ns {
            phase.next_tick_ns += TICK_NS;
        }
        if phase.state == PhaseState::Sending {
            phase.count_scheduled(now_ns);
        }
        let recorded = phase.meter.tick(second);
        let tracks = take_tracks(&mut self.codec.protocol, index, phase, &recorded);
        let service = phase.meter.take_service();
        let meter = &phase.meter;
        let report = TickReport {
            phase: index,
            counts: meter.counts(),
            recorded,
            tracks,
            service,
            open,
            bytes_in: meter.bytes_in,
            bytes_out: meter.bytes_out,
            used_before: phase.use_at_start,
            cpu_ns: net.thread_cpu_ns(),
        };
        self.link.report(Report::Tick(report));
    }

    pub(super) fn next_phase_event_ns(&self) -> u64 {
        if self.slots.are_starting() {
            return 0;
        }
        let waiting = self.accounting.phases.get(self.accounting.next());
        let prepare_ns = waiting.map_or(NEVER, |next| next.prompt_ns.min(next.awake_ns));
        let Some(current) = self.accounting.current else {
            return waiting.map_or(NEVER, |first| first.share.begins_ns().min(prepare_ns));
        };
        let phase = &self.accounting.phases[current];
        let own_ns = match phase.state {
            PhaseState::Waiting => phase.share.begins_ns(),
            PhaseState::Sending => {
                phase.stop_ns().min(phase.next_beat_ns).min(phase.last_batch.due_ns)
            }
            // Under turns only deliveries or other engines are awaited now: they wake us
            // themselves.
            PhaseState::Draining if phase.open == 0 && phase.concurrent().is_some() => NEVER,
            PhaseState::Draining => phase.stopped_ns.saturating_add(self.drain_most_ns()),
            PhaseState::Lingering { until_ns } => until_ns,
            PhaseState::Done => NEVER,
        };
        let tick_ns = if phase.state == PhaseState::Done { NEVER } else { phase.next_tick_ns };
        let waiting = waiting.filter(|_| phase.state != PhaseState::Sending);
        let next_ns = waiting.map_or(NEVER, |next| next.share.begins_ns());
        own_ns.min(tick_ns).min(next_ns).min(prepare_ns).min(self.parting.due_ns())
    }
}

/// Takes what was recorded of each part of the traffic since the last tick, in which `all` was
/// recorded: of streams the first parts and the gaps, then the targets or steps.
fn take_tracks(
    protocol: &mut impl Protocol,
    index: usize,
    phase: &mut Phase,
    all: &Recorded,
) -> Vec<Recorded> {
    let mut tracks = protocol.take_parts(index as u16);
    if let [first_part, gap] = &mut tracks[..] {
        // A request that failed has no first part, and the gap in which a stream stalled no end.
        first_part.failed = all.failed;
        gap.failed = phase.meter.tick_stalls();
    }
    tracks.extend(phase.meter.tick_targets());
    tracks.iter_mut().for_each(|track| track.second = all.second);
    tracks
}
