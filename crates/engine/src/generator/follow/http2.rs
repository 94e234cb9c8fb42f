//! HTTP/2 that follows redirects: each hop has a stream of its own.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Exchange, Outcome};
use trueload_wire::http1::template::Texts;
use trueload_wire::http2::client::{Account, Client, Head, Requests as Http2Requests, Terms};
use trueload_wire::http2::request::Template;
use trueload_wire::redirect::Request;

use super::hops::{Following, Hop, Hops};
use super::{Behind, Book, Follow};
use crate::generator::carrier::Carrier;
use crate::generator::http2::{Faults, Http2Sent, UNUSABLE, write_frames};
use crate::generator::messages::DoneReport;
use crate::generator::protocol::{ConnectionEnd, Input, OpenError, Protocol, Unusable};
use crate::generator::requests::{ByTarget, Requests};
use crate::generator::slot::Tag;

/// The HTTP/2 protocol for the connections of one thread.
#[derive(Debug)]
pub struct FollowHttp2 {
    follow: Follow,
    sent: Http2Sent,
    terms: Terms,
    /// A buffer to write frames in.
    frames: Vec<u8>,
    /// The number of requests that this thread knows to be drawn.
    drawn: u64,
    faults: Faults,
}

impl FollowHttp2 {
    /// Follows redirects as `follow` says, whose requests are `sent` in HTTP/2's form.
    #[must_use]
    pub fn new(follow: Follow, sent: Http2Sent, terms: impl Into<Terms>) -> Self {
        let (terms, frames, faults) = (terms.into(), Vec::new(), Faults::default());
        FollowHttp2 { follow, sent, terms, frames, drawn: 0, faults }
    }

    /// Handles the outcome of a hop. Returns the next one, if the request goes on.
    fn settle(
        &mut self,
        hops: &mut Hops,
        at: (u64, u64),
        ended: Ended,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Option<Hop> {
        let Ended { outcome, location } = ended;
        match self.follow.behind(hops, at, outcome, || location) {
            Behind::Goes(hop) => {
                if let Some(course) = hops.get_mut(hop) {
                    course.http2 = over_http2(self.follow.secure, &course.request);
                }
                Some(hop)
            }
            Behind::Ended(outcome) => {
                on_outcome(outcome);
                None
            }
        }
    }
}

/// The outcome of a hop, and the Location of its answer if that is a redirect.
struct Ended {
    outcome: Outcome<Hop>,
    location: trueload_wire::redirect::Location,
}

/// A request in HTTP/2's form.
fn over_http2(secure: bool, request: &[u8]) -> Option<Box<Template>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let request = Request::of(request)?;
    let (method, path) = (text(request.method), text(request.target));
    let headers: Vec<_> =
        request.headers().map(|(name, value)| (text(name), text(value))).collect();
    let body = Some(request.body);
    let texts = Texts { method: &method, path: &path, headers: &headers, body };
    let scheme = if secure { "https" } else { "http" };
    Some(Box::new(Template::plain(scheme, &texts)))
}

/// Writes hops: first requests as they are sent without redirects, and those behind redirects.
struct Writer<'a> {
    sent: &'a Http2Sent,
    hops: &'a Hops,
    drawn: u64,
}

impl Writer<'_> {
    fn behind_redirects(&self, hop: &Hop) -> Option<&Template> {
        self.hops.get(*hop)?.http2.as_deref()
    }
}

impl Http2Requests<Hop> for Writer<'_> {
    fn write_block(&self, hop: &Hop, out: &mut Vec<u8>) -> Head {
        match (self.behind_redirects(hop), self.sent) {
            (Some(template), _) | (None, Http2Sent::Alike(template, _)) => {
                template.write_block(&(), out)
            }
            (None, Http2Sent::Several(requests)) => {
                ByTarget { requests, drawn: self.drawn }.write_block(&hop.tag, out)
            }
        }
    }

    fn write_body(&self, hop: &Hop, part: Range<u64>, out: &mut Vec<u8>) {
        match (self.behind_redirects(hop), self.sent) {
            (Some(template), _) | (None, Http2Sent::Alike(template, _)) => {
                template.write_body(&(), part, out);
            }
            (None, Http2Sent::Several(requests)) => {
                ByTarget { requests, drawn: self.drawn }.write_body(&hop.tag, part, out);
            }
        }
    }
}

impl Protocol for FollowHttp2 {
    type Client = Following<Client<Hop>>;

    fn requests(&self) -> Option<Arc<Requests>> {
        self.follow.requests().map(Arc::clone)
    }

    fn peer_closes(&self, _client: &Self::Client) -> bool {
        false
    }

    fn open(&mut self, client: &mut Self::Client, _key: u32, output: &mut Vec<u8>) -> bool {
        client.machine.open(self.terms, output);
        true
    }

    fn refusal(&mut self) -> OpenError {
        self.faults.refusal()
    }

    fn unusable(&self) -> Unusable {
        UNUSABLE
    }

    fn violation(&self, _client: &Self::Client) -> Class {
        self.faults.violation()
    }

    fn complete(&mut self, report: &mut DoneReport) {
        self.follow.account.complete(report);
    }

    fn take_account(&self, client: &mut Self::Client, until_ns: u64) -> Option<Account> {
        Some(client.machine.take_account(until_ns))
    }

    fn handle_input(
        &mut self,
        client: &mut Self::Client,
        input: Input<'_>,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, drawn, bytes, .. } = input;
        self.drawn = drawn;
        let (mut ended, location) = (Vec::new(), RefCell::default());
        let book = Book { follow: &self.follow, drawn, location: &location };
        let disposition =
            client.machine.handle_input(now_ns, bytes, &book, output, &mut |outcome| {
                ended.push(Ended { outcome, location: location.take() });
            });
        self.faults.note(&client.machine, disposition);
        for ended in ended {
            let next = self.settle(&mut client.hops, (now_ns, drawn), ended, on_outcome);
            let Some(hop) = next else { continue };
            if disposition == Disposition::Open && !self.follow.alone {
                client.machine.ask(hop);
            } else {
                client.leave_for_next(hop, now_ns, on_outcome);
            }
        }
        disposition
    }

    fn handle_end(
        &mut self,
        client: &mut Self::Client,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let ConnectionEnd { now_ns, drawn, how } = end;
        let (mut ended, location) = (Vec::new(), RefCell::default());
        let book = Book { follow: &self.follow, drawn, location: &location };
        client.machine.handle_end(now_ns, how, &book, &mut |outcome| {
            ended.push(Ended { outcome, location: location.take() });
        });
        for ended in ended {
            let next = self.settle(&mut client.hops, (now_ns, drawn), ended, on_outcome);
            if let Some(hop) = next {
                client.leave_for_next(hop, now_ns, on_outcome);
            }
        }
    }

    fn waits_to_write(&self, client: &Self::Client) -> bool {
        client.machine.waits_to_write()
    }

    fn send(
        &mut self,
        client: &mut Self::Client,
        _count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        self.drawn = drawn;
        self.send_waiting(client, carrier)
    }

    fn send_waiting(
        &mut self,
        client: &mut Self::Client,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let Following { machine, hops, .. } = client;
        let writer = Writer { sent: &self.sent, hops, drawn: self.drawn };
        write_frames(machine, &writer, &mut self.frames, carrier)
    }
}
