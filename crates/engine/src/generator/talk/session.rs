//! Virtual users: each connection goes through the requests of a session in order.
//!
//! The texts of the requests, and what is taken from answers, are the wire crate's business. When a
//! request is sent, and how a session goes on, is in `sessions`.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use trueload_load::random;
use trueload_wire::exchange::{Ending, Outcome};
use trueload_wire::message::{
    self, Event, Filling, Head, Rules, Speech, Stamp, Turn, Wants, Written, is_redirect,
};
use trueload_wire::parts::{Rule, Streaming};
use trueload_wire::session::{Script, Session, Untaken};

use super::redirects::{Account, Why, behind_redirect, goes_again, of_get};
use super::watch::{StreamWatch, Watching};
use super::{Asks, Dialogue, Moment};
use crate::data::Row;
use crate::generator::footprint::Footprint;
use crate::generator::messages::DoneReport;
use crate::generator::requests::Requests;
use crate::generator::slot::Tag;

/// The places of one request that get a random number of their own.
const RANDOM_PLACES: u32 = 1 << 8;

/// What every session does.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The texts of the steps, and what is taken from their answers.
    pub script: Arc<Script>,
    /// The rules for the answers to the steps, and how these follow each other.
    pub requests: Arc<Requests>,
    /// Most redirects of a request; none if they are not followed.
    pub follow: Option<u8>,
    /// The seed of `{random}`.
    pub seed: u64,
    /// What the stamps of this engine have.
    pub run: u32,
    /// The time since 1970 at zero of the engine's clock.
    pub unix_time: Duration,
    /// Answers are streams.
    pub stream: Option<Rule>,
}

/// What fills the places of one request, besides the values that its session knows.
#[derive(Clone, Copy, Debug)]
struct Filled<'a> {
    seed: u64,
    turn: Turn,
    stamp: Stamp,
    /// The row of its session.
    row: Row<'a>,
}

impl Filling for Filled<'_> {
    fn counter(&self) -> u64 {
        self.turn.session
    }

    fn random(&self, nth: u32) -> u64 {
        let first = self.turn.request.wrapping_mul(RANDOM_PLACES);
        random(self.seed, self.turn.session, first.wrapping_add(nth))
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    #[inline]
    fn column(&self, index: usize) -> &[u8] {
        self.row.value(index)
    }
}

/// The dialogue of the virtual users of one thread.
#[derive(Debug)]
pub struct Users {
    scenario: Scenario,
    /// For each step: the rules for its request once that has become a GET.
    as_get: Vec<Rules>,
    /// What was seen of redirects, if they are followed.
    account: Option<RefCell<Account>>,
    watch: Option<Box<StreamWatch>>,
    /// A buffer for the request being written.
    text: Vec<u8>,
}

/// What one virtual user knows.
#[derive(Debug, Default)]
pub struct User {
    session: Session,
    /// When the redirect before the present request was read, if there is one.
    redirected_ns: u64,
    /// The request behind a redirect, if it is to be asked.
    next: Option<Tag>,
}

impl Users {
    /// Creates the users of one thread.
    pub fn new(scenario: Scenario) -> Self {
        let as_get = scenario.requests.rules().map(of_get).collect();
        let account = scenario.follow.map(|most| RefCell::new(Account::new(most)));
        let watch = StreamWatch::new(scenario.stream.clone());
        Users { scenario, as_get, account, watch, text: Vec::new() }
    }
}

impl Dialogue for Users {
    type Tag = Tag;
    type State = User;
    type Book<'a> = Book<'a>;

    const LISTENS: bool = true;

    fn asks(&self) -> Asks<'_> {
        Asks {
            requests: Some(&self.scenario.requests),
            watch: self.watch.as_deref(),
            follows: self.account.is_some(),
        }
    }

    fn book<'a>(&'a mut self, state: &'a mut User, at: Moment) -> Book<'a> {
        let Users { scenario, as_get, account, watch, text } = self;
        let step = state.session.turn().step as usize;
        let as_get = if state.session.has_become_get() { as_get.get(step) } else { None };
        let watching = Watching { watch: watch.as_deref(), at_ns: at.arrived_ns };
        let (user, text) = (RefCell::new(state), RefCell::new(text));
        Book { scenario, as_get, account: account.as_ref(), watching, user, text, at }
    }

    fn hears<'a, 'b: 'a, F: FnMut(Outcome<Tag>)>(
        book: &'a Book<'b>,
        on_outcome: &'a mut F,
    ) -> impl FnMut(Outcome<Tag>) + 'a {
        move |outcome| book.told(outcome).into_iter().for_each(&mut *on_outcome)
    }

    fn next(state: &mut User, _here: bool) -> Option<Tag> {
        state.next.take()
    }

    fn begin_step(state: &mut User, turn: Turn) {
        state.session.begin(turn);
    }

    fn begin(_state: &mut User, tag: Tag, _count: usize) -> Tag {
        tag
    }

    fn end(_state: &mut User, tag: Tag) -> Tag {
        tag
    }

    fn footprint(state: &User) -> Footprint {
        Footprint { requests: 0, bytes: state.session.bytes() }
    }

    fn complete(&mut self, report: &mut DoneReport) {
        self.account.iter_mut().for_each(|account| account.get_mut().complete(report));
        self.watch.iter().for_each(|watch| watch.complete(report));
    }
}

/// The present request of one user, and the rules for its answer.
#[derive(Debug)]
pub struct Book<'a> {
    scenario: &'a Scenario,
    as_get: Option<&'a Rules>,
    account: Option<&'a RefCell<Account>>,
    watching: Watching<'a>,
    /// A machine has only shared access to what it tells.
    user: RefCell<&'a mut User>,
    text: RefCell<&'a mut Vec<u8>>,
    at: Moment,
}

