//! Shared by all services of a reference server: the counts, and their reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;

use trueload_drive::{Net, Token};
use trueload_wire::tls::{self, server::Setup};

use super::waits::{Wait, Waits};
use super::{Command, Interval, REPORT_NS, Report};
use crate::outlet::Outlet;
use crate::protocol::Served;

/// The time for which the head of a request may be half-sent, and for which an ended connection
/// keeps what its client does not read.
pub(super) const HALF_NS: u64 = 60_000_000_000;

/// The limits of connections that were asked for; by default there are none.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// A connection on which nothing comes or goes for so long is closed; 0 for never.
    pub idle_ns: u64,
    /// The number of connections of all threads, and the most of them.
    pub room: Option<(Arc<AtomicU32>, u32)>,
}

/// The reason to look at a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// A head was half-sent `HALF_NS` ago, or the connection ended.
    Half,
    /// Nothing has come or gone.
    Idle,
}

/// The counts of one thread, and its channels to the thread that started it.
#[derive(Debug)]
pub struct Watch {
    /// What the thread has seen.
    pub seen: Served,
    thread: usize,
    next_report_ns: u64,
    inbox: Receiver<Command>,
    reports: Outlet<Report>,
    finished: bool,
    limits: Limits,
    /// Connections to look at again.
    looks: Waits,
    /// For each place, the generation of its connection and the last time that something came or
    /// went; only for an idle time-out.
    heard: Vec<(u32, u64)>,
}

impl Watch {
    /// Starts with nothing seen.
    pub fn new(thread: usize, inbox: Receiver<Command>, reports: Outlet<Report>) -> Self {
        let seen = Served::default();
        Watch {
            seen,
            thread,
            next_report_ns: REPORT_NS,
            inbox,
            reports,
            finished: false,
            limits: Limits::default(),
            looks: Waits::default(),
            heard: Vec::new(),
        }
    }

    /// Adds limits of connections.
    pub fn with_limits(self, limits: Limits) -> Self {
        Watch { limits, ..self }
    }

    /// Takes commands after a wake-up; `mark` returns what the record holds. Reports a last time at
    /// the end.
    pub(super) fn wake(&mut self, mut mark: impl FnMut() -> Option<Interval>) {
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Stop => self.finished = true,
                Command::Mark => {
                    let interval = mark().map(Box::new);
                    let report = |interval| Report::Marked { thread: self.thread, interval };
                    interval.map(report).into_iter().for_each(|report| self.reports.send(report));
                }
            }
        }
        if self.finished {
            self.report(true);
        }
    }

    /// Reports the counts if it is time.
    pub(super) fn look(&mut self, now_ns: u64) {
        if now_ns >= self.next_report_ns {
            self.next_report_ns = now_ns + REPORT_NS;
            self.report(false);
        }
    }

    /// The time of the next report.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_report_ns
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Notes an accepted connection; closes it and returns false if there are enough.
    pub(super) fn admit(&mut self, net: &mut impl Net, token: Token) -> bool {
        self.seen.accepted += 1;
        if let Some((open, most)) = &self.limits.room
            && open.fetch_add(1, Ordering::Relaxed) >= *most
        {
            open.fetch_sub(1, Ordering::Relaxed);
            self.seen.refused += 1;
            net.close(token);
            return false;
        }
        self.seen.open += 1;
        self.seen.open_peak = self.seen.open_peak.max(self.seen.open);
        if self.limits.idle_ns > 0 {
            let index = token.index as usize;
            self.heard.resize(self.heard.len().max(index + 1), (0, u64::MAX));
            self.heard[index] = (token.generation, net.now_ns());
        }
        true
    }

    /// Notes that a connection is no longer served.
    pub(super) fn closed(&mut self, token: Token) {
        self.seen.open -= 1;
        if let Some((open, _)) = &self.limits.room {
            open.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(heard) = self.heard.get_mut(token.index as usize) {
            heard.1 = u64::MAX;
        }
    }

    /// Notes that something came over a connection, or that its client has read.
    #[inline]
    pub(super) fn heard(&mut self, now_ns: u64, token: Token) {
        if self.limits.idle_ns > 0
            && let Some(heard) = self.heard.get_mut(token.index as usize)
            && heard.0 == token.generation
            && heard.1 < u64::MAX
        {
            heard.1 = now_ns;
        }
    }

    /// Looks at a connection again at that time.
    pub(super) fn look_again(&mut self, token: Token, at_ns: u64) {
        self.looks.push(Wait::of(token, 0, at_ns));
    }

    /// Closes a connection when everything has been sent, or when its client has not read it for
    /// too long.
    pub(super) fn finish(&mut self, net: &mut impl Net, token: Token) {
        if net.unsent_bytes(token) > 0 {
            self.look_again(token, net.now_ns() + HALF_NS);
        }
        net.finish(token);
    }

    /// The connections to look at now. One that is idle is looked at again when it has been idle
    /// as long once more.
    pub(super) fn overdue(&mut self, now_ns: u64) -> Vec<(Token, Overdue)> {
        let mut overdue = Vec::new();
        while let Some(wait) = self.looks.pop_due(now_ns) {
            overdue.push((wait.token(), Overdue::Half));
        }
        for (index, (generation, heard_ns)) in self.heard.iter_mut().enumerate() {
            if heard_ns.saturating_add(self.limits.idle_ns) <= now_ns {
                *heard_ns = now_ns;
                let token = Token { index: index as u32, generation: *generation };
                overdue.push((token, Overdue::Idle));
            }
        }
        overdue
    }

    /// Drops looks that nobody needs any more; `due_ns` tells when an open connection is to be
    /// looked at.
    pub(super) fn drop_past(&mut self, net: &impl Net, due_ns: impl Fn(&Wait) -> Option<u64>) {
        self.looks.drop_past(|wait| match due_ns(wait) {
            Some(due_ns) => due_ns == wait.due_ns,
            None => net.unsent_bytes(wait.token()) > 0,
        });
    }

    /// Notes an accepted connection, and begins TLS on it if there is a setup for it. If it cannot
    /// begin, or if there are connections enough, the connection is closed.
    pub(super) fn accept(
        &mut self,
        net: &mut impl Net,
        token: Token,
        setup: Option<&Setup>,
    ) -> Option<Option<Box<tls::server::Server>>> {
        if !self.admit(net, token) {
            return None;
        }
        match setup.map(Setup::accept).transpose() {
            Ok(session) => Some(session.map(Box::new)),
            Err(_) => {
                self.seen.tls_failed += 1;
                self.closed(token);
                net.close(token);
                None
            }
        }
    }

    fn report(&self, ended: bool) {
        self.reports.send(Report::Counts { thread: self.thread, seen: self.seen, ended });
    }
}
