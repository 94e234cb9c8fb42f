//! A peer that has chosen HTTP/1.1 although it was offered HTTP/2.

use std::sync::Arc;

use super::server::Server;
use crate::chance::Chance;
use crate::peer::{Act, Peer, Talking};
use crate::scenario::{Manner, Scenario, Version};

/// The peer, and a check that requests are in HTTP/1.1.
#[derive(Debug)]
pub(super) struct Http1 {
    peer: Peer,
    /// The method of every request; none if a site knows what requests have to be.
    method: Option<&'static str>,
    /// Bytes that have come.
    came: usize,
    mistake: Option<String>,
}

impl Http1 {
    pub(super) fn new(
        scenario: &Arc<Scenario>,
        index: u32,
        method: &'static str,
        next: (Manner, Chance),
        talking: Option<Talking>,
    ) -> Self {
        let method = talking.is_none().then_some(method);
        let peer = Peer::new(scenario, index, next, talking);
        Http1 { peer, method, came: 0, mistake: None }
    }
}

impl Server for Http1 {
    fn connected(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        self.peer.connected(at_ns, acts);
    }

    fn receive(&mut self, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        let begin = self.method.map(|method| format!("{method} / HTTP/1.1\r\n"));
        let begin = begin.unwrap_or_default();
        let expected = begin.as_bytes().get(self.came..).unwrap_or_default();
        if expected.iter().zip(bytes).any(|(expected, came)| expected != came) {
            self.mistake = Some("a request that is not in HTTP/1.1".to_owned());
        }
        self.came += bytes.len();
        self.peer.receive(at_ns, bytes, acts);
    }

    fn ended(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        self.peer.ended(at_ns, acts);
    }

    fn reads(&self) -> bool {
        !self.peer.reading_paused
    }

    fn version(&self) -> Option<Version> {
        Some(Version::Http1)
    }

    fn requests(&self) -> u64 {
        self.peer.begun()
    }

    fn mistake(&self) -> Option<&str> {
        self.mistake.as_deref()
    }

    fn whole(&self) -> Option<u64> {
        None
    }
}
