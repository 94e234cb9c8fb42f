//! HTTP/2 as a generator's protocol: requests on streams, each of which ends on its own.
//!
//! A request is written only if the socket may soon take it, the peer permits a stream for it, and
//! the windows have room. The others follow later.

use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Exchange, Outcome};
use trueload_wire::http1::client::Rules;
use trueload_wire::http2::client::{
    Account, Client, Requests as Http2Requests, Terms, UpgradeRequest,
};
use trueload_wire::http2::request::Template;
use trueload_wire::parts::Rule;

use super::carrier::Carrier;
use super::ended::class_of_ending;
use super::messages::DoneReport;
use super::protocol::{ConnectionEnd, Input, OpenError, Protocol, Unusable};
use super::requests::{ByTarget, Requests};
use super::slot::Tag;
use super::streams::Watch;

/// Frames are collected into one write until they have this many bytes.
const WRITTEN_AT_ONCE_BYTES: usize = 64 * 1024;

/// The HTTP/2 protocol for the connections of one thread.
#[derive(Debug)]
pub struct Http2 {
    sent: Http2Sent,
    terms: Terms,
    /// The HTTP/1.1 request that asks for HTTP/2; none if connections begin with HTTP/2.
    upgrade: Option<UpgradeRequest>,
    /// A buffer to write frames in.
    frames: Vec<u8>,
    /// The number of requests that this thread knows to be drawn.
    drawn: u64,
    faults: Faults,
    /// Answers are streams.
    watch: Option<Box<Watch>>,
}

/// The requests to send.
#[derive(Clone, Debug)]
pub enum Http2Sent {
    /// The same request always.
    Alike(Template, Rules),
    /// Requests that differ.
    Several(Arc<Requests>),
}

impl Http2 {
    /// Creates connections that send `sent` and announce `terms` to their peers.
    #[must_use]
    pub fn new(sent: Http2Sent, terms: impl Into<Terms>) -> Self {
        let (terms, frames, faults) = (terms.into(), Vec::new(), Faults::default());
        Http2 { sent, terms, upgrade: None, frames, drawn: 0, faults, watch: None }
    }

    /// Reads answers as streams by this rule, if there is one.
    #[must_use]
    pub fn streaming(self, rule: Option<Rule>) -> Self {
        Http2 { watch: rule.map(|rule| Box::new(Watch::new(rule))), ..self }
    }

    /// Makes connections begin with HTTP/1.1 and this request.
    #[must_use]
    pub fn upgrading(self, request: UpgradeRequest) -> Self {
        Http2 { upgrade: Some(request), ..self }
    }
}

/// The texts for a peer that does not begin with SETTINGS.
pub(super) const UNUSABLE: Unusable = Unusable {
    ended: "before it sent the SETTINGS that HTTP/2 begins with",
    late: "the SETTINGS that HTTP/2 begins with did not come in time",
};

/// Why connections of one thread are of no use.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The reason why the last connection was refused, or broken off with nothing outstanding.
    refusal: Option<OpenError>,
    violation: Option<Class>,
}

impl Faults {
    /// Keeps the reason why a connection is of no use, if this says that it is.
    #[inline]
    pub(super) fn note<T: Copy>(&mut self, client: &Client<T>, disposition: Disposition) {
        if matches!(disposition, Disposition::Refused | Disposition::Unsolicited) {
            self.keep(client);
        }
    }

    #[cold]
    fn keep<T: Copy>(&mut self, client: &Client<T>) {
        let why = client.why_broken();
        let class = why.and_then(|(ending, _)| class_of_ending(ending));
        let class = class.unwrap_or(Class::Unsolicited);
        let why = why.map_or("the peer sent what belongs to no request", |(_, why)| why);
        let why = client.why_not_upgraded().map_or(why.to_owned(), |why| why.to_string());
        (self.violation, self.refusal) = (Some(class), Some(OpenError { class, why }));
    }

    /// See [`Protocol::refusal`].
    pub(super) fn refusal(&mut self) -> OpenError {
        let unknown = || OpenError {
            class: Class::H2Protocol,
            why: "the peer's SETTINGS did not come".into(),
        };
        self.refusal.take().unwrap_or_else(unknown)
    }

    /// See [`Protocol::violation`].
    pub(super) fn violation(&self) -> Class {
        self.violation.unwrap_or(Class::Unsolicited)
    }
}

