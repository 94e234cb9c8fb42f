//! A peer on one connection, as a pure state machine. It takes bytes and a time, and returns
//! actions, each with its time.
//!
//! How it works: the protocol decides only where a request ends and what its answer looks like
//! ([`Speech`]). Whether the answer is right, late, torn or doubled depends on the [`Manner`], in
//! the same way for all protocols. Must not know: the generator, nor what the kernel does with the
//! peer's bytes.

mod echo;
mod http;
mod http2;
mod site;
mod websocket;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::chance::Chance;
use crate::peers::{Act, Peers, What};
use crate::scenario::{
    Accept, End, Http2Plan, Manner, Pace, Protocol, Proxy, Scenario, Style, Trick,
};
pub use site::Book;
pub(crate) use site::{
    Asked, PATTERN, Reply, Shared, UPLOAD, host, path, path_of_step, row_text, value_name,
};

/// Stands for a connection number in an action that applies to all listeners.
const ALL: u32 = u32::MAX;

/// The number, size in bytes and spacing in ns of the pieces of a flood. Together they are more
/// than the generator may keep.
const FLOOD_PIECES: u64 = 48;
const FLOOD_PIECE_BYTES: usize = 8 * 1024;
const FLOOD_EVERY_NS: u64 = 20_000;
/// The size in bytes of a body that does not end: more than a session keeps of an answer.
const ENDLESS_BYTES: usize = 3 << 20;

/// A request that has come whole.
#[derive(Debug)]
pub(crate) struct Request {
    /// The offset in the peer's input at which it began.
    start: u64,
    /// For an echo, the bytes to send back.
    payload: Vec<u8>,
    /// For a broadcast, the bytes to send first to every listener.
    to_all: Option<Vec<u8>>,
    /// For a conversation, the answer.
    reply: Option<Reply>,
}

impl Request {
    /// A request that began at this offset.
    fn at(start: u64) -> Self {
        Request { start, payload: Vec::new(), to_all: None, reply: None }
    }
}

/// The site that a connection talks to.
#[derive(Clone, Debug)]
pub(crate) struct Talking {
    site: Shared,
    /// The thread and the number of the connection, and its origin.
    on: (u32, u32),
    origin: u32,
}

impl Talking {
    /// Whether the parts of streams are frames.
    fn counts_frames(&self) -> bool {
        self.site.is_of_chunks()
    }

    /// Notes a request that has come; returns its answer.
    fn take(&self, asked: &Asked) -> Option<Reply> {
        self.site.note(asked, self.on, self.origin);
        self.site.reply(asked)
    }
}

/// The differences between protocols.
pub(crate) trait Speech {
    /// Takes input. Adds the complete requests to `requests`, and replies to anything else to
    /// `output`.
    fn receive(&mut self, bytes: &[u8], requests: &mut Vec<Request>, output: &mut Vec<u8>);

    /// Writes the right answer. With `last` it announces the end of the connection.
    fn answer(&mut self, request: &Request, style: Style, last: bool, out: &mut Vec<u8>);

    /// Requests of which at least a part has come.
    fn begun(&self) -> u64;

    /// Whether this connection receives broadcasts.
    fn listens(&self) -> bool {
        false
    }

    /// Whether the other side has said that nothing follows.
    fn is_over(&self) -> bool {
        false
    }
}

#[derive(Debug)]
enum Language {
    Http(http::Http),
    Echo(echo::Echo),
    WebSocket(websocket::WebSocket),
}

impl Language {
    fn of(scenario: &Scenario, talking: Option<Talking>) -> Self {
        match &scenario.protocol {
            // A peer may choose HTTP/1.1 where HTTP/2 is offered.
            Protocol::Http(plan) | Protocol::Http2(Http2Plan { http: plan, .. }) => {
                Language::Http(http::Http::new(plan.method == "HEAD", talking))
            }
            Protocol::Tcp { size, .. } | Protocol::Udp { size } => {
                Language::Echo(echo::Echo::new(*size))
            }
            Protocol::Ws { .. } => Language::WebSocket(websocket::WebSocket::new(None)),
            Protocol::Chat { .. } => {
                Language::WebSocket(websocket::WebSocket::new(None).of_conversations())
            }
            Protocol::Broadcast { dialect, .. } => {
                Language::WebSocket(websocket::WebSocket::new(Some(*dialect)))
            }
        }
    }

    fn speech(&self) -> &dyn Speech {
        match self {
            Language::Http(http) => http,
            Language::Echo(echo) => echo,
            Language::WebSocket(websocket) => websocket,
        }
    }

    fn speech_mut(&mut self) -> &mut dyn Speech {
        match self {
            Language::Http(http) => http,
            Language::Echo(echo) => echo,
            Language::WebSocket(websocket) => websocket,
        }
    }
}

