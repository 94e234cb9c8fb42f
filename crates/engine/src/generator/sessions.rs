//! Sessions: which request a virtual user sends next, and when.
//!
//! A slot is a virtual user. It goes through the steps of a session, then begins the next session:
//! at once in a closed loop, when one is due in an open loop. Before a request it may pause. The
//! request is due when the pause ends, and its latency counts from then. A request that fails ends
//! the session, and the requests behind it are skipped. A session's time is the sum of its
//! requests' latencies.
//!
//! How a request ended is read from what its slot keeps about the request settled last.

use std::sync::Arc;

use trueload_load::{RANDOM_MOST, Stop, random};
use trueload_meter::Class;
use trueload_wire::exchange::Exchange;
use trueload_wire::message::Turn;

use super::Generator;
use super::accounting::Accounting;
use super::phase::PhaseState;
use super::protocol::Protocol;
use super::requests::{ENDLESS, StepPace};
use super::slot::Tag;
use super::written::Written;

/// Keeps the numbers that draw pauses apart from those of `{random}`.
const PAUSES: u64 = 0x7061_7573_6573;

/// Where a virtual user is in its session.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    running: bool,
    /// The present request has been sent, and its end has not been noted.
    asked: bool,
    /// The present request, or the next one if none was sent.
    turn: Turn,
    /// The time at which it is due.
    due_ns: u64,
    /// The sum of the latencies of those before.
    took_ns: u64,
}

/// The sessions of all slots of a thread, by their keys.
#[derive(Debug)]
pub(super) struct Sessions {
    paces: Arc<[StepPace]>,
    seed: u64,
    /// Some steps are not of all users.
    roles: bool,
    courses: Vec<Course>,
    /// The number of users in a session.
    running: u32,
}

impl Sessions {
    pub(super) fn new(paces: Arc<[StepPace]>, seed: u64) -> Self {
        let roles = paces.iter().any(|pace| pace.users.is_some());
        Sessions { paces, seed: seed ^ PAUSES, roles, courses: Vec::new(), running: 0 }
    }

    /// Has as many users as there are slots; the sessions of others end without an outcome.
    pub(super) fn resize(&mut self, slots: u32) {
        self.courses.resize_with(slots as usize, Course::default);
        self.running = self.courses.iter().filter(|course| course.running).count() as u32;
    }

    /// Whether requests follow each other in sessions. If so, connections have one request in
    /// flight, and a request's number is the index of its step.
    #[inline]
    pub(super) fn are_on(&self) -> bool {
        !self.paces.is_empty()
    }

    #[inline]
    pub(super) fn any_runs(&self) -> bool {
        self.running > 0
    }

    /// Whether the user of a slot is in a session.
    #[inline]
    pub(super) fn runs(&self, key: u32) -> bool {
        self.any_runs() && self.courses.get(key as usize).is_some_and(|course| course.running)
    }

    /// How old the session of a slot is at this time: the sum of its requests' latencies so far, and
    /// how long the present one has been open; none if the slot is in no session.
    fn age_ns(&self, key: u32, now_ns: u64) -> Option<u64> {
        let course = self.get(key);
        let open_ns = if course.asked { now_ns.saturating_sub(course.due_ns) } else { 0 };
        course.running.then_some(course.took_ns.saturating_add(open_ns))
    }

    /// Forgets which requests were sent: they are about to be cancelled.
    pub(super) fn cancel(&mut self) {
        self.courses.iter_mut().for_each(|course| course.asked = false);
    }

    /// The slots whose users have only to listen, and wait for a message.
    fn listening(&self) -> Vec<u32> {
        let listens = |course: &Course| {
            course.asked
                && self.paces.get(course.turn.step as usize).is_some_and(|pace| pace.listens)
        };
        let keys = self.courses.iter().zip(0u32..);
        keys.filter(|(course, _)| listens(course)).map(|(_, key)| key).collect()
    }

    fn get(&self, key: u32) -> Course {
        self.courses.get(key as usize).copied().unwrap_or_default()
    }

    fn set(&mut self, key: u32, course: Course) {
        if let Some(place) = self.courses.get_mut(key as usize) {
            self.running += u32::from(course.running);
            self.running -= u32::from(place.running);
            *place = course;
        }
    }

    /// The pause before a request.
    fn think_ns(&self, turn: Turn) -> u64 {
        let Some(pace) = self.paces.get(turn.step as usize) else { return 0 };
        let more_ns = pace.think_most_ns.saturating_sub(pace.think_least_ns);
        if more_ns == 0 {
            return pace.think_least_ns;
        }
        let drawn = u128::from(random(self.seed, turn.session, turn.request));
        let scaled = drawn * u128::from(more_ns + 1);
        pace.think_least_ns + (scaled >> RANDOM_MOST.count_ones()) as u64
    }

