//! HTTP/1.1 or HTTP/2: each connection speaks what was pinned, or what its server has chosen by ALPN,
//! and HTTP/1.1 if it has not chosen.
//!
//! It is a separate machine, so that plain runs of one version pay nothing for the choice.

use std::fmt::Debug;

use trueload_drive::Net;
use trueload_wire::account::Account;
use trueload_wire::exchange::{Disposition, Exchange, Outcome, Output, PeerClose, Standing, Timer};
use trueload_wire::http2::client::Windows;
use trueload_wire::message::Book;
use trueload_wire::{http1, http2};

use super::over_http1::Http1;
use super::over_http2::Http2;
use crate::generator::carrier::Carrier;
use crate::generator::machine::Machine;
use crate::generator::messages::DoneReport;
use crate::generator::protocol::{Facts, Received};

/// The name of HTTP/2 in ALPN.
const H2: &[u8] = b"h2";

/// What all connections of a thread share, and the versions that they may speak.
#[derive(Debug)]
pub struct Versions {
    http1: Http1,
    http2: Http2,
    /// Most requests in flight on a connection that speaks HTTP/1.1; none if HTTP/2 is pinned.
    most_http1: Option<usize>,
    /// The same for HTTP/2; none if HTTP/1.1 is pinned.
    most_http2: Option<usize>,
}

impl Versions {
    /// HTTP/1.1 alone.
    pub fn http1() -> Self {
        let (http1, http2) = (Http1::default(), Http2::new(Windows::RFC));
        Versions { http1, http2, most_http1: Some(usize::MAX), most_http2: None }
    }

    /// HTTP/2 alone.
    pub fn http2(http2: Http2) -> Self {
        let http1 = Http1::default();
        Versions { http1, http2, most_http1: None, most_http2: Some(usize::MAX) }
    }

    /// Whichever the server chooses, with so many requests in flight on a connection.
    pub fn either(http2: Http2, most_http1: usize, most_http2: usize) -> Self {
        let http1 = Http1::default();
        Versions { http1, http2, most_http1: Some(most_http1), most_http2: Some(most_http2) }
    }

    fn are_negotiated(&self) -> bool {
        self.most_http1.is_some() && self.most_http2.is_some()
    }

    /// The most requests in flight on a connection of this version.
    fn most(&self, over_http2: bool) -> usize {
        if over_http2 { self.most_http2 } else { self.most_http1 }.unwrap_or(usize::MAX)
    }
}

/// The machine of one connection, and the counts of all connections of its slot.
#[derive(Debug)]
pub struct Either<T> {
    version: Version<T>,
    /// Most requests in flight.
    most: usize,
    /// Over HTTP/1.1, the newest requests that have not been written yet.
    unwritten: usize,
    /// The server chooses the version, so that connections over HTTP/1.1 are counted.
    negotiated: bool,
    /// The present HTTP/1.1 connection is already counted.
    counted: bool,
    /// The counts of HTTP/1.1 connections, and of HTTP/2 connections before them.
    account: Option<Box<Account>>,
}

#[derive(Debug)]
enum Version<T> {
    Http1(http1::client::Client<T>),
    Http2(Box<http2::client::Client<T>>),
}

impl<T: Copy + PartialEq + Debug + 'static> Version<T> {
    fn new(over_http2: bool) -> Self {
        if over_http2 { Version::Http2(Box::default()) } else { Version::Http1(Default::default()) }
    }
}

/// Runs the same code with the machine of either version.
macro_rules! of_either {
    ($version:expr, $client:ident => $what:expr) => {
        match $version {
            Version::Http1($client) => $what,
            Version::Http2($client) => $what,
        }
    };
}

impl<T: Copy + PartialEq + Debug + 'static> Either<T> {
    /// Takes the counts since the last call, up to this time.
    fn take_counts(&mut self, until_ns: u64) -> Account {
        let mut found = self.account.take().map_or_else(Account::default, |account| *account);
        match &mut self.version {
            Version::Http1(client) => {
                self.counted = false;
                if client.outstanding() > 0 {
                    self.count_http1();
                }
            }
            Version::Http2(client) => found.merge(&client.take_account(until_ns)),
        }
        found
    }

    /// Counts an HTTP/1.1 connection when something is asked on it.
    #[inline]
    fn count_http1(&mut self) {
        if self.negotiated && !std::mem::replace(&mut self.counted, true) {
            self.account.get_or_insert_default().chose_http1 += 1;
        }
    }

    /// Replaces the machine for the next connection.
    fn become_of(&mut self, over_http2: bool, most: usize) {
        let account = Some(Box::new(self.take_counts(0)));
        let version = Version::new(over_http2);
        *self = Either { version, most, unwritten: 0, negotiated: true, counted: false, account };
    }
}

