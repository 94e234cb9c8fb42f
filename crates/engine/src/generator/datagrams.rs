//! Handles datagrams that arrive on a slot's socket, and those of ours that never left.

use trueload_drive::{Conn, Datagrams, Net};

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

/// The sockets that datagrams came to in this batch. What their machines have to send leaves at its
/// end, in as few blocks as possible.
#[derive(Debug, Default)]
pub(super) struct Touched(Vec<Conn>);

impl Touched {
    fn note(&mut self, conn: Conn) {
        if self.0.last() != Some(&conn) {
            self.0.push(conn);
        }
    }
}

impl<P: Protocol> Generator<P> {
    /// Handles received datagrams, in every state that has a socket.
    pub(super) fn receive_datagrams(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        datagrams: Datagrams<'_>,
    ) {
        self.accounting.wakings.note_input();
        if !self.slots[conn.key].state.connection.is_open_on(conn.token) {
            return;
        }
        self.touched.note(conn);
        self.handle_plain(net, conn, Received::Datagrams(datagrams), false);
        let found = self.codec.protocol.take_datagrams();
        if let Some(phase) = self.accounting.current_mut() {
            phase.meter.datagrams.merge(&found);
        }
    }

    /// Sends what the sockets of this batch have waiting.
    #[inline]
    pub(super) fn send_touched(&mut self, net: &mut impl Net) {
        let mut touched = std::mem::take(&mut self.touched.0);
        for conn in touched.drain(..) {
            let slot = self.slots.get_mut(conn.key);
            if slot.is_some_and(|slot| slot.state.connection.is_open_on(conn.token)) {
                self.send_waiting(net, conn);
            }
        }
        self.touched.0 = touched;
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
