//! A proxy before a peer. It reads one request for a tunnel, and answers it as the peer's manner has
//! it. Only then does it connect to the peer, so that nothing of the peer comes before its answer
//! (RFC 9110 section 9.3.6). What comes behind that goes through the tunnel.

use super::Kernel;
use crate::peers::{Act, What};
use crate::scenario::Proxy;

impl Kernel {
    /// Takes bytes that have come to a connection. Returns those that the peer has; none if the
    /// proxy keeps them.
    pub(super) fn through_proxy(
        &mut self,
        at_ns: u64,
        index: u32,
        bytes: &[u8],
        acts: &mut Vec<Act>,
    ) -> Option<Vec<u8>> {
        let Some(kept) = &mut self.sockets[index as usize].proxy else {
            return Some(bytes.to_vec());
        };
        kept.extend_from_slice(bytes);
        let request = self.scenario.tunnel().unwrap_or_default();
        let len = kept.len().min(request.len());
        let right = kept[..len] == request[..len] && kept.len() <= request.len();
        let whole = kept.len() >= request.len();
        if !right {
            let how =
                format!("#{index}: more than a request for a tunnel: {}", kept.escape_ascii());
            self.seen.mistake.get_or_insert(how);
        }
        if !whole || !right {
            return None;
        }
        let mut act = |what| acts.push(Act { on: index, at_ns, what });
        match self.peers.proxy(index)? {
            Proxy::Opens(answer) => {
                act(What::SendRaw(answer.0.to_vec()));
                self.sockets[index as usize].proxy = None;
                self.peers.connected(index, at_ns, acts);
            }
            Proxy::Refuses(answer, end) => {
                if !answer.0.is_empty() {
                    act(What::SendRaw(answer.0.to_vec()));
                }
                if let Some(what) = end.act() {
                    act(what);
                }
            }
        }
        None
    }
}