/// Writes what waits on a connection, as far as there is room; returns the number of bytes. `frames`
/// is a buffer.
#[inline]
pub(super) fn write_frames<T: Copy>(
    client: &mut Client<T>,
    requests: &impl Http2Requests<T>,
    frames: &mut Vec<u8>,
    carrier: &mut Carrier<'_, impl Net>,
) -> usize {
    let mut sent = 0;
    while client.waits_to_write() && carrier.has_room() {
        frames.clear();
        client.write(requests, WRITTEN_AT_ONCE_BYTES, frames);
        carrier.send(frames);
        sent += frames.len();
    }
    client.note(carrier.net.now_ns());
    sent
}

impl Protocol for Http2 {
    type Client = Client<Tag>;

    fn requests(&self) -> Option<Arc<Requests>> {
        match &self.sent {
            Http2Sent::Alike(..) => None,
            Http2Sent::Several(requests) => Some(Arc::clone(requests)),
        }
    }

    fn peer_closes(&self, _client: &Self::Client) -> bool {
        false
    }

    fn open(&mut self, client: &mut Client<Tag>, _key: u32, output: &mut Vec<u8>) -> bool {
        match &self.upgrade {
            Some(request) => client.upgrade(request, output),
            None => client.open(self.terms, output),
        }
        true
    }

    fn refusal(&mut self) -> OpenError {
        self.faults.refusal()
    }

    fn unusable(&self) -> Unusable {
        match self.upgrade {
            None => UNUSABLE,
            Some(_) => Unusable {
                ended: "before it was upgraded to HTTP/2",
                late: "the connection was not upgraded to HTTP/2 in time",
            },
        }
    }

    fn violation(&self, _client: &Self::Client) -> Class {
        self.faults.violation()
    }

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Client<Tag>,
        input: Input<'_>,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, arrived_ns, drawn, bytes, .. } = input;
        self.drawn = drawn;
        let at_ns = arrived_ns.unwrap_or(now_ns);
        let disposition = match (&self.sent, &self.watch) {
            (Http2Sent::Alike(_, rules), None) => {
                client.handle_input(now_ns, bytes, rules, output, on_outcome)
            }
            (Http2Sent::Alike(_, rules), Some(watch)) => {
                client.handle_input(now_ns, bytes, &watch.over(rules, at_ns), output, on_outcome)
            }
            (Http2Sent::Several(requests), watch) => {
                let by = ByTarget { requests, drawn };
                match watch {
                    None => client.handle_input(now_ns, bytes, &by, output, on_outcome),
                    Some(watch) => {
                        let watched = watch.over(&by, at_ns);
                        client.handle_input(now_ns, bytes, &watched, output, on_outcome)
                    }
                }
            }
        };
        self.faults.note(client, disposition);
        disposition
    }

    fn handle_end(
        &mut self,
        client: &mut Client<Tag>,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let ConnectionEnd { now_ns, drawn, how } = end;
        match &self.sent {
            Http2Sent::Alike(_, rules) => client.handle_end(now_ns, how, rules, on_outcome),
            Http2Sent::Several(requests) => {
                client.handle_end(now_ns, how, &ByTarget { requests, drawn }, on_outcome);
            }
        }
    }

    fn complete(&mut self, report: &mut DoneReport) {
        if let Some(watch) = &self.watch {
            watch.complete(report);
        }
    }

    fn times_arrivals(&self) -> bool {
        self.watch.is_some()
    }

    #[inline]
    fn can_stall(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.has_stalls())
    }

    fn take_account(&self, client: &mut Client<Tag>, until_ns: u64) -> Option<Account> {
        Some(client.take_account(until_ns))
    }

    #[inline]
    fn waits_to_write(&self, client: &Client<Tag>) -> bool {
        client.waits_to_write()
    }

    #[inline]
    fn send(
        &mut self,
        client: &mut Client<Tag>,
        _count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        self.drawn = drawn;
        self.send_waiting(client, carrier)
    }

    #[inline]
    fn send_waiting(
        &mut self,
        client: &mut Client<Tag>,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        match &self.sent {
            Http2Sent::Alike(template, _) => {
                write_frames(client, template, &mut self.frames, carrier)
            }
            Http2Sent::Several(requests) => {
                let by = ByTarget { requests, drawn: self.drawn };
                write_frames(client, &by, &mut self.frames, carrier)
            }
        }
    }
}
