//! Handles datagrams that arrive on a slot's socket, and those of ours that never left.

use trueload_drive::{Datagrams, Net, Token};

use super::Generator;
use super::connection::ConnectionState;
use super::protocol::Protocol;
use super::slot::Slot;

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
    /// Handles received datagrams: each may end a request, and then the slot sends what it may.
    pub(super) fn receive_datagrams(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        datagrams: Datagrams<'_>,
    ) {
        self.accounting.wakings.note_input();
        let now_ns = net.now_ns();
        let Slot { client, state, .. } = &mut self.slots[key];
        if state.connection != (ConnectionState::Open { token }) {
            return;
        }
        let (accounting, mut found) = (&mut self.accounting, trueload_meter::Datagrams::default());
        // All of them arrived together.
        let arrived_ns = net.arrived_ns();
        let mut on_outcome = |outcome| {
            accounting.note_arrival(now_ns, arrived_ns, Some(&outcome));
            accounting.settle(state, now_ns, outcome);
        };
        self.codec.protocol.handle_datagrams(
            client,
            now_ns,
            datagrams,
            &mut found,
            &mut on_outcome,
        );
        if let Some(phase) = self.accounting.current_mut() {
            phase.meter.bytes_in += datagrams.bytes.len() as u64;
            phase.meter.datagrams.merge(&found);
        }
        self.fill(net, key);
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
