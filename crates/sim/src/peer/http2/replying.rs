//! A peer that does not speak what ALPN agreed on: it replies once, with bytes of its own, and
//! answers nothing.

use super::server::Server;
use crate::peer::Act;
use crate::peers::What;
use crate::scenario::{Bytes, End, Version};

/// The peer of one connection.
#[derive(Debug)]
pub(super) struct Replying {
    index: u32,
    reply: (Bytes, End),
    replied: bool,
}

impl Replying {
    pub(super) fn new(index: u32, reply: (Bytes, End)) -> Self {
        Replying { index, reply, replied: false }
    }
}

impl Server for Replying {
    fn connected(&mut self, _: u64, _: &mut Vec<Act>) {}

    fn receive(&mut self, at_ns: u64, _: &[u8], acts: &mut Vec<Act>) {
        if std::mem::replace(&mut self.replied, true) {
            return;
        }
        let (Bytes(reply), end) = self.reply;
        let send = (!reply.is_empty()).then(|| What::Send(reply.to_vec(), None));
        let all = [send, end.act()].into_iter().flatten();
        acts.extend(all.map(|what| Act { on: self.index, at_ns, what }));
    }

    fn ended(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        acts.push(Act { on: self.index, at_ns, what: What::Fin });
    }

    fn version(&self) -> Option<Version> {
        None
    }

    /// Its reply may be a whole answer in the version that was negotiated.
    fn whole(&self) -> Option<u64> {
        None
    }
}
