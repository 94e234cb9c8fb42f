//! Answers that had to wait: sent when their time has come, and timed until the kernel has them.
//!
//! The server checks for due answers between the requests of a batch, not only after it, and does
//! not wait until the batch's other answers are handed over. At ten thousand open requests a batch
//! lasts longer than a millisecond. Nor do requests wait until all due answers have left: then they
//! would be read all at once, and fall due all at once again.

use trueload_drive::{Net, Token};

use super::channel::Channel;
use super::connection::{Connection, NEVER_NS, Pending, Speaks};
use super::faults::{self, Fault, Slow};
use super::stream::{Next, Streamed};
use super::waits::Wait;
use super::{Closed, OUTPUT_MOST, Server};

/// Answers handed to the kernel at once: a hand-over is a small part of their own cost.
const TOGETHER: usize = 16;
/// Answers sent before waiting requests have their turn.
const IN_A_TURN: usize = 64;
/// Answers sent between two requests that have come together.
const BETWEEN: usize = 4;
/// The longest time until an answer is handed over.
const HELD_NS: u64 = 50_000;
/// After due answers were sent, the next are sent together after this time. To wake for each of
/// 200,000 answers a second costs both ends more than the answers do. The most that this delays an
/// answer is a fortieth of the lateness that is allowed (bench/wait.py).
const QUANTUM_NS: u64 = 25_000;

/// Answers that the driver has, and the kernel may not have yet.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// The time at which each of them was due.
    dues_ns: Vec<u64>,
    /// The time at which the first of them was given to the driver.
    since_ns: u64,
    /// The time until which the server does not wake for due answers.
    rests_until_ns: u64,
}

impl Leaving {
    /// The time to wake for answers of which the first is due at this time.
    #[inline]
    pub(super) fn wake_ns(&self, due_ns: u64) -> u64 {
        due_ns.max(self.rests_until_ns)
    }
}

/// The state of a connection once its due answers have been written.
enum Outcome {
    GoesOn,
    Ends,
    Reset,
}

impl Server {
    /// Reads the clock, and sends answers that are due by now.
    pub(super) fn look_for_due(&mut self, net: &mut impl Net) {
        net.read_clock();
        self.send_some_due(net, BETWEEN);
        if net.now_ns() > self.leaving.since_ns + HELD_NS {
            self.hand_over(net);
        }
    }

    /// Sends one turn's worth of due answers.
    pub(super) fn send_turn(&mut self, net: &mut impl Net) {
        self.send_some_due(net, IN_A_TURN);
    }

    fn send_some_due(&mut self, net: &mut impl Net, most: usize) {
        for sent in 0..most {
            let Some(wait) = self.waits.pop_due(net.now_ns()) else {
                if sent > 0 {
                    self.leaving.rests_until_ns = net.now_ns() + QUANTUM_NS;
                }
                return;
            };
            self.send_due(net, wait);
            if self.leaving.dues_ns.len() >= TOGETHER {
                self.hand_over(net);
            }
        }
    }

    /// Hands the answers that are leaving to the kernel.
    pub(super) fn hand_over(&mut self, net: &mut impl Net) {
        if self.leaving.dues_ns.is_empty() {
            return;
        }
        net.hand_over();
        net.read_clock();
        let dues_ns = self.leaving.dues_ns.drain(..);
        if let Some(record) = &mut self.record {
            dues_ns.for_each(|due_ns| record.delayed(net.now_ns().saturating_sub(due_ns)));
        }
    }

    /// Sends the due answers of a connection.
    pub(super) fn send_due(&mut self, net: &mut impl Net, wait: Wait) {
        let now_ns = net.now_ns();
        let place = self.connections.get_mut(wait.index as usize);
        let Some(mut connection) = place.and_then(Option::take) else { return };
        if connection.token.generation != wait.generation {
            self.connections[wait.index as usize] = Some(connection);
            return;
        }
        self.begin_output(net, &connection);
        connection.release();
        let outcome = match connection.speaks {
            Speaks::Lingering => return self.watch.finish(net, connection.token),
            Speaks::Http2(_) => match self.write_due_on_stream(net, &mut connection, wait) {
                true => Outcome::GoesOn,
                false => Outcome::Ends,
            },
            _ => self.write_due(net, &mut connection, wait),
        };
        match outcome {
            Outcome::GoesOn => self.flush(net, connection, true),
            Outcome::Ends => self.flush(net, connection, false),
            Outcome::Reset => {
                self.note_fault(Fault::Reset);
                net.reset(connection.token);
                self.forget(now_ns, &connection, Closed::ByServer);
            }
        }
    }

