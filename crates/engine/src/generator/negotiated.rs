//! HTTP/1.1 and HTTP/2 side by side: each connection speaks what its server has chosen by ALPN, and HTTP/1.1 where it has not.
//!
//! It is a protocol of its own so that runs of one version pay nothing for the choice.

use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Farewell, Outcome};
use trueload_wire::{http1, http2};

use super::carrier::Carrier;
use super::http::Http;
use super::http2::Http2;
use super::protocol::{ConnectionEnd, Input, OpenError, Protocol, Unusable};
use super::requests::Requests;
use super::slot::Tag;

/// What ALPN calls HTTP/2.
const H2: &[u8] = b"h2";

/// Both versions, as the connections of one thread speak them.
#[derive(Debug)]
pub struct Negotiated {
    http1: Http,
    http2: Http2,
    most: InFlight,
}

/// Requests in flight on a connection, at most.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Of HTTP/1.1.
    pub http1: usize,
    /// Of HTTP/2.
    pub http2: usize,
}

/// The machine of one connection.
#[derive(Debug)]
pub enum Either {
    /// It speaks HTTP/1.1, with so many requests in flight at most.
    Http1(http1::client::Client<Tag>, usize),
    /// It speaks HTTP/2, the same.
    Http2(Box<http2::client::Client<Tag>>, usize),
}

impl Default for Either {
    fn default() -> Self {
        Either::Http1(http1::client::Client::default(), 1)
    }
}

/// Does the same with either machine.
macro_rules! of_either {
    ($either:expr, $client:ident => $what:expr) => {
        match $either {
            Either::Http1($client, _) => $what,
            Either::Http2($client, _) => $what,
        }
    };
}

impl Exchange<Tag> for Either {
    fn reopen(&mut self) {
        of_either!(self, client => client.reopen());
    }

    #[inline]
    fn ask_alike(&mut self, tag: Tag, count: usize) {
        of_either!(self, client => client.ask_alike(tag, count));
    }

    #[inline]
    fn outstanding(&self) -> usize {
        of_either!(self, client => client.outstanding())
    }

    #[inline]
    fn capacity(&self, depth: usize) -> usize {
        match self {
            Either::Http1(client, most) => client.capacity(depth.min(*most)),
            Either::Http2(client, most) => client.capacity(depth.min(*most)),
        }
    }

    fn has_answered(&self) -> bool {
        of_either!(self, client => client.has_answered())
    }

    #[inline]
    fn change_newest(&mut self, change: impl FnMut(&mut Tag) -> bool) {
        of_either!(self, client => client.change_newest(change));
    }

    #[inline]
    fn is_held_back(&self) -> bool {
        of_either!(self, client => client.is_held_back())
    }

    #[inline]
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&Tag) -> u64) -> Option<u64> {
        of_either!(self, client => client.next_timeout_ns(deadline_ns))
    }

    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&Tag) -> u64,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        of_either!(self, client => client.handle_timeout(now_ns, deadline_ns, output, on_outcome))
    }

    fn lasts_until_end(&self) -> bool {
        match self {
            Either::Http1(client, _) => Exchange::lasts_until_end(client),
            Either::Http2(client, _) => client.lasts_until_end(),
        }
    }

    fn farewell(&self) -> Farewell {
        of_either!(self, client => client.farewell())
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        match self {
            Either::Http1(client, _) => Exchange::why_broken(client),
            Either::Http2(client, _) => client.why_broken(),
        }
    }

    fn cancel(&mut self) -> impl Iterator<Item = Tag> + '_ {
        of_either!(self, client => client.cancel().collect::<Vec<_>>()).into_iter()
    }
}

