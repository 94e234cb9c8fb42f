//! The accounting of all requests of all phases, each from its send to its one ending.

mod logged;
mod row;
mod violations;

use std::{ops::Range, sync::Arc};

use trueload_load::Stop;
use trueload_meter::{Answered, Class, Logged, SessionMeter, TargetMeter, Times};
use trueload_wire::exchange::{Content, Ending, Outcome};

use super::classes::class_of_ending;
use super::coalescing::Wakings;
use super::crossings::Crossings;
use super::phase::{Phase, PhaseShare, PhaseState};
use super::requests::Requests;
use super::served::{LONG_WAIT_NS, Served, ServedSeen};
use super::slot::{Last, Noted, Numbered, State, Tag};

pub(super) use self::row::Row;

/// A connection that the peer closes unasked counts as idle for too long from this time on. By
/// default, no known server waits for less than twenty times as long (gunicorn: 2 s). A server that
/// drops a connection it has just accepted does so at once.
const IDLE_LEAST_NS: u64 = 100_000_000;
/// If the peer is not to close idle connections, one that it ends this early was dropped.
const DROPPED_WITHIN_NS: u64 = 1_000_000_000;

/// A request that cannot be sent: its number, if given beforehand, and its class.
type Unsent = (u32, Class);

/// The part of the window that is now. An answer to a request sent within it counts there whole.
#[derive(Debug, Default)]
struct Part {
    /// Its phase, and its span on the engine's clock; the span is empty after the window.
    phase: usize,
    span_ns: Range<u64>,
    /// Answers of this batch that took longer than the part; [`Accounting::spread`] counted them.
    spread: u64,
}

/// The phases of one thread, and what has been counted in them.
#[derive(Debug, Default)]
pub(super) struct Accounting {
    pub(super) phases: Vec<Phase>,
    /// The phase started last; none before the first.
    pub(super) current: Option<usize>,
    /// All phases before this one are over.
    first_open: usize,
    /// Set-up times of connections opened before a phase began.
    pub(super) early: Times,
    /// Connections dropped before a phase began.
    early_dropped: u64,
    served: ServedSeen,
    /// Requests answered well in this batch; added to the present phase's flow once per batch.
    answered: u64,
    part: Part,
    pub(super) own_connection: bool,
    /// Connections are opened when their requests are due.
    pub(super) connect_open: bool,
    pub(super) wakings: Wakings,
    pub(super) crossings: Crossings,
    /// Something may have ended a phase: check at the end of the batch.
    pub(super) look: bool,
    /// Where requests differ: their kinds, and how many numbers this thread knows to be drawn.
    pub(super) requests: Option<Arc<Requests>>,
    pub(super) drawn: u64,
    /// A phase has a log of its requests.
    logs: bool,
}

impl Accounting {
    pub(super) fn new(
        served_all: Arc<Served>,
        own_connection: bool,
        requests: Option<Arc<Requests>>,
    ) -> Self {
        let drawn = requests.as_ref().map_or(0, |requests| requests.recorded());
        let served = ServedSeen::new(served_all);
        Accounting { served, own_connection, requests, drawn, ..Accounting::default() }
    }

    /// Adds a phase that `threads` threads run, not yet begun.
    pub(super) fn add(&mut self, share: PhaseShare, threads: u32, held: bool) {
        let mut phase = Phase::new(share, threads, held);
        let targets = self.requests.as_ref().map_or(0, |requests| requests.counted());
        phase.meter.targets.resize_with(targets, TargetMeter::default);
        let steps = self.requests.as_ref().is_some_and(|requests| requests.are_steps());
        phase.meter.sessions = steps.then(SessionMeter::default);
        phase.meter.openings = self.connect_open.then(Box::default);
        self.phases.push(phase);
    }

    /// The phase that is sending at `now_ns`, if any.
    #[inline]
    pub(super) fn sending(&mut self, now_ns: u64) -> Option<(usize, &mut Phase)> {
        let index = self.current?;
        let phase = &mut self.phases[index];
        let sending = phase.state == PhaseState::Sending && now_ns < phase.stop_ns();
        sending.then_some((index, phase))
    }

    /// The phase that has not been stopped, and the time up to which events count there: its end
    /// may have come in the middle of a batch.
    #[inline]
    pub(super) fn not_stopped(&mut self, now_ns: u64) -> Option<(u64, &mut Phase)> {
        let phase = self.current_mut().filter(|phase| phase.state == PhaseState::Sending)?;
        Some((now_ns.min(phase.stop_ns()), phase))
    }

    /// The number of the phase to start next, whether it is known yet or not.
    pub(super) fn next(&self) -> usize {
        self.current.map_or(0, |current| current + 1)
    }