impl Book<'_> {
    fn script(&self) -> &Script {
        &self.scenario.script
    }

    /// The time since 1970.
    fn unix_time(&self) -> Duration {
        self.scenario.unix_time + Duration::from_nanos(self.at.now_ns)
    }

    fn filled(&self, tag: &Tag, turn: Turn) -> Filled<'_> {
        let row = self.scenario.requests.row_of(turn.session);
        let stamp = Stamp { run: self.scenario.run, sent_ns: tag.sent_ns };
        Filled { seed: self.scenario.seed, turn, stamp, row }
    }

    /// The outcome of a session's request, unless that goes on behind a redirect.
    fn told(&self, outcome: Outcome<Tag>) -> Option<Outcome<Tag>> {
        let user = &mut **self.user.borrow_mut();
        let Some(account) = self.account else { return Some(self.judged(user, outcome)) };
        let account = &mut *account.borrow_mut();
        let outcome = match self.redirected(user, account, outcome) {
            Ok(next) => {
                user.next = Some(next);
                return None;
            }
            Err(outcome) => self.judged(user, outcome),
        };
        if outcome.ending == Ending::Ok {
            account.note_ok(outcome.tag.phase, user.session.redirects(), outcome.count);
        }
        Some(outcome)
    }

    /// An outcome, given whether the answer has what is taken from it. Answers with values differ by
    /// intent, so that their bodies are not compared with each other.
    fn judged(&self, user: &mut User, outcome: Outcome<Tag>) -> Outcome<Tag> {
        let compared = !self.script().takes_from(outcome.tag.number as usize);
        let content = outcome.content.filter(|_| compared);
        let ending = match outcome.ending {
            Ending::Ok => match user.session.take(self.script(), self.unix_time()) {
                Ok(()) => Ending::Ok,
                Err(Untaken::Missing) => Ending::Extract,
                Err(Untaken::Encoded) => Ending::Encoded,
            },
            other => other,
        };
        Outcome { ending, content, ..outcome }
    }

    /// The tag of the next request if this outcome is a redirect that is followed. Otherwise, how
    /// the request has ended.
    fn redirected(
        &self,
        user: &mut User,
        account: &mut Account,
        outcome: Outcome<Tag>,
    ) -> Result<Tag, Outcome<Tag>> {
        let User { session, redirected_ns, .. } = user;
        let Outcome { tag, ending, complete, status, .. } = outcome;
        let redirect = status.filter(|status| complete && is_redirect(*status));
        let Some(status) = redirect.filter(|_| ending == Ending::Status) else {
            let first = session.redirects() == 0;
            let same = first || goes_again(ending, tag.again);
            let ending = if same { ending } else { behind_redirect(ending) };
            return Err(Outcome { ending, ..outcome });
        };
        let location = session.redirected(self.script(), self.unix_time());
        let before_ns = if session.redirects() == 0 { tag.sent_ns } else { *redirected_ns };
        let found = account.allows(session.redirects()).and_then(|()| {
            session.go_to(self.script(), status, &location).map_err(Why::Unfollowed)
        });
        if let Err(why) = found {
            account.note_reason(why, &location);
            return Err(Outcome { ending: Ending::Redirect, ..outcome });
        }
        let now_ns = self.at.now_ns;
        let took_ns = now_ns.saturating_sub(before_ns);
        account.note_followed(tag.phase, tag.number as usize, status, took_ns);
        *redirected_ns = now_ns;
        // As with any hop: the time of the first request runs on.
        Ok(Tag { handed_over: true, again: false, ..tag })
    }
}

impl message::Book<Tag> for Book<'_> {
    fn rules_of(&self, tag: &Tag) -> &Rules {
        let requests = &self.scenario.requests;
        self.as_get.unwrap_or_else(|| requests.rules_of(0, tag.number))
    }

    fn memory_of(&self, tag: &Tag) -> usize {
        tag.number as usize
    }

    fn streaming(&self) -> Option<Streaming<'_>> {
        self.watching.streaming()
    }

    #[inline]
    fn wants(&self) -> Wants {
        Wants::Content(self.user.borrow().session.initials(self.script()))
    }

    fn note(&self, tag: &Tag, event: Event<'_>) {
        let session = &mut self.user.borrow_mut().session;
        match event {
            Event::Head => session.note_head(),
            Event::Field(name, value) => session.note_field(self.script(), name, value),
            Event::Body(bytes) => session.note_body(self.script(), bytes),
            event => self.watching.note(tag, event),
        }
    }

    fn speech(&self, _tag: &Tag) -> Speech {
        self.user.borrow().session.speech(self.script())
    }

    fn awaits(&self, tag: &Tag, is_text: bool, message: &[u8]) -> bool {
        let session = &self.user.borrow().session;
        session.awaits(self.script(), &self.filled(tag, session.turn()), is_text, message)
    }

    fn write(&self, tag: &Tag, put: &mut impl FnMut(Written<'_>)) {
        let session = &mut self.user.borrow_mut().session;
        let text = &mut **self.text.borrow_mut();
        text.clear();
        session.write(self.script(), &self.filled(tag, session.turn()), text);
        put(Written::Filled(text));
    }

    fn bytes_of(&self, _tag: &Tag) -> usize {
        self.user.borrow().session.written()
    }

    fn write_block(&self, tag: &Tag, out: &mut Vec<u8>) -> Head {
        let session = &mut self.user.borrow_mut().session;
        session.write_block(self.script(), &self.filled(tag, session.turn()), out)
    }

    fn write_body(&self, _tag: &Tag, part: Range<u64>, out: &mut Vec<u8>) {
        self.user.borrow().session.write_body(self.script(), part, out);
    }
}
