//! The pipes to all processes below an aggregator. One thread reads what they say, and writes what a
//! full pipe did not take: threads for each process would spend more on waking than on reading.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, CreateFlags, Event as Ready, EventData, EventFlags};
use rustix::io::{Errno, ioctl_fionbio};
use trueload_drive::Clock;

use crate::failure::Failure;
use crate::role::{Event, Said};
use crate::threads;

/// The longest line: the result of a phase, with an hour of seconds or with 100,000 targets.
const LINE_BYTES_MOST: usize = 128 * 1024 * 1024;
const LOG_BYTES_MOST: usize = 16 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
/// Events that are taken at once.
const EVENTS: usize = 64;
/// Chunks of a log that are read once its process says nothing else.
const LAST_WORDS: usize = 16;

const INPUT: u64 = 0;
const OUTPUT: u64 = 1;
const LOG: u64 = 2;

/// The pipes of all processes, by the numbers of these.
#[derive(Debug)]
pub(super) struct Children {
    epoll: OwnedFd,
    pipes: Mutex<BTreeMap<u32, Arc<Pipes>>>,
}

/// The pipes of one process.
#[derive(Debug)]
pub(super) struct Pipes {
    number: u32,
    input: Mutex<Input>,
    output: Mutex<Output>,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Input {
    /// None once it is closed, or nobody reads it any more.
    stdin: Option<ChildStdin>,
    waiting: VecDeque<u8>,
    /// To be closed when nothing waits.
    ending: bool,
    watched: bool,
}

#[derive(Debug)]
struct Output {
    stdout: Option<ChildStdout>,
    /// The beginning of a line.
    line: Vec<u8>,
}

#[derive(Debug)]
struct Log {
    stderr: Option<ChildStderr>,
    tail: VecDeque<u8>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(number: u32, pipe: u64) -> EventData {
    EventData::new_u64(u64::from(number) << 2 | pipe)
}

impl Children {
    /// Starts the thread. What is read is told to `sink`, with the number of the process.
    pub(super) fn start(clock: Clock, sink: &Sender<Event>) -> Result<Arc<Self>, Failure> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|error| Failure::Machine(format!("no epoll for an aggregator: {error}")))?;
        let children = Arc::new(Children { epoll, pipes: Mutex::default() });
        let (reader, sink) = (Arc::clone(&children), sink.clone());
        threads::spawn("children", move || reader.read(clock, &sink))?;
        Ok(children)
    }

