//! Settling a phase of a broadcast with the other engines that share it: what was sent is told, what is asked for is
//! settled, and what failed elsewhere is charged here. Only then the phase is over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use trueload_meter::{Failed, Settled};
use trueload_wire::shootout::Key;

use super::under_way::UnderWay;

/// The number of each sender's last message.
pub type Sent = BTreeMap<u32, u32>;

/// Where it stands with a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    /// Its own messages are not over.
    #[default]
    Begun,
    /// What was sent has been told.
    Told,
    /// What was sent by others is known; what came of it has been told.
    Settled,
    /// What failed elsewhere is charged.
    Charged,
}

/// The phases that are settled with others.
#[derive(Debug, Default)]
pub(super) struct Settling {
    stands: Vec<Stand>,
    sent: Vec<Sent>,
    /// Asked for, and not begun: phase, what was sent, until when it is waited for.
    waiting: VecDeque<(u16, Arc<Sent>, u64)>,
    current: Option<u16>,
}

impl Settling {
    fn of(&mut self, phase: u16) -> (&mut Stand, &mut Sent) {
        let at = usize::from(phase);
        if self.stands.len() <= at {
            self.stands.resize(at + 1, Stand::default());
            self.sent.resize(at + 1, Sent::default());
        }
        (&mut self.stands[at], &mut self.sent[at])
    }

    /// One of ours sends a message.
    pub(super) fn send(&mut self, phase: u16, sender: u32, sequence: u32) {
        self.of(phase).1.insert(sender, sequence);
    }
}

impl UnderWay {
    /// Whether nothing of the phase has to be settled with others any more.
    pub(crate) fn is_settled(&mut self, phase: u16) -> bool {
        let settling = self.settling.as_mut();
        settling.is_none_or(|settling| *settling.of(phase).0 == Stand::Charged)
    }

    /// Our own messages of a phase are over: what was sent, when that has not been told.
    pub(crate) fn take_sent(&mut self, phase: u16) -> Option<Sent> {
        let (stand, sent) = self.settling.as_mut()?.of(phase);
        if *stand != Stand::Begun {
            return None;
        }
        *stand = Stand::Told;
        Some(std::mem::take(sent))
    }

    /// The messages of all engines in a phase. Those of others are waited for until `until_ns`, by default as long as
    /// deliveries are.
    pub(crate) fn ask(&mut self, phase: u16, sent: Arc<Sent>, until_ns: Option<u64>, now_ns: u64) {
        let until_ns = until_ns.unwrap_or_else(|| now_ns.saturating_add(self.timeout_ns));
        if let Some(settling) = &mut self.settling {
            settling.waiting.push_back((phase, sent, until_ns));
        }
        self.ask_next();
    }

    fn ask_next(&mut self) {
        let Some(settling) = self.settling.as_mut().filter(|it| it.current.is_none()) else {
            return;
        };
        if let Some((phase, sent, until_ns)) = settling.waiting.pop_front() {
            settling.current = Some(phase);
            self.ledger.ask(sent, until_ns);
        }
    }

    /// Settles the phase that is next, if it is this one and can be; `last` if none was begun after it.
    pub(crate) fn conclude(&mut self, phase: u16, last: bool, now_ns: u64) -> Option<Settled> {
        let settling = self.settling.as_mut().filter(|it| it.current == Some(phase))?;
        if !self.ledger.can_conclude(now_ns) {
            return None;
        }
        settling.current = None;
        *settling.of(phase).0 = Stand::Settled;
        let settled = self.ledger.conclude(phase, last);
        self.ask_next();
        Some(settled)
    }

    /// These messages failed at other engines: ours are charged.
    pub(crate) fn charge(&mut self, phase: u16, failed: &[Failed]) {
        if let Some(settling) = &mut self.settling {
            *settling.of(phase).0 = Stand::Charged;
        }
        for Failed { sender, sequence, class } in failed {
            self.fail(Key { sender: *sender, sequence: *sequence }, *class);
        }
    }
}
