//! Shared by all services of a reference server: the counts, and their reports.

use std::sync::mpsc::Receiver;

use trueload_drive::{Net, Token};
use trueload_wire::tls::{self, server::Setup};

use super::{Command, Interval, REPORT_NS, Report};
use crate::outlet::Outlet;
use crate::protocol::Served;

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
}

impl Watch {
    /// Starts with nothing seen.
    pub fn new(thread: usize, inbox: Receiver<Command>, reports: Outlet<Report>) -> Self {
        let seen = Served::default();
        Watch { seen, thread, next_report_ns: REPORT_NS, inbox, reports, finished: false }
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

    pub(super) fn accepted(&mut self) {
        self.seen.accepted += 1;
        self.seen.open += 1;
        self.seen.open_peak = self.seen.open_peak.max(self.seen.open);
    }

    /// Notes an accepted connection, and begins TLS on it if there is a setup for it. If it cannot
    /// begin, the connection is closed.
    pub(super) fn accept(
        &mut self,
        net: &mut impl Net,
        token: Token,
        setup: Option<&Setup>,
    ) -> Result<Option<Box<tls::server::Server>>, tls::Failure> {
        let session = setup.map(Setup::accept).transpose();
        if session.is_err() {
            self.seen.accepted += 1;
            self.seen.tls_failed += 1;
            net.close(token);
        } else {
            self.accepted();
        }
        Ok(session?.map(Box::new))
    }

    fn report(&self, ended: bool) {
        self.reports.send(Report::Counts { thread: self.thread, seen: self.seen, ended });
    }
}
