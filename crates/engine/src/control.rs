//! The engine as a process. The first line decides its role; then events of all kinds come through
//! one channel until the front, a signal or a lost lease ends it.

use std::io::{self, BufReader};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use trueload_drive::{Clock, Looks, SpeedWatch, distance_ns};

use crate::failure::{Failure, refuse_if, refused};
use crate::lines::{self, Input, emit};
use crate::protocol::{CpuLooks, FromEngine, PROTOCOL, ToEngine};
use crate::role::{Event, Role};
use crate::unread::{Heard, LEASE};
use crate::{generate, lock, machine, serve, threads, unread};

/// The time that threads have to end, once they are told to.
const FAREWELL: Duration = Duration::from_millis(900);
/// Each takes a thread.
const WATCHED_MOST: usize = 16;

/// Why the engine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Finished,
    Stopped,
    Orphaned,
    Signalled,
}

impl Why {
    fn name(self) -> &'static str {
        match self {
            Why::Finished => "finished",
            Why::Stopped => "stopped",
            Why::Orphaned => "orphaned",
            Why::Signalled => "signalled",
        }
    }
}

/// Runs the engine over stdin and stdout.
pub fn run() -> ExitCode {
    let clock = Clock::start();
    trueload_drive::map_large_allocations();
    trueload_drive::raise_open_files();
    let (sink, events) = mpsc::channel();
    threads::tell_of_defects(&sink);
    match converse(clock, &sink, &events) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Stdout(_)) => ExitCode::FAILURE,
        Err(failure) => {
            let class = failure.class().to_owned();
            // Stdout may be gone as well; the exit code still reports the failure.
            let _ = emit(&FromEngine::Error { class, message: failure.to_string() });
            ExitCode::from(if matches!(failure, Failure::Engine(_)) { 1 } else { 2 })
        }
    }
}

fn converse(clock: Clock, sink: &Sender<Event>, events: &Receiver<Event>) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let (pid, machine) = (std::process::id(), machine::look());
    unread::heard();
    emit(&FromEngine::Hello { protocol: PROTOCOL, version, pid, machine })?;
    listen_to_signals(sink)?;
    let input = sink.clone();
    threads::spawn("input", move || {
        lines::read_all(BufReader::new(Heard(io::stdin())), &input, |read| {
            unread::heard();
            Event::Input(read)
        });
        unread::watch();
    })?;
    let mut role: Box<dyn Role> = match first(clock, events)? {
        Some(ToEngine::Generate(plan)) => Box::new(generate::Role::new(*plan, clock, sink)?),
        Some(ToEngine::Serve(plan)) => Box::new(serve::Role::new(plan, clock, sink)?),
        Some(message @ ToEngine::Lock { .. }) => {
            let mut role = lock::Role::default();
            role.handle_message(message)?;
            Box::new(role)
        }
        Some(_) => {
            return refused("the first line must be generate, serve or lock");
        }
        None => return done(Why::Orphaned),
    };
    let (why, failure) = work(&mut *role, clock, events)?;
    role.stop();
    drain(&mut *role, events)?;
    match failure {
        Some(failure) => Err(failure),
        None => done(why),
    }
}

fn report_distance(cpus: [u32; 2]) -> Result<(), Failure> {
    // The distance is not known more precisely than a tenth of a nanosecond.
    let ns = distance_ns(cpus).ok().map(|ns| (ns * 10.0).round() / 10.0);
    Ok(emit(&FromEngine::Distance { cpus, ns })?)
}

/// CPUs whose speed is watched, and since when.
type Watched = Option<(u64, SpeedWatch)>;

