//! The interface between programs and drivers: the traits [`Program`] and [`Net`].

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::Remote;
use crate::clock::unix_time;
use crate::datagram::Datagrams;
use crate::host::{ThreadUse, thread_cpu_ns, thread_use};

/// One socket of a driver. A token may outlive its socket: requests for a closed socket are
/// ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Place in the driver's table.
    pub index: u32,
    /// Distinguishes the sockets that have used the place in turn.
    pub generation: u32,
}

/// The connection that an event is about, or the datagram socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conn {
    /// The program's number for it.
    pub key: u32,
    /// The driver's socket for it.
    pub token: Token,
}

/// The way a peer's side of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerClose {
    /// An orderly close.
    Fin,
    /// A reset, or any other error of the socket.
    Reset,
    /// Nobody listens for these datagrams (ICMP port unreachable). The socket stays open until the
    /// program closes it: the next datagram may find a listener.
    Refused,
}

/// The reason why a connection was not established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The peer refused, or nobody listens and the kernel connected the socket to itself.
    Refused,
    /// No answer in time (the kernel's own limit; the program has its own).
    Timeout,
    /// No route.
    Unreachable,
    /// This machine has no address of the peer's family to connect from; mostly, IPv6 is switched
    /// off.
    NoSource,
    /// No local port is left.
    Ports,
    /// No file descriptor is left.
    Fds,
    /// The peer reset the connection while it was set up.
    Reset,
    /// The peer's queue is full, and the attempt does not wait in it: try again (Unix sockets
    /// only).
    Busy,
}

/// The time that events may wait for each other before the driver wakes its program, as a network
/// card coalesces interrupts. A program that is woken for each of many events spends more on waking
/// than on the events, and so does whoever wakes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// This many events wake the program at once; below 2 nothing is coalesced.
    pub events: u32,
    /// No event waits longer than this for others, in us; 0 for not at all.
    pub within_us: u32,
}

/// The time that it took to hand some sends to the kernel, in ns on the driver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// The time before the first send.
    pub began_ns: u64,
    /// The time after the last send.
    pub ended_ns: u64,
}

impl HandOver {
    /// The times at which `count` sends left, in their order: each send has an equal part of the
    /// time and left in its middle.
    ///
    /// One send covers the system call, the packet's way and, with a peer on this machine, also its
    /// reception and the waking of the peer. A clock reading after a single send of some 30 us was
    /// 25 to 31 us behind its packet.
    pub fn times(self, count: usize) -> impl Iterator<Item = u64> {
        let count = count as u64;
        let each_ns = self.ended_ns.saturating_sub(self.began_ns) / count.max(1);
        (0..count).map(move |place| self.began_ns + place * each_ns + each_ns / 2)
    }
}

/// The requests that a program may make of its driver.
pub trait Net {
    /// The clock, read once per batch of events, in ns.
    fn now_ns(&self) -> u64;

    /// Reads the clock again, for a program that does much at one moment.
    fn read_clock(&mut self);

    /// Keeps the thread busy for so long, in ns.
    fn spend(&mut self, ns: u64) {
        if ns > 0 {
            self.read_clock();
            let until_ns = self.now_ns().saturating_add(ns);
            while self.now_ns() < until_ns {
                self.read_clock();
            }
        }
    }

    /// The time for which the driver has polled without an event so far, in ns: it looks like work.
    fn spun_ns(&self) -> u64 {
        0
    }

    /// CPU time of the calling thread since it began, in ns. A driver that simulates the clock
    /// simulates this, too.
    fn thread_cpu_ns(&self) -> u64 {
        thread_cpu_ns()
    }

    /// The time that the calling thread has used since it began; simulated likewise. Each call
    /// opens a file of the kernel: call it once a phase, not for every batch.
    fn thread_use(&self) -> ThreadUse {
        thread_use()
    }

    /// The wall clock as the time since 1970 in UTC; simulated likewise.
    fn unix_time(&self) -> Duration {
        unix_time()
    }

    /// Sets whether the thread runs as soon as it is woken, or when the kernel sees fit. On a CPU
    /// shared with the peer, running at once interrupts the peer.
    fn wake_promptly(&mut self, _promptly: bool) {}

    /// Keeps the thread from sleeping before that moment, in ns.
    fn stay_awake_until(&mut self, _at_ns: u64) {}

    /// Whether this driver can coalesce events.
    fn can_coalesce(&self) -> bool {
        false
    }

    /// Sets the coalescing of events from now on; at first there is none.
    fn coalesce(&mut self, _coalescing: Coalescing) {}

    /// Begins to connect; `key` comes back with every event of this socket. An error is immediate;
    /// a later one comes as `handle_connect_error`.
    fn connect(&mut self, key: u32, to: Remote<'_>) -> Result<Token, ConnectError>;

    /// Sends bytes; what the kernel does not take now is kept and sent later, in order.
    fn send(&mut self, token: Token, bytes: &[u8]);

    /// Sends a part of shared bytes, without copying what the kernel does not take now.
    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>);

