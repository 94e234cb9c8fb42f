//! Datagrams over epoll: one call receives (`recvmmsg`) or sends (`sendmmsg`) several blocks. A
//! block that finds no room waits whole.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::calls::Calls;
use super::{Epoll, READS_PER_TURN};
use crate::Remote;
use crate::datagram::message::Message;
use crate::datagram::receive::{BLOCKS, Inbox, last_error};
use crate::datagram::{Block, Datagrams};
use crate::datagram_socket::{NotSent, connect, end, ended};
use crate::glance::keep_time;
use crate::net::{Conn, ConnectError, Program, Token};

/// Bytes of one socket that wait for room in the kernel; beyond them datagrams are dropped. That is
/// about what the kernel itself keeps by default (`net.core.wmem_default`), so nothing waits for
/// long.
const WAITING_BYTES_MOST: usize = 256 * 1024;
const SEND_FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// The state of a datagram socket beside its descriptor.
#[derive(Debug)]
pub(super) struct Side {
    /// It receives from one peer only.
    connected: bool,
    /// The kernel segments blocks.
    segmented: bool,
    /// Blocks that the kernel had no room for.
    waiting: VecDeque<Block>,
    waiting_bytes: usize,
    /// Datagrams that its receive queue had no room for.
    overflowed: u32,
}

impl Side {
    pub(super) fn new(connected: bool) -> Self {
        Side {
            connected,
            segmented: true,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            overflowed: 0,
        }
    }

    /// Keeps a block until there is room; false if too much waits already.
    fn keep(&mut self, block: &Datagrams<'_>) -> bool {
        let room = self.waiting_bytes + block.bytes.len() <= WAITING_BYTES_MOST;
        if room {
            self.waiting_bytes += block.bytes.len();
            self.waiting.push_back(Block::of(block, Vec::new()));
        }
        room
    }
}

impl<K: Calls> Epoll<K> {
    pub(super) fn connect_datagrams(
        &mut self,
        key: u32,
        to: Remote<'_>,
    ) -> Result<Token, ConnectError> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = connect(to, flags)?;
        self.add_datagrams(fd, key, true).map_err(crate::socket::connect_error)
    }

    pub(super) fn add_datagrams(
        &mut self,
        fd: OwnedFd,
        key: u32,
        connected: bool,
    ) -> Result<Token, Errno> {
        let token = self.add(fd, key, connected)?;
        self.inbox.get_or_insert_with(|| Box::new(Inbox::new()));
        self.sockets[token.index as usize].datagrams = Some(Box::new(Side::new(connected)));
        Ok(token)
    }

    /// Opens the bound socket that the driver was given, if any, and notifies the program.
    pub(super) fn bound<P: Program>(&mut self, program: &mut P) -> Result<(), Errno> {
        let Some(fd) = self.bound.take() else { return Ok(()) };
        let token = self.add_datagrams(fd, 0, false)?;
        let key = program.handle_bound(self, token);
        if let Some(socket) = self.live(token) {
            socket.key = key;
        }
        Ok(())
    }

    /// Handles an event on a datagram socket.
    pub(super) fn datagrams_ready<P: Program>(
        &mut self,
        program: &mut P,
        token: Token,
        flags: EventFlags,
    ) {
        let Some(socket) = self.live(token) else { return };
        let conn = Conn { key: socket.key, token };
        if let Some(ended) = socket.failed.take() {
            end(self, program, conn, ended);
        }
        if flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP)
            && let Some(mut inbox) = self.inbox.take()
        {
            let mut reads = 0;
            while self.read_datagrams(program, token, &mut inbox, flags) {
                reads += 1;
                if reads == READS_PER_TURN {
                    self.arm_again(token);
                    break;
                }
            }
            self.inbox = Some(inbox);
        }
        if flags.contains(EventFlags::OUT) {
            self.flush_datagrams(token);
        }
    }

    /// Reads once; true if there may be more to read now.
    fn read_datagrams<P: Program>(
        &mut self,
        program: &mut P,
        token: Token,
        inbox: &mut Inbox,
        flags: EventFlags,
    ) -> bool {
        let Some(socket) = self.live(token) else { return false };
        let conn = Conn { key: socket.key, token };
        let (Some(fd), Some(side)) = (&socket.fd, &socket.datagrams) else { return false };
        let named = !side.connected;
        let count = match inbox.receive(fd) {
            Ok(count) => count,
            Err(errno) => {
                if let Some(ended) = ended(errno) {
                    end(self, program, conn, ended);
                }
                return errno != Errno::AGAIN;
            }
        };
        for at in 0..count {
            let (datagrams, ancillary) = inbox.datagrams(at, named);
            let side = self.live(token).and_then(|socket| socket.datagrams.as_mut());
            let Some(side) = side else { return false };
            let since = ancillary.overflowed.wrapping_sub(side.overflowed);
            side.overflowed = ancillary.overflowed;
            self.overflowed += u64::from(since);
            let (clock, now_ns) = (self.clock, self.now_ns);
            let arrived_ns = |ns| self.stamps.arrived_ns(clock, now_ns, ns);
            self.arrived_ns = ancillary.stamp_ns.and_then(arrived_ns);
            program.handle_datagrams(self, conn, datagrams);
            self.arrived_ns = None;
            if self.glance.is_due(datagrams.bytes.len()) {
                keep_time(self, program);
            }
        }
        // Fewer blocks mean that the socket is empty. The next read reports a pending error.
        count == BLOCKS || flags.contains(EventFlags::ERR)
    }

    pub(super) fn send_blocks(&mut self, token: Token, datagrams: Datagrams<'_>) {
        self.note_sending();
        let side = self.live(token).and_then(|socket| socket.datagrams.as_ref());
        let Some(side) = side else { return };
        let mut blocks = datagrams.blocks(side.segmented);
        let first = blocks.next().map(|bytes| Datagrams { bytes, ..datagrams });
        let mut more = blocks.map(|bytes| Datagrams { bytes, ..datagrams }).peekable();
        if more.peek().is_none() {
            self.send_together(token, first.as_slice());
            return;
        }
        let all: Vec<_> = first.into_iter().chain(more).collect();
        self.send_together(token, &all);
    }

    fn send_together(&mut self, token: Token, mut blocks: &[Datagrams<'_>]) {
        while let Some(first) = blocks.first()
            && let Some(socket) = self.live(token)
            && let (Some(fd), Some(side)) = (&socket.fd, &socket.datagrams)
        {
            let waits = !side.waiting.is_empty();
            let outcome = if waits { Err(NotSent::Later) } else { send(fd, blocks) };
            blocks = match outcome {
                Ok(count) => &blocks[count..],
                Err(why) => {
                    self.note_not_sent(token, first, why);
                    &blocks[1..]
                }
            };
        }
    }

    fn note_not_sent(&mut self, token: Token, block: &Datagrams<'_>, why: NotSent) {
        let Some(socket) = self.live(token) else { return };
        let Some(side) = &mut socket.datagrams else { return };
        match why {
            NotSent::Later => {
                if !side.keep(block) {
                    self.dropped += block.count() as u64;
                }
            }
            NotSent::OneByOne => {
                side.segmented = false;
                let single: Vec<_> =
                    block.iter().map(|bytes| Datagrams { bytes, ..*block }).collect();
                self.send_together(token, &single);
            }
            NotSent::PeerClose(ended) => {
                // The program is at work now, so it is notified with the next batch.
                socket.failed = Some(ended);
                self.dropped += block.count() as u64;
                self.arm_again(token);
            }
            NotSent::Dropped => self.dropped += block.count() as u64,
        }
    }

    /// Sends what waits, now that there is room.
    fn flush_datagrams(&mut self, token: Token) {
        while let Some(socket) = self.live(token)
            && let (Some(fd), Some(side)) = (&socket.fd, &mut socket.datagrams)
            && !side.waiting.is_empty()
        {
            let blocks: Vec<_> = side.waiting.iter().take(BLOCKS).map(Block::datagrams).collect();
            let outcome = send(fd, &blocks);
            if outcome == Err(NotSent::Later) {
                return;
            }
            let mut dropped = 0;
            for waited in side.waiting.drain(..outcome.unwrap_or(1)) {
                side.waiting_bytes -= waited.bytes.len();
                dropped += if outcome.is_err() { waited.datagrams().count() as u64 } else { 0 };
            }
            self.dropped += dropped;
        }
    }
}