    /// Takes the pipes of a new process.
    pub(super) fn add(
        &self,
        number: u32,
        stdin: ChildStdin,
        stdout: ChildStdout,
        stderr: ChildStderr,
    ) -> io::Result<Arc<Pipes>> {
        for pipe in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            ioctl_fionbio(pipe, true)?;
        }
        // Only what is known by its number may be ready.
        let mut known = lock(&self.pipes);
        epoll::add(&self.epoll, &stdout, key(number, OUTPUT), EventFlags::IN)?;
        epoll::add(&self.epoll, &stderr, key(number, LOG), EventFlags::IN)?;
        let (waiting, ending, watched) = (VecDeque::new(), false, false);
        let pipes = Arc::new(Pipes {
            number,
            input: Mutex::new(Input { stdin: Some(stdin), waiting, ending, watched }),
            output: Mutex::new(Output { stdout: Some(stdout), line: Vec::new() }),
            log: Mutex::new(Log { stderr: Some(stderr), tail: VecDeque::new() }),
        });
        known.insert(number, Arc::clone(&pipes));
        Ok(pipes)
    }

    /// Closes the pipes of a process. Its number may be another's next.
    pub(super) fn remove(&self, number: u32) {
        lock(&self.pipes).remove(&number);
    }

    /// Sends a line. A process that has ended no longer reads it.
    pub(super) fn send(&self, pipes: &Pipes, line: &str) {
        let mut input = lock(&pipes.input);
        if input.stdin.is_some() && !input.ending {
            input.waiting.extend(line.as_bytes());
            input.waiting.push_back(b'\n');
            self.write(pipes.number, &mut input);
        }
    }

    /// Closes the input of a process, after what waits.
    pub(super) fn close_input(&self, pipes: &Pipes) {
        let mut input = lock(&pipes.input);
        input.ending = true;
        self.write(pipes.number, &mut input);
    }

    /// Writes what waits, and watches a full pipe.
    fn write(&self, number: u32, input: &mut Input) {
        let Some(stdin) = &mut input.stdin else { return };
        let full = loop {
            let (next, _) = input.waiting.as_slices();
            if next.is_empty() {
                break false;
            }
            match stdin.write(next) {
                Ok(count @ 1..) => drop(input.waiting.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                _ => {
                    input.ending = true;
                    input.waiting.clear();
                }
            }
        };
        let watched = mem::replace(&mut input.watched, full);
        // A pipe that cannot be watched takes no more; its process is lost by its silence.
        let _ = match (watched, full) {
            (false, true) => epoll::add(&self.epoll, &*stdin, key(number, INPUT), EventFlags::OUT),
            (true, false) => epoll::delete(&self.epoll, &*stdin),
            _ => Ok(()),
        };
        if input.ending && !full {
            input.stdin = None;
        }
    }

    /// Reads until nobody listens any more.
    fn read(&self, clock: Clock, sink: &Sender<Event>) {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut said = Vec::new();
        loop {
            let mut events = [MaybeUninit::<Ready>::uninit(); EVENTS];
            let ready = match epoll::wait(&self.epoll, &mut events, None) {
                Ok((ready, _)) => ready,
                Err(Errno::INTR) => continue,
                Err(_) => return,
            };
            for event in ready {
                let data = event.data.u64();
                let Some(pipes) = lock(&self.pipes).get(&((data >> 2) as u32)).cloned() else {
                    continue;
                };
                match data & 3 {
                    INPUT => self.write(pipes.number, &mut lock(&pipes.input)),
                    LOG => lock(&pipes.log).read(&self.epoll, &mut chunk, 1),
                    _ => self.read_output(&pipes, clock, &mut said, &mut chunk),
                }
            }
            if !said.is_empty() && sink.send(Event::Children(mem::take(&mut said))).is_err() {
                return;
            }
        }
    }

    /// Reads once, and adds what is said.
    fn read_output(
        &self,
        pipes: &Pipes,
        clock: Clock,
        said: &mut Vec<(u32, Said)>,
        chunk: &mut [u8],
    ) {
        let mut output = lock(&pipes.output);
        let Some(stdout) = &mut output.stdout else { return };
        let count = match stdout.read(chunk) {
            Ok(count) => count,
            Err(error) if is_passing(&error) => return,
            Err(_) => 0,
        };
        // Not before it was read: the time of an answer bounds its clock.
        let at_ns = clock.now_ns();
        for part in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            output.line.extend_from_slice(part);
            if part.last() == Some(&b'\n') {
                output.line.pop();
                let line = String::from_utf8_lossy(&output.line).into_owned();
                output.line.clear();
                said.push((pipes.number, Said::Line(at_ns, line)));
            }
        }
        if count > 0 && output.line.len() <= LINE_BYTES_MOST {
            return;
        }
        if let Some(stdout) = output.stdout.take() {
            let _ = epoll::delete(&self.epoll, &stdout);
        }
        // Its last words come before its end.
        lock(&pipes.log).read(&self.epoll, chunk, LAST_WORDS);
        said.push((pipes.number, Said::Closed));
    }
}

impl Pipes {
    /// The last part of its stderr.
    pub(super) fn log(&self) -> String {
        let mut log = lock(&self.log);
        String::from_utf8_lossy(log.tail.make_contiguous()).into_owned()
    }
}

impl Log {
    /// Reads what there is, in so many turns at most: others wait.
    fn read(&mut self, epoll: &OwnedFd, chunk: &mut [u8], turns: usize) {
        for _ in 0..turns {
            let Some(stderr) = &mut self.stderr else { return };
            match stderr.read(chunk) {
                Ok(count @ 1..) => {
                    self.tail.extend(&chunk[..count]);
                    let extra = self.tail.len().saturating_sub(LOG_BYTES_MOST);
                    self.tail.drain(..extra);
                }
                Err(error) if is_passing(&error) => return,
                _ => {
                    let _ = epoll::delete(epoll, &*stderr);
                    self.stderr = None;
                }
            }
        }
    }
}

/// Whether a read may be tried again.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
