//! Redirects of the steps of sessions, over any version of HTTP.
//!
//! A user has one request in flight, so its session knows where the redirects have led.

use std::sync::Arc;

use trueload_wire::exchange::{Ending, Outcome};
use trueload_wire::http1::client::{Rulebook, Rules};
use trueload_wire::redirect::{Location, is_redirect};
use trueload_wire::session::{Script, Session};

use super::account::{Account, Why, behind_redirect, goes_again};
use super::of_get;
use crate::generator::messages::DoneReport;
use crate::generator::requests::{ByTarget, Requests};
use crate::generator::slot::Tag;

/// How far the redirects of steps are followed, and by which rules.
#[derive(Clone, Debug)]
pub struct FollowRules {
    most: u8,
    /// For each step: the rules for its request once that has become a GET.
    as_get: Arc<[Rules]>,
}

impl FollowRules {
    /// Follows up to `most` redirects of each of these requests.
    #[must_use]
    pub fn new(most: u8, requests: &Requests) -> Self {
        FollowRules { most, as_get: requests.rules().map(of_get).collect() }
    }
}

/// The redirects of one thread.
#[derive(Debug)]
pub(in crate::generator) struct FollowSteps(Account);

/// The rules for the answer to a step, which may have become a GET.
#[derive(Debug)]
pub(in crate::generator) struct StepRules<'a> {
    pub(in crate::generator) by: ByTarget<'a>,
    as_get: Option<&'a Rules>,
}

impl<'a> StepRules<'a> {
    /// The rules for the present request of a session.
    pub(in crate::generator) fn of(
        by: ByTarget<'a>,
        follow: Option<&'a FollowRules>,
        session: &Session,
    ) -> Self {
        let follow = follow.filter(|_| session.has_become_get());
        let as_get = follow.and_then(|rules| rules.as_get.get(session.turn().step as usize));
        StepRules { by, as_get }
    }
}

impl Rulebook<Tag> for StepRules<'_> {
    fn rules_of(&self, tag: &Tag) -> &Rules {
        self.as_get.unwrap_or_else(|| self.by.rules_of(tag))
    }
}

impl FollowSteps {
    pub(in crate::generator) fn new(rules: &FollowRules) -> Self {
        FollowSteps(Account::new(rules.most))
    }

    /// Decides whether a session's request goes on behind this outcome of a hop: if so, the session
    /// has the next one. Otherwise, returns how the request has ended. `since_ns` is when the
    /// redirect before was read. `redirected` takes cookies and Location from a redirect.
    pub(in crate::generator) fn behind(
        &mut self,
        script: &Script,
        (session, since_ns): (&mut Session, &mut u64),
        now_ns: u64,
        outcome: Outcome<Tag>,
        redirected: impl FnOnce(&mut Session) -> Location,
    ) -> Result<Tag, Outcome<Tag>> {
        let Outcome { tag, ending, complete, status, .. } = outcome;
        let redirect = status.filter(|status| complete && is_redirect(*status));
        let Some(status) = redirect.filter(|_| ending == Ending::Status) else {
            let first = session.redirects() == 0;
            if first || goes_again(ending, tag.again) {
                return Err(outcome);
            }
            return Err(Outcome { ending: behind_redirect(ending), ..outcome });
        };
        let location = redirected(session);
        let before_ns = if session.redirects() == 0 { tag.sent_ns } else { *since_ns };
        let found = self
            .0
            .allows(session.redirects())
            .and_then(|()| session.go_to(script, status, &location).map_err(Why::Unfollowed));
        if let Err(why) = found {
            self.0.note_reason(why, &location);
            return Err(Outcome { ending: Ending::Redirect, ..outcome });
        }
        let took_ns = now_ns.saturating_sub(before_ns);
        self.0.note_followed(tag.phase, tag.number as usize, status, took_ns);
        *since_ns = now_ns;
        // As with any hop: the time of the first request runs on.
        Ok(Tag { handed_over: true, again: false, ..tag })
    }

    /// Notes the end of a session's request.
    pub(in crate::generator) fn note_end(&mut self, session: &Session, outcome: &Outcome<Tag>) {
        if outcome.ending == Ending::Ok {
            self.0.note_ok(outcome.tag.phase, session.redirects(), outcome.count);
        }
    }

    /// Adds what was seen in a phase to its report.
    pub(in crate::generator) fn complete(&mut self, report: &mut DoneReport) {
        self.0.complete(report);
    }
}
