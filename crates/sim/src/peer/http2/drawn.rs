//! The peers of one thread, if HTTP/2 may be spoken: one for each connection, in the version that
//! it has chosen.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::replying::Replying;
use super::server::Server;
use super::{Http2, http1::Http1};
use crate::chance::Chance;
use crate::peer::{Act, Shared, Talking, Turns};
use crate::peers::{Peers, Spoken, Versions};
use crate::scenario::{Accept, Choice, Http2Plan, Manner, Pace, Proxy, Scenario, Start, Version};

/// The number of times that the request with each number reached any peer, over all threads.
pub(crate) type Numbers = Rc<RefCell<BTreeMap<u64, u32>>>;

/// One connection, and whether it was established.
#[derive(Debug)]
struct Connection {
    server: Box<dyn Server>,
    choice: Choice,
    pace: Pace,
    proxy: Proxy,
    established: bool,
}

/// The peers that a scenario describes.
#[derive(Debug)]
pub(crate) struct DrawnHttp2 {
    turns: Turns,
    plan: Http2Plan,
    /// The connections by number.
    connections: BTreeMap<u32, Connection>,
    numbers: Numbers,
    site: Option<Shared>,
}

impl DrawnHttp2 {
    pub(crate) fn new(
        scenario: &Arc<Scenario>,
        plan: &Http2Plan,
        thread: u32,
        numbers: &Numbers,
        site: Option<&Shared>,
    ) -> Self {
        let (turns, connections) = (Turns::new(scenario, thread), BTreeMap::new());
        let (numbers, site) = (Rc::clone(numbers), site.cloned());
        DrawnHttp2 { turns, plan: plan.clone(), connections, numbers, site }
    }

    fn server(
        &self,
        index: u32,
        (manner, chance): (Manner, Chance),
        talking: Option<Talking>,
    ) -> Box<dyn Server> {
        let Http2Plan { http, start, .. } = &self.plan;
        let scenario = &self.turns.scenario;
        let negotiated = matches!(start, Start::Negotiated(_));
        match manner.http2.reply.filter(|_| negotiated) {
            Some(reply) => Box::new(Replying::new(index, reply)),
            None if negotiated && manner.http2.choice.version() == Version::Http1 => {
                Box::new(Http1::new(scenario, index, http.method, (manner, chance), talking))
            }
            None => {
                let (method, tls) = (http.method, scenario.tls);
                Box::new(Http2::new(index, (manner, chance), method, tls, talking))
            }
        }
    }

    fn with(&mut self, index: u32, act: impl FnOnce(&mut dyn Server)) {
        if let Some(connection) = self.connections.get_mut(&index) {
            act(connection.server.as_mut());
        }
    }

    fn servers(&self) -> impl Iterator<Item = &dyn Server> {
        self.connections.values().map(|connection| connection.server.as_ref())
    }

    fn spoken(&self, version: Version) -> Spoken {
        let established = self.connections.values().filter(|connection| connection.established);
        established.map(|connection| connection.server.as_ref()).fold(
            Spoken::default(),
            |mut spoken, server| {
                if server.version() == Some(version) {
                    spoken.established += 1;
                    spoken.used += u64::from(server.requests() > 0);
                }
                spoken
            },
        )
    }
}

impl Peers for DrawnHttp2 {
    fn attempt(&mut self, index: u32, origin: u32) -> Accept {
        let next = self.turns.next(index, origin);
        let talking = self.turns.talking(self.site.as_ref(), index, origin);
        let (accept, choice) = (next.0.accept, next.0.http2.choice);
        let (pace, proxy) = (next.0.pace, next.0.proxy.clone());
        let server = self.server(index, next, talking);
        let connection = Connection { server, choice, pace, proxy, established: false };
        self.connections.insert(index, connection);
        accept
    }

    fn connected(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        if let Some(connection) = self.connections.get_mut(&index) {
            connection.established = true;
            connection.server.connected(at_ns, acts);
        }
    }

    fn receive(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        let mut numbers = Vec::new();
        self.with(index, |server| {
            server.receive(at_ns, bytes, acts);
            numbers = server.take_numbers();
        });
        for number in numbers {
            *self.numbers.borrow_mut().entry(number).or_default() += 1;
        }
    }

    fn ended(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.with(index, |server| server.ended(at_ns, acts));
    }

    fn go_on(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.with(index, |server| server.go_on(at_ns, acts));
    }

    fn gone(&mut self, index: u32) {
        self.with(index, |server| server.gone());
    }

    fn reads(&self, index: u32) -> bool {
        self.connections.get(&index).is_none_or(|connection| connection.server.reads())
    }

    fn pace(&self, index: u32) -> Pace {
        self.connections.get(&index).map_or(Pace::default(), |connection| connection.pace)
    }

    fn proxy(&self, index: u32) -> Option<Proxy> {
        self.connections.get(&index).map(|connection| connection.proxy.clone())
    }

    fn requests(&self) -> u64 {
        self.servers().map(Server::requests).sum()
    }

    fn requests_on(&self, index: u32) -> u64 {
        self.connections.get(&index).map_or(0, |connection| connection.server.permitted())
    }

    fn mistake(&self) -> Option<String> {
        let of_site = self.site.as_ref().and_then(Shared::mistake);
        let of_connection = || {
            self.connections.iter().find_map(|(index, connection)| {
                connection.server.mistake().map(|mistake| format!("#{index}: {mistake}"))
            })
        };
        of_site.or_else(of_connection)
    }

    fn whole(&self) -> Option<u64> {
        self.servers().map(Server::whole).sum()
    }

    fn repeats_most(&self) -> u32 {
        let of_site = self.site.as_ref().map_or(0, Shared::repeats_most);
        self.numbers.borrow().values().copied().max().unwrap_or(0).max(of_site)
    }

    fn alpn(&self, index: u32) -> &'static [&'static str] {
        match (self.plan.start, self.connections.get(&index)) {
            (Start::Negotiated(_), Some(connection)) => connection.choice.alpn(),
            _ => &[],
        }
    }

    fn versions(&self) -> Option<Versions> {
        let other = self.servers().filter(|server| server.version().is_none()).count() as u64;
        let (http1, http2) = (self.spoken(Version::Http1), self.spoken(Version::Http2));
        Some(Versions { http1, http2, other })
    }
}
