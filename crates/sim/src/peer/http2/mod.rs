//! An HTTP/2 server on one connection, as a pure state machine. It takes bytes and a time, and
//! returns actions, each with its time.
//!
//! How it works: the [`Reader`] reads the input and knows the windows of both sides. Each request
//! is answered after its own delay, in pieces, as far as the client's windows permit. Violations of
//! the protocol are played by `tricks`.

mod answers;
mod drawn;
mod http1;
mod reader;
mod replying;
mod server;
mod tricks;

use std::collections::{BTreeMap, VecDeque};

use trueload_wire::http2::frame::{
    ErrorCode, write_goaway, write_ping, write_settings_ack, write_window_update,
};
use trueload_wire::http2::hpack::Encoder;
use trueload_wire::http2::settings;

use super::site::Part;
use super::{Act, End, Talking, What};
use crate::chance::Chance;
use crate::scenario::{Leave, Manner, Version};
pub(crate) use drawn::{DrawnHttp2, Numbers};
use reader::{Event, Reader};
use server::Server;

/// The highest stream number. A GOAWAY with it as the last stream permits all.
const ALL_STREAMS: u32 = (1 << 31) - 1;

/// A part of an answer.
#[derive(Clone, Debug)]
enum Piece {
    /// A header block, which may end the stream.
    Fields(Vec<(String, String)>, bool),
    /// A part of the body, which may end the stream.
    Data(Vec<u8>, bool),
    /// The reset of the stream, with this code.
    Reset(u32),
    /// Nothing for this time, in ns.
    Pause(u64),
}

/// An answer in progress.
#[derive(Debug)]
struct Answer {
    pieces: VecDeque<Piece>,
    /// Its last piece completes the right answer.
    right: bool,
    /// The time between two bytes, for an answer sent byte by byte; 0 to send each piece at once.
    every_ns: u64,
    /// Nothing is sent before this time.
    not_before_ns: u64,
    /// DATA frames with content that were sent.
    frames: u64,
}

impl Answer {
    /// An answer of which nothing is sent.
    fn new(pieces: VecDeque<Piece>, right: bool) -> Self {
        Answer { pieces, right, every_ns: 0, not_before_ns: 0, frames: 0 }
    }
}

/// A task with a time.
#[derive(Clone, Debug)]
enum Job {
    Settings,
    Change(usize),
    Answer(u32),
    /// The answer to a request whose extra delay is over.
    Late(u32),
    Enlarge(u32, u32),
    NameLast,
    End(End),
    /// The pause of an answer is over.
    Resume,
}

/// The peer of one connection.
#[derive(Debug)]
struct Http2 {
    /// The connection's number.
    index: u32,
    manner: Manner,
    chance: Chance,
    /// Requests are HEAD, so answers have no body.
    head: bool,
    /// With TLS, the peer sends nothing until it has received something, because TLS is not set up
    /// before.
    listens_first: bool,
    /// The site of a conversation, and the offsets of the requests that were redirected here.
    talking: Option<Talking>,
    redirected: BTreeMap<u64, u64>,
    reader: Reader,
    encoder: Encoder,
    jobs: BTreeMap<(u64, u64), Job>,
    order: u64,
    answers: BTreeMap<u32, Answer>,
    /// The peer has sent its SETTINGS, and `owed` must be sent after them.
    opened: bool,
    owed: Vec<u8>,
    /// Requests that have come whole, answers sent whole, and streams that were refused.
    received: u32,
    whole: u64,
    refused: Vec<u32>,
    /// The last stream that the peer permits, once it has named one.
    last: Option<u32>,
    /// The time at which all output so far has been sent.
    busy_until_ns: u64,
    answered: bool,
    /// The peer sends nothing more.
    over: bool,
    reading_paused: bool,
}

impl Http2 {
    fn new(
        index: u32,
        (manner, chance): (Manner, Chance),
        method: &'static str,
        tls: bool,
        talking: Option<Talking>,
    ) -> Self {
        Http2 {
            index,
            listens_first: tls,
            manner,
            chance,
            head: method == "HEAD",
            reader: Reader::new(talking.is_none().then_some(method)),
            talking,
            redirected: BTreeMap::new(),
            encoder: Encoder::new(4096),
            jobs: BTreeMap::new(),
            order: 0,
            answers: BTreeMap::new(),
            opened: false,
            owed: Vec::new(),
            received: 0,
            whole: 0,
            refused: Vec::new(),
            last: None,
            busy_until_ns: 0,
            answered: false,
            over: false,
            reading_paused: false,
        }
    }

