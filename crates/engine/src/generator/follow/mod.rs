//! Redirects that are followed: a request goes on, hop by hop, until an answer is no redirect.
//!
//! The machine of a connection asks each hop like a request of its own. Outside, there is only the
//! whole: one request, which lasts from its schedule to the final answer, and whose timeout covers
//! all hops. The next hop is sent on the same connection. If that takes no more requests, the whole
//! waits for the next connection ([`Ending::Redirected`]).
//!
//! Where a redirect leads is the wire crate's business. Runs that follow none do not use this.

mod account;
mod hops;
mod http1;
mod http2;
mod steps;

use std::cell::RefCell;
use std::sync::Arc;

use trueload_wire::exchange::{Ending, Outcome};
use trueload_wire::http1::client::{Rulebook, Rules};
use trueload_wire::redirect::{
    Location, Request, Server, Unfollowed, becomes_get, is_redirect, resolve,
};

use super::requests::Requests;
use super::slot::Tag;
use account::{Account, Why, behind_redirect, goes_again};
use hops::{Course, Hop, Hops};
pub use http1::FollowHttp1;
pub use http2::FollowHttp2;
pub use steps::FollowRules;
pub(super) use steps::{FollowSteps, StepRules};

/// The requests before any redirect.
#[derive(Clone, Debug)]
pub enum First {
    /// The same request always, in HTTP/1's form, and its rules.
    Alike(Arc<[u8]>, Rules),
    /// Requests that differ.
    Several(Arc<Requests>),
}

/// What is followed, and how far.
#[derive(Debug)]
pub struct Follow {
    /// The server has TLS.
    secure: bool,
    /// Each hop has a connection of its own.
    alone: bool,
    first: First,
    /// For each target: the rules for its request once that has become a GET.
    as_get: Vec<Rules>,
    account: Account,
    /// A buffer to write first requests in.
    text: Vec<u8>,
}

/// How a request goes on behind an answer.
enum Behind {
    /// It has ended.
    Ended(Outcome<Tag>),
    /// By this hop.
    Goes(Hop),
}

impl Follow {
    /// Follows up to `most` redirects of each request on its server, which has TLS if `secure`.
    /// Each hop has a connection of its own if `alone`.
    #[must_use]
    pub fn new(most: u8, secure: bool, alone: bool, first: First) -> Self {
        let as_get = match &first {
            First::Alike(_, rules) => vec![of_get(rules)],
            First::Several(requests) => requests.rules().map(of_get).collect(),
        };
        Follow { secure, alone, first, as_get, account: Account::new(most), text: Vec::new() }
    }

    fn requests(&self) -> Option<&Arc<Requests>> {
        match &self.first {
            First::Alike(..) => None,
            First::Several(requests) => Some(requests),
        }
    }

    /// The index of the target of a request.
    fn index(&self, tag: &Tag, drawn: u64) -> usize {
        self.requests().map_or(0, |requests| requests.index(drawn, tag.number))
    }

    fn rules_of(&self, hop: &Hop, drawn: u64) -> &Rules {
        let index = self.index(&hop.tag, drawn);
        match &self.first {
            _ if hop.as_get => &self.as_get[index],
            First::Alike(_, rules) => rules,
            First::Several(requests) => requests.rules_at(index),
        }
    }

    /// The length of a first request, in HTTP/1's form.
    fn first_len(&self, tag: &Tag, drawn: u64) -> usize {
        match &self.first {
            First::Alike(text, _) => text.len(),
            First::Several(requests) => requests.bytes_of(tag, drawn),
        }
    }

    /// Appends a first request, in HTTP/1's form.
    fn write_first(&self, tag: &Tag, drawn: u64, out: &mut Vec<u8>) {
        match &self.first {
            First::Alike(text, _) => out.extend_from_slice(text),
            First::Several(requests) => requests.write_to(tag, drawn, out),
        }
    }

