//! A process below an aggregator, with a process group of its own.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::failure::Failure;

use super::children::{Children, Pipes};

/// From the end of its output to the end of the process.
const ENDING: Duration = Duration::from_millis(500);

/// A process and its pipes.
#[derive(Debug)]
pub(super) struct Process {
    number: u32,
    child: Child,
    children: Arc<Children>,
    pipes: Arc<Pipes>,
    closed: Option<Instant>,
}

impl Process {
    /// Starts a command; `children` tells what it does, under its number.
    pub(super) fn start(
        number: u32,
        argv: &[String],
        children: &Arc<Children>,
    ) -> Result<Self, Failure> {
        let (name, arguments) = argv.split_first().ok_or(Failure::Plan("argv: empty".into()))?;
        let refused = |error| Failure::Machine(format!("{name} cannot be started: {error}"));
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(refused)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three are pipes");
        };
        // Without its input it ends.
        let pipes = children.add(number, stdin, stdout, stderr).map_err(refused)?;
        Ok(Process { number, child, children: Arc::clone(children), pipes, closed: None })
    }

    /// Sends a line; a process that has ended no longer reads it.
    pub(super) fn send(&self, line: &str) {
        self.children.send(&self.pipes, line);
    }

    /// Closes its input.
    pub(super) fn close_input(&self) {
        self.children.close_input(&self.pipes);
    }

    /// Kills it, and what it has started.
    pub(super) fn kill(&mut self) {
        // Not after it was reaped: its number could be another's by then.
        if let Ok(None) = self.child.try_wait() {
            let group = Pid::from_raw(self.child.id() as i32);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
    }

    /// Its output has ended.
    pub(super) fn handle_closed(&mut self, now: Instant) {
        self.closed = Some(now);
    }

    /// Its exit code, once its output has ended and the code is known, or will not come.
    pub(super) fn ended(&mut self, now: Instant) -> Option<Option<i32>> {
        let closed = self.closed?;
        match self.child.try_wait() {
            Ok(Some(status)) => Some(status.code().or(status.signal().map(|signal| -signal))),
            _ => (now.duration_since(closed) > ENDING).then_some(None),
        }
    }

    /// The last part of its stderr.
    pub(super) fn log(&self) -> String {
        self.pipes.log()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
        self.children.remove(self.number);
    }
}