    /// Schedules the peer's SETTINGS and their changes.
    fn begin(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        let http2 = self.manner.http2.clone();
        self.later(at_ns + http2.settings_ns, Job::Settings, acts);
        for (nth, (after_ns, _)) in http2.changes.iter().enumerate() {
            let at_ns = at_ns + http2.settings_ns + after_ns;
            self.later(at_ns, Job::Change(nth), acts);
        }
    }

    fn handle_event(&mut self, event: Event, at_ns: u64, acts: &mut Vec<Act>) {
        match event {
            Event::Request(stream) => self.request(stream, at_ns, acts),
            Event::Data { stream, len } => {
                if let Some(after_ns) = self.manner.http2.opens_windows_ns.filter(|_| len > 0) {
                    self.later(at_ns + after_ns, Job::Enlarge(stream, len), acts);
                }
            }
            Event::Changed => {}
            Event::Settings => write_settings_ack(&mut self.owed),
            Event::Ping(payload) => write_ping(&mut self.owed, payload, true),
        }
    }

    /// Schedules the answer to a complete request, and sends GOAWAY if it is time for that.
    fn request(&mut self, stream: u32, at_ns: u64, acts: &mut Vec<Act>) {
        if let (Some(talking), Some(asked)) = (&self.talking, self.reader.asked(stream)) {
            talking.site.note(&asked, talking.on, talking.origin);
        }
        if self.last.is_some_and(|last| stream > last) {
            return;
        }
        let delay = self.manner.delay;
        let delay_ns = self.chance.between(delay.least_ns, delay.most_ns);
        self.later(at_ns + delay_ns, Job::Answer(stream), acts);
        self.received += 1;
        let Some(leave) = self.manner.http2.leaves.filter(|leave| leave.after == self.received)
        else {
            return;
        };
        match leave.warns_ns {
            None => self.name_last(at_ns, stream, ErrorCode::NoError, acts),
            Some(after_ns) => {
                let mut bytes = Vec::new();
                write_goaway(&mut bytes, ALL_STREAMS, ErrorCode::NoError, "");
                self.send(at_ns, bytes, None, acts);
                if after_ns < u64::MAX {
                    self.later(at_ns + after_ns, Job::NameLast, acts);
                }
            }
        }
    }

    /// Sends GOAWAY. Later streams than `last` are not answered.
    fn name_last(&mut self, at_ns: u64, last: u32, code: ErrorCode, acts: &mut Vec<Act>) {
        let mut bytes = Vec::new();
        write_goaway(&mut bytes, last, code, "");
        self.send(at_ns, bytes, None, acts);
        self.last = Some(last);
        self.answers.retain(|stream, _| *stream <= last);
        self.reader.streams.retain(|stream, _| *stream <= last);
    }

    fn run(&mut self, job: Job, at_ns: u64, acts: &mut Vec<Act>) {
        match job {
            Job::Settings => {
                self.send_settings(at_ns, &self.manner.http2.settings.clone(), acts);
                self.opened = true;
            }
            Job::Change(nth) => {
                self.send_settings(at_ns, &self.manner.http2.changes[nth].1.clone(), acts);
            }
            Job::Answer(stream) => self.answer(stream, at_ns, acts),
            Job::Late(stream) => self.answer_rightly(stream),
            Job::Enlarge(stream, by) => {
                let mut bytes = Vec::new();
                write_window_update(&mut bytes, 0, by);
                self.reader.enlarge(0, by);
                if self.reader.uploads(stream) {
                    write_window_update(&mut bytes, stream, by);
                    self.reader.enlarge(stream, by);
                }
                self.send(at_ns, bytes, None, acts);
            }
            Job::NameLast => self.name_last(at_ns, self.reader.last, ErrorCode::NoError, acts),
            Job::End(end) => self.end(at_ns, end, acts),
            Job::Resume => {}
        }
    }

    fn send_settings(&mut self, at_ns: u64, parameters: &[(u16, u32)], acts: &mut Vec<Act>) {
        let mut bytes = Vec::new();
        settings::write(&mut bytes, parameters);
        self.reader.announce(parameters);
        self.send(at_ns, bytes, None, acts);
    }

