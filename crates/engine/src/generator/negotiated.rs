//! HTTP/1.1 and HTTP/2 side by side: each connection speaks what its server has chosen by ALPN, and
//! HTTP/1.1 if it has not chosen.
//!
//! It is a separate protocol, so that runs of one version pay nothing for the choice.

use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, RequestTimeout};
use trueload_wire::http2::client::Account;
use trueload_wire::{http1, http2};

use super::carrier::Carrier;
use super::http::Http;
use super::http2::Http2;
use super::messages::DoneReport;
use super::protocol::{ConnectionEnd, Input, OpenError, Protocol, Unusable};
use super::requests::Requests;
use super::slot::Tag;

/// The name of HTTP/2 in ALPN.
const H2: &[u8] = b"h2";

/// Both versions, for the connections of one thread.
#[derive(Debug)]
pub struct Negotiated {
    http1: Http,
    http2: Http2,
    most: InFlight,
}

/// Requests in flight on a connection, at most.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// On a connection that speaks HTTP/1.1.
    pub http1: usize,
    /// On a connection that speaks HTTP/2.
    pub http2: usize,
}

/// The machine of one connection, and the counts of all connections of its slot.
#[derive(Debug, Default)]
pub struct Either {
    machine: Machine,
    /// Most requests in flight.
    most: usize,
    /// The present HTTP/1.1 connection is already counted.
    counted: bool,
    /// The counts of HTTP/1.1 connections, and of HTTP/2 connections before them.
    account: Option<Box<Account>>,
}

#[derive(Debug)]
enum Machine {
    Http1(http1::client::Client<Tag>),
    Http2(Box<http2::client::Client<Tag>>),
}

impl Default for Machine {
    fn default() -> Self {
        Machine::Http1(http1::client::Client::default())
    }
}

impl Either {
    /// Takes the counts since the last call, up to this time.
    fn take_account(&mut self, until_ns: u64) -> Account {
        let mut found = self.account.take().map_or_else(Account::default, |account| *account);
        match &mut self.machine {
            Machine::Http1(client) => {
                self.counted = false;
                if client.outstanding() > 0 {
                    self.count_http1();
                }
            }
            Machine::Http2(client) => found.merge(&client.take_account(until_ns)),
        }
        found
    }

    /// Counts an HTTP/1.1 connection when something is asked on it.
    #[inline]
    fn count_http1(&mut self) {
        if !std::mem::replace(&mut self.counted, true) {
            self.account.get_or_insert_default().chose_http1 += 1;
        }
    }

    /// Replaces the machine for the next connection.
    fn become_of(&mut self, machine: Machine, most: usize) {
        let account = self.take_account(0);
        *self = Either { machine, most, counted: false, account: Some(Box::new(account)) };
    }
}

/// Runs the same code with either machine.
macro_rules! of_either {
    ($either:expr, $client:ident => $what:expr) => {
        match $either {
            Machine::Http1($client) => $what,
            Machine::Http2($client) => $what,
        }
    };
}

impl Exchange<Tag> for Either {
    fn reopen(&mut self) {
        self.counted = false;
        of_either!(&mut self.machine, client => client.reopen());
    }

    #[inline]
    fn ask_alike(&mut self, tag: Tag, count: usize) {
        match &mut self.machine {
            Machine::Http1(client) => client.ask_alike(tag, count),
            Machine::Http2(client) => return client.ask_alike(tag, count),
        }
        self.count_http1();
    }

    #[inline]
    fn outstanding(&self) -> usize {
        of_either!(&self.machine, client => client.outstanding())
    }

    #[inline]
    fn capacity(&self, depth: usize) -> usize {
        of_either!(&self.machine, client => client.capacity(depth.min(self.most)))
    }

    fn has_answered(&self) -> bool {
        of_either!(&self.machine, client => client.has_answered())
    }

    #[inline]
    fn change_newest(&mut self, change: impl FnMut(&mut Tag) -> bool) {
        of_either!(&mut self.machine, client => client.change_newest(change));
    }

