//! The role of a load generator: its threads, the phases that they run, and the sum of what they
//! measure.

mod http;
mod programs;
mod request_log;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use trueload_drive::{Clock, Driver, Program, keep_little_code, own_rss_bytes};
use trueload_load::Stop;
use trueload_meter::{Packed, Series, Sparse};

use crate::blobs::Blobs;
use crate::failure::{Failure, refused};
use crate::generator::{
    Command, Connected, DoneReport, Measured, PhaseShare, Report, START_LEAD_NS, TickReport,
};
use crate::limits::{self, Have};
use crate::lines::emit;
use crate::loading::Loading;
use crate::machine::Use;
use crate::origins::{self, Division};
use crate::protocol::{
    AddressPlan, FromEngine, GeneratePlan, Measurement, PhasePlan, Ready, SharePlan, Tick, ToEngine,
};
use crate::role::{self, Event};
use crate::threads::{self, Driven, Worker};
use crate::tracks::Tracks;
use crate::{plan, secrets, sums};
use programs::Programs;
pub use programs::{Threads, make};

/// A phase that the threads have been told of.
#[derive(Debug)]
struct Running {
    id: String,
    share: PhaseShare,
    is_divisible: bool,
    started: bool,
    stopped: usize,
    /// Reports by the number of the thread, or of its part.
    done: Vec<(u32, DoneReport)>,
    settling: Stand,
    /// The latest tick of each thread.
    ticks: Vec<TickReport>,
    /// The time for which each thread was busy in the phase, by its latest tick.
    busy_ns: Vec<u64>,
    /// Measurements since the last tick that was reported.
    latency: Sparse,
    service: Sparse,
    /// All measurements, over time.
    series: Series,
    tracks: Tracks,
    /// The machine's CPU counters when the threads were told.
    machine: Option<Use>,
    over: bool,
}

/// The message that the front is to send next to settle a phase with other engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Nothing now.
    Nothing,
    /// `settle`.
    Settle,
    /// `charge`.
    Charge,
}

/// Starts a thread for each program, with a driver of its own.
struct Starting<'a> {
    drivers: std::vec::IntoIter<Driver>,
    cpus: &'a [u32],
    workers: Vec<Worker<Command>>,
    sink: &'a Sender<Event>,
}

impl Threads for Starting<'_> {
    fn take<P: Program + Measured + Send + 'static>(
        &mut self,
        thread: u32,
        inbox: Sender<Command>,
        program: P,
    ) -> Result<(), Failure> {
        let Some(driver) = self.drivers.next() else { return Ok(()) };
        let (name, cpu) = (format!("generator-{thread}"), threads::cpu_of(self.cpus, thread));
        let worker = threads::start(&name, cpu, driver, inbox, program, self.sink)?;
        self.workers.push(worker);
        Ok(())
    }
}

/// A load generator.
#[derive(Debug)]
pub struct Role {
    plan: GeneratePlan,
    /// The division of the plan among its origins, if it has several.
    division: Option<Division>,
    clock: Clock,
    sink: Sender<Event>,
    blobs: Blobs,
    loading: Loading,
    workers: Vec<Worker<Command>>,
    driven: Driven,
    /// The resources of this machine when the engine began.
    have: Option<Have>,
    rss_before_bytes: u64,
    /// Connections over all threads, and what the threads, or their parts, have reported of theirs.
    connections: u32,
    connected: Vec<(u32, Connected)>,
    ready_sent: bool,
    waiting: VecDeque<PhasePlan>,
    phases: Vec<Running>,
    ended: usize,
}

impl Role {
    /// Checks the plan, and starts to connect unless bodies are still to come.
    pub fn new(plan: GeneratePlan, clock: Clock, sink: &Sender<Event>) -> Result<Self, Failure> {
        plan::check(&plan)?;
        let mut role = Role {
            clock,
            sink: sink.clone(),
            blobs: Blobs::default(),
            loading: Loading::default(),
            workers: Vec::new(),
            driven: Driven::default(),
            have: None,
            rss_before_bytes: 0,
            connections: plan.connections,
            connected: Vec::new(),
            ready_sent: false,
            waiting: VecDeque::new(),
            phases: Vec::new(),
            ended: 0,
            division: Division::of(&plan)?,
            plan,
        };
        role.start_when_complete()?;
        Ok(role)
    }