    /// Sends datagrams over a datagram socket. What the kernel does not take now waits whole, up to
    /// a limit of the driver; beyond it datagrams are dropped ([`Net::dropped_datagrams`]). A
    /// datagram larger than the network takes is dropped, too.
    fn send_datagrams(&mut self, _token: Token, _datagrams: Datagrams<'_>) {}

    /// The number of datagrams of all sockets that did not leave: they found no room, or the kernel
    /// refused them.
    fn dropped_datagrams(&self) -> u64 {
        0
    }

    /// The number of datagrams that found the queue of their socket full, as far as known. The
    /// kernel reports it with the next one that finds room.
    fn overflowed_datagrams(&self) -> u64 {
        0
    }

    /// Hands to the kernel at once what a driver would hand over with the rest of the batch. On
    /// return, everything sent since the last call has been handed over, unless it is queued
    /// ([`Net::queued_bytes`]). The time of the batch does not change.
    fn hand_over(&mut self) -> HandOver {
        HandOver { began_ns: self.now_ns(), ended_ns: self.now_ns() }
    }

    /// Makes [`Net::arrived_ns`] known for this connection from now on, if the kernel can tell.
    fn watch_arrivals(&mut self, _token: Token) {}

    /// The time at which the kernel received the last byte of the input that is being handled, in
    /// ns on the driver's clock. For datagrams it is the time at which the kernel received them; it
    /// joins them as they come. None if the connection is not watched, or the kernel did not tell.
    fn arrived_ns(&self) -> Option<u64> {
        None
    }

    /// Bytes sent over this connection that its peer's kernel has not acknowledged; none if our
    /// kernel does not tell. Each call costs a system call.
    fn unacknowledged_bytes(&mut self, _token: Token) -> Option<u64> {
        None
    }

    /// The shortest round trip that the kernel has seen on this connection, in ns; none if it does
    /// not tell. Each call costs a system call.
    fn least_rtt_ns(&mut self, _token: Token) -> Option<u64> {
        None
    }

    /// Ends our side when everything has been sent; the peer's bytes are still received.
    fn end_sending(&mut self, token: Token);

    /// Bytes that the kernel has not taken yet. A program that sends unasked must check this. The
    /// driver bounds only what an accepted peer asks for: it stops reading from a peer that takes
    /// nothing. A peer that we connected to is always read, so a program that asks must check
    /// whether what it receives was asked for ([`Net::queued_bytes`]).
    fn unsent_bytes(&self, _token: Token) -> usize {
        0
    }

    /// The part of [`Net::unsent_bytes`] that has certainly not left: the kernel has not been
    /// offered it, or has refused it.
    fn queued_bytes(&self, _token: Token) -> usize {
        0
    }

    /// Reads nothing more from this connection until all that was sent over it is with the kernel;
    /// `handle_drained` tells of it. False if it is by now, and nothing changes.
    fn hold_reading(&mut self, _token: Token) -> bool {
        false
    }

    /// Closes at once; what was not sent is lost.
    fn close(&mut self, token: Token);

    /// Closes at once, and sends the peer a reset. Over a Unix socket, and where the driver has no
    /// descriptor of its own for the socket, the peer sees a close.
    fn reset(&mut self, token: Token) {
        self.close(token);
    }

    /// Closes when everything has been sent.
    fn finish(&mut self, token: Token);
}

/// A program: it is notified of what happened, and requests what comes next.
pub trait Program {
    /// The [`crate::Waker`] was rung.
    fn handle_wake(&mut self, net: &mut impl Net);

    /// A peer connected; returns the key of the new socket. A program that does not listen has
    /// none.
    fn handle_accepted(&mut self, net: &mut impl Net, token: Token) -> u32 {
        net.close(token);
        token.index
    }

    /// The driver's own datagram socket is open; returns its key.
    fn handle_bound(&mut self, _net: &mut impl Net, _token: Token) -> u32 {
        0
    }

    /// Datagrams came. Never called for a program without datagram sockets.
    fn handle_datagrams(&mut self, _net: &mut impl Net, _conn: Conn, _datagrams: Datagrams<'_>) {}

    /// The connection is established. Never called for a program that does not connect.
    fn handle_connected(&mut self, _net: &mut impl Net, _conn: Conn) {}

    /// The connection was not established; the token is closed.
    fn handle_connect_error(&mut self, _net: &mut impl Net, _conn: Conn, _why: ConnectError) {}

    /// Bytes came. With `ending`, more is known to follow at once, the peer's close or other bytes:
    /// these are not the last.
    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], ending: bool);

    /// Bytes had to wait ([`Net::queued_bytes`]), and the last of them has left. Not called for
    /// bytes that left at once, unless reading was held for them ([`Net::hold_reading`]).
    fn handle_drained(&mut self, _net: &mut impl Net, _conn: Conn) {}

    /// The peer's side has ended; the token is still open for sending unless `Reset`.
    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose);

    /// The time [`Program::wake_at_ns`] has come.
    fn handle_time(&mut self, net: &mut impl Net);

    /// A batch of events is over.
    fn handle_batch_end(&mut self, _net: &mut impl Net) {}

    /// The time of the next call of `handle_time`, on the driver's clock; none for never.
    fn wake_at_ns(&self) -> Option<u64>;

    /// Whether the loop is to end.
    fn is_done(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_send_has_its_part_of_the_time() {
        let cases: [(u64, u64, usize, &[u64]); 5] = [
            (100, 200, 1, &[150]),
            (100, 200, 2, &[125, 175]),
            (100, 100, 3, &[100, 100, 100]),
            (100, 90, 1, &[100]),
            (100, 200, 0, &[]),
        ];
        for (began_ns, ended_ns, count, expected) in cases {
            let handed = HandOver { began_ns, ended_ns };
            assert!(handed.times(count).eq(expected.iter().copied()), "{handed:?}, {count} sends");
        }
    }
}
