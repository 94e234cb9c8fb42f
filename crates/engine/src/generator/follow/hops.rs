//! The hops of the requests of one connection, and of those that wait for the next connection.

use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, RequestTimeout};
use trueload_wire::http2::request::Template;

use super::Tag;

/// More courses that wait for a connection than any has requests in flight were forgotten by their
/// phase.
const PARKED_MOST: usize = 1 << 16;

/// What a machine knows about a request: which hop of which request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The tag of the whole.
    pub(super) tag: Tag,
    /// The place of its course, from 1; 0 before any redirect.
    place: u32,
    /// It has become a GET without a body.
    pub(super) as_get: bool,
}

impl Hop {
    /// The first request.
    fn first(tag: Tag) -> Self {
        Hop { tag, place: 0, as_get: false }
    }

    /// Whether it is the first request, before any redirect.
    #[inline]
    pub(super) fn is_first(self) -> bool {
        self.place == 0
    }
}

/// Where a request has come to.
#[derive(Debug)]
pub(super) struct Course {
    /// The number of redirects behind it.
    pub(super) count: u8,
    /// It has become a GET without a body.
    pub(super) as_get: bool,
    /// The present target.
    pub(super) target: Vec<u8>,
    /// The present request, in HTTP/1's form.
    pub(super) request: Vec<u8>,
    /// The same in HTTP/2's form, if that is spoken.
    pub(super) http2: Option<Box<Template>>,
    /// When the last redirect was read.
    pub(super) since_ns: u64,
}

/// The courses of a slot.
#[derive(Debug, Default)]
pub(super) struct Hops {
    courses: Vec<Option<Box<Course>>>,
    /// Hops whose requests wait for the next connection.
    parked: Vec<Hop>,
}

impl Hops {
    /// The course of a hop; none before any redirect.
    pub(super) fn get(&self, hop: Hop) -> Option<&Course> {
        self.courses.get((hop.place as usize).checked_sub(1)?)?.as_deref()
    }

    /// Mutable access to the same.
    pub(super) fn get_mut(&mut self, hop: Hop) -> Option<&mut Course> {
        self.courses.get_mut((hop.place as usize).checked_sub(1)?)?.as_deref_mut()
    }

    /// Replaces the course of a request; returns its next hop.
    pub(super) fn go_on(&mut self, hop: Hop, course: Course) -> Hop {
        let place = match (hop.place as usize).checked_sub(1) {
            Some(place) => place,
            None => self.free(),
        };
        // The kernel has had the first request: its time runs on. A hop that goes stale may be sent
        // again as a first request may.
        let tag = Tag { handed_over: true, again: false, ..hop.tag };
        let next = Hop { tag, place: place as u32 + 1, as_get: course.as_get };
        self.courses[place] = Some(Box::new(course));
        next
    }

    fn free(&mut self) -> usize {
        self.courses.iter().position(Option::is_none).unwrap_or_else(|| {
            self.courses.push(None);
            self.courses.len() - 1
        })
    }

    /// Forgets the course of a request that has ended.
    pub(super) fn end(&mut self, hop: Hop) {
        if let Some(place) = (hop.place as usize).checked_sub(1)
            && let Some(course) = self.courses.get_mut(place)
        {
            *course = None;
        }
    }

    /// Keeps a hop whose request goes on over the next connection.
    pub(super) fn park(&mut self, hop: Hop) {
        if self.parked.len() >= PARKED_MOST {
            let forgotten = self.parked.remove(0);
            self.end(forgotten);
        }
        self.parked.push(hop);
    }

    /// The hop with which a request goes on, or with which it begins.
    fn hop_of(&mut self, tag: Tag) -> Hop {
        let same = |hop: &Hop| {
            let Tag { scheduled_ns, phase, number, .. } = hop.tag;
            (scheduled_ns, phase, number) == (tag.scheduled_ns, tag.phase, tag.number)
        };
        match self.parked.iter().position(same) {
            Some(place) => Hop { tag, ..self.parked.remove(place) },
            None => Hop::first(tag),
        }
    }
}

/// A connection's machine, whose requests are hops.
#[derive(Debug, Default)]
pub struct Following<M> {
    pub(super) machine: M,
    pub(super) hops: Hops,
    /// Over HTTP/1: the head of the answer in progress, as far as it has come, and a hop that is to
    /// be sent.
    pub(super) head: Vec<u8>,
    pub(super) next: Option<Hop>,
}

impl<M> Following<M> {
    /// Leaves a request for the next connection, to go on there with this hop.
    pub(super) fn leave_for_next(
        &mut self,
        hop: Hop,
        now_ns: u64,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        self.hops.park(hop);
        on_outcome(Outcome::unanswered(hop.tag, Ending::Redirected, now_ns));
    }
}

impl<M: Exchange<Hop>> Exchange<Tag> for Following<M> {
    fn reopen(&mut self) {
        self.machine.reopen();
        self.head.clear();
        self.next = None;
    }

    fn ask_alike(&mut self, tag: Tag, count: usize) {
        if count == 1 && !self.hops.parked.is_empty() {
            return self.machine.ask(self.hops.hop_of(tag));
        }
        self.machine.ask_alike(Hop::first(tag), count);
    }

    fn outstanding(&self) -> usize {
        self.machine.outstanding()
    }

    fn capacity(&self, depth: usize) -> usize {
        self.machine.capacity(depth)
    }

    fn has_answered(&self) -> bool {
        self.machine.has_answered()
    }

    fn change_newest(&mut self, mut change: impl FnMut(&mut Tag) -> bool) {
        self.machine.change_newest(|hop| change(&mut hop.tag));
    }

    fn is_held_back(&self) -> bool {
        self.machine.is_held_back()
    }

    /// Over HTTP/2, a hop may have its stream behind requests that were sent after its first: it
    /// times out late, when those before it have ended.
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&Tag) -> u64) -> Option<u64> {
        self.machine.next_timeout_ns(|hop| deadline_ns(&hop.tag))
    }

    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&Tag) -> u64,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Following { machine, hops, .. } = self;
        machine.handle_timeout(now_ns, |hop| deadline_ns(&hop.tag), output, &mut |outcome| {
            hops.end(outcome.tag);
            on_outcome(super::ended(outcome, outcome.ending));
        })
    }

    fn lasts_until_end(&self) -> bool {
        self.machine.lasts_until_end()
    }

    fn request_timeout(&self) -> RequestTimeout {
        self.machine.request_timeout()
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        self.machine.why_broken()
    }

    fn cancel(&mut self) -> impl Iterator<Item = Tag> + '_ {
        let Following { machine, hops, .. } = self;
        machine.cancel().map(|hop| {
            hops.end(hop);
            hop.tag
        })
    }
}