    fn start_when_complete(&mut self) -> Result<(), Failure> {
        let complete = self.workers.is_empty() && plan::is_complete(&self.plan, &self.blobs);
        if !complete || !self.loading.is_over(&self.plan, &mut self.blobs, &self.sink)? {
            return Ok(());
        }
        let options = self.plan.tls.as_ref().map(|tls| secrets::client_options(tls, &self.blobs));
        let options = options.transpose()?;
        let settings = plan::settings(self.plan.driver, self.plan.spin_ns, plan::rates(&self.plan));
        let drivers: Result<Vec<_>, _> =
            (0..self.plan.threads).map(|_| threads::driver(&settings, self.clock, None)).collect();
        let drivers = drivers?;
        self.driven = threads::driven(&drivers);
        keep_little_code();
        let have = Have::look(&self.driven.driver);
        let later = self.waiting.iter().filter_map(|phase| phase.connections).max();
        let most = self.slots(self.connections.max(later.unwrap_or(0)));
        limits::check(&self.plan, most, &have)?;
        self.have = Some(have);
        self.rss_before_bytes = own_rss_bytes();
        let programs = Programs {
            plan: &self.plan,
            division: self.division.as_ref(),
            blobs: &self.blobs,
            tls: options.as_ref(),
            unix_time: self.clock.unix_time_at_0(),
            sink: &self.sink,
        };
        let (drivers, cpus) = (drivers.into_iter(), &self.plan.cpus);
        let workers = Vec::new();
        let mut starting = Starting { drivers, cpus, workers, sink: &self.sink };
        programs.hand_to(&mut starting)?;
        self.workers = starting.workers;
        self.send_to_all(&Command::Connections(self.connections));
        Ok(())
    }

    /// The number of reporters: the threads, or with several origins the parts of each.
    fn reporters(&self) -> usize {
        self.workers.len() * self.plan.origins.len().max(1)
    }

    /// The number of our connections out of `total` over all engines.
    fn slots(&self, total: u32) -> u32 {
        origins::slots(&self.plan, self.division.as_ref(), total)
    }

    fn send_to_all(&self, command: &Command) {
        self.workers.iter().for_each(|worker| worker.send(command.clone()));
    }

    /// Hands the next phase to the threads as soon as its start is known.
    fn dispatch(&mut self) {
        while self.ready_sent && self.connected.len() == self.reporters() {
            let Some(next) = self.waiting.front() else { return };
            let quiet = self.phases.iter().all(|phase| phase.over);
            let connections = next.connections.unwrap_or(self.connections);
            if connections != self.connections {
                if quiet {
                    self.connections = connections;
                    self.connected.clear();
                    self.send_to_all(&Command::Connections(connections));
                }
                return;
            }
            let now_ns = self.clock.now_ns();
            let after_ns = match self.phases.last() {
                Some(last) if !quiet => match last.share.stop {
                    // Chained phases: all threads know the start before it comes.
                    Stop::After(ns) => last.share.start_ns.saturating_add(ns),
                    Stop::Requests(_) => return,
                },
                _ if self.workers.len() > 1 => now_ns + START_LEAD_NS,
                _ => now_ns,
            };
            let start_ns = match next.at_ns {
                // What others have begun was in time there.
                Some(at_ns) if next.from_ns > 0 => at_ns,
                at_ns => after_ns.max(now_ns).max(at_ns.unwrap_or(0)),
            };
            self.begin(start_ns);
        }
    }

    fn begin(&mut self, start_ns: u64) {
        let Some(next) = self.waiting.pop_front() else { return };
        let recording = self.blobs.replay().map(|replay| &replay.recording);
        let load = plan::load(&next.load, recording);
        let share = PhaseShare {
            stop: plan::stop(&next.stop, &load),
            load,
            connections: self.connections,
            idle: next.idle,
            start_ns,
            from_ns: next.from_ns,
            log_rows: (next.log_rows as usize).div_ceil(self.reporters().max(1)),
        };
        let is_divisible = plan::check_divisible(&next).is_ok();
        self.phases.push(Running {
            id: next.id,
            share: share.clone(),
            is_divisible,
            started: false,
            stopped: 0,
            done: Vec::new(),
            settling: Stand::Nothing,
            ticks: vec![TickReport::default(); self.reporters()],
            busy_ns: vec![0; self.reporters()],
            latency: Sparse::new(),
            service: Sparse::new(),
            series: Series::default(),
            tracks: Tracks::of(&self.plan),
            machine: None,
            over: false,
        });
        self.send_to_all(&Command::Phase(share));
        // Read only now: the time that the kernel takes to sum this up must not delay the start.
        if let Some(phase) = self.phases.last_mut() {
            phase.machine = Use::now();
        }
    }