pub(crate) use http2::{DrawnHttp2, Numbers};

/// Assigns a manner to each connection attempt of a thread: attempt `n` gets manner `n`, modulo
/// their number.
#[derive(Debug)]
pub(crate) struct Turns {
    scenario: Arc<Scenario>,
    thread: u32,
    attempts: usize,
}

impl Turns {
    fn new(scenario: &Arc<Scenario>, thread: u32) -> Self {
        Turns { scenario: Arc::clone(scenario), thread, attempts: 0 }
    }

    /// Returns the manner of the next attempt, which is to an origin, and its random numbers. If a
    /// connection results, it has the number `index`. The manners of several origins are theirs.
    fn next(&mut self, index: u32, origin: u32) -> (Manner, Chance) {
        let manners = &self.scenario.peers;
        let turn = if self.scenario.parts() > 1 { origin as usize } else { self.attempts };
        let manner = manners[turn % manners.len()].clone();
        self.attempts += 1;
        let number = u64::from(self.thread) << 32 | u64::from(index);
        (manner, Chance::part(self.scenario.seed ^ 0x5eed, number))
    }
}

impl Turns {
    /// The site as a connection to an origin sees it.
    fn talking(&self, site: Option<&Shared>, index: u32, origin: u32) -> Option<Talking> {
        let on = (self.thread, index);
        site.map(|site| Talking { site: site.clone(), on, origin })
    }
}

impl End {
    /// The action by which a peer ends the connection, if any.
    pub(crate) fn act(self) -> Option<What> {
        match self {
            End::Fin => Some(What::Fin),
            End::Reset => Some(What::Reset),
            End::Silence => None,
        }
    }
}

/// The thread and number of every connection that receives broadcasts, over all threads.
pub(crate) type Listeners = Rc<RefCell<BTreeSet<(u32, u32)>>>;

/// The peers that a scenario describes. Attempt `n` of a thread meets peer `n`, modulo their
/// number.
#[derive(Debug)]
pub(crate) struct Drawn {
    turns: Turns,
    /// The peers by connection number.
    peers: BTreeMap<u32, Peer>,
    listeners: Listeners,
    site: Option<Shared>,
    /// Actions on connections of other threads.
    mail: Vec<(u32, Act)>,
}

impl Drawn {
    pub(crate) fn new(
        scenario: &Arc<Scenario>,
        thread: u32,
        listeners: &Listeners,
        site: Option<&Shared>,
    ) -> Self {
        Drawn {
            site: site.cloned(),
            turns: Turns::new(scenario, thread),
            peers: BTreeMap::new(),
            listeners: Rc::clone(listeners),
            mail: Vec::new(),
        }
    }

    /// Updates the listeners after a peer had input, and spreads its actions on `ALL` over the
    /// current listeners.
    fn after_input(&mut self, index: u32, acts: &mut Vec<Act>) {
        let listens = self.peers.get(&index).is_some_and(Peer::listens);
        let key = (self.turns.thread, index);
        match listens {
            true => self.listeners.borrow_mut().insert(key),
            false => self.listeners.borrow_mut().remove(&key),
        };
        if acts.iter().all(|act| act.on != ALL) {
            return;
        }
        for act in std::mem::take(acts) {
            if act.on != ALL {
                acts.push(act);
                continue;
            }
            for (thread, on) in self.listeners.borrow().iter() {
                let act = Act { on: *on, ..act.clone() };
                match *thread == self.turns.thread {
                    true => acts.push(act),
                    false => self.mail.push((*thread, act)),
                }
            }
        }
    }
}

impl Peers for Drawn {
    fn attempt(&mut self, index: u32, origin: u32) -> Accept {
        let next = self.turns.next(index, origin);
        let accept = next.0.accept;
        let talking = self.turns.talking(self.site.as_ref(), index, origin);
        self.peers.insert(index, Peer::new(&self.turns.scenario, index, next, talking));
        accept
    }

    fn connected(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.connected(at_ns, acts);
        }
    }

    fn receive(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.receive(at_ns, bytes, acts);
            self.after_input(index, acts);
        }
    }

    fn ended(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        if let Some(peer) = self.peers.get_mut(&index) {
            peer.ended(at_ns, acts);
            self.after_input(index, acts);
        }
    }

    fn gone(&mut self, index: u32) {
        self.listeners.borrow_mut().remove(&(self.turns.thread, index));
    }

    fn mail(&mut self) -> Vec<(u32, Act)> {
        std::mem::take(&mut self.mail)
    }

    fn reads(&self, index: u32) -> bool {
        self.peers.get(&index).is_none_or(|peer| !peer.reading_paused)
    }

    fn pace(&self, index: u32) -> Pace {
        self.peers.get(&index).map_or(Pace::default(), |peer| peer.manner.pace)
    }

    fn proxy(&self, index: u32) -> Option<Proxy> {
        self.peers.get(&index).map(|peer| peer.manner.proxy.clone())
    }

    fn requests(&self) -> u64 {
        self.peers.values().map(Peer::begun).sum()
    }

    fn mistake(&self) -> Option<String> {
        self.site.as_ref().and_then(Shared::mistake)
    }

    fn repeats_most(&self) -> u32 {
        self.site.as_ref().map_or(0, Shared::repeats_most)
    }

    fn requests_on(&self, index: u32) -> u64 {
        self.peers.get(&index).map_or(0, Peer::begun)
    }
}

