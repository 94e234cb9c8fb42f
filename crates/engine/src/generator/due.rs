//! Handles what is due on a slot: an attempt to connect, a deadline, the end of a wait for the
//! peer's close.

use trueload_drive::{Conn, ConnectError, Net};
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Timer};

use super::Generator;
use super::connection::ConnectionState;
use super::protocol::{Protocol, Received};
use super::slot::{Slot, Tag};

impl<P: Protocol> Generator<P> {
    fn handle_due(&mut self, net: &mut impl Net, key: u32) {
        let conn = |token| Conn { key, token };
        let Slot { client, state, .. } = &self.slots[key];
        if let Some((at_ns, timer)) = client.next_timer()
            && at_ns <= net.now_ns()
            && !self.is_late(key, net.now_ns())
            && state.connection.carries_protocol()
            && let Some(token) = state.connection.token()
        {
            return self.timer_went_off(net, conn(token), timer);
        }
        match self.slots[key].state.connection {
            ConnectionState::Down | ConnectionState::Busy => self.attempt(net, key),
            ConnectionState::Connecting { token } => {
                net.close(token);
                self.refused(net, key, ConnectError::Timeout);
            }
            ConnectionState::Tunnelling { token } => {
                self.not_tunnelled(net, conn(token), "the proxy did not answer CONNECT in time")
            }
            ConnectionState::Handshaking { token } => {
                let why = "the handshake was not done in time";
                self.not_secured(net, conn(token), Class::TimeoutTls, why);
            }
            ConnectionState::Opening { token, received } => {
                self.opening_late(net, conn(token), received)
            }
            ConnectionState::Closing { token, fin_sent } => {
                self.ended_by_nobody(net, conn(token), fin_sent)
            }
            ConnectionState::Open { .. } if self.slots[key].state.is_held_back() => {
                self.end_hold(net, key)
            }
            ConnectionState::Open { token } => {
                let timeout_ns = self.config.timeout_ns;
                self.out_of_time(net, conn(token), |tag| tag.deadline_ns(timeout_ns));
            }
        }
    }

    /// Handles requests of an open connection that have passed their deadlines.
    pub(super) fn out_of_time(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        deadline_ns: impl Fn(&Tag) -> u64,
    ) {
        let now_ns = net.now_ns();
        // A partial record is a part of the next answer that the machine has not been given yet.
        let mut in_record = self.is_in_record(conn.key);
        self.codec.protocol.gave_up(conn.key);
        let Slot { client, state, .. } = &mut self.slots[conn.key];
        let accounting = &mut self.accounting;
        let mut on_outcome = |outcome: Outcome<Tag>| {
            let begun = std::mem::take(&mut in_record);
            let ending = match outcome.ending {
                Ending::TimeoutFirstByte if begun => Ending::TimeoutTotal,
                ending => ending,
            };
            accounting.settle(state, now_ns, &Outcome { ending, ..outcome });
        };
        self.codec.output.clear();
        let disposition =
            client.handle_timeout(now_ns, deadline_ns, &mut self.codec.output, &mut on_outcome);
        self.go_on_after(net, conn, disposition);
    }

    /// Whether a request of an open connection has passed its deadline.
    fn is_late(&self, key: u32, now_ns: u64) -> bool {
        let deadline_ns = |tag: &Tag| tag.deadline_ns(self.config.timeout_ns);
        let late = self.slots[key].client.next_timeout_ns(deadline_ns);
        late.is_some_and(|deadline_ns| deadline_ns <= now_ns)
    }

    /// Handles a timer of the machine that has gone off.
    fn timer_went_off(&mut self, net: &mut impl Net, conn: Conn, timer: Timer) {
        if timer == Timer::Due {
            return self.handle_plain(net, conn, Received::Bytes(&[]), false);
        }
        let now_ns = net.now_ns();
        self.codec.protocol.gave_up(conn.key);
        let Slot { client, state, .. } = &mut self.slots[conn.key];
        let accounting = &mut self.accounting;
        let mut on_outcome = |outcome| accounting.settle(state, now_ns, &outcome);
        let output = &mut self.codec.output;
        output.clear();
        let disposition = client.handle_timer(now_ns, timer, output, &mut on_outcome);
        self.go_on_after(net, conn, disposition);
    }

    /// Sends what a timer had the machine say, and goes on as it says.
    fn go_on_after(&mut self, net: &mut impl Net, conn: Conn, disposition: Disposition) {
        match disposition {
            Disposition::Open | Disposition::Draining => {
                self.codec.send_output(net, &mut self.slots[conn.key], conn.token);
                self.go_on(net, conn, disposition, true, false);
            }
            Disposition::Opening => {
                self.codec.send_output(net, &mut self.slots[conn.key], conn.token);
            }
            _ => self.broken(net, conn),
        }
    }

    pub(super) fn run_timers(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        while let Some(key) = self.slots.pop_timer(now_ns) {
            if self.slots.is_due(key, now_ns) {
                self.handle_due(net, key);
            }
            self.slots.arm(key);
        }
    }
}