    fn handle_connected(&mut self, thread: u32, connected: Connected) -> Result<(), Failure> {
        self.connected.push((thread, connected));
        if self.connected.len() < self.reporters() {
            return Ok(());
        }
        let sum = sums::connected(&self.connected);
        if !self.ready_sent {
            self.ready_sent = true;
            emit(&FromEngine::Ready(Ready {
                at_ns: self.clock.now_ns(),
                listen: None,
                requested: self.slots(self.connections),
                established: sum.established,
                failed: sums::by_class(&sum.failed),
                address: sum.address.map(AddressPlan),
                set_up_ns: sum.latest_ns.saturating_sub(sum.began_ns),
                grown_bytes: own_rss_bytes().saturating_sub(self.rss_before_bytes),
                driver: self.driven.driver.clone(),
                driver_note: self.driven.note.clone(),
                reasons: sums::reasons(&sum.reasons),
                tls: sum.secured.clone(),
                certificate: None,
            }))?;
        }
        self.dispatch();
        Ok(())
    }

    fn handle_report(&mut self, thread: u32, report: Report) -> Result<(), Failure> {
        match report {
            Report::Connected(connected) => self.handle_connected(thread, connected)?,
            Report::Started(index, at_ns) => {
                let phase = &mut self.phases[index];
                if !std::mem::replace(&mut phase.started, true) {
                    let id = phase.id.clone();
                    emit(&FromEngine::PhaseStarted { id, at_ns })?;
                }
            }
            Report::Stopped(index, at_ns) => {
                let all = self.reporters();
                let phase = &mut self.phases[index];
                phase.stopped += 1;
                if phase.stopped == all {
                    let id = phase.id.clone();
                    emit(&FromEngine::PhaseStopped { id, at_ns })?;
                }
            }
            Report::Tick(tick) => self.handle_tick(thread, tick)?,
            Report::Done(done) => self.handle_done(thread, *done)?,
            Report::Sent(index, sent) => {
                let phase = &mut self.phases[index];
                phase.settling = Stand::Settle;
                emit(&FromEngine::PhaseSent { id: phase.id.clone(), sent })?;
            }
            Report::Settled(index, failed) => {
                let phase = &mut self.phases[index];
                phase.settling = Stand::Charge;
                emit(&FromEngine::Settled { id: phase.id.clone(), failed })?;
            }
            Report::Ended => self.ended += 1,
        }
        Ok(())
    }

    /// Has another part of the last phase from some time on.
    fn share(&mut self, share: SharePlan) -> Result<(), Failure> {
        let phase = self.phases.last().filter(|phase| phase.id == share.id && !phase.over);
        if !phase.is_some_and(|phase| phase.is_divisible) {
            let id = share.id.escape_debug();
            let what = "is no phase that goes on and can be divided again";
            return refused(format_args!("share.id: '{id}' {what}"));
        }
        plan::check_share(&self.plan, &share.part)?;
        self.plan.part = share.part;
        for (thread, worker) in (0..).zip(&self.workers) {
            let part = plan::part_of_thread(&self.plan, thread, share.from_ns);
            worker.send(Command::Part(part));
        }
        Ok(())
    }

    /// Returns the phase that the front settles now, and stops waiting for it.
    fn await_no_longer(&mut self, id: &str, stand: Stand) -> Result<usize, Failure> {
        let known = |phase: &Running| phase.id == id && phase.settling == stand;
        let index = self.phases.iter().position(known).ok_or_else(|| {
            let id = id.escape_debug();
            Failure::Plan(format!("id: '{id}' is no phase that is to be settled like this now"))
        })?;
        self.phases[index].settling = Stand::Nothing;
        Ok(index)
    }

    fn handle_tick(&mut self, thread: u32, tick: TickReport) -> Result<(), Failure> {
        let parts = self.plan.origins.len().max(1);
        let worker = self.workers.get(thread as usize / parts);
        let wanted_ns = worker.and_then(Worker::wanted_ns).unwrap_or(tick.cpu_ns);
        let phase = &mut self.phases[tick.phase];
        let busy_ns = wanted_ns.saturating_sub(tick.used_before.wanted_ns);
        phase.busy_ns[thread as usize] = busy_ns;
        sums::add(&mut phase.latency, tick.recorded.latency.iter());
        sums::add(&mut phase.service, tick.service.iter());
        phase.series.add(&tick.recorded);
        phase.tracks.add(thread, &tick.tracks);
        phase.ticks[thread as usize] = tick;
        // The first reporter that has not ended sets the pace.
        let ended = |thread| phase.done.iter().any(|(done, _)| *done == thread);
        if !(0..thread).any(|before| !ended(before)) {
            let totals = sums::tick(self.clock.now_ns(), &phase.id, &phase.ticks);
            emit(&FromEngine::Tick(Tick {
                latency: Packed::of(&std::mem::take(&mut phase.latency)),
                service: Packed::of(&std::mem::take(&mut phase.service)),
                tracks: phase.tracks.take(),
                busiest_ns: phase.busy_ns.iter().copied().max().unwrap_or(0),
                ..totals
            }))?;
        }
        Ok(())
    }

