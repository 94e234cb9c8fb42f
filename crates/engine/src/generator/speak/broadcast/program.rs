//! The program of a broadcast: a generator, wrapped in what only a broadcast does.
//!
//! The generator keeps connections, phases and accounts. The wrapper passes every event on to it,
//! and acts between its steps: clients send in turn, finished messages are settled, and phases are
//! settled with other engines. The generator itself only tells [`Broadcast`] which connections are
//! gone, and asks it whether a phase still awaits deliveries.

use trueload_drive::{Conn, ConnectError, Net, PeerClose, Program};
use trueload_load::dealt;

use super::turns::Turns;
use super::{Broadcast, UnderWay};
use crate::generator::slot::NEVER;
use crate::generator::{Command, Footprint, Generator, Measured};

/// The generator of one thread of a broadcast.
#[derive(Debug)]
pub struct Broadcasting {
    pub(super) generator: Generator<Broadcast>,
    pub(super) turns: Turns,
}

impl Broadcasting {
    /// Wraps a generator; commands reach it through the wrapper from now on.
    pub fn new(generator: Generator<Broadcast>) -> Self {
        Broadcasting { generator, turns: Turns::default() }
    }

    /// The messages under way. The protocol holds them, because it is the first to see a delivery.
    #[inline]
    pub(super) fn under_way(&mut self) -> &mut UnderWay {
        &mut self.generator.codec.protocol.under_way
    }

    fn obey(&mut self, net: &mut impl Net, command: Command) {
        match command {
            Command::Connections(total) => {
                self.expect_clients(total);
                self.generator.resize(net, total);
            }
            Command::Phase(share) => {
                let held = self.under_way().is_shared();
                self.generator.add_phase(share, held);
                self.advance(net);
            }
            // A broadcast is not divided again while it lasts.
            Command::Part(_) => {}
            Command::Clock(ahead_ns) => self.under_way().ahead_ns = Some(ahead_ns),
            Command::Settle(index, sent, until_ns) => {
                self.under_way().ask(index as u16, sent, until_ns, net.now_ns());
                self.advance(net);
            }
            Command::Charge(index, failed) => {
                self.charge(index, &failed);
                self.advance(net);
            }
            Command::Stop => {
                self.under_way().ledger.cancel();
                self.generator.stop(net);
            }
        }
    }

    /// Prepares for `total` clients over all engines: nothing more is expected for those about to
    /// be removed.
    fn expect_clients(&mut self, total: u32) {
        let Generator { config, slots, codec, .. } = &mut self.generator;
        let under_way = &mut codec.protocol.under_way;
        let mine = dealt(total, config.threads, config.thread);
        (mine..slots.len()).rev().for_each(|slot| under_way.ledger.leave(slot));
        under_way.ledger.expect_senders(total);
    }

    /// Moves every phase on as far as it can go now.
    fn advance(&mut self, net: &mut impl Net) {
        self.generator.advance(net);
        self.settle_phases(net.now_ns());
    }
}

impl Measured for Broadcasting {
    fn footprint(&self) -> Footprint {
        self.generator.footprint()
    }
}

impl Program for Broadcasting {
    fn handle_wake(&mut self, net: &mut impl Net) {
        while let Some(command) = self.generator.link.next_command() {
            self.obey(net, command);
        }
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        self.generator.handle_connected(net, conn);
    }

    fn handle_connect_error(&mut self, net: &mut impl Net, conn: Conn, why: ConnectError) {
        self.generator.handle_connect_error(net, conn, why);
    }

    #[inline]
    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], ending: bool) {
        if self.turns.is_clock_due() {
            net.read_clock();
        }
        self.generator.handle_input(net, conn, bytes, ending);
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        self.generator.handle_drained(net, conn);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        self.generator.handle_end(net, conn, ended);
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        if self.generator.is_done() {
            return;
        }
        self.generator.run_due(net);
        self.run_turns(net);
        self.generator.move_on(net);
        self.settle_phases(net.now_ns());
        self.take_turns(net);
        self.generator.keep_time(net);
    }

    #[inline]
    fn handle_batch_end(&mut self, net: &mut impl Net) {
        if self.generator.is_done() {
            return;
        }
        self.generator.end_batch(net);
        self.settle_messages();
        self.take_turns(net);
        if self.generator.accounting.take_look() {
            self.advance(net);
        }
        self.generator.stamp_written(net);
        self.generator.watch(net);
    }

    fn wake_at_ns(&self) -> Option<u64> {
        if self.generator.is_done() {
            return None;
        }
        let protocol = &self.generator.codec.protocol;
        let heartbeat_ns = self.turns.heartbeat_ns(protocol.heartbeat_ns());
        let own_ns = protocol.under_way.next_ns().min(heartbeat_ns);
        let at_ns = self.generator.wake_at_ns().unwrap_or(NEVER).min(own_ns);
        (at_ns != NEVER).then_some(at_ns)
    }

    fn is_done(&self) -> bool {
        self.generator.is_done()
    }
}
