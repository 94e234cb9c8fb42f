//! Commands the generators as the engine's `generate` role does: connect, then run phase by phase.
//!
//! It keeps to the role's rules. A phase is announced when all have connected. A phase that follows
//! one limited by time is announced before that one ends. The number of connections changes only
//! while no phase runs. Threads that share a broadcast act as separate engines, and the front
//! settles each phase between them, as the front of several hosts does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use trueload_engine::generator::{
    Command, Connected, DoneReport, PhaseShare, Report, Sent, TickReport,
};
use trueload_load::Stop;
use trueload_meter::Failed;

use crate::history::{Event, History};
use crate::play::BEGIN_NS;
use crate::scenario::{MS, Protocol, Scenario};

/// With several threads, a phase is announced this long before it starts, as in the engine.
const START_LEAD_NS: u64 = 5 * MS;

/// A phase that was assigned to the threads.
#[derive(Debug)]
pub struct Assigned {
    /// The share as it was assigned.
    pub share: PhaseShare,
    /// Number of threads that have finished it.
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
    /// The thread that reported.
    pub thread: u32,
    /// The time on the thread's clock.
    pub at_ns: u64,
    /// The report of the finished phase.
    pub done: Box<DoneReport>,
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
    /// Number of threads that have ended.
    pub ended: u32,
    /// Whether the front has told all threads to end.
    pub stopped: bool,
    /// The time at which all threads are to end.
    stop_ns: Option<u64>,
    /// Commands to send later, each with its time.
    answers: VecDeque<(u64, Command)>,
    /// Whether the threads must be woken.
    rings: bool,
    /// The events of the run.
    pub history: History,
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
        self.send_to_all(now_ns, &Command::Connections(self.connections));
        self.stop_ns = self.plan.stop_ns.map(|stop_ns| now_ns + stop_ns);
    }

    /// The next time at which the front acts without a report; none for never.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let answer_ns = self.answers.front().map(|(at_ns, _)| *at_ns);
        [self.stop_ns, answer_ns].into_iter().flatten().min()
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
        if self.stop_ns.is_some_and(|stop_ns| stop_ns <= now_ns) {
            self.stop_ns = None;
            self.stop(now_ns);
        }
    }

    /// Whether everything that was asked for is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.assigned.len() == self.plan.phases.len() && self.is_quiet()
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
                self.connected += 1;
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
                self.done.push(Reported { thread, at_ns: now_ns, done });
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

    fn is_quiet(&self) -> bool {
        self.assigned.iter().all(|assigned| assigned.done == self.plan.threads)
    }

    /// Announces the next phase as soon as its start is known.
    fn dispatch(&mut self, now_ns: u64) {
        while !self.stopped && self.connected == self.plan.threads {
            let Some(next) = self.plan.phases.get(self.assigned.len()).cloned() else { return };
            let quiet = self.is_quiet();
            if next.connections != self.connections {
                if quiet {
                    self.connections = next.connections;
                    self.connected = 0;
                    self.send_to_all(now_ns, &Command::Connections(next.connections));
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
                load: next.load,
                stop: next.stop,
                connections: next.connections,
                idle: next.idle,
                start_ns: (after_ns.max(now_ns) + next.pause_ns).max(BEGIN_NS + next.not_before_ns),
                from_ns: 0,
            };
            self.send_to_all(now_ns, &Command::Phase(share.clone()));
            self.assigned.push(Assigned {
                share,
                done: 0,
                sent: Default::default(),
                failed: Default::default(),
            });
        }
    }

    fn send_to_all(&mut self, now_ns: u64, command: &Command) {
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
        for inbox in &self.inboxes {
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
