//! HTTP/1 for virtual users: each connection goes through the requests of a session in order. What
//! does not depend on the version is here as well; HTTP/2 is in `users_http2`.
//!
//! The texts of the requests, and what is taken from answers, are the wire crate's business; when a
//! request is sent, and how a session goes on, is in `sessions`.

use std::sync::Arc;
use std::time::Duration;

use trueload_drive::Net;
use trueload_load::random;
use trueload_meter::Class;
use trueload_wire::exchange::{
    Disposition, Ending, Exchange, InOrder, Outcome, PeerEnd, RequestTimeout,
};
use trueload_wire::http1::client::Client;
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::http1::template::Filling;
use trueload_wire::redirect::Location;
use trueload_wire::session::{Moment, Script, Session, Turn};

use super::carrier::Carrier;
use super::follow::{FollowRules, FollowSteps, StepRules};
use super::messages::DoneReport;
use super::protocol::{ConnectionEnd, Input, Protocol};
use super::requests::{ByTarget, HeadsByTarget, Requests};
use super::sessions::StepPace;
use super::slot::Tag;
use crate::data::Row;

/// The places of one request that get a random number of their own.
const RANDOM_PLACES: u32 = 1 << 8;

/// What every session does, over any version of HTTP.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The texts of the steps, and what is taken from their answers.
    pub script: Arc<Script>,
    /// The rules for the answers to the steps.
    pub requests: Arc<Requests>,
    /// How the steps follow each other.
    pub paces: Arc<[StepPace]>,
    /// How far redirects are followed; none if they are not.
    pub follow: Option<FollowRules>,
    /// The seed of `{random}`.
    pub seed: u64,
    /// The time since 1970 at zero of the engine's clock.
    pub unix_time: Duration,
}

impl Scenario {
    /// What fills the places of a request.
    pub(super) fn filled(&self, turn: Turn) -> Filled<'_> {
        Filled { seed: self.seed, turn, row: self.requests.row_of(turn.session) }
    }

    /// The rules for the present request of a session.
    pub(super) fn rules(&self, session: &Session, drawn: u64) -> StepRules<'_> {
        let by = ByTarget { requests: &self.requests, drawn };
        StepRules::of(by, self.follow.as_ref(), session)
    }

    /// The time since 1970 at this time of the engine's clock.
    pub(super) fn unix_time(&self, now_ns: u64) -> Duration {
        self.unix_time + Duration::from_nanos(now_ns)
    }
}

/// What fills the places of one request, besides the values that its session knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled<'a> {
    seed: u64,
    turn: Turn,
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

    #[inline]
    fn column(&self, index: usize) -> &[u8] {
        self.row.value(index)
    }
}

/// The HTTP/1 protocol of the virtual users of one thread.
#[derive(Debug)]
pub struct Users {
    scenario: Scenario,
    follow: Option<FollowSteps>,
    heads: Vec<HeadMemory>,
    /// Buffers: the request being written, and the body being read.
    request: Vec<u8>,
    body: Vec<u8>,
}

/// One virtual user: the machine of its connection, and what it knows.
#[derive(Debug, Default)]
pub struct User<C> {
    pub(super) client: C,
    pub(super) session: Session,
    /// When the redirect before the present request was read, if there is one.
    pub(super) redirected_ns: u64,
    /// The request behind a redirect is to be sent.
    pub(super) goes_on: bool,
}

impl Users {
    /// Creates the users of one thread.
    #[must_use]
    pub fn new(scenario: Scenario) -> Self {
        let heads = scenario.requests.heads();
        let follow = scenario.follow.as_ref().map(FollowSteps::new);
        Users { scenario, follow, heads, request: Vec::new(), body: Vec::new() }
    }

    fn moment(&self, now_ns: u64, ended: bool) -> Moment {
        Moment { unix_time: self.scenario.unix_time(now_ns), ended }
    }
}

