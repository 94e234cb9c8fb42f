//! The role of a reference server: its threads, and their counts put together.

use std::sync::mpsc::{self, Sender};

use trueload_drive::{Clock, Listener};

use crate::control::{self, Event, Failure};
use crate::lines::say;
use crate::outlet::Outlet;
use crate::plan;
use crate::protocol::{FromEngine, PROTOCOL, Ready, ServePlan, Served, ToEngine};
use crate::server::{Command, Seen, Server};
use crate::threads::{self, Driven, Worker};

/// Threads of one engine, at most.
pub(crate) const THREADS_MOST: u32 = 1024;

/// A server at work.
#[derive(Debug)]
pub struct Role {
    clock: Clock,
    workers: Vec<Worker<Command>>,
    seen: Vec<Seen>,
    told: usize,
    ended: usize,
}

impl Role {
    /// Binds, starts the threads and says `ready`.
    ///
    /// # Errors
    /// When the plan or the address cannot be had.
    pub fn new(plan: &ServePlan, clock: Clock, sink: &Sender<Event>) -> Result<Self, Failure> {
        if plan.protocol != PROTOCOL {
            return Err(Failure::Plan(format!("protocol: must be {PROTOCOL}")));
        }
        if plan.threads == 0 || plan.threads > THREADS_MOST {
            return Err(Failure::Plan(format!("threads: must be 1 to {THREADS_MOST}")));
        }
        plan::check_spin(plan.spin_ns)?;
        let settings = plan::settings(plan.driver, plan.spin_ns);
        let listeners = bind(plan)?;
        let listen = listeners.first().map(Listener::address);
        let mut workers = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            let (inbox, commands) = mpsc::channel();
            let outlet = Outlet::to(sink.clone(), Event::Server);
            let program = Server::new(index, commands, outlet);
            let name = format!("server-{index}");
            let cpu = threads::cpu_of(&plan.cpus, index as u32);
            let driver = threads::driver(&settings, clock, Some(listener))?;
            workers.push(threads::start(&name, cpu, driver, inbox, program, sink)?);
        }
        let Driven { driver, note } = threads::driven(&workers);
        let (at_ns, driver_note) = (clock.now_ns(), note);
        say(&FromEngine::Ready(Ready { at_ns, listen, driver, driver_note, ..Ready::default() }))?;
        let seen = vec![Seen::default(); workers.len()];
        Ok(Role { clock, workers, seen, told: 0, ended: 0 })
    }

    fn served(&self) -> Served {
        let mut sum = Served { at_ns: self.clock.now_ns(), ..Served::default() };
        for seen in &self.seen {
            sum.accepted += seen.accepted;
            sum.open += seen.open;
            sum.open_peak += seen.open_peak;
            sum.requests += seen.requests;
            sum.responses += seen.responses;
            sum.malformed += seen.malformed;
            sum.aborted += seen.aborted;
            sum.waiting += seen.waiting;
            sum.bytes_in += seen.bytes_in;
            sum.bytes_out += seen.bytes_out;
        }
        sum
    }
}

/// One listening socket per thread, on one port.
fn bind(plan: &ServePlan) -> Result<Vec<Listener>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::Listen(format!("cannot listen on {}: {error}", plan.listen))
    };
    if plan.threads == 1 {
        return Ok(vec![Listener::bind(plan.listen, false).map_err(failed)?]);
    }
    // A port that somebody else shares would take a part of the connections: must be ours alone.
    let alone = Listener::bind(plan.listen, false).map_err(failed)?;
    let address = alone.address();
    drop(alone);
    (0..plan.threads).map(|_| Listener::bind(address, true).map_err(failed)).collect()
}

impl control::Role for Role {
    fn tell(&mut self, _message: ToEngine) -> Result<(), Failure> {
        Err(Failure::Plan("a server takes only lease and stop".into()))
    }

    fn hear(&mut self, event: Event) -> Result<(), Failure> {
        let Event::Server(report) = event else {
            return Ok(());
        };
        self.seen[report.thread] = report.seen;
        self.told += 1;
        self.ended += usize::from(report.ended);
        // Once per round of the threads, and at the end.
        if self.told.is_multiple_of(self.workers.len()) || self.ended == self.workers.len() {
            say(&FromEngine::Served(self.served()))?;
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.workers.iter().for_each(|worker| worker.tell(Command::Stop));
    }

    fn ended(&self) -> bool {
        self.ended == self.workers.len()
    }

    fn idle(&self) -> bool {
        true
    }
}
