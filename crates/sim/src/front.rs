//! Commands the generators as the engine's `generate` role does: connect, then run phase by phase.
//!
//! It keeps to the role's rules. A phase is announced when all have connected. A phase that follows
//! one limited by time is announced before that one ends. The number of connections changes only
//! while no phase runs. Threads that share a broadcast act as separate engines, and the front
//! settles each phase between them, as the front of several hosts does.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use trueload_engine::generator::{
    Command, Connected, DoneReport, NewPart, PhaseShare, Report, TickReport,
};
use trueload_engine::protocol::Sent;
use trueload_load::Stop;
use trueload_meter::{EncodedTimes, Failed};

use crate::history::{Event, History};
use crate::scenario::{BEGIN_NS, MS, Protocol, Scenario};

/// With several threads, a phase is announced this long before it starts, as in the engine.
const START_LEAD_NS: u64 = 5 * MS;

/// Time from the report of an engine that joins to the time from which it has its part.
const JOIN_LEAD_NS: u64 = 5 * MS;

/// How far the last thread has come that joins the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joining {
    /// It has begun with the others, or has joined them.
    Together,
    /// It is to connect once the first phase has begun.
    Waits,
    /// It connects.
    Connects,
    /// It came too late for the first phase, and takes part in none.
    Late,
}

/// A phase that was assigned to the threads.
#[derive(Debug)]
pub struct Assigned {
    /// The share as it was assigned.
    pub share: PhaseShare,
    /// Number of generators that have finished it.
    pub done: u32,
    /// The messages that the engines of a shared broadcast reported as sent, and the number of
    /// engines that have reported.
    sent: (Sent, u32),
    /// The messages that failed, and the number of engines that have reported them.
    failed: (Vec<Failed>, u32),
}

/// A generator's report at the end of a phase.
#[derive(Debug)]
pub struct Reported {
    /// The thread that reported; with several origins, the number of its part.
    pub thread: u32,
    /// The time on the thread's clock.
    pub at_ns: u64,
    /// The report of the finished phase.
    pub done: Box<DoneReport>,
    times: OnceCell<EncodedTimes>,
}

/// The program that commands the generators and collects their reports.
#[derive(Debug)]
pub struct Front {
    inboxes: Vec<Sender<Command>>,
    plan: Scenario,
    connections: u32,
    connected: u32,
    /// Phases assigned so far.
    pub assigned: Vec<Assigned>,
    /// Reports of finished phases.
    pub done: Vec<Reported>,
    /// Reports of connecting, each with its thread.
    pub set_ups: Vec<(u32, Connected)>,
    /// Ticks, each with its thread and time.
    pub ticks: Vec<(u32, u64, TickReport)>,
    /// Starts and stops of phases: thread, time of the report, phase, time reported.
    pub stages: Vec<(u32, u64, usize, u64)>,
    /// Number of generators that have ended.
    pub ended: u32,
    /// Whether the front has told all threads to end.
    pub stopped: bool,
    joining: Joining,
    /// The time in the first phase from which the last thread has its part, if it has joined.
    pub joined_ns: Option<u64>,
    /// The time at which all threads are to end.
    stop_ns: Option<u64>,
    /// Commands to send later, each with its time.
    answers: VecDeque<(u64, Command)>,
    /// Whether the threads must be woken.
    rings: bool,
    /// The events of the run.
    pub history: History,
}

impl Reported {
    /// The histograms of the phase. Many laws read them, and they are encoded once.
    #[must_use]
    pub fn times(&self) -> &EncodedTimes {
        self.times.get_or_init(|| self.done.meter.times.clone().encoded())
    }

    /// The index of the kernel over which it ran.
    #[must_use]
    pub fn kernel(&self, plan: &Scenario) -> usize {
        (self.thread / plan.parts()) as usize
    }
}

impl Front {
    /// Creates a front that has sent nothing yet.
    #[must_use]
    pub fn new(plan: &Scenario, inboxes: Vec<Sender<Command>>, trace: bool) -> Self {
        Front {
            inboxes,
            plan: plan.clone(),
            connections: plan.connections,
            connected: 0,
            assigned: Vec::new(),
            done: Vec::new(),
            set_ups: Vec::new(),
            ticks: Vec::new(),
            stages: Vec::new(),
            ended: 0,
            stopped: false,
            joining: plan.joins_ns.map_or(Joining::Together, |_| Joining::Waits),
            joined_ns: None,
            stop_ns: None,
            answers: VecDeque::new(),
            rings: false,
            history: History::new(trace),
        }
    }

    /// Asks for the first connections.
    pub fn begin(&mut self, now_ns: u64) {
        if matches!(self.plan.protocol, Protocol::Broadcast { .. }) {
            // Threads that are engines have one clock here.
            self.send_to_all(now_ns, &Command::Clock(0));
        }
        self.send_to_present(now_ns, &Command::Connections(self.connections));
        self.stop_ns = self.plan.stop_ns.map(|stop_ns| now_ns + stop_ns);
    }