/// Settles the outcome of a session's request, or of a hop of it. `redirected` takes cookies and
/// Location from a redirect, `take` cookies and values from another answer. Returns the tag with
/// which the request goes on, or its outcome.
pub(super) fn settle(
    (script, follow): (&Script, &mut Option<FollowSteps>),
    (session, redirected_ns): (&mut Session, &mut u64),
    (now_ns, outcome): (u64, Outcome<Tag>),
    redirected: impl FnOnce(&mut Session) -> Location,
    take: impl FnOnce(&mut Session) -> bool,
) -> Result<Tag, Outcome<Tag>> {
    let Some(follow) = follow else { return Err(judged(script, outcome, || take(session))) };
    let at = (&mut *session, redirected_ns);
    let outcome = match follow.behind(script, at, now_ns, outcome, redirected) {
        Ok(tag) => return Ok(tag),
        Err(outcome) => outcome,
    };
    let outcome = judged(script, outcome, || take(session));
    follow.note_end(session, &outcome);
    Err(outcome)
}

/// Gives the outcome of a request to `on_outcome`; returns the tag of one that goes on.
pub(super) fn give(
    settled: Result<Tag, Outcome<Tag>>,
    on_outcome: &mut impl FnMut(Outcome<Tag>),
) -> Option<Tag> {
    settled.map_err(on_outcome).ok()
}

/// An outcome, given whether the answer has what is taken from it. Answers with values differ by
/// intent, so that their bodies are not compared with each other.
fn judged(script: &Script, outcome: Outcome<Tag>, take: impl FnOnce() -> bool) -> Outcome<Tag> {
    let compared = !script.takes_from(outcome.tag.number as usize);
    let content = outcome.content.filter(|_| compared);
    let good = outcome.ending != Ending::Ok || take();
    let ending = if good { outcome.ending } else { Ending::Extract };
    Outcome { ending, content, ..outcome }
}

impl Protocol for Users {
    type Client = User<Client<Tag>>;

    const SESSIONS: bool = true;

    fn requests(&self) -> Option<Arc<Requests>> {
        Some(Arc::clone(&self.scenario.requests))
    }

    fn paces(&self) -> Arc<[StepPace]> {
        Arc::clone(&self.scenario.paces)
    }

    fn begin_step(&self, client: &mut Self::Client, turn: Turn) {
        client.session.begin(turn);
    }

    fn peer_closes(&self, _client: &Self::Client) -> bool {
        true
    }

    fn complete(&mut self, report: &mut DoneReport) {
        if let Some(follow) = &mut self.follow {
            return follow.complete(report);
        }
        if let Some(leads) = self.heads.iter().find_map(HeadMemory::redirect) {
            report.reasons.push((Class::Status, format!("a redirect to {leads}")));
        }
    }

