//! The messages between the generator of one thread and the main thread.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use trueload_drive::{Address, ThreadUse};
use trueload_load::Places;
use trueload_meter::{Class, Counted, Counts, Deliveries, Failed, Meter, Recorded, RequestLog};
use trueload_wire::account::Account;
use trueload_wire::tls::Secured;

use super::lateness::Lateness;
use super::phase::PhaseShare;
use crate::data::DataUse;
use crate::outlet::Outlet;
use crate::protocol::Sent;

/// This thread's part of the load from some time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPart {
    /// When it begins, in ns since the start of the present phase.
    pub from_ns: u64,
    /// The thread's number from then on.
    pub thread: u32,
    /// The number of threads of all engines.
    pub threads: u32,
    /// The thread's turns, if it has several of each cycle.
    pub turns: Option<Places>,
}

/// The generator's two channels to the main thread.
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

/// A command to a running generator.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Have this many connections over all threads, and report.
    Connections(u32),
    /// Run one more phase.
    Phase(PhaseShare),
    /// Have another part of the load of the present phase from some time on.
    Part(NewPart),
    /// For a broadcast that several engines share: our clock is this many ns ahead of the one that
    /// all of them share.
    Clock(i64),
    /// For a broadcast that several engines share: settle this phase, in which all engines sent
    /// these messages, by this time.
    Settle(usize, Arc<Sent>, Option<u64>),
    /// These messages of a phase failed at other engines.
    Charge(usize, Arc<[Failed]>),
    /// End now.
    Stop,
}

/// A report of a generator. Phases are numbered in the order in which they were asked for.
#[derive(Debug)]
pub enum Report {
    /// All connections have been tried.
    Connected(Connected),
    /// A phase begins to send.
    Started(usize, u64),
    /// A phase has sent its last request.
    Stopped(usize, u64),
    /// The state of a running phase.
    Tick(TickReport),
    /// For a broadcast that several engines share: our own messages of this phase are over, and
    /// these were sent.
    Sent(usize, Sent),
    /// The settlement of a phase is complete; these messages of other engines failed here.
    Settled(usize, Vec<Failed>),
    /// Every request of the phase is settled.
    Done(Box<DoneReport>),
    /// The thread is about to end.
    Ended,
}

/// The result of setting up connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connected {
    /// Slots of this thread that were established at least once.
    pub established: u32,
    /// Attempts that failed, by class.
    pub failed: Vec<(Class, u64)>,
    /// The time of the first attempt.
    pub began_ns: u64,
    /// The time at which the last connection was established; 0 if none was.
    pub latest_ns: u64,
    /// The address that answered.
    pub address: Option<Address>,
    /// The first reason of each class why attempts failed, where more is known than the class.
    pub reasons: Vec<(Class, String)>,
    /// What the first handshake agreed on.
    pub secured: Option<Secured>,
}

/// Totals of a phase up to now, and measurements since the last tick. They are raw, because the
/// thread must not spend time on them.
#[derive(Clone, Debug, Default)]
pub struct TickReport {
    /// The phase.
    pub phase: usize,
    /// The requests.
    pub counts: Counts,
    /// What ended since the last tick.
    pub recorded: Recorded,
    /// The same for each part of the traffic: the first parts and the gaps of streams, then the
    /// first targets or steps.
    pub tracks: Vec<Recorded>,
    /// Service times of an open loop since the last tick.
    pub service: Counted,
    /// Connections open now.
    pub open: u32,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// The thread's use when the phase began.
    pub used_before: ThreadUse,
    /// CPU time of the thread, since it began.
    pub cpu_ns: u64,
}

/// A phase that is over.
#[derive(Debug, Default)]
pub struct DoneReport {
    /// The phase.
    pub phase: usize,
    /// The counts of the phase.
    pub meter: Meter,
    /// What ended since the last tick.
    pub last: Recorded,
    /// The same of each part of the traffic, as in ticks.
    pub last_tracks: Vec<Recorded>,
    /// Planned start of sending.
    pub started_ns: u64,
    /// The time at which this thread did begin.
    pub began_ns: u64,
    /// End of sending.
    pub stopped_ns: u64,
    /// The time at which the last request settled.
    pub done_ns: u64,
    /// CPU and run-queue time of the thread over the window.
    pub used: ThreadUse,
    /// The part of it that the driver spent in polls without an event, in ns.
    pub spun_ns: u64,
    /// The longest time that answers were allowed to wait for each other, in ns.
    pub coalesced_ns: u64,
    /// The phase was cut short.
    pub partial: bool,
    /// Slots of this thread that were ever established.
    pub established: u32,
    /// Idle connections that were open when the phase stopped.
    pub idle_open: u32,
    /// The times when the thread did not run although it had something to do.
    pub lateness: Lateness,
    /// The counts that connections keep for themselves.
    pub account: Option<Account>,
    /// The rows of data that requests took.
    pub data: Option<DataUse>,
    /// For a broadcast: the fate of its messages at their receivers.
    pub deliveries: Option<Deliveries>,
    /// The first reason of each class why connections have failed up to now, where more is known
    /// than the class.
    pub reasons: Vec<(Class, String)>,
    /// The single requests, if they are logged.
    pub log: Option<Box<RequestLog>>,
}