impl Negotiated {
    /// Connections that speak the one or the other.
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
        match client {
            Either::Http1(client, _) => self.http1.peer_closes(client),
            Either::Http2(client, _) => self.http2.peer_closes(client),
        }
    }

    fn choose(&mut self, client: &mut Either, alpn: Option<&[u8]>) {
        debug_assert_eq!(client.outstanding(), 0);
        match (alpn == Some(H2), &client) {
            // Its buffers are of use to the next connection.
            (true, Either::Http2(..)) => {}
            (true, Either::Http1(..)) => {
                *client = Either::Http2(Box::default(), self.most.http2);
            }
            (false, _) => {
                *client = Either::Http1(http1::client::Client::default(), self.most.http1)
            }
        }
    }

    fn open(&mut self, client: &mut Either, key: u32, output: &mut Vec<u8>) -> bool {
        match client {
            Either::Http1(client, _) => self.http1.open(client, key, output),
            Either::Http2(client, _) => self.http2.open(client, key, output),
        }
    }

    // Only a connection of HTTP/2 has to be agreed on beyond TLS.

    fn refusal(&mut self) -> OpenError {
        self.http2.refusal()
    }

    fn unusable(&self) -> Unusable {
        self.http2.unusable()
    }

    fn violation(&self, client: &Either) -> Class {
        match client {
            Either::Http1(client, _) => self.http1.violation(client),
            Either::Http2(client, _) => self.http2.violation(client),
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
        match client {
            Either::Http1(client, _) => self.http1.handle_input(client, input, output, on_outcome),
            Either::Http2(client, _) => self.http2.handle_input(client, input, output, on_outcome),
        }
    }

    fn handle_end(
        &mut self,
        client: &mut Either,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        match client {
            Either::Http1(client, _) => self.http1.handle_end(client, end, on_outcome),
            Either::Http2(client, _) => self.http2.handle_end(client, end, on_outcome),
        }
    }

    #[inline]
    fn note_queued(&self, client: &mut Either, drawn: u64, bytes: usize) {
        match client {
            Either::Http1(client, _) => self.http1.note_queued(client, drawn, bytes),
            Either::Http2(client, _) => self.http2.note_queued(client, drawn, bytes),
        }
    }

    fn bytes_from(&self, client: &Either, tag: &Tag, drawn: u64) -> Option<usize> {
        match client {
            Either::Http1(client, _) => self.http1.bytes_from(client, tag, drawn),
            Either::Http2(client, _) => self.http2.bytes_from(client, tag, drawn),
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
        match client {
            Either::Http1(client, _) => self.http1.send(client, count, drawn, carrier),
            Either::Http2(client, _) => self.http2.send(client, count, drawn, carrier),
        }
    }

    #[inline]
    fn waits_to_write(&self, client: &Either) -> bool {
        match client {
            Either::Http1(client, _) => self.http1.waits_to_write(client),
            Either::Http2(client, _) => self.http2.waits_to_write(client),
        }
    }

    #[inline]
    fn send_waiting(&mut self, client: &mut Either, carrier: &mut Carrier<'_, impl Net>) -> usize {
        match client {
            Either::Http1(client, _) => self.http1.send_waiting(client, carrier),
            Either::Http2(client, _) => self.http2.send_waiting(client, carrier),
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

    fn negotiated() -> Negotiated {
        let texts = Texts { method: "GET", path: "/", headers: &[], body: None };
        let sent = Http2Sent::Alike(Template::plain("https", &texts), Rules::default());
        let http1 = Http::plain(Arc::from(&b"GET / HTTP/1.1\r\n\r\n"[..]), 1, Rules::default());
        Negotiated::new(http1, Http2::new(sent, Windows::RFC), InFlight { http1: 2, http2: 5 })
    }

    #[test]
    fn a_connection_speaks_what_alpn_chose_with_as_many_requests_as_that_has() {
        let (mut protocol, mut client) = (negotiated(), Either::default());
        // One slot's connections, one after the other.
        for (alpn, over_http2) in [
            (None, false),
            (Some(&b"h2"[..]), true),
            (Some(b"h2"), true),
            (Some(b"http/1.1"), false),
            (Some(b"h2c"), false),
        ] {
            let mut said = Vec::new();
            protocol.choose(&mut client, alpn);
            client.reopen();
            assert_eq!(protocol.open(&mut client, 0, &mut said), over_http2, "{alpn:?}");
            assert_eq!(said.starts_with(PREFACE), over_http2, "{alpn:?}");
            assert_eq!(said.is_empty(), !over_http2, "{alpn:?}");
            assert_eq!(client.capacity(100), if over_http2 { 5 } else { 2 }, "{alpn:?}");
            assert_eq!(client.capacity(1), 1);
            assert_eq!(protocol.peer_closes(&client), !over_http2, "{alpn:?}");
        }
    }
}