    #[inline]
    fn is_held_back(&self) -> bool {
        of_either!(&self.machine, client => client.is_held_back())
    }

    #[inline]
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&Tag) -> u64) -> Option<u64> {
        of_either!(&self.machine, client => client.next_timeout_ns(deadline_ns))
    }

    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&Tag) -> u64,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        of_either!(&mut self.machine, client => client.handle_timeout(now_ns, deadline_ns, output, on_outcome))
    }

    fn lasts_until_end(&self) -> bool {
        match &self.machine {
            Machine::Http1(client) => Exchange::lasts_until_end(client),
            Machine::Http2(client) => client.lasts_until_end(),
        }
    }

    fn request_timeout(&self) -> RequestTimeout {
        of_either!(&self.machine, client => client.request_timeout())
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        match &self.machine {
            Machine::Http1(client) => Exchange::why_broken(client),
            Machine::Http2(client) => client.why_broken(),
        }
    }

    fn cancel(&mut self) -> impl Iterator<Item = Tag> + '_ {
        of_either!(&mut self.machine, client => client.cancel().collect::<Vec<_>>()).into_iter()
    }
}

impl Negotiated {
    /// Creates connections that speak either version.
    #[must_use]
    pub fn new(http1: Http, http2: Http2, most: InFlight) -> Self {
        Negotiated { http1, http2, most }
    }
}

impl Protocol for Negotiated {
    type Client = Either;

    fn requests(&self) -> Option<Arc<Requests>> {
        self.http1.requests()
    }

    fn peer_closes(&self, client: &Either) -> bool {
        match &client.machine {
            Machine::Http1(client) => self.http1.peer_closes(client),
            Machine::Http2(client) => self.http2.peer_closes(client),
        }
    }

    fn complete(&mut self, report: &mut DoneReport) {
        self.http1.complete(report);
        self.http2.complete(report);
    }

    fn times_arrivals(&self) -> bool {
        self.http1.times_arrivals()
    }

    #[inline]
    fn can_stall(&self) -> bool {
        self.http1.can_stall()
    }

    fn choose(&mut self, client: &mut Either, alpn: Option<&[u8]>) {
        debug_assert_eq!(client.outstanding(), 0);
        match (alpn == Some(H2), &client.machine) {
            // The existing machine is kept: the next connection can use its buffers.
            (true, Machine::Http2(..)) => {}
            (true, Machine::Http1(..)) => {
                client.become_of(Machine::Http2(Box::default()), self.most.http2);
            }
            (false, _) => client.become_of(Machine::default(), self.most.http1),
        }
    }

    fn open(&mut self, client: &mut Either, key: u32, output: &mut Vec<u8>) -> bool {
        match &mut client.machine {
            Machine::Http1(client) => self.http1.open(client, key, output),
            Machine::Http2(client) => self.http2.open(client, key, output),
        }
    }

    // Beyond TLS, only an HTTP/2 connection has to be agreed on.

    fn refusal(&mut self) -> OpenError {
        self.http2.refusal()
    }

    fn unusable(&self) -> Unusable {
        self.http2.unusable()
    }

