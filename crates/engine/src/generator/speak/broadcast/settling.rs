//! The phases of a broadcast that are settled with other engines.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::protocol::Sent;

/// The phases that are settled with other engines.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// The messages sent in each phase; none once they have been reported.
    sent: Vec<Option<Sent>>,
    /// Settlements asked for and not begun: phase, messages sent, and until when to wait for them.
    pub(super) waiting: VecDeque<(u16, Arc<Sent>, u64)>,
    pub(super) current: Option<u16>,
}

impl Settling {
    pub(super) fn sent(&mut self, phase: u16) -> &mut Option<Sent> {
        let at = usize::from(phase);
        if self.sent.len() <= at {
            self.sent.resize_with(at + 1, || Some(Sent::default()));
        }
        &mut self.sent[at]
    }

    /// Notes that one of our clients sends a message.
    pub(super) fn send(&mut self, phase: u16, sender: u32, sequence: u32) {
        if let Some(sent) = self.sent(phase) {
            sent.insert(sender, sequence);
        }
    }
}
