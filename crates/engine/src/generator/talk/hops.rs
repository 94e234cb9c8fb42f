//! Redirects that are followed: a request goes on, hop by hop, until an answer is no redirect.
//!
//! The machine of a connection asks each hop like a request of its own. Outside, there is only the
//! whole: one request, which lasts from its schedule to the final answer, and whose timeout covers
//! all hops. The next hop is sent on the same connection, behind what was sent before. If that takes
//! no more requests, the whole waits for the next connection ([`Ending::Redirected`]).
//!
//! Where a redirect leads is the wire crate's business. Runs that follow none do not use this.

use std::cell::RefCell;
use std::ops::Range;

use trueload_wire::exchange::{Ending, Outcome};
use trueload_wire::message::{
    self, Event, Head, Location, Request, Rules, Server, Unfollowed, Wants, Written, becomes_get,
    is_redirect, resolve,
};
use trueload_wire::parts::{Rule, Streaming};

use super::courses::{Course, Courses, Hop};
use super::plain::{Alike, Sending};
use super::redirects::{Account, Why, behind_redirect, goes_again, of_get};
use super::watch::{StreamWatch, Watching};
use super::{Asks, Dialogue, Moment, of_whole};
use crate::generator::footprint::Footprint;
use crate::generator::messages::DoneReport;
use crate::generator::slot::Tag;

/// The dialogue.
#[derive(Debug)]
pub struct Hops {
    /// The server has TLS.
    secure: bool,
    /// The requests before any redirect.
    sent: Sending,
    /// For each target: the rules for its request once that has become a GET.
    as_get: Vec<Rules>,
    account: RefCell<Account>,
    /// Answers are streams.
    watch: Option<Box<StreamWatch>>,
}

impl Hops {
    /// Follows up to `most` redirects of each of these requests on its server, which has TLS if
    /// `secure`. Reads answers as streams by a rule, if there is one.
    pub fn new(most: u8, secure: bool, sent: Sending, rule: Option<Rule>) -> Self {
        let as_get = sent.rules().into_iter().map(of_get).collect();
        let account = RefCell::new(Account::new(most));
        Hops { secure, sent, as_get, account, watch: StreamWatch::new(rule) }
    }

    /// The request before any redirect.
    fn first(&self, tag: &Tag, drawn: u64) -> Option<Request> {
        match &self.sent {
            Sending::Alike(Alike { whole, .. }) => whole.as_deref().cloned(),
            Sending::Several(requests) => requests.whole(drawn, tag),
        }
    }

    /// The course of a request behind one more redirect.
    fn course(
        &self,
        before: Option<&Course>,
        (hop, drawn): (Hop, u64),
        status: u16,
        location: &Location,
    ) -> Result<Course, Why> {
        let count = before.map_or(0, |before| before.count);
        self.account.borrow().allows(count)?;
        let request = match before {
            Some(before) => before.request.clone(),
            None => self.first(&hop.tag, drawn).unwrap_or_default(),
        };
        let (as_get, request) =
            self.request(request, hop.as_get, status, location).map_err(Why::Unfollowed)?;
        Ok(Course { count: count + 1, as_get, request, since_ns: 0 })
    }

    /// Whether the next request is a GET, and that request.
    fn request(
        &self,
        before: Request,
        was_get: bool,
        status: u16,
        location: &Location,
    ) -> Result<(bool, Request), Unfollowed> {
        let location = location.value()?;
        let server = before.host().and_then(|host| Server::new(self.secure, host));
        let server = server.ok_or(Unfollowed::Elsewhere)?;
        let target = resolve(&server, &before.target, location)?;
        let as_get = was_get || becomes_get(status, &before.method);
        Ok((as_get, before.redirected(as_get, target)))
    }
}

impl Dialogue for Hops {
    type Tag = Hop;
    type State = Courses;
    type Book<'a> = Book<'a>;

    const LISTENS: bool = true;
    const HOPS: bool = true;

    fn asks(&self) -> Asks<'_> {
        Asks { requests: self.sent.requests(), watch: self.watch.as_deref(), follows: true }
    }

    fn book<'a>(&'a mut self, state: &'a mut Courses, at: Moment) -> Book<'a> {
        let watching = Watching { watch: self.watch.as_deref(), at_ns: at.arrived_ns };
        let (courses, location) = (RefCell::new(state), RefCell::default());
        Book { hops: self, courses, location, watching, at }
    }

    fn hears<'a, 'b: 'a, F: FnMut(Outcome<Tag>)>(
        book: &'a Book<'b>,
        on_outcome: &'a mut F,
    ) -> impl FnMut(Outcome<Hop>) + 'a {
        move |outcome| {
            let Outcome { ending, status, complete, .. } = outcome;
            let redirect = status.filter(|status| complete && is_redirect(*status));
            let of_whole = match redirect.filter(|_| ending == Ending::Status) {
                Some(status) => book.redirected(outcome, status),
                None => Some(book.ended(outcome)),
            };
            of_whole.into_iter().for_each(&mut *on_outcome);
        }
    }

    fn next(state: &mut Courses, here: bool) -> Option<Hop> {
        let hop = if state.next.is_empty() { return None } else { state.next.remove(0) };
        if !here {
            state.park(hop);
        }
        Some(hop)
    }

    fn goes_on(hop: &Hop) -> bool {
        !hop.is_first()
    }

    fn forget(state: &mut Courses, tag: &Tag) {
        state.forget(tag);
    }

    fn begin(state: &mut Courses, tag: Tag, count: usize) -> Hop {
        state.hop_of(tag, count)
    }

    fn end(state: &mut Courses, hop: Hop) -> Tag {
        state.end(hop);
        hop.tag
    }

    fn footprint(state: &Courses) -> Footprint {
        state.footprint()
    }

    fn complete(&mut self, report: &mut DoneReport) {
        self.account.get_mut().complete(report);
        self.watch.iter().for_each(|watch| watch.complete(report));
    }
}