/// The peer of one connection.
#[derive(Debug)]
struct Peer {
    /// The connection's number.
    index: u32,
    manner: Manner,
    chance: Chance,
    language: Language,
    /// Connections are for one request.
    close: bool,
    /// Number of requests that have come whole.
    received: u32,
    /// The time at which all output so far has been sent.
    busy_until_ns: u64,
    /// The peer has answered at least once.
    answered: bool,
    /// The offsets of the requests that were redirected, and whose next hops are to come.
    redirected: BTreeMap<u64, u64>,
    /// The peer sends nothing more.
    over: bool,
    reading_paused: bool,
    /// The peer has sent answers ahead.
    guessing: bool,
}

impl Peer {
    fn new(
        scenario: &Scenario,
        index: u32,
        (manner, chance): (Manner, Chance),
        talking: Option<Talking>,
    ) -> Self {
        Peer {
            index,
            manner,
            chance,
            language: Language::of(scenario, talking),
            close: scenario.close,
            received: 0,
            busy_until_ns: 0,
            answered: false,
            redirected: BTreeMap::new(),
            over: false,
            reading_paused: false,
            guessing: false,
        }
    }

    /// Requests of which at least a part has come.
    fn begun(&self) -> u64 {
        self.language.speech().begun()
    }

    /// Whether this connection receives broadcasts.
    fn listens(&self) -> bool {
        !self.over && self.language.speech().listens()
    }

    fn act(&self, after_ns: u64, what: What) -> Act {
        Act { on: self.index, at_ns: self.busy_until_ns + after_ns, what }
    }

    /// Plays the greeting, if there is one, when the connection is established.
    fn connected(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        if let Some(trick) = self.manner.greeting.clone() {
            let request = Request { payload: b"hello".to_vec(), ..Request::at(u64::MAX) };
            self.busy_until_ns = at_ns;
            self.play(&trick, &request, acts);
        }
    }

    /// Takes input and plans the answers.
    fn receive(&mut self, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        if self.has_forgotten(at_ns) {
            self.busy_until_ns = at_ns;
            self.end(End::Reset, 0, acts);
        }
        let (mut requests, mut output) = (Vec::new(), Vec::new());
        self.language.speech_mut().receive(bytes, &mut requests, &mut output);
        self.busy_until_ns = self.busy_until_ns.max(at_ns);
        if !output.is_empty() && !self.over {
            acts.push(self.act(0, What::Send(output, None)));
        }
        for request in requests {
            let number = self.received;
            self.received += 1;
            if self.over || self.guessing {
                continue;
            }
            let delay = self.manner.delay;
            self.busy_until_ns += self.chance.between(delay.least_ns, delay.most_ns);
            let trick = self.manner.tricks.iter().find(|(at, _)| *at == number);
            match trick.map(|(_, trick)| trick.clone()) {
                Some(trick) => self.play(&trick, &request, acts),
                None => self.answer(&request, acts),
            }
        }
        if self.language.speech().is_over() && !self.manner.keeps_open {
            self.end(End::Fin, 0, acts);
        }
    }

    fn has_forgotten(&self, at_ns: u64) -> bool {
        let quiet_ns = at_ns.saturating_sub(self.busy_until_ns);
        self.answered && self.manner.forgets_ns.is_some_and(|most_ns| quiet_ns >= most_ns)
    }

    /// Ends this side after its answers, because the other side has ended.
    fn ended(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        self.busy_until_ns = self.busy_until_ns.max(at_ns);
        if !self.manner.keeps_open {
            self.end(End::Fin, 0, acts);
        }
    }

    fn send(&self, bytes: Vec<u8>, answered: Option<u64>, acts: &mut Vec<Act>) {
        acts.push(self.act(0, What::Send(bytes, answered)));
    }

    fn end(&mut self, end: End, after_ns: u64, acts: &mut Vec<Act>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        acts.extend(end.act().map(|what| self.act(after_ns, what)));
    }

    fn right(&mut self, request: &Request, last: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let style = self.manner.style;
        self.language.speech_mut().answer(request, style, last || self.close, &mut bytes);
        bytes
    }

