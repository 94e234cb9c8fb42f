//! Starts the threads of a role: each has a driver, is pinned, and has its death reported.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use trueload_drive::{
    Clock, Driver, Listener, Program, Settings, Waker, pin_to_cpu, thread_id, thread_wanted_ns,
    wake_precisely,
};

use crate::failure::Failure;
use crate::role::Event;

/// Most threads of one engine.
pub(crate) const THREADS_MOST: u32 = 1024;

/// A running thread and its command channel.
#[derive(Debug)]
pub(crate) struct Worker<C> {
    inbox: Sender<C>,
    waker: Waker,
    /// Its id in the kernel; 0 until it runs.
    id: Arc<AtomicU32>,
}

impl<C> Worker<C> {
    /// Sends a command to the thread; one that has ended no longer listens.
    pub(crate) fn send(&self, command: C) {
        let _ = self.inbox.send(command);
        self.waker.wake();
    }

    /// The time for which the thread has been on a CPU or waited for one since it began, in ns;
    /// none if the kernel does not tell.
    pub(crate) fn wanted_ns(&self) -> Option<u64> {
        thread_wanted_ns(self.id.load(Ordering::Relaxed))
    }
}

/// The drivers of an engine's threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Driven {
    /// The name of the driver; both names if there are two kinds.
    pub(crate) driver: String,
    /// The reason why it is not the requested driver.
    pub(crate) note: Option<String>,
}

/// Summarizes these drivers.
pub(crate) fn driven(drivers: &[Driver]) -> Driven {
    let mut names: Vec<&str> = drivers.iter().map(Driver::name).collect();
    names.sort_unstable();
    names.dedup();
    let note = drivers.iter().find_map(Driver::note).map(str::to_owned);
    Driven { driver: names.join("+"), note }
}

/// Creates a driver for one thread.
pub(crate) fn driver(
    settings: &Settings,
    clock: Clock,
    listener: Option<Listener>,
) -> Result<Driver, Failure> {
    Driver::new(settings, clock, listener)
        .map_err(|error| Failure::Machine(format!("no descriptors for a thread: {error}")))
}

/// Starts one thread that runs `program` over a driver of its own.
pub(crate) fn start<C, P: Program + Send + 'static>(
    name: &str,
    cpu: Option<u32>,
    mut driver: Driver,
    inbox: Sender<C>,
    mut program: P,
    sink: &Sender<Event>,
) -> Result<Worker<C>, Failure> {
    let id = Arc::new(AtomicU32::new(0));
    let worker = Worker { inbox, waker: driver.waker(), id: Arc::clone(&id) };
    let sink = sink.clone();
    let title = name.to_owned();
    let body = move || {
        id.store(thread_id(), Ordering::Relaxed);
        if let Some(cpu) = cpu
            && let Err(error) = pin_to_cpu(cpu)
        {
            let _ = sink.send(Event::Died(format!("{title}: cannot run on CPU {cpu}: {error}")));
            return;
        }
        wake_precisely();
        if let Err(error) = driver.run(&mut program) {
            let _ = sink.send(Event::Died(format!("{title}: {error}")));
        }
    };
    spawn(name, body)?;
    Ok(worker)
}

/// Has the engine told of a defect in any of its threads, which does not go on.
///
/// Nothing unwinds in a release, which makes it 8 % smaller. So a thread of [`spawn`] stays where it
/// is, and the engine ends in order. It ends at once if its main thread has the defect, or one
/// without a name: somebody waits for the end of that.
pub(crate) fn tell_of_defects(sink: &Sender<Event>) {
    let (sink, tell) = (sink.clone(), panic::take_hook());
    panic::set_hook(Box::new(move |defect| {
        tell(defect);
        let thread = thread::current();
        if let Some(name) = thread.name().filter(|name| *name != "main") {
            let message = format!("{name}: a defect of the engine; see its standard error");
            if sink.send(Event::Died(message)).is_ok() {
                loop {
                    thread::park();
                }
            }
        }
        std::process::exit(1);
    }));
}

/// Starts a thread with this name; nobody waits for its end.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
        .map_err(|error| Failure::Machine(format!("no thread for {name}: {error}")))
}

/// The CPU of thread `index`, if CPUs were named.
pub(crate) fn cpu_of(cpus: &[u32], index: u32) -> Option<u32> {
    (!cpus.is_empty()).then(|| cpus[index as usize % cpus.len()])
}
