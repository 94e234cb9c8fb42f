//! HTTP/1 on a connection: requests are sent as soon as they are asked, and answered in order.

use std::fmt::Debug;

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Exchange, InOrder, Outcome, Output, PeerClose};
use trueload_wire::http1::client::Client;
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::message::{Book, Written};

use crate::generator::carrier::Carrier;
use crate::generator::machine::Machine;
use crate::generator::messages::DoneReport;
use crate::generator::protocol::{Facts, Received};

/// Bytes shared by all requests are not copied for sending from this length on. All threads share
/// them, too: beside the kernel's copy of so many bytes, their reference count costs nothing.
const SHARED_FROM_BYTES: usize = 16 * 1024;

/// What all connections of a thread share.
#[derive(Debug, Default)]
pub struct Http1 {
    /// The remembered answer heads.
    heads: Vec<HeadMemory>,
    /// A buffer to write requests in.
    text: Vec<u8>,
}

impl<T: Copy + PartialEq + Debug + 'static> Machine<T> for Client<T> {
    type Shared = Http1;

    fn new(_shared: &Http1) -> Self {
        Client::default()
    }

    fn open(&mut self, _alpn: Option<&[u8]>, _shared: &Http1, _output: &mut Output) -> bool {
        self.reset();
        false
    }

    fn facts(&self, _shared: &Http1) -> Facts {
        Facts { peer_closes: true, ..Facts::default() }
    }

    #[inline]
    fn handle_input(
        &mut self,
        now_ns: u64,
        received: Received<'_>,
        book: &impl Book<T>,
        shared: &mut Http1,
        _output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        Client::handle_input(self, now_ns, received.bytes(), book, &mut shared.heads, on_outcome)
    }

    fn handle_end(
        &mut self,
        now_ns: u64,
        how: PeerClose,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        Client::handle_end(self, now_ns, how, book, on_outcome);
    }

    #[inline]
    fn note_queued(&mut self, bytes: usize, book: &impl Book<T>) {
        let unsent = match book.burst() {
            _ if bytes == 0 => 0,
            Some((_, len)) => bytes / len,
            None => unsent(self, bytes, book),
        };
        self.note_unsent(unsent);
    }

    fn bytes_from(&self, tag: &T, book: &impl Book<T>) -> Option<usize> {
        let behind = self.outstanding();
        Some(match book.burst() {
            Some((_, len)) => len * (behind + 1),
            None => {
                let all = std::iter::once(tag).chain(self.newest(behind));
                all.map(|tag| book.bytes_of(tag)).sum()
            }
        })
    }

    #[inline]
    fn send(
        &mut self,
        count: usize,
        book: &impl Book<T>,
        shared: &mut Http1,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let Some((burst, len)) = book.burst() else {
            return send_each(self.newest(count), book, &mut shared.text, carrier);
        };
        let bytes = count * len;
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(burst.len());
            carrier.send_shared(burst, 0..piece);
            left -= piece;
        }
        bytes
    }

    fn complete(shared: &mut Http1, follows: bool, report: &mut DoneReport) {
        let redirect = shared.heads.iter().find_map(HeadMemory::redirect);
        if let Some(leads) = redirect.filter(|_| !follows) {
            report.reasons.push((Class::Status, format!("a redirect to {leads}")));
        }
    }
}

/// The number of the newest requests that lie wholly within the last `bytes`.
#[cold]
fn unsent<T: Copy + PartialEq + 'static>(
    client: &Client<T>,
    mut bytes: usize,
    book: &impl Book<T>,
) -> usize {
    let tags: Vec<_> = client.newest(client.outstanding()).collect();
    let fits = |tag: &&&T| {
        let left = bytes.checked_sub(book.bytes_of(tag));
        bytes = left.unwrap_or(0);
        left.is_some()
    };
    tags.iter().rev().take_while(fits).count()
}

/// Sends requests in this order, in as few pieces as possible; returns their length.
fn send_each<'a, T: 'a>(
    tags: impl Iterator<Item = &'a T>,
    book: &impl Book<T>,
    text: &mut Vec<u8>,
    carrier: &mut Carrier<'_, impl Net>,
) -> usize {
    let mut sent = 0;
    text.clear();
    for tag in tags {
        book.write(tag, &mut |part| {
            sent += part.bytes().len();
            match part {
                Written::Fixed(bytes) if bytes.len() >= SHARED_FROM_BYTES => {
                    flush(carrier, text);
                    carrier.send_shared(bytes, 0..bytes.len());
                }
                part => text.extend_from_slice(part.bytes()),
            }
        });
    }
    flush(carrier, text);
    sent
}

fn flush(carrier: &mut Carrier<'_, impl Net>, text: &mut Vec<u8>) {
    if !text.is_empty() {
        carrier.send(text);
        text.clear();
    }
}
