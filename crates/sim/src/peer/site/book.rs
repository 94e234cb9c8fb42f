//! What the site knows about a run, over all threads: the requests that came, and what was wrong
//! with them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::course::{self, Course, Ends};
use super::reply::{self, Reply};
use super::{Asked, Id, cookies, host, row_text, value_for};
use crate::scenario::{Leads, Manner, PartKind, Scenario, Talk, Trick};

/// What is known of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Came {
    user: u64,
    /// The requests that have come, and the hop of the last one.
    requests: u64,
    hop: u64,
    /// The connection of the last one: its thread, and its number.
    on: (u32, u32),
    /// It was answered with a failure, which skips the others.
    failed: bool,
}

/// The account of a site.
#[derive(Clone, Debug, Default)]
pub struct Book {
    sessions: BTreeMap<u64, Came>,
    /// For each hop of each request, how often it came.
    times: BTreeMap<u64, u32>,
    /// Requests that came for each origin.
    pub by_origin: Vec<u64>,
    /// Hops that came behind a redirect.
    pub hops: u64,
    /// Good streams that were sent whole, and their parts.
    pub streams: u64,
    /// Parts of these.
    pub parts: u64,
    /// The first request that was not as it has to be.
    pub mistake: Option<String>,
    /// The first request that came behind a failure of its session.
    pub behind_failure: Option<String>,
}

/// A site that all threads share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    scenario: Arc<Scenario>,
    book: Rc<RefCell<Book>>,
}

impl Shared {
    /// The site of a scenario; none if its requests are no conversation.
    pub(crate) fn of(scenario: &Arc<Scenario>) -> Option<Self> {
        scenario.talk.as_ref()?;
        Some(Shared { scenario: Arc::clone(scenario), book: Rc::default() })
    }

    fn talk(&self) -> Option<&Talk> {
        self.scenario.talk.as_ref()
    }

    /// Notes that a request has come on a connection, which is of this origin.
    pub(crate) fn note(&self, asked: &Asked, on: (u32, u32), origin: u32) {
        let Some(talk) = self.talk() else { return };
        let strict = self.scenario.follows_its_site();
        self.book.borrow_mut().note(&self.scenario, talk, asked, (on, origin));
        if !strict {
            let mut book = self.book.borrow_mut();
            (book.mistake, book.behind_failure) = (None, None);
        }
    }

    /// Notes that a good stream was sent whole.
    pub(crate) fn note_whole(&self, parts: Option<u64>) {
        let mut book = self.book.borrow_mut();
        book.streams += u64::from(parts.is_some());
        book.parts += parts.unwrap_or(0);
    }

    /// The answer to a request.
    pub(crate) fn reply(&self, asked: &Asked) -> Option<Reply> {
        Some(reply::reply(&self.scenario, self.talk()?, asked))
    }

    /// Whether the parts of streams are chunks or frames.
    pub(crate) fn is_of_chunks(&self) -> bool {
        let stream = self.talk().and_then(|talk| talk.stream);
        stream.is_some_and(|stream| stream.kind == PartKind::Chunk)
    }

    /// What is known at the end.
    pub(crate) fn book(&self) -> Book {
        self.book.borrow().clone()
    }

    pub(crate) fn mistake(&self) -> Option<String> {
        self.book.borrow().mistake.clone()
    }

    /// The most times that one request came. Those behind an announced end may come again and again.
    pub(crate) fn repeats_most(&self) -> u32 {
        let announces = |manner: &Manner| {
            manner.tricks.iter().any(|(_, trick)| matches!(trick, Trick::Announce(_)))
        };
        if !self.scenario.follows_its_site() || self.scenario.peers.iter().any(announces) {
            return 0;
        }
        self.book.borrow().times.values().copied().max().unwrap_or(0)
    }
}

