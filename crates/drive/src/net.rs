//! The seam between programs and drivers.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::Remote;
use crate::clock::unix_time;
use crate::datagram::Datagrams;
use crate::host::{ThreadUse, thread_cpu_ns, thread_use};

/// One socket of a driver. A token outlives its socket harmlessly: what is asked of a closed one is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Place in the driver's table.
    pub index: u32,
    /// Which user of that place.
    pub generation: u32,
}

/// How a peer's side of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerClose {
    /// An orderly close.
    Fin,
    /// A reset, or any other error of the socket.
    Reset,
    /// Nobody listens for these datagrams (ICMP port unreachable). The socket stays open until the program closes it: the
    /// next datagram may find a listener.
    Refused,
}

/// Why no connection came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The peer refused, or nobody listens and the kernel connected the socket to itself.
    Refused,
    /// No answer in time (the kernel's own limit; the program has its own).
    Timeout,
    /// No route.
    Unreachable,
    /// This machine has no address of the peer's family to connect from: mostly, IPv6 is switched off.
    NoSource,
    /// No local port is left.
    Ports,
    /// No file descriptor is left.
    Fds,
    /// The peer reset the connection while it was set up.
    Reset,
    /// The peer's queue is full, and nobody waits in it: to be tried again (socket files only).
    Busy,
}

/// For how long events may wait for each other before the driver wakes its program, as a network card coalesces
/// interrupts: a program that is woken for each of many spends more on waking than on them, and so does who wakes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// So many are enough; below 2 nothing is coalesced.
    pub events: u32,
    /// None waits for others longer than this, in us; 0 for not at all.
    pub within_us: u32,
}

/// The time that it took to hand some sends to the kernel, in ns on the driver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// Before the first of them.
    pub began_ns: u64,
    /// Behind the last.
    pub ended_ns: u64,
}

impl HandOver {
    /// When each of `count` sends left, in their order: each has an equal part of the time, and left in its middle.
    ///
    /// Within one send lie the system call, the packet on its way, and with a peer on this machine also its reception and
    /// the waking of the peer. A reading of the clock behind a single send was 25 to 31 us behind its packet, of some 30.
    pub fn times(self, count: usize) -> impl Iterator<Item = u64> {
        let count = count as u64;
        let each_ns = self.ended_ns.saturating_sub(self.began_ns) / count.max(1);
        (0..count).map(move |place| self.began_ns + place * each_ns + each_ns / 2)
    }
}

/// What a program may ask of its driver.
pub trait Net {
    /// The clock, read once per batch of events, in ns.
    fn now_ns(&self) -> u64;

    /// Reads the clock anew: for a program that does much at one moment.
    fn read_clock(&mut self);

    /// For how long the driver has polled without an event so far, in ns: time that looks like work.
    fn spun_ns(&self) -> u64 {
        0
    }

    /// CPU time of the calling thread since it began, in ns. Whoever plays the clock plays this, too.
    fn thread_cpu_ns(&self) -> u64 {
        thread_cpu_ns()
    }

    /// What the calling thread has used since it began, likewise. To ask opens a file of the kernel: once a phase, not for
    /// every batch.
    fn thread_use(&self) -> ThreadUse {
        thread_use()
    }

    /// The wall clock, likewise, as the time since 1970 in UTC.
    fn unix_time(&self) -> Duration {
        unix_time()
    }

    /// From now on the thread is to run as soon as it is woken, or when the kernel sees fit. Where it shares a CPU with the
    /// peer, to run at once interrupts the peer.
    fn wake_promptly(&mut self, _promptly: bool) {}

    /// The thread does not sleep before that moment, in ns.
    fn stay_awake_until(&mut self, _at_ns: u64) {}

    /// Whether this driver can coalesce events.
    fn can_coalesce(&self) -> bool {
        false
    }

    /// How events are coalesced from now on; at first they are not.
    fn coalesce(&mut self, _coalescing: Coalescing) {}

    /// Begins to connect; `key` comes back with everything about this socket.
    ///
    /// # Errors
    /// What the kernel says at once; what it says later comes as `handle_connect_error`.
    fn connect(
        &mut self,
        key: u32,
        to: Remote<'_>,
        from: Option<IpAddr>,
    ) -> Result<Token, ConnectError>;

    /// Sends; what the kernel does not take now is kept and sent later, in order.
    fn send(&mut self, token: Token, bytes: &[u8]);

