//! The role of a reference server: its threads, and the sum of their counts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use trueload_drive::{Address, Clock, Driver, Listener, Program, Rates};

use crate::blobs::Blobs;
use crate::failure::{Failure, refuse_if, refused};
use crate::lines::emit;
use crate::outlet::Outlet;
use crate::protocol::{
    AddressPlan, FromEngine, PROTOCOL, Ready, ServePlan, Served, ServicePlan, ToEngine,
};
use crate::role::{self, Event};
use crate::server::websocket::{self, Hub};
use crate::server::{
    Command, ConnectionLimits, Echo, Faults, Interval, Report, Server, UdpEcho, Watch,
};
use crate::threads::{self, Driven, THREADS_MOST, Worker};
use crate::{plan, secrets};

/// A reference server.
#[derive(Debug)]
pub struct Role {
    plan: ServePlan,
    clock: Clock,
    sink: Sender<Event>,
    blobs: Blobs,
    workers: Vec<Worker<Command>>,
    seen: Vec<Served>,
    reported: usize,
    ended: usize,
    marks: VecDeque<Mark>,
}

/// A mark of the front, until every thread has reported its interval.
#[derive(Debug)]
struct Mark {
    id: String,
    intervals: Vec<Option<Box<Interval>>>,
}

impl Mark {
    /// The sum over all threads; none as long as one is missing.
    fn sum(&self) -> Option<Interval> {
        let mut intervals = self.intervals.iter().map(Option::as_deref);
        let mut sum = intervals.next()??.clone();
        for interval in intervals {
            sum.merge(interval?);
        }
        Some(sum)
    }
}

impl Role {
    /// Checks the plan, binds, starts the threads and reports `ready`, unless a certificate is
    /// still to come.
    pub fn new(plan: ServePlan, clock: Clock, sink: &Sender<Event>) -> Result<Self, Failure> {
        refuse_if!(plan.protocol != PROTOCOL, "protocol: must be {PROTOCOL}");
        if plan.threads == 0 || plan.threads > THREADS_MOST {
            return refused(format_args!("threads: must be 1 to {THREADS_MOST}"));
        }
        if plan.threads > 1 && matches!(plan.listen.0, Address::Unix(_)) {
            return refused("threads: a socket file has one");
        }
        if matches!((plan.service, &plan.listen.0), (ServicePlan::UdpEcho, Address::Unix(_))) {
            return refused("listen: UDP has no socket file");
        }
        plan::check_spin(plan.spin_ns)?;
        if let ServicePlan::Http { faults: Some(faults), .. } = &plan.service {
            plan::check_faults(faults)?;
        }
        let mut role = Role {
            plan,
            clock,
            sink: sink.clone(),
            blobs: Blobs::default(),
            workers: Vec::new(),
            seen: Vec::new(),
            reported: 0,
            ended: 0,
            marks: VecDeque::new(),
        };
        role.start_when_complete()?;
        Ok(role)
    }

    fn start_when_complete(&mut self) -> Result<(), Failure> {
        let tls = self.plan.tls.as_ref();
        if !self.blobs.hold(tls.into_iter().flat_map(secrets::served)) {
            return Ok(());
        }
        let alpn: &[&str] = match self.plan.service {
            ServicePlan::Http { http2: Some(_), .. } => &["h2", "http/1.1"],
            _ => &["http/1.1"],
        };
        let tls = tls.map(|tls| secrets::server_setup(tls, &self.blobs, alpn)).transpose()?;
        let (setup, certificate) = tls.map_or((None, None), |(setup, made)| (Some(setup), made));
        let settings = plan::settings(self.plan.driver, self.plan.spin_ns, Rates::default());
        let listeners = bind(&self.plan)?;
        let listen = listeners.first().map(|listener| AddressPlan(listener.address().clone()));
        let drivers: Result<Vec<_>, _> = listeners
            .into_iter()
            .map(|listener| threads::driver(&settings, self.clock, Some(listener)))
            .collect();
        let drivers = drivers?;
        let Driven { driver, note: driver_note } = threads::driven(&drivers);
        let clock = self.clock;
        let limits = limits_of(&self.plan);
        let watch = |index, commands, outlet| {
            Watch::new(index, commands, outlet).with_limits(limits.clone())
        };
        match self.plan.service {
            ServicePlan::Http { record, faults, http2 } => {
                self.start(drivers, |index, commands, outlet| {
                    let server = Server::new(setup.clone(), watch(index, commands, outlet));
                    let server = match http2 {
                        Some(plan) => server.with_http2(plan, faults),
                        None => server,
                    };
                    let server = match faults {
                        Some(plan) => server.with_faults(Faults::new(plan, index)),
                        None => server,
                    };
                    if record { server.with_record(clock.now_ns()) } else { server }
                })?;
            }
            ServicePlan::TcpEcho => self.start(drivers, |index, commands, outlet| {
                Echo::new(watch(index, commands, outlet))
            })?,
            ServicePlan::UdpEcho => self.start(drivers, |index, commands, outlet| {
                UdpEcho::new(watch(index, commands, outlet))
            })?,
            ServicePlan::Ws { dialect } => {
                let hub = Arc::new(Hub::new(drivers.iter().map(Driver::waker).collect()));
                self.start(drivers, |index, commands, outlet| {
                    let (hub, watch) = ((index, Arc::clone(&hub)), watch(index, commands, outlet));
                    websocket::Server::new(hub, dialect, setup.clone(), watch)
                })?;
            }
        }
        let at_ns = self.clock.now_ns();
        self.seen = vec![Served::default(); self.workers.len()];
        emit(&FromEngine::Ready(Ready {
            at_ns,
            listen,
            driver,
            driver_note,
            certificate,
            ..Ready::default()
        }))?;
        Ok(())
    }