    fn answer(&mut self, request: &Request, acts: &mut Vec<Act>) {
        if let Some(to_all) = request.to_all.clone() {
            acts.push(Act { on: ALL, ..self.act(0, What::Send(to_all, None)) });
        }
        if request.reply.is_some() {
            self.answer_in_parts(request, acts);
        } else {
            let bytes = self.right(request, false);
            self.send(bytes, Some(request.start), acts);
        }
        self.answered = true;
        let http = matches!(self.language, Language::Http(_));
        let until_end = http && self.manner.style == Style::UntilEnd;
        if (http && self.close && !self.manner.keeps_open) || until_end {
            self.end(End::Fin, 0, acts);
        }
    }

    /// Answers a request of a conversation, whose answer may come in parts. A redirect settles no
    /// request: the one that began the chain is settled by its last answer.
    fn answer_in_parts(&mut self, request: &Request, acts: &mut Vec<Act>) {
        let Some(reply) = &request.reply else { return };
        let settles = if reply.leads {
            self.redirected.entry(reply.whole).or_insert(request.start);
            u64::MAX
        } else {
            self.redirected.remove(&reply.whole).unwrap_or(request.start)
        };
        let mut parts = http::parts(reply, self.manner.style, self.close).into_iter().peekable();
        while let Some(part) = parts.next() {
            self.busy_until_ns += part.gap_ns;
            self.send(part.bytes, Some(settles).filter(|_| parts.peek().is_none()), acts);
        }
        self.note_whole(request);
    }

    /// Tells the site that a whole answer was sent.
    fn note_whole(&self, request: &Request) {
        if let (Language::Http(http), Some(reply)) = (&self.language, &request.reply) {
            http.note_whole(reply);
        }
    }

    fn play(&mut self, trick: &Trick, request: &Request, acts: &mut Vec<Act>) {
        let right = self.right(request, matches!(trick, Trick::Announce(_)));
        match trick {
            Trick::Double => self.send([&right[..], &right[..]].concat(), None, acts),
            Trick::Truncate(percent, end) => {
                let kept = right.len() * *percent as usize / 100;
                self.send_part(request, &right[..kept], acts);
                self.end(*end, 0, acts);
            }
            Trick::EndInstead(end) => self.end(*end, 0, acts),
            Trick::EndBehind(end) => {
                self.answer(request, acts);
                self.end(*end, 0, acts);
            }
            Trick::Announce(after_ns) => {
                self.send(right, Some(request.start), acts);
                self.note_whole(request);
                self.end(End::Fin, *after_ns, acts);
            }
            Trick::Instead(bytes) => self.send(bytes.0.to_vec(), None, acts),
            Trick::Behind(bytes) => self.send([&right[..], bytes.0].concat(), None, acts),
            Trick::Dribble(every_ns) => self.dribble(&right, *every_ns, acts),
            Trick::Late(by_ns) => {
                self.busy_until_ns += by_ns;
                self.answer(request, acts);
            }
            Trick::Flood(bytes) | Trick::FloodUnread(bytes) => {
                self.reading_paused = matches!(trick, Trick::FloodUnread(_));
                let piece = bytes.0.repeat(FLOOD_PIECE_BYTES / bytes.0.len());
                for _ in 0..FLOOD_PIECES {
                    self.send(piece.clone(), None, acts);
                    self.busy_until_ns += FLOOD_EVERY_NS;
                }
            }
            Trick::Guess(every_ns, count) => {
                self.guessing = true;
                for _ in 0..*count {
                    self.busy_until_ns += every_ns;
                    self.send(right.clone(), None, acts);
                }
            }
            Trick::Endless => {
                self.send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), None, acts);
                for _ in 0..FLOOD_PIECES {
                    self.busy_until_ns += FLOOD_EVERY_NS;
                    self.send(vec![b'x'; ENDLESS_BYTES / FLOOD_PIECES as usize], None, acts);
                }
            }
            Trick::ReadsNothing => {
                self.reading_paused = true;
                self.answer(request, acts);
            }
        }
    }

    /// Sends the first bytes of the right answer: those of a conversation when they are due.
    fn send_part(&mut self, request: &Request, mut bytes: &[u8], acts: &mut Vec<Act>) {
        let Some(reply) = &request.reply else { return self.send(bytes.to_vec(), None, acts) };
        for part in http::parts(reply, self.manner.style, self.close) {
            let (now, later) = bytes.split_at(part.bytes.len().min(bytes.len()));
            if now.is_empty() {
                return;
            }
            self.busy_until_ns += part.gap_ns;
            self.send(now.to_vec(), None, acts);
            bytes = later;
        }
    }

    fn dribble(&mut self, bytes: &[u8], every_ns: u64, acts: &mut Vec<Act>) {
        for byte in bytes {
            self.busy_until_ns += every_ns;
            self.send(vec![*byte], None, acts);
        }
    }
}
