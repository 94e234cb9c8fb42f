//! Simulated connections, the network between both ends, and peers that follow a script.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::Rng;

/// Bytes that a socket accepts before its peer has taken any.
const SEND_BYTES: usize = 3_000;
/// Bytes that may wait to be read.
const RECEIVE_BYTES: usize = 5_000;

/// The peer's answer to an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It accepts.
    Accept,
    /// The attempt fails with this error.
    Fail(Errno),
}

/// One step of a peer's script; the next one begins when it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes this many bytes.
    Receive(usize),
    /// Takes bytes until the other side ends.
    ReceiveEnd,
    /// Sends this many bytes.
    Send(usize),
    /// Ends its side, and takes no more.
    Fin,
    /// Resets the connection.
    Reset,
}

/// A peer and what it does with one connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Whether it accepts.
    pub answer: Answer,
    /// Its steps once it has accepted.
    pub steps: Vec<Step>,
}

/// The byte at this position of what either side sends.
pub fn pattern(place: usize) -> u8 {
    (place % 251) as u8
}

/// A socket, identified by its inode. The number of a descriptor is reused as soon as it is closed,
/// by other threads of this process, too. A history that depended on numbers would differ from run
/// to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketId(u64);

impl SocketId {
    /// The socket of a descriptor; none when it is closed.
    pub(super) fn of(fd: impl AsFd) -> Option<Self> {
        rustix::fs::fstat(fd).ok().map(|stat| SocketId(stat.st_ino))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Fin,
    Reset,
}

/// The effect of a change on code that waits for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Nothing,
    /// It has become ready for something once more.
    Ready,
}

/// A change that can happen to a connection.
type Change = fn(&mut Connection, &mut Rng) -> Edge;

#[derive(Debug)]
struct Connection {
    peer: Peer,
    /// The current step, and how many bytes of it have been taken.
    step: usize,
    step_received: usize,
    /// The outcome of the attempt to connect.
    connected: Option<Result<(), Errno>>,
    /// Bytes taken from the program, and not yet by the peer.
    sent: VecDeque<u8>,
    our_side_ended: bool,
    /// A send has found too little room.
    wants_room: bool,
    peer_received: usize,
    /// Bytes sent by the peer, and still on their way.
    under_way: VecDeque<u8>,
    peer_sent: usize,
    ending: Option<End>,
    /// Bytes that have arrived and are not read yet.
    received: VecDeque<u8>,
    ended: Option<End>,
    /// Reported once, to the first send or receive that follows.
    error: Option<Errno>,
}

/// The connections, in the order in which they were begun.
#[derive(Debug, Default)]
struct Connections(Vec<(SocketId, Connection)>);

impl Connections {
    fn get(&self, socket: SocketId) -> Option<&Connection> {
        self.0.iter().find(|(id, _)| *id == socket).map(|(_, connection)| connection)
    }

    fn get_mut(&mut self, socket: SocketId) -> Option<&mut Connection> {
        self.0.iter_mut().find(|(id, _)| *id == socket).map(|(_, connection)| connection)
    }
}

/// The peer of each port.
type Peers = Box<dyn Fn(u16) -> Peer>;

/// All connections of a run, and the source of its randomness.
pub struct World {
    pub(super) rng: Rng,
    /// Whether the kernel is short of memory and loses completions that find no room; how many it
    /// has lost.
    pub(super) loses: bool,
    pub(super) lost: u32,
    /// Waits that had an event to report, and went on waiting for a send.
    pub(super) held_up: u32,
    peers: Peers,
    connections: Connections,
}

impl fmt::Debug for World {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("World").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl World {
    /// Creates a world in which `peers` gives the peer that listens at a port.
    pub fn new(seed: u64, peers: impl Fn(u16) -> Peer + 'static) -> Self {
        World {
            rng: Rng::new(seed),
            loses: false,
            lost: 0,
            held_up: 0,
            peers: Box::new(peers),
            connections: Connections::default(),
        }
    }

