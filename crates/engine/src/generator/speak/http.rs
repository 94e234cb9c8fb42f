//! HTTP as a generator's protocol: a machine of any version, with any dialogue.
//!
//! The machine turns bytes into outcomes. The dialogue says what is asked, and what comes next.
//! Neither knows the other: each combination is the same code.

use std::borrow::Borrow;
use std::fmt::Debug;
use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Recorded;
use trueload_wire::account::Account;
use trueload_wire::exchange::{Disposition, Ending, Outcome, Output};
use trueload_wire::message::Turn;
use trueload_wire::{http1, http2, websocket};

use super::either::Either;
use crate::generator::carrier::Carrier;
use crate::generator::footprint::Footprint;
use crate::generator::machine::Machine;
use crate::generator::messages::DoneReport;
use crate::generator::protocol::{ConnectionEnd, Facts, Input, Opened, Protocol};
use crate::generator::requests::Requests;
use crate::generator::slot::Tag;
use crate::generator::talk::{Dialogue, Moment, Talking};

/// HTTP for the connections of one thread.
#[derive(Debug)]
pub struct Http<M: Machine<D::Tag>, D: Dialogue> {
    shared: M::Shared,
    dialogue: D,
    /// Each request has its own connection.
    alone: bool,
}

/// HTTP/1 with a dialogue.
pub type OverHttp1<D> = Http<http1::client::Client<<D as Dialogue>::Tag>, D>;
/// HTTP/2 with a dialogue.
pub type OverHttp2<D> = Http<http2::client::Client<<D as Dialogue>::Tag>, D>;
/// Either of the two with a dialogue.
pub type OverEither<D> = Http<Either<<D as Dialogue>::Tag>, D>;
/// WebSocket, after requests over HTTP/1, with a dialogue.
pub type OverWebSocket<D> = Http<websocket::conversation::Client<<D as Dialogue>::Tag>, D>;

impl<M: Machine<D::Tag>, D: Dialogue> Http<M, D> {
    /// Creates connections that share this. Each has one request if they are `alone`.
    pub fn new(shared: M::Shared, dialogue: D, alone: bool) -> Self {
        Http { shared, dialogue, alone }
    }

    /// Asks what the dialogue goes on with: on this connection if that takes more, and otherwise on
    /// the slot's next.
    fn go_on(
        &self,
        client: &mut Talking<M, D>,
        takes_more: bool,
        now_ns: u64,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let here = takes_more && !self.alone;
        while let Some(next) = D::next(&mut client.state, here) {
            if here {
                client.machine.ask_behind(next);
            } else {
                on_outcome(Outcome::unanswered(*next.borrow(), Ending::Redirected, now_ns));
            }
        }
    }
}

impl<M: Machine<D::Tag>, D: Dialogue> Protocol for Http<M, D> {
    type Client = Talking<M, D>;

    const TALKS: bool = M::TALKS;

    fn client(&self) -> Self::Client {
        Talking { machine: M::new(&self.shared), state: D::State::default() }
    }

    fn begin_step(&self, client: &mut Self::Client, turn: Turn) {
        D::begin_step(&mut client.state, turn);
    }

    fn requests(&self) -> Option<Arc<Requests>> {
        self.dialogue.asks().requests.map(Arc::clone)
    }

    fn facts(&self, client: &Self::Client) -> Facts {
        client.machine.facts(&self.shared)
    }

    fn open(&mut self, client: &mut Self::Client, opened: Opened<'_>, output: &mut Output) -> bool {
        client.machine.open(opened.alpn, &self.shared, output)
    }

    fn times_arrivals(&self) -> bool {
        self.dialogue.asks().watch.is_some()
    }

    /// A stream may stall before the timeout of its request. A hop may be older than the requests
    /// that it stands behind.
    #[inline]
    fn hastens_deadlines(&self) -> bool {
        D::HOPS || self.dialogue.asks().watch.is_some_and(|watch| watch.has_stalls())
    }

    fn take_account(&self, client: &mut Self::Client, until_ns: u64) -> Option<Account> {
        client.machine.take_account(until_ns, &self.shared)
    }

    fn footprint(&self, client: &Self::Client) -> Footprint {
        D::footprint(&client.state)
    }

    fn take_parts(&mut self, phase: u16) -> Vec<Recorded> {
        self.dialogue.asks().watch.map(|watch| watch.take_parts(phase).into()).unwrap_or_default()
    }

    fn complete(&mut self, report: &mut DoneReport) {
        self.dialogue.complete(report);
        M::complete(&mut self.shared, self.dialogue.asks().follows, report);
    }

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Self::Client,
        input: Input<'_>,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, arrived_ns, drawn, received, .. } = input;
        let at = Moment { now_ns, arrived_ns: arrived_ns.unwrap_or(now_ns), drawn };
        let Talking { machine, state } = client;
        let book = self.dialogue.book(state, at);
        let mut hears = D::hears(&book, on_outcome);
        let shared = &mut self.shared;
        let disposition = machine.handle_input(now_ns, received, &book, shared, output, &mut hears);
        drop(hears);
        drop(book);
        if D::LISTENS {
            self.go_on(client, disposition == Disposition::Open, now_ns, on_outcome);
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
        let Talking { machine, state } = client;
        let book = self.dialogue.book(state, Moment::of(now_ns, drawn));
        let mut hears = D::hears(&book, on_outcome);
        machine.handle_end(now_ns, how, &book, &mut hears);
        drop(hears);
        drop(book);
        self.go_on(client, false, now_ns, on_outcome);
    }

    #[inline]
    fn note_queued(&mut self, client: &mut Self::Client, drawn: u64, bytes: usize) {
        let Talking { machine, state } = client;
        machine.note_queued(bytes, &self.dialogue.book(state, Moment::of(0, drawn)));
    }

    #[inline]
    fn note_sent(&mut self, client: &mut Self::Client) {
        client.machine.note_sent();
    }

    fn bytes_from(&mut self, client: &mut Self::Client, tag: &Tag, drawn: u64) -> Option<usize> {
        if D::HOPS {
            // The tag does not say which hop of the request was answered.
            return None;
        }
        let Talking { machine, state } = client;
        let tag = D::begin(state, *tag, 0);
        machine.bytes_from(&tag, &self.dialogue.book(state, Moment::of(0, drawn)))
    }

    #[inline]
    fn send(
        &mut self,
        client: &mut Self::Client,
        count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let Talking { machine, state } = client;
        let book = self.dialogue.book(state, Moment::of(0, drawn));
        machine.send(count, &book, &mut self.shared, carrier)
    }

    #[inline]
    fn waits_to_write(&self, client: &Self::Client) -> bool {
        client.machine.waits_to_write()
    }
}