    /// Whether a request is the last one.
    fn is_last(&self, turn: Turn) -> bool {
        self.next(turn).is_none()
    }

    /// The request after this one; none at the end of the session.
    fn next(&self, turn: Turn) -> Option<Turn> {
        let repeat = self.paces.get(turn.step as usize)?.repeat;
        let request = turn.request.saturating_add(1);
        if turn.repeat < repeat {
            return Some(Turn { repeat: turn.repeat + 1, request, ..turn });
        }
        let step = self.step_from(turn.step + 1, turn.user)?;
        Some(Turn { step, repeat: 1, request, ..turn })
    }

    /// The first step of a user, from this one on.
    fn step_from(&self, step: u32, user: u32) -> Option<u32> {
        if !self.roles {
            return ((step as usize) < self.paces.len()).then_some(step);
        }
        let steps = step..self.paces.len() as u32;
        steps.into_iter().find(|step| self.paces[*step as usize].is_of(user))
    }

    /// For each step from this request on: its index, and how many of its requests are left. Of one
    /// that goes on until the load ends, it is one.
    fn left(&self, from: Turn) -> impl Iterator<Item = (usize, u64)> + '_ {
        let first = from.step as usize;
        let steps = self.paces.iter().enumerate().skip(first);
        steps.filter(move |(_, pace)| pace.is_of(from.user)).map(move |(step, pace)| {
            let sent = if step == first { from.repeat - 1 } else { 0 };
            let left = pace.repeat - sent.min(pace.repeat);
            (step, if pace.repeat == ENDLESS { 1 } else { u64::from(left) })
        })
    }
}

impl Accounting {
    /// Takes a session from a phase that has a number of them.
    fn take_session(&mut self, index: usize) {
        let phase = &mut self.phases[index];
        if let Stop::Requests(_) = phase.share.stop {
            phase.quota = phase.quota.saturating_sub(1);
            self.look |= phase.quota == 0;
        }
    }
}

impl<P: Protocol> Generator<P> {
    /// Begins a session that was due at this time; sends its first request, unless it pauses first.
    pub(super) fn begin_session(
        &mut self,
        key: u32,
        index: usize,
        due_ns: u64,
        free_ns: u64,
        now_ns: u64,
    ) -> usize {
        if self.draw_session(key, index, due_ns).is_none() {
            return 0;
        }
        self.take_step(key, index, free_ns, now_ns)
    }

    /// Begins a session that was due at this time, if there is a row for it.
    fn draw_session(&mut self, key: u32, index: usize, due_ns: u64) -> Option<Course> {
        let Some(session) = self.accounting.draw_session() else {
            // Every row has been taken: the user has nothing more to do.
            self.slots[key].state.may_ask = false;
            return None;
        };
        let user = self.config.global(key) + 1;
        let step = self.sessions.step_from(0, user).unwrap_or(0);
        let mut turn = Turn { session, user, step, repeat: 1, ..Turn::default() };
        if P::TALKS {
            turn.is_last = self.sessions.is_last(turn);
        }
        let due_ns = due_ns.saturating_add(self.sessions.think_ns(turn));
        let course = Course { running: true, asked: false, turn, due_ns, took_ns: 0 };
        self.sessions.set(key, course);
        if let Some(sessions) = &mut self.accounting.phases[index].meter.sessions {
            sessions.begun += 1;
        }
        self.accounting.take_session(index);
        Some(course)
    }

    /// Begins a session on a connection that is to be opened for it. Returns its first request.
    pub(super) fn open_session(
        &mut self,
        key: u32,
        index: usize,
        due_ns: u64,
        now_ns: u64,
    ) -> Option<Tag> {
        let course = self.draw_session(key, index, due_ns)?;
        if let Some(openings) = &mut self.accounting.phases[index].meter.openings {
            openings.sessions += 1;
        }
        let slot = &mut self.slots[key];
        let tag = self.accounting.tag(due_ns, now_ns, index);
        let tag = Tag { number: course.turn.step, ..tag };
        slot.state.last = None;
        self.codec.protocol.begin_step(&mut slot.client, course.turn);
        self.accounting.of_target(tag.numbered(), |target| target.issued += 1);
        self.sessions.set(key, Course { asked: true, ..course });
        Some(tag)
    }

    /// Notes that the connection that a session has opened is gone: what it has still to ask fails.
    pub(super) fn end_without_connection(&mut self, key: u32, now_ns: u64) {
        self.note_step_end(key);
        if self.sessions.runs(key)
            && let Some((index, _)) = self.accounting.sending(now_ns)
        {
            self.charge_session(key, index, now_ns, Class::WsClosed);
        }
    }