impl<T: Copy + PartialEq + Debug + 'static> Exchange<T> for Either<T> {
    #[inline]
    fn ask_alike(&mut self, tag: T, count: usize) {
        match &mut self.version {
            Version::Http1(client) => client.ask_alike(tag, count),
            Version::Http2(client) => return client.ask_alike(tag, count),
        }
        self.count_http1();
    }

    #[inline]
    fn outstanding(&self) -> usize {
        of_either!(&self.version, client => client.outstanding())
    }

    #[inline]
    fn capacity(&self, depth: usize) -> usize {
        of_either!(&self.version, client => client.capacity(depth.min(self.most)))
    }

    fn standing(&self) -> Standing {
        of_either!(&self.version, client => client.standing())
    }

    #[inline]
    fn change_newest(&mut self, change: impl FnMut(&mut T) -> bool) {
        of_either!(&mut self.version, client => client.change_newest(change));
    }

    #[inline]
    fn is_unsent(&self) -> bool {
        of_either!(&self.version, client => client.is_unsent())
    }

    #[inline]
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&T) -> u64) -> Option<u64> {
        of_either!(&self.version, client => client.next_timeout_ns(deadline_ns))
    }

    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&T) -> u64,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        of_either!(&mut self.version, client => client.handle_timeout(now_ns, deadline_ns, output, on_outcome))
    }

    #[inline]
    fn next_timer(&self) -> Option<(u64, Timer)> {
        of_either!(&self.version, client => client.next_timer())
    }

    fn handle_timer(
        &mut self,
        now_ns: u64,
        timer: Timer,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        of_either!(&mut self.version, client => client.handle_timer(now_ns, timer, output, on_outcome))
    }

    fn cancel(&mut self) -> impl Iterator<Item = T> + '_ {
        of_either!(&mut self.version, client => client.cancel().collect::<Vec<_>>()).into_iter()
    }
}

impl<T: Copy + PartialEq + Debug + 'static> Machine<T> for Either<T> {
    type Shared = Versions;

    fn new(shared: &Versions) -> Self {
        let over_http2 = shared.most_http1.is_none();
        let (version, most) = (Version::new(over_http2), shared.most(over_http2));
        let negotiated = shared.are_negotiated();
        Either { version, most, unwritten: 0, negotiated, counted: false, account: None }
    }

    fn open(&mut self, alpn: Option<&[u8]>, shared: &Versions, output: &mut Output) -> bool {
        debug_assert_eq!(self.outstanding(), 0);
        let over_http2 = alpn == Some(H2);
        // An existing machine for HTTP/2 is kept: the next connection can use its buffers.
        let is_kept = over_http2 && matches!(self.version, Version::Http2(_));
        if shared.are_negotiated() && !is_kept {
            self.become_of(over_http2, shared.most(over_http2));
        }
        (self.counted, self.unwritten) = (false, 0);
        match &mut self.version {
            Version::Http1(client) => Machine::open(client, alpn, &shared.http1, output),
            Version::Http2(client) => Machine::open(&mut **client, alpn, &shared.http2, output),
        }
    }

    fn facts(&self, shared: &Versions) -> Facts {
        match &self.version {
            Version::Http1(client) => client.facts(&shared.http1),
            Version::Http2(client) => client.facts(&shared.http2),
        }
    }

    #[inline]
    fn handle_input(
        &mut self,
        now_ns: u64,
        received: Received<'_>,
        book: &impl Book<T>,
        shared: &mut Versions,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        match &mut self.version {
            Version::Http1(client) => {
                let own = &mut shared.http1;
                Machine::handle_input(client, now_ns, received, book, own, output, on_outcome)
            }
            Version::Http2(client) => {
                let (client, own) = (&mut **client, &mut shared.http2);
                Machine::handle_input(client, now_ns, received, book, own, output, on_outcome)
            }
        }
    }

    fn handle_end(
        &mut self,
        now_ns: u64,
        how: PeerClose,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        of_either!(&mut self.version, client => client.handle_end(now_ns, how, book, on_outcome));
    }

    fn ask_behind(&mut self, tag: T) {
        self.unwritten += usize::from(matches!(self.version, Version::Http1(_)));
        self.ask(tag);
    }

    #[inline]
    fn note_queued(&mut self, bytes: usize, book: &impl Book<T>) {
        if let Version::Http1(client) = &mut self.version {
            client.note_queued(bytes, book);
        }
    }

    #[inline]
    fn note_sent(&mut self) {
        if let Version::Http2(client) = &mut self.version {
            client.note_sent();
        }
    }

    fn bytes_from(&self, tag: &T, book: &impl Book<T>) -> Option<usize> {
        match &self.version {
            Version::Http1(client) => client.bytes_from(tag, book),
            Version::Http2(_) => None,
        }
    }

    #[inline]
    fn send(
        &mut self,
        count: usize,
        book: &impl Book<T>,
        shared: &mut Versions,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        match &mut self.version {
            Version::Http1(client) => {
                let count = count + std::mem::take(&mut self.unwritten);
                client.send(count, book, &mut shared.http1, carrier)
            }
            Version::Http2(client) => client.send(count, book, &mut shared.http2, carrier),
        }
    }

    #[inline]
    fn waits_to_write(&self) -> bool {
        match &self.version {
            Version::Http1(_) => self.unwritten > 0,
            Version::Http2(client) => client.waits_to_write(),
        }
    }

    fn take_account(&mut self, until_ns: u64, shared: &Versions) -> Option<Account> {
        shared.most_http2.map(|_| self.take_counts(until_ns))
    }

    fn complete(shared: &mut Versions, follows: bool, report: &mut DoneReport) {
        <http1::client::Client<T> as Machine<T>>::complete(&mut shared.http1, follows, report);
    }
}