/// Sends as many blocks as the kernel takes at once, without waiting. Returns their number, or why
/// not even the first was sent.
fn send(fd: &OwnedFd, blocks: &[Datagrams<'_>]) -> Result<usize, NotSent> {
    let about = |block: &Datagrams<'_>| Message::about(block, block.bytes.len());
    if let [block] = blocks {
        let mut message = about(block);
        let header = message.header(block.bytes);
        // SAFETY: the header points into the message and to the bytes, which live through the call.
        #[allow(unsafe_code)]
        let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), header, SEND_FLAGS) };
        let refused = || NotSent::of(last_error(), message.is_segmented());
        return if sent < 0 { Err(refused()) } else { Ok(1) };
    }
    let blocks = &blocks[..blocks.len().min(BLOCKS)];
    let mut messages: Vec<_> = blocks.iter().map(about).collect();
    let mut headers: Vec<_> = messages.iter_mut().zip(blocks).map(header).collect();
    // SAFETY: the headers point into the messages and to the bytes, which live through the call;
    // the messages are not moved any more.
    #[allow(unsafe_code)]
    let sent = unsafe {
        libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), headers.len() as u32, SEND_FLAGS as _)
    };
    let segmented = messages.first().is_some_and(Message::is_segmented);
    usize::try_from(sent).map_err(|_| NotSent::of(last_error(), segmented))
}

fn header((message, block): (&mut Message, &Datagrams<'_>)) -> libc::mmsghdr {
    // SAFETY: `header` returns a pointer into the message, which is alive here.
    #[allow(unsafe_code)]
    let msg_hdr = unsafe { *message.header(block.bytes) };
    libc::mmsghdr { msg_hdr, msg_len: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_waits_whole_and_in_order_up_to_a_limit() {
        let (mut side, block) = (Side::new(true), vec![7; 1000]);
        let fits = WAITING_BYTES_MOST / block.len();
        for number in 0..2 * fits {
            let segment_bytes = 1 + number;
            let kept = side.keep(&Datagrams { segment_bytes, ..Datagrams::one(&block) });
            assert_eq!(kept, number < fits, "block {number}");
        }
        let sizes: Vec<_> =
            side.waiting.iter().map(|block| block.datagrams().segment_bytes).collect();
        assert_eq!(sizes, (1..=fits).collect::<Vec<_>>());
        assert!(side.waiting.iter().all(|waiting| waiting.bytes == block));
    }
}