    /// Begins to connect a socket.
    pub(super) fn connect(&mut self, socket: SocketId, port: u16) {
        let connection = Connection {
            peer: (self.peers)(port),
            step: 0,
            step_received: 0,
            connected: None,
            sent: VecDeque::new(),
            our_side_ended: false,
            wants_room: false,
            peer_received: 0,
            under_way: VecDeque::new(),
            peer_sent: 0,
            ending: None,
            received: VecDeque::new(),
            ended: None,
            error: None,
        };
        self.connections.0.push((socket, connection));
    }

    /// The outcome of an attempt to connect; none while it is under way.
    pub(super) fn connected(&self, socket: SocketId) -> Option<Result<(), Errno>> {
        self.connections.get(socket)?.connected
    }

    /// Takes bytes from the program: all, some, or none (`EAGAIN`).
    pub(super) fn send(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, Errno> {
        let Some(connection) = self.connections.get_mut(socket) else { return Err(Errno::NOTCONN) };
        if let Some(error) = connection.error.take() {
            return Err(error);
        }
        if connection.ended == Some(End::Reset) || connection.our_side_ended {
            return Err(Errno::PIPE);
        }
        let room = (SEND_BYTES - connection.sent.len()).min(bytes.len());
        let taken = if room > 0 && self.rng.one_in(3) { self.rng.up_to(room) } else { room };
        connection.wants_room |= taken < bytes.len();
        if taken == 0 {
            return Err(Errno::AGAIN);
        }
        connection.sent.extend(&bytes[..taken]);
        Ok(taken)
    }

    /// Gives the program as much as has arrived, up to the size of the buffer; 0 bytes at the end.
    pub(super) fn receive(&mut self, socket: SocketId, buffer: &mut [u8]) -> Result<usize, Errno> {
        let Some(connection) = self.connections.get_mut(socket) else { return Err(Errno::NOTCONN) };
        let count = connection.received.len().min(buffer.len());
        if count > 0 {
            let bytes = connection.received.drain(..count);
            buffer.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
            return Ok(count);
        }
        match (connection.error.take(), connection.ended) {
            (Some(error), _) => Err(error),
            (None, Some(_)) => Ok(0),
            (None, None) => Err(Errno::AGAIN),
        }
    }

    /// True if a receive has bytes or an end to report.
    pub(super) fn is_readable(&self, socket: SocketId) -> bool {
        self.connections
            .get(socket)
            .is_some_and(|connection| !connection.received.is_empty() || connection.ended.is_some())
    }

    /// True if a send has room or an error to report.
    pub(super) fn is_writable(&self, socket: SocketId) -> bool {
        self.connections.get(socket).is_some_and(|connection| {
            let open = matches!(connection.connected, Some(Ok(())));
            let room = connection.sent.len() < SEND_BYTES;
            open && (room || connection.ended == Some(End::Reset))
        })
    }

    /// Returns whether the peer's side has ended or the connect has failed, and whether that end
    /// was disorderly.
    pub(super) fn ending(&self, socket: SocketId) -> (bool, bool) {
        self.connections.get(socket).map_or((false, false), |connection| {
            let failed = matches!(connection.connected, Some(Err(_)));
            let reset = connection.ended == Some(End::Reset);
            (failed || connection.ended.is_some(), failed || reset)
        })
    }

    /// Ends our side. A real kernel aborts a connection whose side ends while it is being set up.
    pub(super) fn end_sending(&mut self, socket: SocketId) {
        if let Some(connection) = self.connections.get_mut(socket) {
            assert_eq!(connection.connected, Some(Ok(())), "a side ends before it is connected");
            connection.our_side_ended = true;
        }
    }

    /// Lets something happen in the network, to a connection drawn from the seed. Returns the
    /// socket and whether a kernel reports the change; none if nothing can happen.
    pub(super) fn go_on(&mut self) -> Option<(SocketId, Edge)> {
        let able = self.connections.0.iter_mut().filter(|(_, connection)| connection.can_go_on());
        let mut able: Vec<_> = able.collect();
        if able.is_empty() {
            return None;
        }
        let (socket, connection) = able.swap_remove(self.rng.below(able.len()));
        Some((*socket, connection.go_on(&mut self.rng)))
    }
}

impl Connection {
    fn can_go_on(&self) -> bool {
        match self.connected {
            None => true,
            Some(Err(_)) => false,
            Some(Ok(())) => self.can_deliver() || self.can_end() || self.can_step(),
        }
    }