    fn handle_done(&mut self, thread: u32, done: DoneReport) -> Result<(), Failure> {
        let all = self.reporters();
        let number = done.phase;
        let phase = &mut self.phases[number];
        phase.series.add(&done.last);
        phase.tracks.add(thread, &done.last_tracks);
        phase.done.push((thread, done));
        if phase.done.len() < all {
            return Ok(());
        }
        phase.over = true;
        let mut done = std::mem::take(&mut phase.done);
        let id = phase.id.clone();
        let used = phase.machine.as_ref().zip(Use::now());
        let used = used.and_then(|(before, now)| now.since(before));
        let set_up = sums::connected(&self.connected);
        let requested = self.slots(self.connections);
        let mut by_origin = Vec::new();
        let data = sums::data(self.plan.origins.len(), &done);
        if let Some(division) = &self.division {
            division.join(&self.plan, &mut done);
            by_origin = division.connections(&self.plan, self.connections, &self.connected, &done);
        }
        request_log::report(&id, &mut done)?;
        let done = done.into_iter().map(|(_, done)| done).collect();
        let phase = &mut self.phases[number];
        let series = std::mem::take(&mut phase.series).into_bins();
        let tracks = std::mem::take(&mut phase.tracks).into_bins();
        let measured = sums::measurement(&self.plan, &self.driven, requested, &set_up, done);
        let mut measurement =
            Box::new(Measurement { origins: by_origin, data, series, tracks, ..measured });
        measurement.generator.machine = used;
        emit(&FromEngine::PhaseDone { id, measurement })?;
        self.dispatch();
        Ok(())
    }
}

impl role::Role for Role {
    fn handle_message(&mut self, message: ToEngine) -> Result<(), Failure> {
        match message {
            ToEngine::Blob(blob) if self.workers.is_empty() => {
                self.blobs.take(&blob)?;
                self.start_when_complete()
            }
            ToEngine::Blob(_) => refused("blob: comes too late"),
            ToEngine::Phase(phase) => {
                plan::check_phases(self.phases.len() + self.waiting.len())?;
                plan::check_phase(&self.plan, &phase)?;
                if let (Some(connections), Some(have)) = (phase.connections, &self.have) {
                    limits::check(&self.plan, self.slots(connections), have)?;
                }
                // At once: another engine may begin to send before we do.
                if let Some(ahead_ns) = phase.ahead_ns {
                    self.send_to_all(&Command::Clock(ahead_ns));
                }
                self.waiting.push_back(phase);
                self.dispatch();
                Ok(())
            }
            ToEngine::Share(share) => self.share(share),
            ToEngine::Settle { id, sent, until_ns } => {
                let index = self.await_no_longer(&id, Stand::Settle)?;
                self.send_to_all(&Command::Settle(index, Arc::new(sent), until_ns));
                Ok(())
            }
            ToEngine::Charge { id, failed } => {
                let index = self.await_no_longer(&id, Stand::Charge)?;
                self.send_to_all(&Command::Charge(index, failed.into()));
                Ok(())
            }
            _ => {
                let takes =
                    "blob, phase, share, clock, distance, speeds, settle, charge, lease and stop";
                refused(format_args!("a generator takes {takes}"))
            }
        }
    }

    fn handle_event(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Generator(thread, report) => self.handle_report(thread, report),
            Event::Data(rows) => {
                self.blobs.keep_rows(rows?);
                self.start_when_complete()
            }
            Event::Replay(replay) => {
                self.blobs.keep_replay(replay?);
                self.start_when_complete()
            }
            _ => Ok(()),
        }
    }

    fn stop(&mut self) {
        self.waiting.clear();
        self.send_to_all(&Command::Stop);
    }

    fn ended(&self) -> bool {
        self.ended == self.reporters()
    }

    fn idle(&self) -> bool {
        self.waiting.is_empty() && self.phases.iter().all(|phase| phase.over)
    }
}
