//! HTTP/2 for virtual users: each has a connection of its own, with one stream at a time.
//!
//! The steps, the rows and what is taken from answers are as over HTTP/1 (`scenario`). The machine
//! tells the session what is in an answer, as it decodes it.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Outcome};
use trueload_wire::http1::client::{Listener, Rulebook, Rules};
use trueload_wire::http2::client::{Account, Client, Head, Requests as Http2Requests, Terms};
use trueload_wire::redirect::Location;
use trueload_wire::session::{Session, Turn};

use super::carrier::Carrier;
use super::follow::{FollowSteps, StepRules};
use super::http2::{Faults, UNUSABLE, write_frames};
use super::messages::DoneReport;
use super::protocol::{ConnectionEnd, Input, OpenError, Protocol, Unusable};
use super::requests::Requests;
use super::scenario::{Scenario, User, give, settle};
use super::sessions::StepPace;
use super::slot::Tag;

/// The HTTP/2 protocol of the virtual users of one thread.
#[derive(Debug)]
pub struct Http2Users {
    scenario: Scenario,
    follow: Option<FollowSteps>,
    terms: Terms,
    faults: Faults,
    /// A buffer to write frames in.
    frames: Vec<u8>,
}

impl Http2Users {
    /// Creates the users of one thread, whose connections announce `terms`.
    #[must_use]
    pub fn new(scenario: Scenario, terms: impl Into<Terms>) -> Self {
        let (faults, frames) = (Faults::default(), Vec::new());
        let follow = scenario.follow.as_ref().map(FollowSteps::new);
        Http2Users { scenario, follow, terms: terms.into(), faults, frames }
    }
}

/// What a connection's machine asks of its user, and tells it.
#[derive(Debug)]
struct Telling<'a> {
    rules: StepRules<'a>,
    scenario: &'a Scenario,
    /// A machine has only shared access to what it tells.
    session: RefCell<&'a mut Session>,
}

impl<'a> Telling<'a> {
    fn new(scenario: &'a Scenario, session: &'a mut Session, drawn: u64) -> Self {
        let rules = scenario.rules(session, drawn);
        Telling { rules, scenario, session: RefCell::new(session) }
    }
}

impl Rulebook<Tag> for Telling<'_> {
    fn rules_of(&self, tag: &Tag) -> &Rules {
        self.rules.rules_of(tag)
    }

    fn listener(&self) -> Option<&dyn Listener> {
        Some(self)
    }
}

impl Listener for Telling<'_> {
    fn note_head(&self) {
        self.session.borrow_mut().note_head();
    }

    fn note_field(&self, name: &[u8], value: &[u8]) {
        self.session.borrow_mut().note_field(name, value);
    }

    fn note_body(&self, bytes: &[u8]) {
        self.session.borrow_mut().note_body(&self.scenario.script, bytes);
    }
}

impl Http2Requests<Tag> for Telling<'_> {
    fn write_block(&self, _tag: &Tag, out: &mut Vec<u8>) -> Head {
        let mut session = self.session.borrow_mut();
        let filled = self.scenario.filled(session.turn());
        session.write_block(&self.scenario.script, &filled, out)
    }

    fn write_body(&self, _tag: &Tag, part: Range<u64>, out: &mut Vec<u8>) {
        self.session.borrow().write_body(&self.scenario.script, part, out);
    }
}

impl Protocol for Http2Users {
    type Client = User<Client<Tag>>;

    const SESSIONS: bool = true;

    fn requests(&self) -> Option<Arc<Requests>> {
        Some(Arc::clone(&self.scenario.requests))
    }

    fn paces(&self) -> Arc<[StepPace]> {
        Arc::clone(&self.scenario.paces)
    }

    fn begin_step(&self, user: &mut Self::Client, turn: Turn) {
        user.session.begin(turn);
    }

    fn peer_closes(&self, _user: &Self::Client) -> bool {
        false
    }

    fn open(&mut self, user: &mut Self::Client, _key: u32, output: &mut Vec<u8>) -> bool {
        user.client.open(self.terms, output);
        true
    }

    fn refusal(&mut self) -> OpenError {
        self.faults.refusal()
    }

    fn unusable(&self) -> Unusable {
        UNUSABLE
    }

    fn violation(&self, _user: &Self::Client) -> Class {
        self.faults.violation()
    }

    fn complete(&mut self, report: &mut DoneReport) {
        if let Some(follow) = &mut self.follow {
            follow.complete(report);
        }
    }

    fn handle_input(
        &mut self,
        user: &mut Self::Client,
        input: Input<'_>,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, drawn, bytes, .. } = input;
        let Http2Users { scenario, follow, .. } = self;
        let User { client, session, redirected_ns, .. } = user;
        let (script, unix_time) = (&scenario.script, scenario.unix_time(now_ns));
        let telling = Telling::new(scenario, session, drawn);
        let mut next = None;
        let disposition = client.handle_input(now_ns, bytes, &telling, output, &mut |outcome| {
            let settled = settle(
                (script, follow),
                (&mut telling.session.borrow_mut(), redirected_ns),
                (now_ns, outcome),
                |session| session.redirected_noted(script, unix_time),
                |session| session.take_noted(script, unix_time),
            );
            next = give(settled, on_outcome);
        });
        self.faults.note(client, disposition);
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
        let rules = self.scenario.rules(&user.session, drawn);
        let (script, follow) = (&self.scenario.script, &mut self.follow);
        let User { client, session, redirected_ns, .. } = user;
        // No answer is complete without its last frame, so that none leads on, and none has values.
        client.handle_end(now_ns, how, &rules, &mut |outcome| {
            let at = (&mut *session, &mut *redirected_ns);
            let nothing = |_: &mut Session| Location::Missing;
            let settled = settle((script, follow), at, (now_ns, outcome), nothing, |_| false);
            give(settled, on_outcome);
        });
    }

    fn take_account(&self, user: &mut Self::Client, until_ns: u64) -> Option<Account> {
        Some(user.client.take_account(until_ns))
    }

    #[inline]
    fn waits_to_write(&self, user: &Self::Client) -> bool {
        user.client.waits_to_write()
    }

    #[inline]
    fn send(
        &mut self,
        user: &mut Self::Client,
        _count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        self.send_waiting(user, carrier)
    }

    #[inline]
    fn send_waiting(
        &mut self,
        user: &mut Self::Client,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let User { client, session, .. } = user;
        // What is written does not depend on how many sessions have been drawn.
        let telling = Telling::new(&self.scenario, session, 0);
        write_frames(client, &telling, &mut self.frames, carrier)
    }
}