impl Book {
    /// Sessions of which a request came, those of them that failed by an answer, and the requests
    /// that these skipped out of `all` of each.
    #[must_use]
    pub fn sessions(&self, all: u64) -> (u64, u64, u64) {
        let failed = self.sessions.values().filter(|came| came.failed);
        let skipped = failed.clone().map(|came| all - came.requests.min(all)).sum();
        (self.sessions.len() as u64, failed.count() as u64, skipped)
    }

    fn note(
        &mut self,
        scenario: &Scenario,
        talk: &Talk,
        asked: &Asked,
        (on, origin): ((u32, u32), u32),
    ) {
        self.by_origin.resize(self.by_origin.len().max(origin as usize + 1), 0);
        self.by_origin[origin as usize] += 1;
        let Some((id, carried)) = Id::of(&asked.path) else {
            return self.wrong(asked, "has another path");
        };
        self.hops += u64::from(id.hop > 0);
        let course = Course::of(scenario, talk, &id);
        if talk.is_numbered() && course.ends != Ends::Led(Leads::InCircles) {
            *self.times.entry(id.key()).or_default() += 1;
        }
        let (method, body) = course::method(scenario, talk, &id);
        let row = talk.rows.map(|rows| rows.order.of(scenario.seed).row(id.number, rows.count));
        let row = row.map_or("0".to_owned(), row_text);
        let circles = course.ends == Ends::Led(Leads::InCircles) && id.hop == course.hops;
        let checks = [
            (asked.host == host(talk, origin), "names another host"),
            (asked.method == method || circles, "has another method"),
            (asked.body == body || circles, "has another body"),
            (carried.row == row, "has another row"),
            (id.hop <= course.hops || course.goes_on(id.hop), "goes where no redirect led"),
            (talk.steps.is_empty() || id.step < talk.steps.len(), "is of no step"),
        ];
        if let Some((_, how)) = checks.iter().find(|(right, _)| !right) {
            return self.wrong(asked, how);
        }
        if talk.steps.is_empty() {
            return;
        }
        if carried.value != value_for(scenario, talk, &id) {
            return self.wrong(asked, "carries another value");
        }
        let mut sent: Vec<_> = asked.cookies.split("; ").filter(|one| !one.is_empty()).collect();
        sent.sort_unstable();
        if sent != cookies::jar(scenario, talk, &id) && !circles {
            return self.wrong(asked, "carries other cookies");
        }
        self.note_step(talk, asked, &id, (carried.user, on, course));
    }

    /// Notes a request of a session.
    fn note_step(&mut self, talk: &Talk, asked: &Asked, id: &Id, how: (u64, (u32, u32), Course)) {
        let (user, on, course) = how;
        let before: u64 = talk.steps[..id.step].iter().map(|step| u64::from(step.repeat)).sum();
        let number = before + u64::from(id.repeat);
        let mut came =
            self.sessions.get(&id.number).copied().unwrap_or(Came { user, on, ..Came::default() });
        if came.user != user {
            return self.wrong(asked, "is of another user's session");
        }
        if on.1 < came.on.1 {
            // A connection that was given up delivers late.
            return;
        }
        let again = number == came.requests && (came.hop..=came.hop + 1).contains(&id.hop);
        let next = number == came.requests + 1 && id.hop == 0;
        if !again && !next {
            return self.wrong(asked, "is out of order");
        }
        if next && came.failed {
            let how = format!("{} {}", asked.method, asked.path);
            self.behind_failure.get_or_insert(how);
        }
        let goes_on = course.goes_on(id.hop);
        let too_far = goes_on && talk.follow.is_none_or(|most| id.hop >= most.into());
        came.failed |= too_far || (!goes_on && course.ends != Ends::Well);
        (came.requests, came.hop, came.on) = (number, id.hop, on);
        self.sessions.insert(id.number, came);
    }

    fn wrong(&mut self, asked: &Asked, how: &str) {
        let Asked { method, path, host, cookies, body } = asked;
        self.mistake.get_or_insert_with(|| {
            format!("{method} {path} at {host}, with {cookies:?} and {body} bytes, {how}")
        });
    }
}