    fn violation(&self, client: &Either) -> Class {
        match &client.machine {
            Machine::Http1(client) => self.http1.violation(client),
            Machine::Http2(client) => self.http2.violation(client),
        }
    }

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Either,
        input: Input<'_>,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        match &mut client.machine {
            Machine::Http1(client) => self.http1.handle_input(client, input, output, on_outcome),
            Machine::Http2(client) => self.http2.handle_input(client, input, output, on_outcome),
        }
    }

    fn handle_end(
        &mut self,
        client: &mut Either,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        match &mut client.machine {
            Machine::Http1(client) => self.http1.handle_end(client, end, on_outcome),
            Machine::Http2(client) => self.http2.handle_end(client, end, on_outcome),
        }
    }

    #[inline]
    fn note_queued(&self, client: &mut Either, drawn: u64, bytes: usize) {
        match &mut client.machine {
            Machine::Http1(client) => self.http1.note_queued(client, drawn, bytes),
            Machine::Http2(client) => self.http2.note_queued(client, drawn, bytes),
        }
    }

    fn bytes_from(&self, client: &Either, tag: &Tag, drawn: u64) -> Option<usize> {
        match &client.machine {
            Machine::Http1(client) => self.http1.bytes_from(client, tag, drawn),
            Machine::Http2(client) => self.http2.bytes_from(client, tag, drawn),
        }
    }

    #[inline]
    fn send(
        &mut self,
        client: &mut Either,
        count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        match &mut client.machine {
            Machine::Http1(client) => self.http1.send(client, count, drawn, carrier),
            Machine::Http2(client) => self.http2.send(client, count, drawn, carrier),
        }
    }

    fn take_account(&self, client: &mut Either, until_ns: u64) -> Option<Account> {
        Some(client.take_account(until_ns))
    }

    #[inline]
    fn waits_to_write(&self, client: &Either) -> bool {
        match &client.machine {
            Machine::Http1(client) => self.http1.waits_to_write(client),
            Machine::Http2(client) => self.http2.waits_to_write(client),
        }
    }

    #[inline]
    fn send_waiting(&mut self, client: &mut Either, carrier: &mut Carrier<'_, impl Net>) -> usize {
        match &mut client.machine {
            Machine::Http1(client) => self.http1.send_waiting(client, carrier),
            Machine::Http2(client) => self.http2.send_waiting(client, carrier),
        }
    }
}

#[cfg(test)]
mod tests {
    use trueload_wire::http1::client::Rules;
    use trueload_wire::http1::template::Texts;
    use trueload_wire::http2::client::Windows;
    use trueload_wire::http2::frame::PREFACE;
    use trueload_wire::http2::request::Template;

    use super::super::http2::Http2Sent;
    use super::*;

    const TAG: Tag = Tag {
        scheduled_ns: 0,
        sent_ns: 0,
        handed_over: true,
        served_before: 0,
        phase: 0,
        again: false,
        number: 0,
    };

    fn negotiated() -> Negotiated {
        let texts = Texts { method: "GET", path: "/", headers: &[], body: None };
        let sent = Http2Sent::Alike(Template::plain("https", &texts), Rules::default());
        let http1 = Http::plain(Arc::from(&b"GET / HTTP/1.1\r\n\r\n"[..]), 1, Rules::default());
        Negotiated::new(http1, Http2::new(sent, Windows::RFC), InFlight { http1: 2, http2: 5 })
    }

    #[test]
    fn a_connection_speaks_what_alpn_chose_with_as_many_requests_as_that_has() {
        let (mut protocol, mut client) = (negotiated(), Either::default());
        // The connections of one slot, one after the other.
        for (alpn, over_http2) in [
            (None, false),
            (Some(&b"h2"[..]), true),
            (Some(b"h2"), true),
            (Some(b"http/1.1"), false),
            (Some(b"h2c"), false),
        ] {
            let mut output = Vec::new();
            protocol.choose(&mut client, alpn);
            client.reopen();
            assert_eq!(protocol.open(&mut client, 0, &mut output), over_http2, "{alpn:?}");
            assert_eq!(output.starts_with(PREFACE), over_http2, "{alpn:?}");
            assert_eq!(output.is_empty(), !over_http2, "{alpn:?}");
            assert_eq!(client.capacity(100), if over_http2 { 5 } else { 2 }, "{alpn:?}");
            assert_eq!(client.capacity(1), 1);
            assert_eq!(protocol.peer_closes(&client), !over_http2, "{alpn:?}");
            client.ask_alike(TAG, 2);
            assert_eq!(client.cancel().count(), 2);
        }
        let account = protocol.take_account(&mut client, 0).expect("they count");
        assert_eq!(account.chose_http1, 3);
        client.ask_alike(TAG, 1);
        for _ in 0..2 {
            let account = protocol.take_account(&mut client, 0).expect("they count");
            assert_eq!((account.chose_http1, account.connections), (1, 0), "it is in every phase");
            assert_eq!(account.behind_window().chose_http1, 0, "and once in each");
        }
    }
}