    /// The phases that have begun and may not be over: one or two of a thousand at a time.
    pub(super) fn unfinished(&mut self) -> Range<usize> {
        let begun = self.next().min(self.phases.len());
        while self.first_open < begun && self.phases[self.first_open].state == PhaseState::Done {
            self.first_open += 1;
        }
        self.first_open..begun
    }

    /// Whether a free slot has something to send in the last phase, given what others have sent.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        self.current.is_none_or(|current| self.phases[current].has_more())
    }

    /// The phase started last.
    pub(super) fn current_mut(&mut self) -> Option<&mut Phase> {
        self.phases.get_mut(self.current?)
    }

    /// A tag for a request that is sent now, and was to be sent at `scheduled_ns`.
    #[inline]
    pub(super) fn tag(&self, scheduled_ns: u64, now_ns: u64, phase: usize) -> Tag {
        Tag {
            scheduled_ns,
            sent_ns: now_ns,
            noted: Noted::served(self.served.count()),
            phase: phase as u16,
            again: false,
            handed_over: false,
            number: 0,
        }
    }

    /// Draws numbers for `count` new requests that otherwise share a tag. `ask` is called with a
    /// tag and the number of requests that share it. Returns how many there are: fewer if the data
    /// is used up.
    #[inline]
    pub(super) fn draw(
        &mut self,
        tag: Tag,
        count: usize,
        mut ask: impl FnMut(Tag, usize),
    ) -> usize {
        let Some(requests) = &self.requests else {
            ask(tag, count);
            return count;
        };
        if requests.are_numbered() {
            self.of_target(tag.numbered(), |target| target.issued += count as u64);
            ask(tag, count);
            return count;
        }
        let drawn = requests.draw(count as u64);
        self.look |= requests.is_spent();
        self.drawn = self.drawn.max(drawn.end);
        for number in drawn.clone() {
            let tag = Tag { number: number as u32, ..tag };
            self.of_target(tag.numbered(), |target| target.issued += 1);
            ask(tag, 1);
        }
        (drawn.end - drawn.start) as usize
    }

    /// Draws the number of a new session over all engines; none if no row is left for it.
    pub(super) fn draw_session(&mut self) -> Option<u64> {
        let requests = self.requests.as_ref()?;
        let number = requests.draw(1).next();
        self.look |= requests.is_spent();
        number.map(|number| requests.turn(number))
    }

    /// Whether no row of data is left for the next request, or session.
    pub(super) fn is_data_spent(&self) -> bool {
        self.requests.as_ref().is_some_and(|requests| requests.is_spent())
    }

    /// Notes something about the target of a request, if targets are counted separately.
    #[inline]
    pub(super) fn of_target(&mut self, whose: Numbered, note: impl FnOnce(&mut TargetMeter)) {
        if let Some(requests) = &self.requests {
            let targets = &mut self.phases[usize::from(whose.phase)].meter.targets;
            if let Some(target) = targets.get_mut(requests.index(self.drawn, whose.number)) {
                note(target);
            }
        }
    }

    /// The tag of the same request, sent again now. The time of a redirected request goes on: only
    /// its wait for the connection is no service time.
    pub(super) fn tag_again(&self, now_ns: u64, tag: Tag) -> Tag {
        let noted = Noted::served(self.served.count());
        if tag.handed_over {
            let waited_ns = now_ns.saturating_sub(tag.noted.since_ns());
            return Tag { sent_ns: tag.sent_ns.saturating_add(waited_ns), noted, ..tag };
        }
        Tag { sent_ns: now_ns, noted, handed_over: false, ..tag }
    }

    /// Notes that `count` requests of a phase have been sent.
    #[inline]
    pub(super) fn issue(&mut self, phase: usize, state: &mut State, count: u64) {
        let phase = &mut self.phases[phase];
        phase.open += count;
        phase.meter.issued += count;
        if phase.meter.sessions.is_some() || matches!(phase.share.stop, Stop::After(_)) {
            phase.meter.scheduled += count;
        } else {
            phase.quota -= count;
            self.look |= phase.quota == 0;
        }
        state.asked = true;
    }

    /// Enters a request that could not even be sent.
    pub(super) fn charge(&mut self, phase: usize, state: &mut State, now_ns: u64, next: Unsent) {
        self.issue(phase, state, 1);
        self.fail_next(phase, now_ns, next);
        let phase = &mut self.phases[phase];
        phase.open -= 1;
        phase.settled_ns = now_ns;
        phase.meter.record_failed(next.1);
        self.look = true;
    }

    /// Draws the next number for a request that is not sent: it takes its turn all the same.
    pub(super) fn fail_next(&mut self, phase: usize, now_ns: u64, (number, class): Unsent) {
        let mut drawn = None;
        let tag = Tag { number, ..self.tag(now_ns, now_ns, phase) };
        self.draw(tag, 1, |tag, _| drawn = Some(tag));
        if let Some(tag) = drawn {
            self.of_target(tag.numbered(), |target| target.record_failed(class));
            self.log_failed(u32::MAX, now_ns, tag, class);
        }
    }

    /// Enters requests that have ended. A stale request goes to `state.again` instead.
    #[inline]
    pub(super) fn settle(&mut self, state: &mut State, now_ns: u64, outcome: &Outcome<Tag>) {
        let Outcome { tag, count, ending, complete, status, first_byte_ns, content } = *outcome;
        let count = count as u64;
        if ending == Ending::Redirected {
            return self.redirected(state, now_ns, tag, count);
        }
        if ending != Ending::Ok && self.goes_again(state, ending, tag, now_ns) {
            return self.stale(state, tag, count);
        }
        if complete {
            self.crossings.note_answer(state.kept_quiet_ns(tag.sent_ns));
            (state.quiet_since_ns, state.kept) = (now_ns, true);
            state.answered(count);
        }
        if let Some(status) = status {
            self.phases[usize::from(tag.phase)].meter.record_status(status, count);
            self.of_target(tag.numbered(), |target| target.record_status(status, count));
        }
        if self.logs {
            self.log_outcome(state.key, now_ns, outcome);
        }
        if ending == Ending::Ok {
            if let Some(content) = content {
                self.note_content(tag, content, count);
            }
            return self.settle_ok(state, now_ns, first_byte_ns, tag, count);
        }
        let Some(class) = class_of_ending(ending) else { return };
        let this = &mut state.trouble().this_phase;
        let sum = if complete { &mut this.bad } else { &mut this.unanswered };
        *sum += count;
        (0..count).for_each(|_| self.enter_failed(state, now_ns, tag, class));
    }

    /// Notes the body of answers that have ended requests well.
    #[inline]
    fn note_content(&mut self, tag: Tag, content: Content, count: u64) {
        let Content { bytes, sketch } = content;
        let phase = &mut self.phases[usize::from(tag.phase)];
        if self.requests.as_ref().is_some_and(|requests| requests.recorded() > 0) {
            // Different requests have different answers, and they are not counted apart.
        } else if phase.meter.targets.is_empty() {
            phase.meter.kinds.record(bytes, sketch, count);
        } else {
            self.of_target(tag.numbered(), |target| target.kinds.record(bytes, sketch, count));
        }
    }

    /// Whether the request is sent once more. It is if it was behind the last answer of its
    /// connection, or if this is the first time that it went stale before an answer.
    fn goes_again(&mut self, state: &State, ending: Ending, tag: Tag, now_ns: u64) -> bool {
        use Ending::{Stale, StaleBehind, StaleReset, StaleTimeout, UnusedEnd, UnusedReset};
        use Ending::{StaleGoaway, StaleRefused};
        let again = match ending {
            StaleBehind => true,
            _ if tag.again => false,
            Stale | StaleGoaway | StaleRefused => true,
            StaleReset => self.crossings.explain(state.kept_quiet_ns(tag.sent_ns)),
            StaleTimeout | UnusedEnd | UnusedReset => {
                let took_ns = now_ns.saturating_sub(tag.sent_ns);
                let kept_quiet_ns = state.kept_quiet_ns(tag.sent_ns);
                state.quiet_ns(tag.sent_ns) >= IDLE_LEAST_NS
                    && self.crossings.crossed(took_ns, kept_quiet_ns)
            }
            _ => false,
        };
        if again && matches!(ending, StaleReset | UnusedReset) {
            self.phases[usize::from(tag.phase)].meter.stale_resets += 1;
        }
        again
    }

    #[inline]
    fn settle_ok(
        &mut self,
        state: &mut State,
        now_ns: u64,
        first_byte_ns: u64,
        tag: Tag,
        count: u64,
    ) {
        // The connection of a redirect's last hop is not that of its first.
        let begun_ns = state.attempted_ns.min(tag.sent_ns);
        let own_connection = self.own_connection.then(|| now_ns - begun_ns);
        let begun_ns = self.begun_ns(state, tag);
        if begun_ns < self.part.span_ns.start || now_ns >= self.part.span_ns.end {
            self.spread(begun_ns, now_ns, tag, count);
        }
        let answered = Answered {
            latency_ns: now_ns - tag.scheduled_ns,
            service_ns: now_ns.saturating_sub(tag.sent_ns),
            first_byte_ns: first_byte_ns.saturating_sub(tag.sent_ns),
            total_ns: own_connection,
        };
        let phase = &mut self.phases[usize::from(tag.phase)];
        phase.meter.record_ok(&answered, count);
        phase.note_scheduled(tag.scheduled_ns, answered.latency_ns, count);
        phase.hopeful_ns = now_ns;
        self.answered += count;
        state.ended_well(count, answered.service_ns);
        self.of_target(tag.numbered(), |target| target.record_ok(answered.latency_ns, count));
        state.last = Some(Last::ok(tag, &answered));
        self.close_entries(state, now_ns, tag, count);
        self.served.add(count);
    }

    /// The time at which work on a request began. If each request has its own connection, that is
    /// the attempt to connect, unless it was made before the load.
    #[inline]
    fn begun_ns(&self, state: &State, tag: Tag) -> u64 {
        let first_ns = self.phases.first().map_or(u64::MAX, |first| first.started_ns);
        if self.own_connection && state.attempted_ns >= first_ns {
            state.attempted_ns.min(tag.sent_ns)
        } else {
            tag.sent_ns
        }
    }

    /// Enters answers that took longer than one part of a window: each phase gets its share.
    #[inline(never)]
    fn spread(&mut self, begun_ns: u64, now_ns: u64, tag: Tag, count: u64) {
        self.part.spread += count;
        let begun = self.next();
        for phase in &mut self.phases[usize::from(tag.phase)..begun] {
            let since_ns = now_ns.saturating_sub(phase.started_ns);
            phase.meter.flow.work.note(now_ns.saturating_sub(begun_ns), since_ns, count);
        }
    }

    /// Number of open requests of the phases before this one.
    pub(super) fn open_before(&self, index: usize) -> u64 {
        let before = self.phases.get(self.first_open..index).unwrap_or_default();
        before.iter().map(|phase| phase.open).sum()
    }

    /// Enters a request that has failed for another reason than its answer.
    pub(super) fn fail(&mut self, state: &mut State, now_ns: u64, tag: Tag, class: Class) {
        self.log_failed(state.key, now_ns, tag, class);
        self.enter_failed(state, now_ns, tag, class);
    }

    fn enter_failed(&mut self, state: &mut State, now_ns: u64, tag: Tag, class: Class) {
        self.phases[usize::from(tag.phase)].meter.record_failed(class);
        self.of_target(tag.numbered(), |target| target.record_failed(class));
        state.last = Some(Last::failed(tag, class));
        self.close_entries(state, now_ns, tag, 1);
        self.served.add(u64::from(matches!(
            class,
            Class::Status | Class::Mismatch | Class::Extract | Class::Encoded | Class::Redirect
        )));
    }

    /// Enters a request that had not ended when the engine was told to stop.
    pub(super) fn cancel(&mut self, state: &mut State, now_ns: u64, tag: Tag) {
        self.phases[usize::from(tag.phase)].meter.cancelled += 1;
        self.of_target(tag.numbered(), |target| target.cancelled += 1);
        self.log(state.key, tag, Logged::default());
        state.trouble().this_phase.unanswered += 1;
        self.close_entries(state, now_ns, tag, 1);
    }

    #[inline]
    fn close_entries(&mut self, state: &mut State, now_ns: u64, tag: Tag, count: u64) {
        let phase = &mut self.phases[usize::from(tag.phase)];
        phase.open -= count;
        phase.settled_ns = now_ns;
        self.look |= phase.open == 0;
        let wait_ns = now_ns.saturating_sub(tag.sent_ns);
        if wait_ns >= LONG_WAIT_NS
            && self.served.went_on(tag.noted.served_before(), tag.sent_ns, now_ns)
        {
            let trouble = state.trouble();
            trouble.this_phase.waits.note(wait_ns, count);
            trouble.waited_ns = trouble.waited_ns.max(wait_ns);
        }
    }

    fn stale(&mut self, state: &mut State, tag: Tag, count: u64) {
        self.phases[usize::from(tag.phase)].meter.stale += count;
        self.of_target(tag.numbered(), |target| target.stale += count);
        let tag = Tag { again: true, handed_over: false, ..tag };
        let again = &mut state.trouble().again;
        // Before redirected requests: another time it would fail.
        let place = again.partition_point(|before| !before.handed_over);
        again.splice(place..place, std::iter::repeat_n(tag, count as usize));
    }

    /// Has redirected requests go on over the next connection: they have not ended. Until then
    /// `noted` is the time since which they wait.
    #[cold]
    fn redirected(&mut self, state: &mut State, now_ns: u64, tag: Tag, count: u64) {
        state.answered(0);
        let again = Tag { handed_over: true, noted: Noted::waits_since(now_ns), ..tag };
        state.trouble().again.extend(std::iter::repeat_n(again, count as usize));
    }

    /// Notes that the peer ended a connection with nothing asked on it. One just accepted was
    /// dropped. A later one was idle for too long, if `may_idle`; then returns true.
    pub(super) fn note_unasked_end(
        &mut self,
        now_ns: u64,
        state: &State,
        answered: bool,
        may_idle: bool,
    ) -> bool {
        let quiet_ns = state.quiet_ns(now_ns);
        let idled = may_idle && quiet_ns >= IDLE_LEAST_NS;
        if idled && let Some(phase) = self.current_mut() {
            phase.meter.idle_closed.note(quiet_ns);
        }
        if idled || answered || quiet_ns >= DROPPED_WITHIN_NS {
            return idled;
        }
        match self.current_mut() {
            Some(phase) => phase.meter.dropped += 1,
            None => self.early_dropped += 1,
        }
        false
    }

    /// Adds what happened before the first phase to the first phase.
    pub(super) fn take_over_early(&mut self) {
        let early = std::mem::take(&mut self.early);
        if let Some(first) = self.phases.first_mut() {
            first.meter.times.merge(&early);
            first.meter.dropped += std::mem::take(&mut self.early_dropped);
        }
    }

    /// Ends a batch, and shares the number of its answers with the other threads.
    #[inline]
    pub(super) fn end_batch(&mut self, now_ns: u64) {
        self.wakings.end_batch();
        self.served.end_batch(now_ns);
    }

    /// Adds the answers of this batch to the flow of the phase that is sending.
    #[inline]
    pub(super) fn note_flow(&mut self, now_ns: u64) {
        let answered = std::mem::take(&mut self.answered);
        if answered == 0 {
            return;
        }
        let spread = std::mem::take(&mut self.part.spread);
        self.note_whole(answered - spread);
        if let Some(phase) = self.current_mut() {
            phase.meter.flow.came += answered;
        }
        if let Some((_, phase)) = self.sending(now_ns) {
            phase.meter.flow.note(now_ns.saturating_sub(phase.started_ns), answered);
        }
        if now_ns >= self.part.span_ns.end {
            self.part = self.part_at(now_ns);
        }
    }

    /// Enters answers that lie within the present part.
    #[inline]
    fn note_whole(&mut self, count: u64) {
        if count > 0 {
            let phase = &mut self.phases[self.part.phase];
            let since_ns = self.part.span_ns.start.saturating_sub(phase.started_ns);
            phase.meter.flow.work.note_whole(since_ns, count);
        }
    }

    /// The part of a window that the present time lies in.
    fn part_at(&mut self, now_ns: u64) -> Part {
        let Some((phase, it)) = self.sending(now_ns) else { return Part::default() };
        let from_ns = it.started_ns;
        let span = it.meter.flow.work.part_at(now_ns.saturating_sub(from_ns));
        Part { phase, span_ns: from_ns + span.start..from_ns + span.end, spread: 0 }
    }

    /// Ends the window that counts: answers from now on are kept apart from those before.
    pub(super) fn end_part(&mut self) {
        let (answered, spread) = (self.answered, self.part.spread);
        self.note_whole(answered - spread);
        self.part = Part { spread: answered, ..Part::default() };
    }

    /// Returns whether something may have ended a phase since the last call.
    #[inline]
    pub(super) fn take_look(&mut self) -> bool {
        std::mem::take(&mut self.look)
    }

    /// Enters a slot's share into the phase that it has just been through.
    pub(super) fn enter_slot(&mut self, index: usize, state: &mut State) {
        let phase = &mut self.phases[index];
        if phase.stopped_ns > 0 || phase.partial {
            state.note_down(phase.stopped_ns, phase.started_ns);
        }
        let this = state.take_phase_trouble();
        let sums = &mut phase.meter.slots;
        let answers = std::mem::take(&mut state.answers);
        let service_ns = std::mem::take(&mut state.service_ns);
        if std::mem::take(&mut state.asked) {
            sums.enter(answers);
            sums.enter_mean(answers - this.bad.min(answers), service_ns);
        }
        if this.waits.longest_ns > 0 {
            sums.enter_slow(&this.waits, answers + this.unanswered);
        }
        sums.down += u32::from(this.down_ns > LONG_WAIT_NS);
        sums.outages += u32::from(this.outage);
        sums.outage_ns = sums.outage_ns.max(this.outage_ns);
    }
}

#[cfg(test)]
mod tests;
