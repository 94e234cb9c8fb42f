//! What the generator of one thread is told, and what it tells.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use trueload_drive::{Address, ThreadUse};
use trueload_meter::{Class, Counted, Deliveries, Failed, Meter, Recorded};
use trueload_wire::http2::client::Account;
use trueload_wire::tls::Secured;

use super::{Lateness, PhaseShare, Sent};
use crate::outlet::Outlet;

/// The two ends of a generator's talk with the main thread.
#[derive(Debug)]
pub(super) struct Link {
    inbox: Receiver<Command>,
    reports: Outlet<Report>,
    /// The last report has been sent: the thread is about to end.
    pub(super) finished: bool,
}

impl Link {
    pub(super) fn new(inbox: Receiver<Command>, reports: Outlet<Report>) -> Self {
        Link { inbox, reports, finished: false }
    }

    /// The next command, if one has come.
    pub(super) fn next_command(&self) -> Option<Command> {
        self.inbox.try_recv().ok()
    }

    pub(super) fn report(&self, report: Report) {
        self.reports.send(report);
    }
}

/// What a generator is told while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Have this many connections over all threads, and report.
    Connections(u32),
    /// Run one more phase.
    Phase(PhaseShare),
    /// Of a broadcast that several engines share: settle a phase, in which all of them sent this, by this time.
    Settle(usize, Arc<Sent>, Option<u64>),
    /// These messages of a phase failed at other engines.
    Charge(usize, Arc<[Failed]>),
    /// End now.
    Stop,
}

/// What a generator tells. Phases are numbered in the order in which they were asked for.
#[derive(Debug)]
pub enum Report {
    /// All connections have been tried.
    Connected(Connected),
    /// A phase begins to send.
    Started(usize, u64),
    /// A phase has sent its last request.
    Stopped(usize, u64),
    /// Something to look at while a phase runs.
    Tick(TickReport),
    /// Of a broadcast that several engines share: our own messages of a phase are over; this was sent.
    Sent(usize, Sent),
    /// What was to be settled of a phase is; these messages of others failed here.
    Settled(usize, Vec<Failed>),
    /// Every request of the phase is settled.
    Done(Box<DoneReport>),
    /// The thread is about to end.
    Ended,
}

/// How the set-up of connections went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connected {
    /// Slots of this thread that were established at least once.
    pub established: u32,
    /// Attempts that failed, by class.
    pub failed: Vec<(Class, u64)>,
    /// When the first attempt was made.
    pub began_ns: u64,
    /// When the last connection was established, 0 when none was.
    pub latest_ns: u64,
    /// The address that answered.
    pub address: Option<Address>,
    /// Why attempts failed, the first of each class, where more is known than the class.
    pub reasons: Vec<(Class, String)>,
    /// What the first handshake agreed on.
    pub secured: Option<Secured>,
}

/// Totals of a phase up to now, and what came since the last tick: raw, as the thread has better things to do.
#[derive(Clone, Debug, Default)]
pub struct TickReport {
    /// The phase.
    pub phase: usize,
    /// scheduled, unsent, issued, ok, stale, stale_resets, cancelled.
    pub counts: [u64; 7],
    /// Failures by class.
    pub failed: Vec<(Class, u64)>,
    /// Answers by status.
    pub statuses: Vec<(u16, u64)>,
    /// What ended since the last tick.
    pub recorded: Recorded,
    /// Service times since the last tick, of an open loop.
    pub service: Counted,
    /// Connections open now.
    pub open: u32,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// What the thread had used when the phase began.
    pub used_before: ThreadUse,
    /// CPU time of the thread, since it began.
    pub cpu_ns: u64,
}

/// A phase that is over.
#[derive(Debug, Default)]
pub struct DoneReport {
    /// The phase.
    pub phase: usize,
    /// What it counted.
    pub meter: Meter,
    /// What ended since the last tick.
    pub last: Recorded,
    /// Start of sending, as planned.
    pub started_ns: u64,
    /// When this thread did begin.
    pub began_ns: u64,
    /// End of sending.
    pub stopped_ns: u64,
    /// The last request settled.
    pub done_ns: u64,
    /// CPU and run-queue time of the thread over the window.
    pub used: ThreadUse,
    /// Of that, what the driver spent in polls without an event, in ns.
    pub spun_ns: u64,
    /// The longest that answers were allowed to wait for each other, in ns.
    pub coalesced_ns: u64,
    /// It was cut short.
    pub partial: bool,
    /// Slots of this thread that were ever established.
    pub established: u32,
    /// Idle ones that were open when the phase stopped.
    pub idle_open: u32,
    /// When the thread did not run although it had something to do.
    pub lateness: Lateness,
    /// What connections have counted for themselves.
    pub account: Option<Account>,
    /// Of a broadcast: what became of its messages at their receivers.
    pub deliveries: Option<Deliveries>,
    /// Why connections failed up to now, the first of each class, where more is known than the class.
    pub reasons: Vec<(Class, String)>,
}