    /// Sends a part of shared bytes; what the kernel does not take now is not copied.
    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>);

    /// Sends datagrams over a socket of theirs. What the kernel does not take now waits whole, up to a limit of the driver;
    /// beyond it datagrams are dropped ([`Net::dropped_datagrams`]). One larger than the network takes is dropped, too.
    fn send_datagrams(&mut self, _token: Token, _datagrams: Datagrams<'_>) {}

    /// How many datagrams of all sockets did not leave: they found no room, or the kernel refused them.
    fn dropped_datagrams(&self) -> u64 {
        0
    }

    /// How many datagrams came and found the queue of their socket full, as far as that is known: the kernel tells it with
    /// the next one that finds room.
    fn overflowed_datagrams(&self) -> u64 {
        0
    }

    /// Hands to the kernel at once what a driver would hand over with the rest of the batch. Returns when all that was sent
    /// since the last call was handed over, unless it is queued ([`Net::queued_bytes`]). The time of the batch stays as it
    /// is.
    fn hand_over(&mut self) -> HandOver {
        HandOver { began_ns: self.now_ns(), ended_ns: self.now_ns() }
    }

    /// From now on [`Net::arrived_ns`] is known of this connection, where the kernel can tell.
    fn watch_arrivals(&mut self, _token: Token) {}

    /// While an input is handled: when the kernel received its last byte, in ns on the driver's clock; of datagrams, when it
    /// received them, which it joins as they come. None for a connection that is not watched, and where the kernel did not
    /// tell.
    fn arrived_ns(&self) -> Option<u64> {
        None
    }

    /// Bytes that were sent over this connection and that its peer's kernel has not acknowledged; none where ours does not
    /// tell. To ask costs a system call.
    fn unacknowledged_bytes(&mut self, _token: Token) -> Option<u64> {
        None
    }

    /// The shortest round trip that the kernel has seen on this connection, likewise.
    fn least_rtt_ns(&mut self, _token: Token) -> Option<u64> {
        None
    }

    /// Ends our side when everything has been sent; the peer is still heard.
    fn end_sending(&mut self, token: Token);

    /// Bytes that the kernel has not taken yet. A program that sends unasked has to look: only what a peer that was
    /// accepted asks for is bounded by the driver, which stops hearing who takes nothing. Who was connected to is heard
    /// always: a program that asks has to look whether what it hears was asked ([`Net::queued_bytes`]).
    fn unsent_bytes(&self, _token: Token) -> usize {
        0
    }

    /// Of those, what has certainly not left: bytes that the kernel has not even been offered, or has refused.
    fn queued_bytes(&self, _token: Token) -> usize {
        0
    }

    /// Closes at once; what was not sent is lost.
    fn close(&mut self, token: Token);

    /// Closes at once, and lets the peer have a reset. Over a socket file, and where the driver has no descriptor of
    /// its own for the socket, the peer sees a close.
    fn reset(&mut self, token: Token) {
        self.close(token);
    }

    /// Closes when everything has been sent.
    fn finish(&mut self, token: Token);
}

/// A program: hears what happened, asks for what comes next.
pub trait Program {
    /// Somebody rang the [`crate::Waker`].
    fn handle_wake(&mut self, net: &mut impl Net);

    /// A peer connected; the answer is the key of the new socket.
    fn handle_accepted(&mut self, net: &mut impl Net, token: Token) -> u32;

    /// The driver's own socket of datagrams is open; the answer is its key.
    fn handle_bound(&mut self, _net: &mut impl Net, _token: Token) -> u32 {
        0
    }

    /// Datagrams came. A program that never asks for any hears of none.
    fn handle_datagrams(
        &mut self,
        _net: &mut impl Net,
        _key: u32,
        _token: Token,
        _datagrams: Datagrams<'_>,
    ) {
    }

    /// The connection is established. A program that never connects hears of none.
    fn handle_connected(&mut self, _net: &mut impl Net, _key: u32, _token: Token) {}

    /// The connection did not come about; the token is closed.
    fn handle_connect_error(
        &mut self,
        _net: &mut impl Net,
        _key: u32,
        _token: Token,
        _why: ConnectError,
    ) {
    }

    /// Bytes came. With `ending` it is known that more follows at once, the peer's close or other bytes: they are not the
    /// last word.
    fn handle_input(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        bytes: &[u8],
        ending: bool,
    );

    /// Bytes had to wait ([`Net::queued_bytes`]), and the last of them has left. Of what left at once nothing is heard.
    fn handle_drained(&mut self, _net: &mut impl Net, _key: u32, _token: Token) {}

    /// The peer's side has ended; the token is still open for sending unless `Reset`.
    fn handle_end(&mut self, net: &mut impl Net, key: u32, token: Token, ended: PeerClose);

    /// [`Program::wake_at_ns`] has come.
    fn handle_time(&mut self, net: &mut impl Net);

    /// A batch of events is over.
    fn handle_batch_end(&mut self, _net: &mut impl Net) {}

    /// When to call `handle_time` next, on the driver's clock; none for never.
    fn wake_at_ns(&self) -> Option<u64>;

    /// The loop is to end.
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