/// Reports the speeds of the CPUs that were watched, and begins to watch others.
fn report_speeds(clock: Clock, watched: &mut Watched, cpus: &[u32]) -> Result<(), Failure> {
    refuse_if!(cpus.len() > WATCHED_MOST, "cpus: more than {WATCHED_MOST}");
    let (from_ns, seen) = watched
        .take()
        .map_or_else(|| (clock.now_ns(), Vec::new()), |(from_ns, watch)| (from_ns, watch.end()));
    if !cpus.is_empty() {
        *watched = Some((clock.now_ns(), SpeedWatch::begin(cpus)));
    }
    let looks = |(cpu, looks): (u32, Looks)| CpuLooks {
        cpu,
        every_ns: looks.every_ns,
        work_ns: looks.work_ns,
    };
    let cpus = seen.into_iter().map(looks).collect();
    Ok(emit(&FromEngine::Speeds { from_ns, cpus })?)
}

fn report_clock(clock: Clock, id: u64) -> Result<(), Failure> {
    Ok(emit(&FromEngine::Clock { id, at_ns: clock.now_ns() })?)
}

fn done(why: Why) -> Result<(), Failure> {
    Ok(emit(&FromEngine::Done { why: why.name().to_owned() })?)
}

fn listen_to_signals(sink: &Sender<Event>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Failure::Engine(format!("signals: {error}")))?;
    let sink = sink.clone();
    threads::spawn("signals", move || {
        for _ in &mut signals {
            let _ = sink.send(Event::Signal);
        }
    })
}

/// Returns the plan, or none if the front went away before it. A front that is kept busy sends
/// leases before its plan.
fn first(clock: Clock, events: &Receiver<Event>) -> Result<Option<ToEngine>, Failure> {
    loop {
        match events.recv_timeout(LEASE) {
            Ok(Event::Input(Input::Line(line))) => match *line {
                Ok(ToEngine::Lease) => {}
                Ok(ToEngine::Clock { id }) => report_clock(clock, id)?,
                Ok(ToEngine::Distance { cpus }) => report_distance(cpus)?,
                Ok(message) => return Ok(Some(message)),
                Err(refusal) => return refused(refusal.0),
            },
            _ => return Ok(None),
        }
    }
}

/// Passes events to the role until something ends it.
fn work(
    role: &mut dyn Role,
    clock: Clock,
    events: &Receiver<Event>,
) -> Result<(Why, Option<Failure>), Failure> {
    let mut lease = Instant::now() + LEASE;
    let mut watched: Watched = None;
    loop {
        let left = lease.saturating_duration_since(Instant::now());
        let event = match events.recv_timeout(left) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Ok((Why::Orphaned, None));
            }
        };
        let outcome = match event {
            Event::Input(Input::End) => return Ok((Why::Orphaned, None)),
            Event::Signal => return Ok((Why::Signalled, None)),
            Event::Died(message) => return Ok((Why::Stopped, Some(Failure::Engine(message)))),
            Event::Input(Input::Line(line)) => {
                lease = Instant::now() + LEASE;
                match *line {
                    Ok(ToEngine::Stop) if role.idle() => return Ok((Why::Finished, None)),
                    Ok(ToEngine::Stop) => return Ok((Why::Stopped, None)),
                    Ok(ToEngine::Lease) => Ok(()),
                    Ok(ToEngine::Clock { id }) => report_clock(clock, id),
                    Ok(ToEngine::Distance { cpus }) => report_distance(cpus),
                    Ok(ToEngine::Speeds { cpus }) => report_speeds(clock, &mut watched, &cpus),
                    Ok(message) => role.handle_message(message),
                    Err(refusal) => refused(refusal.0),
                }
            }
            event => role.handle_event(event),
        };
        match outcome {
            Ok(()) => {}
            Err(Failure::Stdout(error)) => return Err(Failure::Stdout(error)),
            Err(failure) => return Ok((Why::Stopped, Some(failure))),
        }
    }
}

/// Waits until every thread has ended, but not for ever.
fn drain(role: &mut dyn Role, events: &Receiver<Event>) -> Result<(), Failure> {
    let until = Instant::now() + FAREWELL;
    while !role.ended() {
        let left = until.saturating_duration_since(Instant::now());
        match events.recv_timeout(left) {
            Ok(Event::Input(_) | Event::Signal) => {}
            Ok(Event::Died(_)) | Err(_) => return Ok(()),
            Ok(event) => role.handle_event(event)?,
        }
    }
    Ok(())
}