    /// Decides how a request goes on behind the outcome of a hop, whose answer has this Location if
    /// it is a redirect.
    fn behind(
        &mut self,
        hops: &mut Hops,
        (now_ns, drawn): (u64, u64),
        outcome: Outcome<Hop>,
        location: impl FnOnce() -> Location,
    ) -> Behind {
        let Outcome { tag: hop, ending, status, .. } = outcome;
        let Some(status) = status.filter(|status| outcome.complete && is_redirect(*status)) else {
            return self.without_redirect(hops, outcome);
        };
        if ending != Ending::Status {
            return self.without_redirect(hops, outcome);
        }
        let location = location();
        match self.next(hops, hop, status, &location, drawn) {
            Ok(course) => {
                let before_ns = hops.get(hop).map_or(hop.tag.sent_ns, |before| before.since_ns);
                let took_ns = now_ns.saturating_sub(before_ns);
                let target = self.index(&hop.tag, drawn);
                self.account.note_followed(hop.tag.phase, target, status, took_ns);
                Behind::Goes(hops.go_on(hop, Course { since_ns: now_ns, ..course }))
            }
            Err(why) => {
                self.account.note_reason(why, &location);
                hops.end(hop);
                Behind::Ended(ended(outcome, Ending::Redirect))
            }
        }
    }

    /// The outcome of a request whose last hop was not redirected.
    fn without_redirect(&mut self, hops: &mut Hops, outcome: Outcome<Hop>) -> Behind {
        let hop = outcome.tag;
        let redirected = hops.get(hop).map_or(0, |course| course.count);
        if outcome.ending == Ending::Ok {
            self.account.note_ok(hop.tag.phase, redirected, outcome.count);
        }
        if redirected == 0 {
            return Behind::Ended(ended(outcome, outcome.ending));
        }
        if goes_again(outcome.ending, hop.tag.again) {
            hops.park(hop);
            return Behind::Ended(ended(outcome, outcome.ending));
        }
        hops.end(hop);
        Behind::Ended(ended(outcome, behind_redirect(outcome.ending)))
    }

    /// The course of a request behind one more redirect.
    fn next(
        &mut self,
        hops: &Hops,
        hop: Hop,
        status: u16,
        location: &Location,
        drawn: u64,
    ) -> Result<Course, Why> {
        let before = hops.get(hop);
        let count = before.map_or(0, |before| before.count) + 1;
        self.account.allows(count - 1)?;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        self.write_first(&hop.tag, drawn, &mut text);
        let found = self.course(before, hop, &text, status, location);
        self.text = text;
        let (as_get, target, request) = found.map_err(Why::Unfollowed)?;
        Ok(Course { count, as_get, target, request, since_ns: 0, http2: None })
    }

    /// Whether the next request is a GET, its target, and its text.
    fn course(
        &self,
        before: Option<&Course>,
        hop: Hop,
        first: &[u8],
        status: u16,
        location: &Location,
    ) -> Result<(bool, Vec<u8>, Vec<u8>), Unfollowed> {
        let location = location.value()?;
        let first = Request::of(first).ok_or(Unfollowed::Malformed)?;
        let server = first.host().and_then(|host| Server::new(self.secure, host));
        let server = server.ok_or(Unfollowed::Elsewhere)?;
        let base = before.map_or(first.target, |before| &before.target);
        let target = resolve(&server, base, location)?;
        let method = if hop.as_get { b"GET" } else { first.method };
        let as_get = hop.as_get || becomes_get(status, method);
        let mut request = Vec::new();
        first.write_after(as_get, &target, &mut request);
        Ok((as_get, target, request))
    }
}

/// The rules for a request that has become a GET without a body.
fn of_get(rules: &Rules) -> Rules {
    Rules { head_request: false, idempotent: true, ..rules.clone() }
}

/// The outcome of the whole request.
fn ended(outcome: Outcome<Hop>, ending: Ending) -> Outcome<Tag> {
    let Outcome { tag: hop, count, complete, status, first_byte_ns, content, .. } = outcome;
    Outcome { tag: hop.tag, count, ending, complete, status, first_byte_ns, content }
}

/// The rules for the answers to hops.
struct Book<'a> {
    follow: &'a Follow,
    drawn: u64,
    /// The Location of the redirect that ends a hop now.
    location: &'a RefCell<Location>,
}

impl Rulebook<Hop> for Book<'_> {
    fn rules_of(&self, hop: &Hop) -> &Rules {
        self.follow.rules_of(hop, self.drawn)
    }

    fn follows(&self) -> bool {
        true
    }

    fn note_location(&self, location: Location) {
        *self.location.borrow_mut() = location;
    }
}