    /// The next time at which the front acts without a report; none for never.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let answer_ns = self.answers.front().map(|(at_ns, _)| *at_ns);
        [self.stop_ns, answer_ns, self.join_ns()].into_iter().flatten().min()
    }

    /// Whether the threads must be woken because commands wait for them. Clears the flag.
    pub fn take_rings(&mut self) -> bool {
        std::mem::take(&mut self.rings)
    }

    /// Sends the commands that are due, and stops the run if its time is over.
    pub fn time(&mut self, now_ns: u64) {
        while self.answers.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            if let Some((_, command)) = self.answers.pop_front() {
                self.send_to_all(now_ns, &command);
            }
        }
        if self.join_ns().is_some_and(|join_ns| join_ns <= now_ns) {
            self.joining = Joining::Connects;
            let last = self.inboxes.len() - 1;
            self.send_to(last..last + 1, now_ns, &Command::Connections(self.connections));
        }
        if self.stop_ns.is_some_and(|stop_ns| stop_ns <= now_ns) {
            self.stop_ns = None;
            self.stop(now_ns);
        }
    }

    /// The time at which the last thread begins to connect, if it is to join and has not.
    fn join_ns(&self) -> Option<u64> {
        let first = self.assigned.first().filter(|_| self.joining == Joining::Waits)?;
        Some(first.share.start_ns + self.plan.joins_ns?)
    }

    /// Lets the last thread have its part of the first phase from now on, unless that ends too
    /// soon.
    fn join(&mut self, now_ns: u64) {
        let share = self.assigned[0].share.clone();
        let lead_ns = JOIN_LEAD_NS + 2 * self.plan.kernel.late_ns;
        let from_ns = now_ns + lead_ns - share.start_ns;
        let Stop::After(ns) = share.stop else { return };
        if from_ns + lead_ns >= ns || self.stopped {
            self.joining = Joining::Late;
            return;
        }
        let (threads, last) = (self.plan.threads, self.inboxes.len() - 1);
        for thread in 0..threads - 1 {
            let part = NewPart { from_ns, thread, threads, turns: None };
            let own = thread as usize;
            self.send_to(own..own + 1, now_ns, &Command::Part(part));
        }
        let joins = PhaseShare { from_ns, ..share };
        self.send_to(last..last + 1, now_ns, &Command::Phase(joins));
        (self.joining, self.joined_ns) = (Joining::Together, Some(from_ns));
        self.connected += 1;
    }

    /// Whether everything that was asked for is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.assigned.len() == self.plan.phases.len() && self.is_quiet()
    }

    /// Whether the threads were told to end before everything was over.
    #[must_use]
    pub fn stopped_early(&self) -> bool {
        self.stopped && !self.is_over()
    }

    /// Tells all threads to end.
    pub fn stop(&mut self, now_ns: u64) {
        if !std::mem::replace(&mut self.stopped, true) {
            self.send_to_all(now_ns, &Command::Stop);
        }
    }

    /// Takes a thread's report.
    pub fn handle_report(&mut self, thread: u32, now_ns: u64, report: Report) {
        let about = u64::from(thread);
        match report {
            Report::Connected(connected) => {
                self.note(now_ns, "tried", about, &[connected.established.into()]);
                self.set_ups.push((thread, connected));
                let last = thread + 1 == self.plan.threads;
                match self.joining {
                    Joining::Connects if last => self.join(now_ns),
                    Joining::Late if last => {}
                    _ => self.connected += 1,
                }
            }
            Report::Started(phase, at_ns) => self.stage(thread, now_ns, phase, at_ns, "started"),
            Report::Stopped(phase, at_ns) => self.stage(thread, now_ns, phase, at_ns, "stopped"),
            Report::Tick(tick) => {
                let of = &tick.counts;
                let sent = [of.scheduled, of.unsent, of.issued];
                let ended = [of.ok, of.stale, of.stale_resets, of.cancelled];
                self.note(now_ns, "tick", about, &[&sent[..], &ended].concat());
                self.history.mix(tick.cpu_ns);
                self.ticks.push((thread, now_ns, tick));
            }
            Report::Done(done) => {
                let meter = &done.meter;
                self.history.mix(done.used.cpu_ns);
                self.history.mix(done.used.wanted_ns);
                let counts =
                    [meter.scheduled, meter.issued, meter.ok, meter.failed_sum(), meter.stale];
                self.note(now_ns, "done", about, &counts);
                if let Some(assigned) = self.assigned.get_mut(done.phase) {
                    assigned.done += 1;
                }
                self.done.push(Reported { thread, at_ns: now_ns, done, times: OnceCell::new() });
            }
            Report::Ended => {
                self.note(now_ns, "over", about, &[]);
                self.ended += 1;
            }
            Report::Sent(phase, sent) => self.sent(now_ns, phase, sent),
            Report::Settled(phase, failed) => self.settled(now_ns, phase, failed),
        }
        self.dispatch(now_ns);
    }

    fn sent(&mut self, now_ns: u64, phase: usize, sent: Sent) {
        let (all, engines) = &mut self.assigned[phase].sent;
        all.extend(sent);
        *engines += 1;
        if *engines == self.plan.threads {
            let all = Arc::new(std::mem::take(all));
            let command = Command::Settle(phase, all, self.plan.settle_by_ns);
            self.answers.push_back((now_ns + self.plan.front_ns, command));
        }
    }

    fn settled(&mut self, now_ns: u64, phase: usize, failed: Vec<Failed>) {
        let (all, engines) = &mut self.assigned[phase].failed;
        all.extend(failed);
        *engines += 1;
        if *engines == self.plan.threads {
            let command = Command::Charge(phase, std::mem::take(all).into());
            self.answers.push_back((now_ns + self.plan.front_ns, command));
        }
    }

    fn stage(&mut self, thread: u32, now_ns: u64, phase: usize, at_ns: u64, kind: &'static str) {
        self.note(now_ns, kind, u64::from(thread), &[phase as u64, at_ns]);
        self.stages.push((thread, now_ns, phase, at_ns));
    }

    /// The number of generators that report.
    fn reporters(&self) -> u32 {
        let absent = u32::from(self.joining != Joining::Together);
        self.plan.threads * self.plan.parts() - absent
    }

    fn is_quiet(&self) -> bool {
        self.assigned.iter().all(|assigned| assigned.done == self.reporters())
    }

    /// Announces the next phase as soon as its start is known.
    fn dispatch(&mut self, now_ns: u64) {
        while !self.stopped && self.connected == self.reporters() {
            // The parts of later phases are known once nobody is about to join the first.
            let pending = matches!(self.joining, Joining::Waits | Joining::Connects);
            if pending && !self.assigned.is_empty() {
                if !self.is_quiet() {
                    return;
                }
                self.joining = Joining::Late;
            }
            let Some(next) = self.plan.phases.get(self.assigned.len()).cloned() else { return };
            let quiet = self.is_quiet();
            if next.connections != self.connections {
                if quiet {
                    self.connections = next.connections;
                    self.connected = 0;
                    self.send_to_present(now_ns, &Command::Connections(next.connections));
                }
                return;
            }
            let after_ns = match self.assigned.last() {
                Some(last) if !quiet => match last.share.stop {
                    Stop::After(ns) => last.share.start_ns.saturating_add(ns),
                    Stop::Requests(_) => return,
                },
                _ if self.plan.threads > 1 => now_ns + START_LEAD_NS,
                _ => now_ns,
            };
            let share = PhaseShare {
                idle: next.idle,
                ..PhaseShare::new(
                    next.load,
                    next.stop,
                    next.connections,
                    (after_ns.max(now_ns) + next.pause_ns).max(BEGIN_NS + next.not_before_ns),
                )
            };
            self.send_to_present(now_ns, &Command::Phase(share.clone()));
            self.assigned.push(Assigned {
                share,
                done: 0,
                sent: Default::default(),
                failed: Default::default(),
            });
        }
    }

    fn send_to_all(&mut self, now_ns: u64, command: &Command) {
        self.send_to(0..self.inboxes.len(), now_ns, command);
    }

    /// Sends to the threads that take part.
    fn send_to_present(&mut self, now_ns: u64, command: &Command) {
        let absent = usize::from(self.joining != Joining::Together);
        self.send_to(0..self.inboxes.len() - absent, now_ns, command);
    }

    fn send_to(&mut self, threads: Range<usize>, now_ns: u64, command: &Command) {
        let kind = match command {
            Command::Connections(_) => "resize",
            Command::Phase(_) => "phase",
            Command::Part(_) => "part",
            Command::Clock(_) => "clock",
            Command::Settle(..) => "settle",
            Command::Charge(..) => "charge",
            Command::Stop => "stop",
        };
        let event = Event::of(kind, self.assigned.len() as u64, b"");
        self.history.note(now_ns, event, || format!("front: {command:?}"));
        for inbox in &self.inboxes[threads] {
            // The receiver of a thread that has ended is gone.
            let _ = inbox.send(command.clone());
        }
        self.rings = true;
    }

    fn note(&mut self, now_ns: u64, kind: &'static str, about: u64, numbers: &[u64]) {
        numbers.iter().for_each(|number| self.history.mix(*number));
        let event = Event::of(kind, about, b"");
        self.history.note(now_ns, event, || format!("thread {about}: {numbers:?}"));
    }
}