#[cfg(test)]
mod tests {
    use trueload_wire::http2::frame::PREFACE;

    use super::*;

    const H2_CHOSEN: Option<&[u8]> = Some(H2);

    fn versions() -> Versions {
        Versions::either(Http2::new(Windows::RFC), 2, 5)
    }

    #[test]
    fn a_connection_speaks_what_alpn_chose_with_as_many_requests_as_that_has() {
        let shared = versions();
        let mut client = <Either<u8> as Machine<u8>>::new(&shared);
        // The connections of one slot, one after the other.
        for (alpn, over_http2) in [
            (None, false),
            (H2_CHOSEN, true),
            (H2_CHOSEN, true),
            (Some(&b"http/1.1"[..]), false),
            (Some(b"h2c"), false),
        ] {
            let mut output = Output::default();
            assert_eq!(client.open(alpn, &shared, &mut output), over_http2, "{alpn:?}");
            assert_eq!(output.bytes.starts_with(PREFACE), over_http2, "{alpn:?}");
            assert_eq!(output.bytes.is_empty(), !over_http2, "{alpn:?}");
            assert_eq!(client.capacity(100), if over_http2 { 5 } else { 2 }, "{alpn:?}");
            assert_eq!(client.capacity(1), 1);
            assert_eq!(client.facts(&shared).peer_closes, !over_http2, "{alpn:?}");
            client.ask_alike(1, 2);
            assert_eq!(client.cancel().count(), 2);
        }
        let account = client.take_account(0, &shared).expect("they count");
        assert_eq!(account.chose_http1, 3);
        client.ask_alike(1, 1);
        for _ in 0..2 {
            let account = client.take_account(0, &shared).expect("they count");
            assert_eq!((account.chose_http1, account.connections), (1, 0), "it is in every phase");
            assert_eq!(account.behind_window().chose_http1, 0, "and once in each");
        }
    }

    #[test]
    fn a_pinned_version_is_spoken_whatever_alpn_says() {
        for (shared, over_http2) in
            [(Versions::http1(), false), (Versions::http2(Http2::new(Windows::RFC)), true)]
        {
            let mut client = <Either<u8> as Machine<u8>>::new(&shared);
            for alpn in [None, H2_CHOSEN, Some(&b"http/1.1"[..])] {
                let is_open = client.open(alpn, &shared, &mut Output::default());
                assert_eq!(is_open, over_http2, "{alpn:?}");
                assert_eq!(client.capacity(100), 100, "{alpn:?}");
            }
            assert_eq!(client.take_account(0, &shared).is_some(), over_http2, "it counts streams");
        }
    }

    #[test]
    fn what_a_dialogue_goes_on_with_is_written_when_the_connection_waits_to_write() {
        let shared = Versions::http1();
        let mut client = <Either<u8> as Machine<u8>>::new(&shared);
        client.ask(1);
        assert!(!client.waits_to_write(), "what the generator asks is sent at once");
        client.ask_behind(2);
        assert!(client.waits_to_write());
        assert_eq!(client.cancel().collect::<Vec<_>>(), [1, 2]);
        client.open(None, &shared, &mut Output::default());
        assert!(!client.waits_to_write(), "nothing of it is left for the next connection");
    }
}
