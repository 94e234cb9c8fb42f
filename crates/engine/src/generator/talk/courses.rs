//! Where redirects have led the requests of one slot, and those that wait for its next connection.

use std::borrow::{Borrow, BorrowMut};

use trueload_wire::message::Request;

use crate::generator::footprint::Footprint;
use crate::generator::slot::Tag;

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

impl Borrow<Tag> for Hop {
    fn borrow(&self) -> &Tag {
        &self.tag
    }
}

impl BorrowMut<Tag> for Hop {
    fn borrow_mut(&mut self) -> &mut Tag {
        &mut self.tag
    }
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

/// The present hop of a request that was redirected.
#[derive(Debug)]
pub(super) struct Course {
    /// The number of redirects behind it.
    pub(super) count: u8,
    /// It has become a GET without a body.
    pub(super) as_get: bool,
    /// The present request.
    pub(super) request: Request,
    /// When the last redirect was read.
    pub(super) since_ns: u64,
}

/// The courses of a slot.
#[derive(Debug, Default)]
pub struct Courses {
    courses: Vec<Option<Box<Course>>>,
    /// Hops to ask next.
    pub(super) next: Vec<Hop>,
    /// Hops whose requests wait for the next connection.
    parked: Vec<Hop>,
}

impl Courses {
    /// The course of a hop; none before any redirect.
    pub(super) fn get(&self, hop: Hop) -> Option<&Course> {
        self.courses.get((hop.place as usize).checked_sub(1)?)?.as_deref()
    }

    /// Replaces the course of a request, whose next hop is to be asked.
    pub(super) fn go_on(&mut self, hop: Hop, course: Course) {
        let place = match (hop.place as usize).checked_sub(1) {
            Some(place) => place,
            None => self.free(),
        };
        // The kernel has had the first request: its time runs on. A hop that goes stale may be sent
        // again as a first request may.
        let tag = Tag { handed_over: true, again: false, ..hop.tag };
        self.next.push(Hop { tag, place: place as u32 + 1, as_get: course.as_get });
        self.courses[place] = Some(Box::new(course));
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

    /// Keeps a hop that has gone stale, until it is sent again over the next connection.
    pub(super) fn park_stale(&mut self, hop: Hop) {
        self.park(Hop { tag: Tag { handed_over: false, ..hop.tag }, ..hop });
    }

    /// Keeps a hop whose request goes on over the next connection.
    pub(super) fn park(&mut self, hop: Hop) {
        self.parked.push(hop);
    }

    /// Forgets a hop that waited for the next connection.
    pub(super) fn forget(&mut self, tag: &Tag) {
        if let Some(hop) = self.unpark(tag) {
            self.end(hop);
        }
    }

    /// Takes the hop with which a request goes on. Requests that were scheduled together are told
    /// apart by whether they were redirected or went stale.
    fn unpark(&mut self, tag: &Tag) -> Option<Hop> {
        let of = |tag: &Tag| (tag.scheduled_ns, tag.phase, tag.number, tag.handed_over);
        let place = self.parked.iter().position(|hop| of(&hop.tag) == of(tag))?;
        Some(self.parked.remove(place))
    }

    /// What is kept of all requests here.
    pub(super) fn footprint(&self) -> Footprint {
        let courses = self.courses.iter().flatten();
        let requests = self.courses.len().max(self.next.len()).max(self.parked.len());
        let bytes = courses.map(|course| course.request.bytes()).sum();
        Footprint { requests, bytes }
    }

    /// The hop with which a request goes on, or with which `count` requests begin.
    pub(super) fn hop_of(&mut self, tag: Tag, count: usize) -> Hop {
        let parked = if count == 1 { self.unpark(&tag) } else { None };
        parked.map_or_else(|| Hop::first(tag), |hop| Hop { tag, ..hop })
    }
}