/// The requests of one slot, and the rules for its answers.
#[derive(Debug)]
pub struct Book<'a> {
    hops: &'a Hops,
    courses: RefCell<&'a mut Courses>,
    /// The Location of the redirect that ends a hop now.
    location: RefCell<Location>,
    watching: Watching<'a>,
    at: Moment,
}

impl Book<'_> {
    /// Handles a redirect with this status.
    fn redirected(&self, outcome: Outcome<Hop>, status: u16) -> Option<Outcome<Tag>> {
        let (hop, location) = (outcome.tag, self.location.take());
        let mut courses = self.courses.borrow_mut();
        let before = courses.get(hop);
        let before_ns = before.map_or(hop.tag.sent_ns, |before| before.since_ns);
        let Moment { now_ns, drawn, .. } = self.at;
        match self.hops.course(before, (hop, drawn), status, &location) {
            Ok(course) => {
                let took_ns = now_ns.saturating_sub(before_ns);
                let target = self.hops.sent.index(&hop.tag, drawn);
                let mut account = self.hops.account.borrow_mut();
                account.note_followed(hop.tag.phase, target, status, took_ns);
                courses.go_on(hop, Course { since_ns: now_ns, ..course });
                None
            }
            Err(why) => {
                self.hops.account.borrow_mut().note_reason(why, &location);
                courses.end(hop);
                Some(of_whole(outcome, hop.tag, Ending::Redirect))
            }
        }
    }

    /// The outcome of a request whose last hop was not redirected.
    fn ended(&self, outcome: Outcome<Hop>) -> Outcome<Tag> {
        let Outcome { tag: hop, ending, count, .. } = outcome;
        let mut courses = self.courses.borrow_mut();
        let redirects = courses.get(hop).map_or(0, |course| course.count);
        if ending == Ending::Ok {
            self.hops.account.borrow_mut().note_ok(hop.tag.phase, redirects, count);
        }
        if redirects == 0 {
            return of_whole(outcome, hop.tag, ending);
        }
        if goes_again(ending, hop.tag.again) {
            courses.park_stale(hop);
            return of_whole(outcome, hop.tag, ending);
        }
        courses.end(hop);
        of_whole(outcome, hop.tag, behind_redirect(ending))
    }
}

impl message::Book<Hop> for Book<'_> {
    fn rules_of(&self, hop: &Hop) -> &Rules {
        let Moment { drawn, .. } = self.at;
        if hop.as_get {
            return &self.hops.as_get[self.hops.sent.index(&hop.tag, drawn)];
        }
        self.hops.sent.rules_of(&hop.tag, drawn)
    }

    /// Two for each request: one for its own answers, and one for those behind redirects.
    fn memory_of(&self, hop: &Hop) -> usize {
        2 * self.hops.sent.head(&hop.tag, self.at.drawn) + usize::from(!hop.is_first())
    }

    fn streaming(&self) -> Option<Streaming<'_>> {
        self.watching.streaming()
    }

    fn wants(&self) -> Wants {
        Wants::Location
    }

    fn note(&self, hop: &Hop, event: Event<'_>) {
        match event {
            Event::Location(location) => *self.location.borrow_mut() = location,
            event => self.watching.note(&hop.tag, event),
        }
    }

    fn write(&self, hop: &Hop, put: &mut impl FnMut(Written<'_>)) {
        match self.courses.borrow().get(*hop) {
            None => self.hops.sent.write(&hop.tag, self.at.drawn, put),
            Some(course) => {
                let mut text = Vec::new();
                course.request.write(&mut text);
                put(Written::Filled(&text));
            }
        }
    }

    fn write_block(&self, hop: &Hop, out: &mut Vec<u8>) -> Head {
        match self.courses.borrow().get(*hop) {
            None => self.hops.sent.write_block(&hop.tag, self.at.drawn, out),
            Some(course) => course.request.over_http2(self.hops.secure).write_block(&(), out),
        }
    }

    fn write_body(&self, hop: &Hop, part: Range<u64>, out: &mut Vec<u8>) {
        match self.courses.borrow().get(*hop) {
            None => self.hops.sent.write_body(&hop.tag, self.at.drawn, part, out),
            Some(course) => {
                let part = part.start as usize..part.end as usize;
                out.extend_from_slice(course.request.body.get(part).unwrap_or_default());
            }
        }
    }
}