    fn can_deliver(&self) -> bool {
        !self.under_way.is_empty() && self.received.len() < RECEIVE_BYTES
    }

    fn can_end(&self) -> bool {
        self.ending.is_some() && self.under_way.is_empty()
    }

    /// Whether the peer can do something for its current step.
    fn can_step(&self) -> bool {
        match self.peer.steps.get(self.step) {
            None => false,
            Some(Step::Receive(_)) => !self.sent.is_empty(),
            Some(Step::ReceiveEnd) => !self.sent.is_empty() || self.our_side_ended,
            Some(Step::Send(_) | Step::Fin | Step::Reset) => true,
        }
    }

    fn go_on(&mut self, rng: &mut Rng) -> Edge {
        if self.connected.is_none() {
            self.connected = Some(match self.peer.answer {
                Answer::Accept => Ok(()),
                Answer::Fail(error) => Err(error),
            });
            return Edge::Ready;
        }
        let steps: [(bool, Change); 3] = [
            (self.can_deliver(), Self::deliver),
            (self.can_end(), Self::end),
            (self.can_step(), Self::take_step),
        ];
        let first = rng.below(steps.len());
        let mut turns = (first..first + steps.len()).map(|at| steps[at % steps.len()]);
        turns.find(|(able, _)| *able).map_or(Edge::Nothing, |(_, step)| step(self, rng))
    }

    fn deliver(&mut self, rng: &mut Rng) -> Edge {
        let most = self.under_way.len().min(RECEIVE_BYTES - self.received.len());
        let count = if rng.one_in(2) { rng.up_to(most) } else { most };
        self.received.extend(self.under_way.drain(..count));
        Edge::Ready
    }

    fn end(&mut self, _: &mut Rng) -> Edge {
        self.ended = self.ending.take();
        if self.ended == Some(End::Reset) {
            self.error = Some(Errno::CONNRESET);
            self.sent.clear();
        }
        Edge::Ready
    }

    fn take_step(&mut self, rng: &mut Rng) -> Edge {
        match self.peer.steps[self.step] {
            Step::Receive(bytes) => {
                let most = self.sent.len().min(bytes - self.step_received);
                self.peer_receives(rng.up_to(most));
                if self.step_received == bytes {
                    self.next_step();
                }
            }
            Step::ReceiveEnd if self.sent.is_empty() => self.next_step(),
            Step::ReceiveEnd => self.peer_receives(rng.up_to(self.sent.len())),
            Step::Send(bytes) => {
                self.under_way.extend((self.peer_sent..self.peer_sent + bytes).map(pattern));
                self.peer_sent += bytes;
                self.next_step();
            }
            Step::Fin => self.leave(End::Fin),
            Step::Reset => self.leave(End::Reset),
        }
        // A kernel reports room only to a socket that it has told there was none (`SOCK_NOSPACE`).
        let notified = self.wants_room && self.sent.len() < SEND_BYTES;
        self.wants_room &= !notified;
        if notified { Edge::Ready } else { Edge::Nothing }
    }

    /// Takes bytes that were sent, which must come whole and in order.
    fn peer_receives(&mut self, count: usize) {
        for byte in self.sent.drain(..count) {
            assert_eq!(
                byte,
                pattern(self.peer_received),
                "byte {} of what was sent",
                self.peer_received
            );
            self.peer_received += 1;
        }
        self.step_received += count;
    }

    fn next_step(&mut self) {
        self.step += 1;
        self.step_received = 0;
    }

    fn leave(&mut self, end: End) {
        self.ending = Some(end);
        self.step = self.peer.steps.len();
    }
}
