//! HTTP/1 as a generator's protocol: one request that is always the same, or several that take
//! turns.

use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Exchange, InOrder, Outcome};
use trueload_wire::http1::client::{Client, Rules};
use trueload_wire::http1::response::HeadMemory;

use super::carrier::Carrier;
use super::messages::DoneReport;
use super::protocol::{ConnectionEnd, Input, Protocol};
use super::requests::{ByTarget, HeadsByTarget, Requests};
use super::slot::Tag;

/// The HTTP/1 protocol for the connections of one thread.
#[derive(Debug)]
pub enum Http {
    /// All requests are alike.
    Plain(Plain),
    /// They differ.
    Several(Several),
}

/// One request, over and over.
#[derive(Debug)]
pub struct Plain {
    /// Copies of the request in a row: what a connection takes at once is mostly a part of it.
    burst: Arc<[u8]>,
    request_len: usize,
    rules: Rules,
    memory: HeadMemory,
}

/// Requests that differ.
#[derive(Debug)]
pub struct Several {
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
        Http::Plain(Plain { burst, request_len, rules, memory: HeadMemory::default() })
    }

    /// Requests that differ.
    #[must_use]
    pub fn several(requests: Arc<Requests>) -> Self {
        let heads = requests.heads();
        Http::Several(Several { requests, heads, scratch: Vec::new() })
    }
}

impl Protocol for Http {
    type Client = Client<Tag>;

    fn requests(&self) -> Option<Arc<Requests>> {
        match self {
            Http::Plain(_) => None,
            Http::Several(several) => Some(Arc::clone(&several.requests)),
        }
    }

    fn peer_closes(&self, _client: &Self::Client) -> bool {
        true
    }

    fn complete(&mut self, report: &mut DoneReport) {
        let mut heads = match self {
            Http::Plain(Plain { memory, .. }) => std::slice::from_ref(memory).iter(),
            Http::Several(Several { heads, .. }) => heads.iter(),
        };
        if let Some(leads) = heads.find_map(HeadMemory::redirect) {
            report.reasons.push((Class::Status, format!("a redirect to {leads}")));
        }
    }

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Client<Tag>,
        input: Input<'_>,
        _output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, drawn, bytes, .. } = input;
        match self {
            Http::Plain(Plain { rules, memory, .. }) => {
                client.handle_input(now_ns, bytes, rules, memory, on_outcome)
            }
            Http::Several(Several { requests, heads, .. }) => {
                let by = ByTarget { requests, drawn };
                let mut heads = HeadsByTarget { heads, by: &by };
                client.handle_input(now_ns, bytes, &by, &mut heads, on_outcome)
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
        match self {
            Http::Plain(Plain { rules, .. }) => client.handle_end(now_ns, how, rules, on_outcome),
            Http::Several(Several { requests, .. }) => {
                client.handle_end(now_ns, how, &ByTarget { requests, drawn }, on_outcome);
            }
        }
    }

    #[inline]
    fn note_queued(&self, client: &mut Client<Tag>, drawn: u64, bytes: usize) {
        let unsent = match self {
            _ if bytes == 0 => 0,
            Http::Plain(Plain { request_len, .. }) => bytes / request_len,
            Http::Several(Several { requests, .. }) => {
                let tags: Vec<_> = client.newest(client.outstanding()).collect();
                requests.within(drawn, tags.into_iter().rev(), bytes)
            }
        };
        client.hold_back(unsent);
    }

    fn bytes_from(&self, client: &Client<Tag>, tag: &Tag, drawn: u64) -> Option<usize> {
        let behind = client.outstanding();
        Some(match self {
            Http::Plain(Plain { request_len, .. }) => *request_len * (behind + 1),
            Http::Several(Several { requests, .. }) => {
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
        match self {
            Http::Plain(Plain { burst, request_len, .. }) => {
                let bytes = count * *request_len;
                let mut left = bytes;
                while left > 0 {
                    let piece = left.min(burst.len());
                    carrier.send_shared(burst, 0..piece);
                    left -= piece;
                }
                bytes
            }
            Http::Several(Several { requests, scratch, .. }) => {
                requests.send(carrier, drawn, client.newest(count), scratch)
            }
        }
    }
}
