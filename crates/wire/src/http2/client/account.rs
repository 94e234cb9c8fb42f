//! Statistics of a connection beyond the endings of its requests: what requests waited for, and
//! what the peer permits and does.
//!
//! How it works: times are integrals over time of the number of requests in a state. The number is
//! noted after every event and is valid until the next, so no clock is read here. If nothing waits,
//! noting it costs one addition.
//!
//! Must not know: frames, and when a measurement begins or ends.

use super::{Client, State};
use crate::account::{Account, Waits};
use crate::http2::settings::Settings;

impl Account {
    pub(super) fn announce(&mut self, settings: Settings) {
        self.max_concurrent_streams.add(settings.streams);
        self.initial_window_size.add(Some(settings.window));
        self.max_frame_size.add(Some(settings.frame_bytes));
        self.header_table_size.add(Some(settings.table_bytes));
    }
}

/// The statistics of successive connections, and the state of the present one.
#[derive(Debug, Default)]
pub(super) struct Accounting {
    pub(super) account: Account,
    /// Whether the present connection was counted.
    counted: bool,
    since_ns: u64,
    /// The numbers since then.
    open: u64,
    waits: Waits,
}

impl Accounting {
    /// Prepares for a fresh connection in place of this one.
    pub(super) fn reopen(&mut self) {
        (self.counted, self.open, self.waits) = (false, 0, Waits::default());
    }

    /// Counts the connection and its settings when something is asked on it for the first time.
    #[inline]
    pub(super) fn count(&mut self, settings: &Settings) {
        if !std::mem::replace(&mut self.counted, true) {
            self.account.connections += 1;
            self.account.announce(*settings);
        }
    }

    /// Sets the number of open streams and of waiting requests from now on.
    #[inline]
    fn note(&mut self, now_ns: u64, open: u64, waits: Waits) {
        let past_ns = now_ns.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(now_ns);
        self.account.open_ns += u128::from(self.open) * u128::from(past_ns);
        self.open = open;
        if self.waits != Waits::default() {
            self.account.waits_ns.add_over(&self.waits, past_ns);
        }
        self.waits = waits;
    }
}

impl<T: Copy> Client<T> {
    /// Updates the number of waiting requests. Must be called after requests were asked or written;
    /// all other changes call it themselves.
    #[inline]
    pub fn note(&mut self, now_ns: u64) {
        let open = self.streams.open() as u64;
        if open == 0 {
            // The peer has nothing to send then.
            self.flow.held = false;
        }
        let waits = if self.streams.waiting() == 0 && self.flow.is_free() {
            Waits::default()
        } else {
            self.waits(open)
        };
        self.accounting.note(now_ns, open, waits);
    }

    fn waits(&self, open: u64) -> Waits {
        let flow = &self.flow;
        let queued = self.streams.waiting() as u64;
        let unpermitted = self.state == State::Open && !self.permits_more();
        let ready = flow.ready.len() as u64;
        let uploading = u64::from(flow.uploading);
        let receive_stream = u64::from(flow.held_streams);
        Waits {
            queued,
            stream: if unpermitted { queued } else { 0 },
            send_connection: if flow.send.room() == 0 { ready } else { 0 },
            send_stream: uploading.saturating_sub(ready),
            receive_connection: if flow.held {
                open.saturating_sub(receive_stream + uploading)
            } else {
                0
            },
            receive_stream,
        }
    }

    /// Returns what was counted since the last call, up to this time.
    pub fn take_account(&mut self, until_ns: u64) -> Account {
        let Accounting { open, waits, .. } = self.accounting;
        self.accounting.note(until_ns, open, waits);
        let taken = std::mem::take(&mut self.accounting.account);
        self.accounting.counted = false;
        if self.streams.open() + self.streams.waiting() > 0 {
            self.accounting.count(&self.peer);
        }
        taken
    }
}