    /// Starts a thread for each driver, with the program that `make` creates for it.
    fn start<P: Program + Send + 'static>(
        &mut self,
        drivers: Vec<Driver>,
        make: impl Fn(usize, Receiver<Command>, Outlet<Report>) -> P,
    ) -> Result<(), Failure> {
        for (index, carrier) in drivers.into_iter().enumerate() {
            let (inbox, commands) = mpsc::channel();
            let outlet = Outlet::to(self.sink.clone(), Event::Server);
            let program = make(index, commands, outlet);
            let name = format!("server-{index}");
            let cpu = threads::cpu_of(&self.plan.cpus, index as u32);
            let worker = threads::start(&name, cpu, carrier, inbox, program, &self.sink)?;
            self.workers.push(worker);
        }
        Ok(())
    }

    fn mark(&mut self, id: String) -> Result<(), Failure> {
        let ServicePlan::Http { record: true, .. } = self.plan.service else {
            return refused("mark: the plan asks for no record");
        };
        refuse_if!(self.workers.is_empty(), "mark: comes before the server listens");
        self.marks.push_back(Mark { id, intervals: vec![None; self.workers.len()] });
        self.workers.iter().for_each(|worker| worker.send(Command::Mark));
        Ok(())
    }

    /// Takes the interval of a thread: each thread answers the marks in their order.
    fn marked(&mut self, thread: usize, interval: Box<Interval>) -> Result<(), Failure> {
        let mut marks = self.marks.iter_mut();
        if let Some(mark) = marks.find(|mark| mark.intervals[thread].is_none()) {
            mark.intervals[thread] = Some(interval);
        }
        while let Some(sum) = self.marks.front().and_then(Mark::sum) {
            if let Some(mark) = self.marks.pop_front() {
                emit(&FromEngine::Seen(Box::new(sum.report(mark.id))))?;
            }
        }
        Ok(())
    }

    fn served(&self) -> Served {
        let mut sum = Served { at_ns: self.clock.now_ns(), ..Served::default() };
        self.seen.iter().for_each(|seen| sum.merge(seen));
        sum
    }
}

/// The limits of a server's connections, which its threads share.
fn limits_of(plan: &ServePlan) -> ConnectionLimits {
    ConnectionLimits {
        idle_ns: plan.idle_timeout_ns.unwrap_or(0),
        room: plan.max_connections.map(|most| (Arc::default(), most)),
    }
}

/// One listening socket per thread, on one port.
fn bind(plan: &ServePlan) -> Result<Vec<Listener>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::Listen(format!("cannot listen on {}: {error}", plan.listen.0))
    };
    let bind = match plan.service {
        ServicePlan::UdpEcho => Listener::bind_datagrams,
        _ => Listener::bind,
    };
    if plan.threads == 1 {
        return Ok(vec![bind(&plan.listen.0, false).map_err(failed)?]);
    }
    // A port that another process shares would lose some of the connections to it, so it must be
    // ours alone.
    let alone = bind(&plan.listen.0, false).map_err(failed)?;
    let address = alone.address().clone();
    drop(alone);
    (0..plan.threads).map(|_| bind(&address, true).map_err(failed)).collect()
}

impl Drop for Role {
    /// Removes the socket file, which would outlive its socket.
    fn drop(&mut self) {
        if let (Address::Unix(path), false) = (&self.plan.listen.0, self.workers.is_empty()) {
            let _ = std::fs::remove_file(path);
        }
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
            ToEngine::Mark { id } => self.mark(id),
            _ => refused("a server takes blob, mark, lease and stop"),
        }
    }

    fn handle_event(&mut self, event: Event) -> Result<(), Failure> {
        let (thread, seen, ended) = match event {
            Event::Server(Report::Counts { thread, seen, ended }) => (thread, seen, ended),
            Event::Server(Report::Marked { thread, interval }) => {
                return self.marked(thread, interval);
            }
            _ => return Ok(()),
        };
        self.seen[thread] = seen;
        self.reported += 1;
        self.ended += usize::from(ended);
        // Reported once per round of the threads, and at the end.
        if self.reported.is_multiple_of(self.workers.len()) || self.ended == self.workers.len() {
            emit(&FromEngine::Served(self.served()))?;
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.workers.iter().for_each(|worker| worker.send(Command::Stop));
    }

    fn ended(&self) -> bool {
        self.ended == self.workers.len()
    }

    fn idle(&self) -> bool {
        true
    }
}
