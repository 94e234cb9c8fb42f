//! HTTP/1 that follows redirects, one request in flight on each connection.

use std::cell::RefCell;
use std::sync::Arc;

use trueload_drive::Net;
use trueload_wire::exchange::{Disposition, Exchange, InOrder, Outcome};
use trueload_wire::http1::client::{Client, Memories};
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::redirect::Location;
use trueload_wire::session::Answer;

use super::hops::{Following, Hop};
use super::{Behind, Book, First, Follow};
use crate::generator::carrier::Carrier;
use crate::generator::messages::DoneReport;
use crate::generator::protocol::{ConnectionEnd, Input, Protocol};
use crate::generator::requests::Requests;
use crate::generator::slot::Tag;

/// Most bytes kept of an answer until its head is complete: interim answers come before it.
const HEAD_BYTES_MOST: usize = 512 << 10;
/// A larger buffer is given back after each answer.
const KEPT_BYTES: usize = 4 << 10;

/// The HTTP/1 protocol for the connections of one thread.
#[derive(Debug)]
pub struct FollowHttp1 {
    follow: Follow,
    /// For each target: the remembered answers to first requests, and to those behind redirects.
    heads: Vec<[HeadMemory; 2]>,
}

impl FollowHttp1 {
    /// Follows redirects as `follow` says.
    #[must_use]
    pub fn new(follow: Follow) -> Self {
        let heads = follow.as_get.iter().map(|_| Default::default()).collect();
        FollowHttp1 { follow, heads }
    }
}

/// The remembered answer heads.
struct Heads<'a> {
    heads: &'a mut [[HeadMemory; 2]],
    follow: &'a Follow,
    drawn: u64,
}

impl Memories<Hop> for Heads<'_> {
    fn memory_of(&mut self, hop: &Hop) -> &mut HeadMemory {
        let index = self.follow.index(&hop.tag, self.drawn);
        &mut self.heads[index][usize::from(!hop.is_first())]
    }
}

impl Following<Client<Hop>> {
    /// The hop that was asked last.
    fn asked(&self) -> Option<Hop> {
        self.machine.newest(1).next().copied()
    }

    /// Keeps the bytes of an answer that is not complete until its head is.
    fn keep(&mut self, bytes: &[u8]) {
        if Answer::of(&self.head).is_none() && self.head.len() <= HEAD_BYTES_MOST {
            self.head.extend_from_slice(bytes);
        }
    }

    fn forget_head(&mut self) {
        self.head.clear();
        if self.head.capacity() > KEPT_BYTES {
            self.head = Vec::new();
        }
    }
}

/// The Location of the answer that has become complete with these bytes; `head` has those before.
fn location(head: &mut Vec<u8>, bytes: &[u8]) -> Location {
    if !head.is_empty() && Answer::of(head).is_none() && head.len() <= HEAD_BYTES_MOST {
        head.extend_from_slice(bytes);
    }
    let whole = if head.is_empty() { bytes } else { head };
    Answer::of(whole).map_or(Location::Malformed, |answer| answer.location())
}

impl FollowHttp1 {
    /// Handles the outcome of the only request in flight. Returns its next hop, if it goes on.
    fn settle(
        &mut self,
        client: &mut Following<Client<Hop>>,
        at: (u64, u64),
        bytes: &[u8],
        outcome: Outcome<Hop>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Option<Hop> {
        let Following { hops, head, .. } = client;
        let behind = self.follow.behind(hops, at, outcome, || location(head, bytes));
        client.forget_head();
        match behind {
            Behind::Goes(hop) => Some(hop),
            Behind::Ended(outcome) => {
                on_outcome(outcome);
                None
            }
        }
    }
}

impl Protocol for FollowHttp1 {
    type Client = Following<Client<Hop>>;

    fn requests(&self) -> Option<Arc<Requests>> {
        self.follow.requests().map(Arc::clone)
    }

    fn peer_closes(&self, _client: &Self::Client) -> bool {
        true
    }

    fn complete(&mut self, report: &mut DoneReport) {
        self.follow.account.complete(report);
    }

    fn handle_input(
        &mut self,
        client: &mut Self::Client,
        input: Input<'_>,
        _output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, drawn, bytes, .. } = input;
        let (mut ended, unused) = (Vec::new(), RefCell::default());
        let book = Book { follow: &self.follow, drawn, location: &unused };
        let mut heads = Heads { heads: &mut self.heads, follow: &self.follow, drawn };
        let asked = client.machine.outstanding() > 0;
        let disposition =
            client.machine.handle_input(now_ns, bytes, &book, &mut heads, &mut |outcome| {
                ended.push(outcome);
            });
        if asked && ended.is_empty() {
            client.keep(bytes);
        }
        for outcome in ended {
            let next = self.settle(client, (now_ns, drawn), bytes, outcome, on_outcome);
            let Some(hop) = next else { continue };
            if disposition == Disposition::Open && !self.follow.alone {
                client.machine.ask(hop);
                client.next = Some(hop);
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
        let (mut ended, unused) = (Vec::new(), RefCell::default());
        let book = Book { follow: &self.follow, drawn, location: &unused };
        client.machine.handle_end(now_ns, how, &book, &mut |outcome| ended.push(outcome));
        client.next = None;
        for outcome in ended {
            if let Some(hop) = self.settle(client, (now_ns, drawn), &[], outcome, on_outcome) {
                client.leave_for_next(hop, now_ns, on_outcome);
            }
        }
    }

    fn note_queued(&self, client: &mut Self::Client, drawn: u64, bytes: usize) {
        let unsent = client.asked().filter(|_| bytes > 0).is_some_and(|hop| {
            let len = client.hops.get(hop).map(|course| course.request.len());
            bytes >= len.unwrap_or_else(|| self.follow.first_len(&hop.tag, drawn))
        });
        client.machine.hold_back(usize::from(unsent));
    }

    fn send(
        &mut self,
        client: &mut Self::Client,
        count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let Some(hop) = client.asked().filter(|_| count > 0) else { return 0 };
        client.next = None;
        if let Some(course) = client.hops.get(hop) {
            carrier.send(&course.request);
            return course.request.len();
        }
        match &self.follow.first {
            First::Alike(text, _) => {
                carrier.send_shared(text, 0..text.len());
                text.len()
            }
            First::Several(requests) => {
                requests.send(carrier, drawn, std::iter::once(&hop.tag), &mut self.follow.text)
            }
        }
    }

    fn waits_to_write(&self, client: &Self::Client) -> bool {
        client.next.is_some()
    }

    fn send_waiting(
        &mut self,
        client: &mut Self::Client,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let Some(hop) = client.next.take() else { return 0 };
        let Some(course) = client.hops.get(hop) else { return 0 };
        carrier.send(&course.request);
        course.request.len()
    }
}
