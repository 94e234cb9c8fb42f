//! The role of an aggregator: it starts other engines, and combines what they say, so that a front can
//! have thousands. `group` decides what is said; this file owns the processes.

mod children;
mod clock;
mod group;
mod process;
mod series;
mod ticks;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use trueload_drive::Clock;

use crate::failure::Failure;
use crate::lines::emit;
use crate::protocol::{AggregatePlan, Close, Ended, FromEngine, Open, PROTOCOL, ToEngine};
use crate::role::{self, Event, Said};
use crate::threads;

use children::Children;
use group::Group;
use process::Process;

/// Engines below one aggregator.
const CHILDREN_MOST: usize = 64;
const BEAT: Duration = Duration::from_millis(50);
/// An engine ends within 0.9 s once its input has ended; by ssh it takes a round trip longer.
const FAREWELL: Duration = Duration::from_millis(1_500);

/// An aggregator.
#[derive(Debug)]
pub struct Role {
    clock: Clock,
    children: Arc<Children>,
    group: Group,
    processes: BTreeMap<u32, Process>,
    lease: Duration,
}

impl Role {
    /// Checks the plan, and starts the beat.
    ///
    /// # Errors
    /// When the plan is of another protocol, or the kernel grants no thread.
    pub fn new(plan: &AggregatePlan, clock: Clock, sink: &Sender<Event>) -> Result<Self, Failure> {
        if plan.protocol != PROTOCOL {
            return Err(Failure::Plan(format!("protocol: must be {PROTOCOL}")));
        }
        let beats = sink.clone();
        threads::spawn("beat", move || {
            while beats.send(Event::Beat).is_ok() {
                thread::sleep(BEAT);
            }
        })?;
        let children = Children::start(clock, sink)?;
        let lease = Duration::from_nanos(plan.lease_ns);
        Ok(Role { clock, children, group: Group::default(), processes: BTreeMap::new(), lease })
    }

    fn open(&mut self, asked: &Open) -> Result<(), Failure> {
        let child = asked.child;
        if self.processes.contains_key(&child) {
            return Err(Failure::Plan(format!("child: {child} is open")));
        }
        if self.processes.len() == CHILDREN_MOST {
            return Err(Failure::Plan(format!("child: more than {CHILDREN_MOST}")));
        }
        match Process::start(child, &asked.argv, &self.children) {
            Ok(process) => {
                self.processes.insert(child, process);
                self.group.handle_open(child);
                Ok(())
            }
            Err(Failure::Machine(log)) => {
                Ok(emit(&FromEngine::Ended(Ended { child, code: None, log }))?)
            }
            Err(failure) => Err(failure),
        }
    }

    fn close(&mut self, asked: &Close) {
        if let Some(process) = self.processes.get_mut(&asked.child) {
            process.close_input();
            if asked.kill {
                process.kill();
            }
        }
    }

    fn beat(&mut self) {
        self.reap();
        self.group.handle_beat(self.clock.now_ns());
    }

    /// Tells of processes that have ended.
    fn reap(&mut self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        for (child, process) in &mut self.processes {
            ended.extend(process.ended(now).map(|code| (*child, code)));
        }
        for (child, code) in ended {
            let log = self.processes.remove(&child).map(|process| process.log());
            self.group.handle_end(child, code, log.unwrap_or_default());
        }
    }

    fn handle_said(&mut self, child: u32, said: Said) {
        match said {
            Said::Line(at_ns, line) => self.group.handle_line(at_ns, child, line),
            Said::Closed => {
                if let Some(process) = self.processes.get_mut(&child) {
                    process.handle_closed(Instant::now());
                }
                self.reap();
            }
        }
    }

    /// Sends what the group has to say.
    fn tell(&mut self) -> Result<(), Failure> {
        let (up, down) = self.group.output();
        for (child, line) in down {
            if let Some(process) = self.processes.get(&child) {
                process.send(&line);
            }
        }
        for message in up {
            emit(&message)?;
        }
        Ok(())
    }
}

impl role::Role for Role {
    fn handle_message(&mut self, message: ToEngine) -> Result<(), Failure> {
        match message {
            ToEngine::Open(asked) => self.open(&asked)?,
            ToEngine::Close(asked) => self.close(&asked),
            ToEngine::Relay(relay) => {
                for child in relay.children {
                    self.group.handle_relay(child, &relay.line);
                }
            }
            _ => return Err(Failure::Plan("an aggregator takes open, relay and close".into())),
        }
        self.tell()
    }

    fn handle_event(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Children(said) => {
                for (child, each) in said {
                    self.handle_said(child, each);
                }
            }
            Event::Beat => self.beat(),
            _ => {}
        }
        self.tell()
    }

    fn stop(&mut self) {
        for process in self.processes.values() {
            process.close_input();
        }
    }

    fn ended(&self) -> bool {
        self.processes.is_empty()
    }

    fn idle(&self) -> bool {
        self.processes.is_empty()
    }

    fn lease(&self) -> Duration {
        self.lease
    }

    fn farewell(&self) -> Duration {
        FAREWELL
    }
}