    /// Writes the due answers of a connection.
    fn write_due(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        wait: Wait,
    ) -> Outcome {
        let (now_ns, token) = (net.now_ns(), connection.token);
        while let Some(first) = connection.pending.front_mut() {
            let (answer, due_ns) = (first.answer, first.due_ns);
            if due_ns > now_ns {
                self.wait_for(token, 0, due_ns);
                return Outcome::GoesOn;
            }
            // Before a reset, the earlier answers must leave.
            if !self.has_room() || (answer.fault == Fault::Reset && self.unsent > 0) {
                connection.hold();
                return Outcome::GoesOn;
            }
            let next = match answer.fault {
                // The earlier answers must arrive first.
                Fault::Reset if !self.out.is_empty() => Next::Part(now_ns + HELD_NS),
                Fault::Reset => return Outcome::Reset,
                _ if answer.is_streamed() => {
                    let mut channel = Channel::Http1 { chunked: !answer.http10 };
                    self.write_parts(now_ns, first, &mut channel)
                }
                Fault::Cut => {
                    let mut bytes = Vec::new();
                    self.responses.write(&mut bytes, answer);
                    faults::cut(&mut bytes);
                    self.out.append(&mut bytes);
                    Next::Cut
                }
                Fault::Slow => {
                    self.write_piece(now_ns, first, &mut Channel::Http1 { chunked: false })
                }
                _ => {
                    self.responses.write(&mut self.out, answer);
                    Next::End
                }
            };
            match next {
                Next::Part(due_ns) => {
                    first.due_ns = due_ns;
                    continue;
                }
                Next::Cut | Next::Gone => {
                    self.note_fault(Fault::Cut);
                    return Outcome::Ends;
                }
                Next::End => {}
            }
            connection.pending.pop_front();
            self.watch.seen.waiting -= 1;
            self.answered(now_ns, wait.index, answer);
            // Answers behind it were held up by it, not by us.
            let waited = answer.route.wait_ns() > 0 && answer.fault != Fault::Slow;
            if due_ns == wait.due_ns && waited {
                self.leaves(now_ns, due_ns);
            }
            if answer.is_last() {
                return Outcome::Ends;
            }
        }
        let unread = std::mem::take(&mut connection.unread);
        match self.take(net, connection, &unread) {
            true => Outcome::GoesOn,
            false => Outcome::Ends,
        }
    }

    /// Writes the parts of a stream that are due, before the first of them its head; returns what
    /// comes next.
    pub(super) fn write_parts(
        &mut self,
        now_ns: u64,
        pending: &mut Pending,
        channel: &mut Channel<'_>,
    ) -> Next {
        let answer = pending.answer;
        let Some(shape) = answer.stream() else { return Next::End };
        let stall_ns = self.stall_ns(answer.fault);
        let stream = pending.streamed.get_or_insert_with(|| {
            channel.head(&self.responses, answer, &mut self.out);
            Box::new(Streamed::new(shape, answer.fault, stall_ns, now_ns))
        });
        loop {
            let next = stream.next();
            let is_due = matches!(next, Next::Part(due_ns) if due_ns <= now_ns);
            let is_held = channel.is_full() || self.out.len() + self.unsent > OUTPUT_MOST;
            if is_due && is_held {
                stream.is_late = true;
                return next;
            }
            let wanted = match next {
                Next::Part(due_ns) if is_due => {
                    stream.write_part(&mut self.part);
                    // A part that its client has held up says nothing of us.
                    if !stream.is_late {
                        self.leaves(now_ns, due_ns);
                    }
                    channel.body(self.part.as_bytes(), false, &mut self.out)
                }
                Next::End => channel.body(stream.end().as_bytes(), true, &mut self.out),
                _ => {
                    stream.is_late = false;
                    return next;
                }
            };
            match (wanted, next) {
                (false, _) => return Next::Gone,
                (true, Next::End) => return Next::End,
                (true, _) => {}
            }
        }
    }

    /// Writes the next piece of a slow answer, before the first its head; returns what comes next.
    pub(super) fn write_piece(
        &mut self,
        now_ns: u64,
        pending: &mut Pending,
        channel: &mut Channel<'_>,
    ) -> Next {
        let answer = pending.answer;
        if channel.is_full() {
            return Next::Part(now_ns);
        }
        if pending.slow.is_none() {
            self.note_fault(Fault::Slow);
            channel.head(&self.responses, answer, &mut self.out);
        }
        let over_ns = self.faults.as_ref().map_or(0, |faults| faults.plan.slow_ns);
        let slow =
            pending.slow.get_or_insert_with(|| Box::new(Slow::new(answer.body(), now_ns, over_ns)));
        let (piece, next_ns) = slow.next();
        match channel.body(piece, next_ns.is_none(), &mut self.out) {
            false => Next::Gone,
            true => next_ns.map_or(Next::End, Next::Part),
        }
    }

    /// Sets the time at which the first answer of a connection, or the answer of a stream, is due.
    pub(super) fn wait_for(&mut self, token: Token, stream: u32, due_ns: u64) {
        if due_ns < NEVER_NS {
            self.waits.push(Wait::of(token, stream, due_ns));
        }
    }

    pub(super) fn leaves(&mut self, now_ns: u64, due_ns: u64) {
        if self.leaving.dues_ns.is_empty() {
            self.leaving.since_ns = now_ns;
        }
        self.leaving.dues_ns.push(due_ns);
    }
}
