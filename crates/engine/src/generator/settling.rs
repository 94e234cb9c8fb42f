//! A phase of a broadcast that several engines share is not over before it is settled with the others.

use std::sync::Arc;

use trueload_drive::Net;
use trueload_meter::{Class, Failed};

use super::protocol::Protocol;
use super::{Generator, Report, Sent};

impl<P: Protocol> Generator<P> {
    /// Whether a phase still has to be settled with other engines.
    pub(super) fn is_unsettled(&mut self, index: usize) -> bool {
        self.protocol.under_way().is_some_and(|under_way| !under_way.is_settled(index as u16))
    }

    /// Our own messages of a phase are over: tells what was sent, and what became of the others' when that is known.
    pub(super) fn settle_phase(&mut self, index: usize, now_ns: u64) {
        let last = index + 1 == self.book.phases.len();
        let Some(under_way) = self.protocol.under_way() else { return };
        if let Some(sent) = under_way.take_sent(index as u16) {
            return self.report(Report::Sent(index, sent));
        }
        let Some(settled) = under_way.conclude(index as u16, last, now_ns) else { return };
        for _ in 0..settled.unsolicited {
            let meter = &mut self.book.phases[index].meter;
            meter.scheduled += 1;
            meter.issued += 1;
            meter.record_failed(Class::Unsolicited);
        }
        self.report(Report::Settled(index, settled.failed));
    }

    /// What all engines have sent in a phase is known.
    pub(super) fn settle_with_others(
        &mut self,
        net: &mut impl Net,
        index: usize,
        sent: Arc<Sent>,
        until_ns: Option<u64>,
    ) {
        if let Some(under_way) = self.protocol.under_way() {
            under_way.ask(index as u16, sent, until_ns, net.now_ns());
        }
        self.advance(net);
    }

    /// What failed at other engines is known: the phase can end.
    pub(super) fn charge_failed(&mut self, net: &mut impl Net, index: usize, failed: &[Failed]) {
        if let Some(under_way) = self.protocol.under_way() {
            under_way.charge(index as u16, failed);
        }
        self.settle_messages();
        self.advance(net);
    }
}
