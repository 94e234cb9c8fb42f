//! Handles datagrams that arrive on a slot's socket, and those of ours that never left.

use trueload_drive::{Datagrams, Net, Token};

use super::Generator;
use super::protocol::{Protocol, Received};

/// The datagrams that the driver has missed so far: ours that it dropped, and those that found no
/// room in its queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missed {
    dropped: u64,
    overflowed: u64,
}

impl Missed {
    /// Reads the counts again; returns the increase, if any.
    #[inline]
    fn look(&mut self, net: &impl Net) -> Option<Missed> {
        let (dropped, overflowed) = (net.dropped_datagrams(), net.overflowed_datagrams());
        let before = std::mem::replace(self, Missed { dropped, overflowed });
        (*self != before).then(|| Missed {
            dropped: dropped - before.dropped,
            overflowed: overflowed - before.overflowed,
        })
    }
}

impl<P: Protocol> Generator<P> {
    /// Handles received datagrams, in every state that has a socket.
    pub(super) fn receive_datagrams(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        datagrams: Datagrams<'_>,
    ) {
        self.accounting.wakings.note_input();
        if !self.slots[key].state.connection.is_open_on(token) {
            return;
        }
        self.handle_plain(net, key, token, Received::Datagrams(datagrams), false);
        let found = self.codec.protocol.take_datagrams();
        if let Some(phase) = self.accounting.current_mut() {
            phase.meter.datagrams.merge(&found);
        }
    }

    /// Adds to the phase the datagrams that did not get out of, or into, this machine since the
    /// last check.
    #[inline]
    pub(super) fn note_missed_datagrams(&mut self, net: &impl Net) {
        if let Some(missed) = self.missed.look(net)
            && let Some(phase) = self.accounting.current_mut()
        {
            phase.meter.datagrams.dropped += missed.dropped;
            phase.meter.datagrams.overflowed += missed.overflowed;
        }
    }
}
