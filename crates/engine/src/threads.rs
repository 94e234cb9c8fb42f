//! Starting the threads of a role: a driver each, pinned, their deaths noticed.

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::Sender;
use std::thread;

use trueload_drive::{Clock, Epoll, Listener, Program, Waker, pin_to_cpu, wake_precisely};

use crate::control::{Event, Failure};

/// One thread at work and how to tell it something.
#[derive(Debug)]
pub(crate) struct Worker<C> {
    inbox: Sender<C>,
    waker: Waker,
}

impl<C> Worker<C> {
    /// Tells the thread; one that has ended no longer listens.
    pub(crate) fn tell(&self, command: C) {
        let _ = self.inbox.send(command);
        self.waker.wake();
    }
}

/// Starts one thread that runs `program` over a driver of its own.
///
/// # Errors
/// When the kernel grants no descriptors, no thread, or not this CPU.
pub(crate) fn start<C, P: Program + Send + 'static>(
    name: &str,
    clock: Clock,
    cpu: Option<u32>,
    listener: Option<Listener>,
    inbox: Sender<C>,
    mut program: P,
    sink: &Sender<Event>,
) -> Result<Worker<C>, Failure> {
    let failed = |what: &str, error: std::io::Error| Failure::Engine(format!("{what}: {error}"));
    let mut epoll = Epoll::new(clock, listener).map_err(|error| failed("epoll", error))?;
    let worker = Worker { inbox, waker: epoll.waker() };
    let sink = sink.clone();
    let title = name.to_owned();
    let body = move || {
        if let Some(cpu) = cpu
            && let Err(error) = pin_to_cpu(cpu)
        {
            let _ = sink.send(Event::Died(format!("{title}: cannot run on CPU {cpu}: {error}")));
            return;
        }
        wake_precisely();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| epoll.run(&mut program)));
        let message = match outcome {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("{title}: {error}"),
            Err(_) => format!("{title}: a defect of the engine; see its standard error"),
        };
        let _ = sink.send(Event::Died(message));
    };
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| failed("thread", error))?;
    Ok(worker)
}

/// The CPU of thread `index`, when CPUs were named.
pub(crate) fn cpu_of(cpus: &[u32], index: u32) -> Option<u32> {
    (!cpus.is_empty()).then(|| cpus[index as usize % cpus.len()])
}
