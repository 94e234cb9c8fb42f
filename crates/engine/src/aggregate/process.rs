//! A process below an aggregator, with a process group of its own. One thread reads its lines, one
//! keeps the tail of its stderr, and one writes what it is sent, so that none can hold up the others.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use trueload_drive::Clock;

use crate::failure::Failure;
use crate::role::{Event, Said};
use crate::threads;

/// The longest line: the result of a phase, with an hour of seconds or with 100,000 targets.
const LINE_BYTES_MOST: u64 = 128 * 1024 * 1024;
const LOG_BYTES_MOST: usize = 16 * 1024;
/// From the end of its output to the end of the process; and to read the rest of its stderr.
const ENDING: Duration = Duration::from_millis(500);

/// A process and its input.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    input: Option<Sender<String>>,
    log: Arc<Mutex<Vec<u8>>>,
    closed: Option<Instant>,
}

impl Process {
    /// Starts a command; what it does is told to `sink` under its number.
    pub(super) fn start(
        number: u32,
        argv: &[String],
        clock: Clock,
        sink: &Sender<Event>,
    ) -> Result<Self, Failure> {
        let (name, arguments) = argv.split_first().ok_or(Failure::Plan("argv: empty".into()))?;
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::Machine(format!("{name} cannot be started: {error}")))?;
        let (input, lines) = mpsc::channel();
        let log = Arc::new(Mutex::new(Vec::new()));
        if let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        {
            let (sink, tail) = (sink.clone(), Arc::clone(&log));
            threads::spawn("child-input", move || write(stdin, &lines))?;
            threads::spawn("child-log", move || keep(stderr, &tail))?;
            threads::spawn("child-output", move || read(number, stdout, clock, &sink))?;
        }
        Ok(Process { child, input: Some(input), log, closed: None })
    }

    /// Sends a line; a process that has ended no longer reads it.
    pub(super) fn send(&self, line: String) {
        if let Some(input) = &self.input {
            let _ = input.send(line);
        }
    }

    /// Closes its input.
    pub(super) fn close_input(&mut self) {
        self.input = None;
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
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&log).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

fn write(mut stdin: ChildStdin, lines: &Receiver<String>) {
    for mut line in lines {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(number: u32, stdout: ChildStdout, clock: Clock, sink: &Sender<Event>) {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    while let Ok(Some(())) = next_line(&mut stdout, &mut line) {
        let text = String::from_utf8_lossy(&line).into_owned();
        if sink.send(Event::Child(number, Said::Line(clock.now_ns(), text))).is_err() {
            return;
        }
    }
    let _ = sink.send(Event::Child(number, Said::Closed));
}

/// Reads one line without its newline; none at the end, and for one that is too long.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<()>> {
    line.clear();
    input.take(LINE_BYTES_MOST).read_until(b'\n', line)?;
    Ok((line.pop() == Some(b'\n')).then_some(()))
}

fn keep(mut stderr: ChildStderr, log: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut chunk) {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(&chunk[..count]);
        let extra = log.len().saturating_sub(LOG_BYTES_MOST);
        log.drain(..extra);
    }
}