    fn handle_input(
        &mut self,
        user: &mut Self::Client,
        input: Input<'_>,
        _output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, drawn, bytes, .. } = input;
        let moment = self.moment(now_ns, false);
        let Users { scenario, follow, heads, body, .. } = self;
        let User { client, session, redirected_ns, .. } = user;
        let script = &scenario.script;
        let rules = scenario.rules(session, drawn);
        let mut heads = HeadsByTarget { heads, by: &rules.by };
        let (asked, mut next) = (client.outstanding() > 0, None);
        let disposition = client.handle_input(now_ns, bytes, &rules, &mut heads, &mut |outcome| {
            let settled = settle(
                (script, follow),
                (session, redirected_ns),
                (now_ns, outcome),
                |session| session.redirected(script, bytes, moment.unix_time),
                |session| session.take(script, bytes, moment, body),
            );
            next = give(settled, on_outcome);
        });
        if asked && client.outstanding() > 0 {
            session.keep(script, bytes);
        }
        user.go_on(next, disposition, now_ns, on_outcome);
        disposition
    }

    fn handle_end(
        &mut self,
        user: &mut Self::Client,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let ConnectionEnd { now_ns, drawn, how } = end;
        let moment = self.moment(now_ns, how == PeerEnd::Fin);
        let Users { scenario, follow, body, .. } = self;
        let User { client, session, redirected_ns, .. } = user;
        let script = &scenario.script;
        let rules = scenario.rules(session, drawn);
        let mut next = None;
        client.handle_end(now_ns, how, &rules, &mut |outcome| {
            let settled = settle(
                (script, follow),
                (session, redirected_ns),
                (now_ns, outcome),
                |session| session.redirected(script, &[], moment.unix_time),
                |session| session.take(script, &[], moment, body),
            );
            next = give(settled, on_outcome);
        });
        user.go_on(next, Disposition::Closing, now_ns, on_outcome);
    }

    fn note_queued(&self, client: &mut Self::Client, _drawn: u64, bytes: usize) {
        let User { client, session, .. } = client;
        let unsent = client.outstanding() > 0 && bytes > 0 && bytes >= session.written();
        client.hold_back(usize::from(unsent));
    }

    fn bytes_from(&self, client: &Self::Client, _tag: &Tag, _drawn: u64) -> Option<usize> {
        Some(client.session.written())
    }

    fn send(
        &mut self,
        client: &mut Self::Client,
        count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        if count == 0 {
            return 0;
        }
        client.goes_on = false;
        let Users { scenario, request, .. } = self;
        let filled = scenario.filled(client.session.turn());
        request.clear();
        client.session.write(&scenario.script, &filled, request);
        carrier.send(request);
        request.len()
    }

    fn waits_to_write(&self, client: &Self::Client) -> bool {
        client.goes_on
    }

    fn send_waiting(
        &mut self,
        client: &mut Self::Client,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let count = usize::from(client.goes_on);
        // What is written does not depend on how many sessions have been drawn.
        self.send(client, count, 0, carrier)
    }
}

impl<C: Exchange<Tag>> User<C> {
    /// Goes on with the request behind a redirect, if there is one: on this connection if that is
    /// open, and otherwise on the next.
    pub(super) fn go_on(
        &mut self,
        next: Option<Tag>,
        disposition: Disposition,
        now_ns: u64,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let Some(tag) = next else { return };
        if disposition == Disposition::Open {
            self.client.ask(tag);
            self.goes_on = true;
        } else {
            on_outcome(Outcome::unanswered(tag, Ending::Redirected, now_ns));
        }
    }
}

impl<C: Exchange<Tag>> Exchange<Tag> for User<C> {
    fn reopen(&mut self) {
        self.client.reopen();
        self.session.forget_answer();
        self.goes_on = false;
    }

    fn ask_alike(&mut self, tag: Tag, count: usize) {
        self.client.ask_alike(tag, count);
    }

    fn outstanding(&self) -> usize {
        self.client.outstanding()
    }

    fn capacity(&self, depth: usize) -> usize {
        self.client.capacity(depth)
    }

    fn has_answered(&self) -> bool {
        self.client.has_answered()
    }

    fn change_newest(&mut self, change: impl FnMut(&mut Tag) -> bool) {
        self.client.change_newest(change);
    }

    fn is_held_back(&self) -> bool {
        self.client.is_held_back()
    }

    fn next_timeout_ns(&self, deadline_ns: impl Fn(&Tag) -> u64) -> Option<u64> {
        self.client.next_timeout_ns(deadline_ns)
    }

    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&Tag) -> u64,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        self.client.handle_timeout(now_ns, deadline_ns, output, on_outcome)
    }

    fn lasts_until_end(&self) -> bool {
        self.client.lasts_until_end()
    }

    fn request_timeout(&self) -> RequestTimeout {
        self.client.request_timeout()
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        self.client.why_broken()
    }

    fn cancel(&mut self) -> impl Iterator<Item = Tag> + '_ {
        self.client.cancel()
    }
}
