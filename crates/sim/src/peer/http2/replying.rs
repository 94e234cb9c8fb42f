//! A peer that does not speak what was agreed on, or does not agree: it replies once, with bytes of
//! its own, and answers nothing.

use super::drawn::Server;
use super::upgrade::AGREES;
use crate::peer::Act;
use crate::peers::What;
use crate::scenario::{Bytes, End, Version};

/// The peer of one connection.
#[derive(Debug)]
pub(super) struct Replying {
    index: u32,
    reply: (Bytes, End),
    /// The version was negotiated, so that the client may send before it has the reply.
    negotiated: bool,
    /// The bytes that have come before the reply.
    came: Vec<u8>,
    replied: bool,
    mistake: Option<String>,
}

impl Replying {
    pub(super) fn new(index: u32, reply: (Bytes, End), negotiated: bool) -> Self {
        Replying { index, reply, negotiated, came: Vec::new(), replied: false, mistake: None }
    }

    /// Whether the client may send anything after the reply.
    fn goes_on(&self) -> bool {
        self.negotiated || self.reply.0.0.starts_with(AGREES)
    }
}

impl Server for Replying {
    fn connected(&mut self, _: u64, _: &mut Vec<Act>) {}

    fn receive(&mut self, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        if self.replied {
            if !self.goes_on() {
                self.mistake = Some("more, although the upgrade was refused".to_owned());
            }
            return;
        }
        self.came.extend_from_slice(bytes);
        self.replied = self.negotiated || self.came.ends_with(b"\r\n\r\n");
        if !self.replied {
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

    fn mistake(&self) -> Option<&str> {
        self.mistake.as_deref()
    }

    /// Its reply may be a whole answer in the version that was negotiated.
    fn whole(&self) -> Option<u64> {
        (!self.negotiated).then_some(0)
    }
}