    /// Sends the next request of a session, or waits until it is due. The slot has been free since
    /// `free_ns`.
    pub(super) fn take_step(&mut self, key: u32, index: usize, free_ns: u64, now_ns: u64) -> usize {
        let course = self.sessions.get(key);
        if !course.running || course.asked {
            return 0;
        }
        // The time between two phases is nobody's latency.
        let due_ns = course.due_ns.max(self.accounting.phases[index].started_ns);
        let slot = &mut self.slots[key];
        if due_ns > now_ns {
            slot.state.until_ns = due_ns;
            self.slots.arm(key);
            return 0;
        }
        // The load permits the request from when it could be sent.
        let could_ns = due_ns.max(free_ns).min(now_ns);
        self.note_gap(key, could_ns, 0);
        let slot = &mut self.slots[key];
        let tag = self.accounting.tag(due_ns, now_ns, index);
        let tag = Tag { number: course.turn.step, ..tag };
        slot.state.last = None;
        self.codec.protocol.begin_step(&mut slot.client, course.turn);
        slot.client.ask(tag);
        self.accounting.of_target(tag.numbered(), |target| target.issued += 1);
        self.accounting.issue(index, &mut slot.state, 1);
        self.stamps.note(Written { key, phase: index as u16, count: 1, could_ns });
        self.sessions.set(key, Course { asked: true, due_ns, ..course });
        1
    }

    /// Notes the end of the request that a slot's session has sent, if it has ended.
    pub(super) fn note_step_end(&mut self, key: u32) {
        let course = self.sessions.get(key);
        let slot = &self.slots[key];
        let open = slot.client.outstanding() > 0 || slot.state.waiting_again() > 0;
        if !course.asked || open {
            return;
        }
        let last = slot.state.last.filter(|last| last.failed.is_none());
        let next = self.sessions.next(course.turn);
        let Some(last) = last else { return self.fail_session(key, next) };
        let latency_ns = last.answered().latency_ns;
        let took_ns = course.took_ns.saturating_add(latency_ns);
        let Some(mut turn) = next else {
            self.end_course(key);
            if let Some(sessions) = self.session_meter() {
                sessions.record_ok(took_ns);
            }
            return;
        };
        let ended_ns = course.due_ns.saturating_add(latency_ns);
        let due_ns = ended_ns.saturating_add(self.sessions.think_ns(turn));
        if P::TALKS {
            turn.is_last = self.sessions.is_last(turn);
        }
        self.sessions.set(key, Course { asked: false, turn, due_ns, took_ns, running: true });
    }

    /// Notes that the user of a slot is in no session. The last session may end the phase, if there is
    /// to be no other.
    fn end_course(&mut self, key: u32) {
        self.sessions.set(key, Course::default());
        let last = !self.sessions.any_runs();
        let none_left = self.accounting.current_mut().is_some_and(|phase| phase.quota == 0);
        self.accounting.look |= last && (none_left || self.accounting.is_data_spent());
    }

    /// Whether the session of a slot has a request to send, so that it needs a connection.
    pub(super) fn session_goes_on(&mut self, key: u32, now_ns: u64) -> bool {
        self.note_step_end(key);
        self.sessions.runs(key) && self.accounting.sending(now_ns).is_some()
    }

    /// Charges a request that cannot be sent. If it would be the next one of a session, that fails;
    /// otherwise it stands for a session that cannot begin.
    pub(super) fn charge_session(&mut self, key: u32, index: usize, now_ns: u64, class: Class) {
        let course = self.sessions.get(key);
        // A request outside a session would have been the first of one.
        let step = if course.running { course.turn.step } else { 0 };
        self.accounting.charge(index, &mut self.slots[key].state, now_ns, (step, class));
        if course.running {
            self.fail_session(key, self.sessions.next(course.turn));
        } else {
            self.accounting.take_session(index);
        }
    }

    /// Ends a session because a request failed; those from `next` on are skipped.
    fn fail_session(&mut self, key: u32, next: Option<Turn>) {
        self.end_course(key);
        let Some(sessions) = self.session_meter() else { return };
        sessions.failed += 1;
        let (Some(next), Some(phase)) = (next, self.accounting.current_mut()) else { return };
        for (step, count) in self.sessions.left(next) {
            if let Some(target) = phase.meter.targets.get_mut(step) {
                target.skipped += count;
            }
        }
    }

    /// Notes that the request settled last on a slot was charged with a failure after it had ended
    /// well: a session that was to go on fails.
    pub(super) fn note_violated(&mut self, key: u32) {
        let course = self.sessions.get(key);
        if course.running && !course.asked && course.turn.request > 0 {
            self.fail_session(key, Some(course.turn));
        }
    }