    /// Answers a request, or plays its trick.
    fn answer(&mut self, stream: u32, at_ns: u64, acts: &mut Vec<Act>) {
        if !self.reader.streams.contains_key(&stream) {
            return;
        }
        // Streams that the client opened but did not finish count, too.
        let number = stream / 2;
        let tricks = &self.manner.http2.tricks;
        match tricks.iter().find(|(at, _)| *at == number).map(|(_, trick)| trick.clone()) {
            Some(trick) => self.play(&trick, stream, at_ns, acts),
            None => self.answer_rightly(stream),
        }
    }

    /// Begins the right answer.
    fn answer_rightly(&mut self, stream: u32) {
        let pieces = self.pieces(stream);
        self.answers.insert(stream, Answer::new(pieces, true));
    }

    /// Schedules the end of the connection once every permitted request is answered.
    fn leave(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        let Some(Leave { ends_ns: Some(after_ns), .. }) = self.manner.http2.leaves else { return };
        let Some(last) = self.last else { return };
        if self.reader.streams.keys().all(|stream| *stream > last) {
            self.manner.http2.leaves = None;
            self.later(at_ns.max(self.busy_until_ns) + after_ns, Job::End(End::Fin), acts);
        }
    }

    fn later(&mut self, at_ns: u64, job: Job, acts: &mut Vec<Act>) {
        self.order += 1;
        self.jobs.insert((at_ns, self.order), job);
        acts.push(Act { on: self.index, at_ns, what: What::GoOn });
    }

    /// Sends bytes, after everything sent before.
    fn send(&mut self, at_ns: u64, bytes: Vec<u8>, answered: Option<u64>, acts: &mut Vec<Act>) {
        if !self.over && !bytes.is_empty() {
            self.busy_until_ns = self.busy_until_ns.max(at_ns);
            let what = What::Send(bytes, answered);
            acts.push(Act { on: self.index, at_ns: self.busy_until_ns, what });
        }
    }

    fn end(&mut self, at_ns: u64, end: End, acts: &mut Vec<Act>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let (on, at_ns) = (self.index, self.busy_until_ns.max(at_ns));
        acts.extend(end.act().map(|what| Act { on, at_ns, what }));
    }
}

impl Server for Http2 {
    /// Sends the greeting and ends, or begins unless the client
    /// must send first.
    fn connected(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        self.busy_until_ns = at_ns;
        let http2 = self.manner.http2.clone();
        if let Some((bytes, end)) = http2.greeting {
            self.send(at_ns, bytes.0.to_vec(), None, acts);
            return self.end(at_ns, end, acts);
        }
        if !self.listens_first {
            self.begin(at_ns, acts);
        }
    }

    /// Takes input and acts on it.
    fn receive(&mut self, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        if std::mem::take(&mut self.listens_first) {
            self.begin(at_ns, acts);
        }
        let quiet_ns = at_ns.saturating_sub(self.busy_until_ns);
        if self.answered && self.manner.forgets_ns.is_some_and(|most_ns| quiet_ns >= most_ns) {
            self.end(at_ns, End::Reset, acts);
        }
        let mut events = Vec::new();
        self.reader.read(bytes, &mut events);
        for event in events {
            self.handle_event(event, at_ns, acts);
        }
        self.pump(at_ns, acts);
    }

    /// Ends this side after what it has sent, because the client has ended.
    fn ended(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        if !self.manner.keeps_open {
            self.end(at_ns, End::Fin, acts);
        }
    }

    /// Runs the tasks that are due.
    fn go_on(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        while let Some(first) = self.jobs.first_entry().filter(|first| first.key().0 <= at_ns) {
            let job = first.remove();
            if !self.over {
                self.run(job, at_ns, acts);
            }
        }
        self.pump(at_ns, acts);
    }

    fn gone(&mut self) {
        self.over = true;
    }

    fn reads(&self) -> bool {
        !self.reading_paused
    }

    fn version(&self) -> Option<Version> {
        Some(Version::Http2)
    }

    fn requests(&self) -> u64 {
        self.reader.opened
    }

    fn permitted(&self) -> u64 {
        let upto = self.last.map_or(u64::MAX, |last| u64::from(last.div_ceil(2)));
        let last = self.last.unwrap_or(u32::MAX);
        let refused = self.refused.iter().filter(|stream| **stream <= last);
        self.reader.opened.min(upto) - refused.count() as u64
    }

    fn take_numbers(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.reader.numbers)
    }

    fn mistake(&self) -> Option<&str> {
        self.reader.mistake.as_deref()
    }

    fn whole(&self) -> Option<u64> {
        Some(self.whole)
    }
}
