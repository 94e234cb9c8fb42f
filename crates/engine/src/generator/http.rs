//! HTTP/1 as a generator's protocol: one request that is always the same, or several that take
//! turns.

use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Exchange, InOrder, Outcome};
use trueload_wire::http1::client::{Client, Rules};
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::parts::Rule;

use super::carrier::Carrier;
use super::messages::DoneReport;
use super::protocol::{ConnectionEnd, Input, Protocol};
use super::requests::{ByTarget, HeadsByTarget, Requests};
use super::slot::Tag;
use super::streams::Watch;

/// The HTTP/1 protocol for the connections of one thread.
#[derive(Debug)]
pub struct Http {
    sent: Sent,
    /// Answers are streams.
    watch: Option<Box<Watch>>,
}

/// The requests to send.
#[derive(Debug)]
enum Sent {
    /// All requests are alike.
    Plain(Plain),
    /// They differ.
    Several(Several),
}

/// One request, over and over.
#[derive(Debug)]
struct Plain {
    /// Copies of the request in a row: what a connection takes at once is mostly a part of it.
    burst: Arc<[u8]>,
    request_len: usize,
    rules: Rules,
    memory: HeadMemory,
}

/// Requests that differ.
#[derive(Debug)]
struct Several {
    requests: Arc<Requests>,
    /// The remembered answers of each target, and a buffer to write requests in.
    heads: Vec<HeadMemory>,
    scratch: Vec<u8>,
}

impl Http {
    /// Always the same request: `burst` holds it `times` times.
    #[must_use]
    pub fn plain(burst: Arc<[u8]>, times: usize, rules: Rules) -> Self {
        let request_len = burst.len() / times;
        let memory = HeadMemory::default();
        Http { sent: Sent::Plain(Plain { burst, request_len, rules, memory }), watch: None }
    }

    /// Requests that differ.
    #[must_use]
    pub fn several(requests: Arc<Requests>) -> Self {
        let heads = requests.heads();
        let sent = Sent::Several(Several { requests, heads, scratch: Vec::new() });
        Http { sent, watch: None }
    }

    /// Reads answers as streams by this rule, if there is one.
    #[must_use]
    pub fn streaming(self, rule: Option<Rule>) -> Self {
        Http { watch: rule.map(|rule| Box::new(Watch::new(rule))), ..self }
    }
}

impl Protocol for Http {
    type Client = Client<Tag>;

    fn requests(&self) -> Option<Arc<Requests>> {
        match &self.sent {
            Sent::Plain(_) => None,
            Sent::Several(several) => Some(Arc::clone(&several.requests)),
        }
    }

    fn peer_closes(&self, _client: &Self::Client) -> bool {
        true
    }

    fn complete(&mut self, report: &mut DoneReport) {
        let mut heads = match &self.sent {
            Sent::Plain(Plain { memory, .. }) => std::slice::from_ref(memory).iter(),
            Sent::Several(Several { heads, .. }) => heads.iter(),
        };
        if let Some(leads) = heads.find_map(HeadMemory::redirect) {
            report.reasons.push((Class::Status, format!("a redirect to {leads}")));
        }
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

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Client<Tag>,
        input: Input<'_>,
        _output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, arrived_ns, drawn, bytes, .. } = input;
        let at_ns = arrived_ns.unwrap_or(now_ns);
        match (&mut self.sent, &self.watch) {
            (Sent::Plain(Plain { rules, memory, .. }), None) => {
                client.handle_input(now_ns, bytes, rules, memory, on_outcome)
            }
            (Sent::Plain(Plain { rules, memory, .. }), Some(watch)) => {
                client.handle_input(now_ns, bytes, &watch.over(rules, at_ns), memory, on_outcome)
            }
            (Sent::Several(Several { requests, heads, .. }), watch) => {
                let by = ByTarget { requests, drawn };
                let mut heads = HeadsByTarget { heads, by: &by };
                match watch {
                    None => client.handle_input(now_ns, bytes, &by, &mut heads, on_outcome),
                    Some(watch) => {
                        let watched = watch.over(&by, at_ns);
                        client.handle_input(now_ns, bytes, &watched, &mut heads, on_outcome)
                    }
                }
            }
        }
    }

    fn handle_end(
        &mut self,
        client: &mut Client<Tag>,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let ConnectionEnd { now_ns, drawn, how } = end;
        match (&self.sent, &self.watch) {
            (Sent::Plain(Plain { rules, .. }), None) => {
                client.handle_end(now_ns, how, rules, on_outcome);
            }
            (Sent::Plain(Plain { rules, .. }), Some(watch)) => {
                client.handle_end(now_ns, how, &watch.over(rules, now_ns), on_outcome);
            }
            (Sent::Several(Several { requests, .. }), watch) => {
                let by = ByTarget { requests, drawn };
                match watch {
                    None => client.handle_end(now_ns, how, &by, on_outcome),
                    Some(watch) => {
                        client.handle_end(now_ns, how, &watch.over(&by, now_ns), on_outcome);
                    }
                }
            }
        }
    }

    #[inline]
    fn note_queued(&self, client: &mut Client<Tag>, drawn: u64, bytes: usize) {
        let unsent = match &self.sent {
            _ if bytes == 0 => 0,
            Sent::Plain(Plain { request_len, .. }) => bytes / request_len,
            Sent::Several(Several { requests, .. }) => {
                let tags: Vec<_> = client.newest(client.outstanding()).collect();
                requests.within(drawn, tags.into_iter().rev(), bytes)
            }
        };
        client.hold_back(unsent);
    }

    fn bytes_from(&self, client: &Client<Tag>, tag: &Tag, drawn: u64) -> Option<usize> {
        let behind = client.outstanding();
        Some(match &self.sent {
            Sent::Plain(Plain { request_len, .. }) => *request_len * (behind + 1),
            Sent::Several(Several { requests, .. }) => {
                let tags = std::iter::once(tag).chain(client.newest(behind));
                tags.map(|tag| requests.bytes_of(tag, drawn)).sum()
            }
        })
    }

    #[inline]
    fn send(
        &mut self,
        client: &mut Client<Tag>,
        count: usize,
        drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        match &mut self.sent {
            Sent::Plain(Plain { burst, request_len, .. }) => {
                let bytes = count * *request_len;
                let mut left = bytes;
                while left > 0 {
                    let piece = left.min(burst.len());
                    carrier.send_shared(burst, 0..piece);
                    left -= piece;
                }
                bytes
            }
            Sent::Several(Several { requests, scratch, .. }) => {
                requests.send(carrier, drawn, client.newest(count), scratch)
            }
        }
    }
}