    /// Cancels what is still open in a phase that is over, if that is only listening: nobody may say
    /// anything any more.
    pub(super) fn cancel_listening(&mut self, index: usize, now_ns: u64) {
        if !P::TALKS {
            return;
        }
        let listening = self.sessions.listening();
        if listening.is_empty() || (listening.len() as u64) < self.accounting.phases[index].open {
            return;
        }
        for key in listening {
            self.sessions.courses[key as usize].asked = false;
            self.slots.cancel(&mut self.accounting, key, now_ns);
        }
    }

    /// The counts of sessions of the present phase, unless it has been reported.
    fn session_meter(&mut self) -> Option<&mut trueload_meter::SessionMeter> {
        let phase =
            self.accounting.current_mut().filter(|phase| phase.state != PhaseState::Done)?;
        phase.meter.sessions.as_mut()
    }

    /// Begins the sessions' account of the present phase with those that are under way.
    pub(super) fn carry_sessions(&mut self, now_ns: u64) {
        for age_ns in self.ages(now_ns) {
            if let Some(sessions) = self.session_meter() {
                sessions.enter(age_ns);
            }
        }
    }

    /// Ends the sessions' account of a phase that is over.
    pub(super) fn cut_sessions(&mut self, now_ns: u64) {
        for key in 0..self.slots.len() {
            self.note_step_end(key);
        }
        for age_ns in self.ages(now_ns) {
            if let Some(sessions) = self.session_meter() {
                sessions.cut(age_ns);
            }
        }
    }

    /// The ages of all sessions under way.
    fn ages(&self, now_ns: u64) -> Vec<u64> {
        (0..self.slots.len()).filter_map(|key| self.sessions.age_ns(key, now_ns)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::UsersPlan;

    fn sessions() -> Sessions {
        let pace = |repeat, think_least_ns, think_most_ns| StepPace {
            repeat,
            think_least_ns,
            think_most_ns,
            ..StepPace::default()
        };
        Sessions::new(Arc::from([pace(1, 0, 0), pace(3, 100, 300), pace(2, 7, 7)]), 1)
    }

    #[test]
    fn a_session_goes_through_its_steps_with_their_repetitions() {
        let sessions = sessions();
        let first = Turn { session: 4, user: 2, repeat: 1, ..Turn::default() };
        let turns = std::iter::successors(Some(first), |turn| sessions.next(*turn));
        let seen: Vec<_> = turns.map(|turn| (turn.request, turn.step, turn.repeat)).collect();
        assert_eq!(seen, [(0, 0, 1), (1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 1), (5, 2, 2)]);
    }

    #[test]
    fn a_user_has_the_steps_of_its_role() {
        let of = |first, count| StepPace {
            repeat: 1,
            users: Some(UsersPlan { first, count, of: 3 }),
            ..StepPace::default()
        };
        let all = StepPace { repeat: 1, ..StepPace::default() };
        let sessions = Sessions::new(Arc::from([of(2, 1), all, of(0, 2), all, of(2, 1)]), 1);
        for (user, steps) in
            [(1, &[1, 2, 3][..]), (2, &[1, 2, 3]), (3, &[0, 1, 3, 4]), (6, &[0, 1, 3, 4])]
        {
            let step = sessions.step_from(0, user).expect("one");
            let first = Turn { user, step, repeat: 1, ..Turn::default() };
            let turns = std::iter::successors(Some(first), |turn| sessions.next(*turn));
            assert_eq!(turns.map(|turn| turn.step).collect::<Vec<_>>(), steps, "user {user}");
            let left: Vec<_> = sessions.left(first).map(|(step, _)| step as u32).collect();
            assert_eq!(left, steps, "user {user}");
        }
    }

    #[test]
    fn what_is_left_is_counted_by_step() {
        let sessions = sessions();
        for (step, repeat, left) in
            [(0, 1, &[(0, 1), (1, 3), (2, 2)][..]), (1, 3, &[(1, 1), (2, 2)]), (2, 2, &[(2, 1)])]
        {
            let from = Turn { step, repeat, ..Turn::default() };
            assert_eq!(sessions.left(from).collect::<Vec<_>>(), left, "step {step}, {repeat}");
        }
    }

    #[test]
    fn pauses_are_even_between_their_bounds() {
        let sessions = sessions();
        let think = |session, step| sessions.think_ns(Turn { session, step, ..Turn::default() });
        let drawn: Vec<_> = (0..10_000).map(|session| think(session, 1)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&100), Some(&300)));
        let mean = drawn.iter().sum::<u64>() / 10_000;
        assert!((198..=202).contains(&mean), "a mean of {mean}");
        assert_eq!((think(1, 0), think(1, 2)), (0, 7));
    }
}
