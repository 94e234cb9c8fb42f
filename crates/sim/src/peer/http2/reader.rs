//! Reads the frames of an HTTP/2 client, and checks that it may send them. Uses its own code to
//! read frames, not the code under test.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trueload_wire::http2::hpack::Decoder;

use crate::peer::Asked;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADER_BYTES: usize = 9;
const FRAME_BYTES_MOST: usize = 16_384;
const WINDOW_MOST: i64 = (1 << 31) - 1;
/// Maximum size of a request's field list.
const LIST_BYTES_MOST: usize = 64 * 1024;

/// The events that a frame causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The request of this stream is whole.
    Request(u32),
    /// Bytes of a body have come, and were accepted.
    Data { stream: u32, len: u32 },
    /// Something that had no room may now be sent, or need not be sent any more.
    Changed,
    /// SETTINGS have come, to be acknowledged.
    Settings,
    /// A PING has come, to be answered.
    Ping([u8; 8]),
}

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Stream {
    /// The offset in the input at which it began.
    pub(super) start: u64,
    /// The bytes that the client may still send, the length of the body that it announced, and the
    /// bytes that have come.
    receive: i64,
    length: Option<u64>,
    got: u64,
    request_ended: bool,
    pub(super) answer_ended: bool,
    /// The bytes that the peer may still send.
    pub(super) send: i64,
    /// The request, without the length of its body.
    asked: Asked,
}

/// A header block that is not complete.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
}

/// The client's side of a connection, as its peer sees it.
#[derive(Debug)]
pub(super) struct Reader {
    /// The method of every request; none if a site knows what requests have to be.
    method: Option<&'static str>,
    kept: Vec<u8>,
    /// The offset at which `kept` begins.
    start: u64,
    /// The preface has come, and after it the first frame.
    begun: bool,
    settled: bool,
    block: Option<Block>,
    decoder: Decoder,
    pub(super) streams: BTreeMap<u32, Stream>,
    /// The last stream that was opened, and the number of streams opened.
    pub(super) last: u32,
    pub(super) opened: u64,
    /// Streams that were answered before their requests came.
    ahead: BTreeSet<u32>,
    reset: BTreeSet<u32>,
    /// The settings that the client has acknowledged: the number of streams it may open, and the
    /// window of each.
    permitted: Option<u32>,
    window: i64,
    /// SETTINGS that the client has not acknowledged.
    announced: VecDeque<Vec<(u16, u32)>>,
    /// The bytes that the client may still send on the connection.
    receive: i64,
    /// The bytes that the peer may still send on the connection, and at first on each stream.
    pub(super) send: i64,
    send_first: i64,
    /// Number of PINGs that are not answered.
    pub(super) pings: u32,
    /// The peer has broken the protocol, so reactions to that are no mistakes of the client.
    pub(super) lenient: bool,
    /// Numbers of the requests that carry one.
    pub(super) numbers: Vec<u64>,
    /// The client's first mistake.
    pub(super) mistake: Option<String>,
}

impl Reader {
    pub(super) fn new(method: Option<&'static str>) -> Self {
        Reader {
            method,
            kept: Vec::new(),
            start: 0,
            begun: false,
            settled: false,
            block: None,
            decoder: Decoder::default(),
            streams: BTreeMap::new(),
            last: 0,
            opened: 0,
            ahead: BTreeSet::new(),
            reset: BTreeSet::new(),
            permitted: None,
            window: 65_535,
            announced: VecDeque::new(),
            receive: 65_535,
            send: 65_535,
            send_first: 65_535,
            pings: 0,
            lenient: false,
            numbers: Vec::new(),
            mistake: None,
        }
    }

    /// Takes the client's SETTINGS.
    fn settle_on(&mut self, payload: &[u8]) {
        for six in payload.chunks_exact(6) {
            if six[..2] == [0, 4] {
                let four = six[2..].try_into().unwrap_or_default();
                self.send_first = i64::from(u32::from_be_bytes(four));
            }
        }
    }

    fn wrong(&mut self, how: impl FnOnce() -> String) {
        self.mistake.get_or_insert_with(how);
    }

    fn ensure(&mut self, right: bool, how: impl FnOnce() -> String) {
        if !right {
            self.wrong(how);
        }
    }

    /// Records that the peer has sent SETTINGS.
    pub(super) fn announce(&mut self, parameters: &[(u16, u32)]) {
        self.announced.push_back(parameters.to_vec());
    }

    /// Records that the peer has enlarged a window; `stream` 0 is the connection.
    pub(super) fn enlarge(&mut self, stream: u32, by: u32) {
        match self.streams.get_mut(&stream) {
            _ if stream == 0 => self.receive += i64::from(by),
            Some(stream) => stream.receive += i64::from(by),
            None => {}
        }
    }

    /// Whether the client of this stream still sends, so that a larger window is of use.
    pub(super) fn uploads(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_some_and(|stream| !stream.request_ended)
    }

    /// The request of a stream.
    pub(super) fn asked(&self, stream: u32) -> Option<Asked> {
        let stream = self.streams.get(&stream)?;
        Some(Asked { body: stream.got as usize, ..stream.asked.clone() })
    }

    /// Ends the answer of a stream, or with `reset` the whole stream. Returns the offset at which
    /// the request began.
    pub(super) fn end_answer(&mut self, number: u32, reset: bool) -> Option<u64> {
        let stream = self.streams.get_mut(&number)?;
        stream.answer_ended = true;
        let (start, ended) = (stream.start, stream.request_ended || reset);
        if ended {
            self.streams.remove(&number);
        }
        Some(start)
    }

    /// Records that a whole answer was sent on a stream. Returns whether it may answer a request,
    /// even one that is still on its way, and the offset of the request if it has come.
    pub(super) fn answered_elsewhere(&mut self, number: u32) -> (bool, Option<u64>) {
        let start = self.end_answer(number, false);
        let ahead = number % 2 == 1 && number > self.last && self.ahead.insert(number);
        (start.is_some() || ahead, start)
    }

    /// Takes input and adds what it causes to `events`.
    pub(super) fn read(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        self.kept.extend_from_slice(bytes);
        if !self.begun {
            let len = self.kept.len().min(PREFACE.len());
            self.ensure(self.kept[..len] == PREFACE[..len], || "no preface".to_owned());
            if len < PREFACE.len() {
                return;
            }
            self.take(len);
            self.begun = true;
        }
        while let Some(header) = self.kept.first_chunk::<HEADER_BYTES>().copied() {
            let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = header;
            let len = u32::from_be_bytes([0, l0, l1, l2]) as usize;
            let stream = u32::from_be_bytes([s0, s1, s2, s3]);
            self.ensure(len <= FRAME_BYTES_MOST, || format!("a frame of {len} bytes"));
            let Some(payload) = self.kept.get(HEADER_BYTES..HEADER_BYTES + len) else { return };
            let payload = payload.to_vec();
            self.frame(kind, flags, stream, &payload, events);
            self.take(HEADER_BYTES + len);
        }
    }

    fn take(&mut self, len: usize) {
        self.kept.drain(..len);
        self.start += len as u64;
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8], events: &mut Vec<Event>) {
        let ack = flags & 1 != 0;
        let first = !std::mem::replace(&mut self.settled, true);
        self.ensure(!first || (kind == 4 && !ack), || format!("it begins with a frame {kind}"));
        self.ensure(self.block.is_none() || kind == 9, || "a block is interrupted".to_owned());
        let word = |at: usize| {
            let bytes = payload.get(at..at + 4).and_then(|four| four.try_into().ok());
            bytes.map_or(0, u32::from_be_bytes)
        };
        match kind {
            0 => self.data(stream, flags, payload.len(), events),
            1 => {
                self.open(stream);
                let ends = flags & 1 != 0;
                self.block = Some(Block { stream, ends, bytes: payload.to_vec() });
                self.go_on_block(flags, events);
            }
            3 => {
                self.ensure(stream % 2 == 1 && stream <= self.last, || {
                    format!("RST_STREAM on stream {stream}, which is idle")
                });
                self.reset.insert(stream);
                self.streams.remove(&stream);
                events.push(Event::Changed);
            }
            4 if ack => self.acknowledged(),
            4 => {
                self.settle_on(payload);
                events.push(Event::Settings);
            }
            6 if ack => {
                self.ensure(self.pings > 0 || self.lenient, || "an answer to no PING".to_owned());
                self.pings = self.pings.saturating_sub(1);
            }
            6 => events.push(Event::Ping(payload.try_into().unwrap_or_default())),
            7 => {}
            8 => {
                self.window_update(stream, word(0));
                events.push(Event::Changed);
            }
            9 => {
                let of = self.block.as_ref().map(|block| block.stream);
                self.ensure(of == Some(stream), || "CONTINUATION of no block".to_owned());
                if let Some(block) = &mut self.block {
                    block.bytes.extend_from_slice(payload);
                    self.go_on_block(flags, events);
                }
            }
            _ => self.wrong(|| format!("a frame of type {kind}")),
        }
    }

    /// Opens a stream.
    fn open(&mut self, number: u32) {
        let last = std::mem::replace(&mut self.last, number);
        self.ensure(number % 2 == 1 && number > last, || {
            format!("stream {number} is opened behind {last}")
        });
        self.opened += 1;
        let open = self.streams.len() as u32 + 1;
        if let Some(most) = self.permitted {
            self.ensure(open <= most, || format!("{open} streams are open, of {most} permitted"));
        }
        let (start, receive, send) = (self.start, self.window, self.send_first);
        let (length, got, request_ended) = (None, 0, false);
        let (answer_ended, asked) = (self.ahead.remove(&number), Asked::default());
        self.streams.insert(
            number,
            Stream { start, receive, length, got, request_ended, answer_ended, send, asked },
        );
    }

    fn go_on_block(&mut self, flags: u8, events: &mut Vec<Event>) {
        if flags & 4 == 0 {
            return;
        }
        let Some(Block { stream, ends, bytes, .. }) = self.block.take() else { return };
        let mut fields = Vec::new();
        let read = self.decoder.decode(&bytes, LIST_BYTES_MOST, &mut |field| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            fields.push((text(field.name), text(field.value)));
        });
        self.ensure(read.is_ok(), || format!("{read:?}"));
        let value = |name: &str| {
            fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        let right = self.method.is_none_or(|method| {
            value(":method") == Some(method)
                && value(":path") == Some("/")
                && value(":authority") == Some("a")
        }) && value(":scheme").is_some();
        let text = |name: &str| value(name).unwrap_or_default().to_owned();
        let cookies = fields.iter().filter(|(name, _)| name == "cookie");
        let cookies: Vec<_> = cookies.map(|(_, value)| value.as_str()).collect();
        let (method, path, host) = (text(":method"), text(":path"), text(":authority"));
        let asked = Asked { method, path, host, cookies: cookies.join("; "), body: 0 };
        let length = value("content-length").and_then(|length| length.parse().ok());
        let number: Option<u64> =
            value("x-number").and_then(|text| text.split(' ').next()?.parse().ok());
        self.numbers.extend(number);
        self.ensure(right, || format!("{fields:?}"));
        if let Some(stream) = self.streams.get_mut(&stream) {
            (stream.length, stream.asked) = (length, asked);
        }
        if ends {
            self.end_request(stream, events);
        }
    }

    fn end_request(&mut self, number: u32, events: &mut Vec<Event>) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.request_ended = true;
        let (got, length) = (stream.got, stream.length.unwrap_or(stream.got));
        let answered = stream.answer_ended;
        self.ensure(got == length, || format!("{got} bytes of a body of {length}"));
        if answered {
            self.streams.remove(&number);
        } else {
            events.push(Event::Request(number));
        }
    }

    fn data(&mut self, number: u32, flags: u8, len: usize, events: &mut Vec<Event>) {
        self.receive -= len as i64;
        let left = self.receive;
        self.ensure(left >= 0, || format!("{} bytes beyond the connection's window", -left));
        self.ensure(number <= self.last && !self.reset.contains(&number), || {
            format!("DATA on stream {number}, which is idle or was reset")
        });
        events.push(Event::Data { stream: number, len: len as u32 });
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.receive -= len as i64;
        stream.got += len as u64;
        let (left, ended) = (stream.receive, stream.request_ended);
        self.ensure(left >= 0 || len == 0, || format!("{} bytes beyond a stream's window", -left));
        self.ensure(!ended, || format!("DATA behind the end of stream {number}"));
        if flags & 1 != 0 {
            self.end_request(number, events);
        }
    }

    fn window_update(&mut self, number: u32, by: u32) {
        self.ensure(by > 0 && number <= self.last, || {
            format!("WINDOW_UPDATE by {by} on stream {number}")
        });
        let window = match self.streams.get_mut(&number) {
            _ if number == 0 => &mut self.send,
            Some(stream) => &mut stream.send,
            None => return,
        };
        *window += i64::from(by);
        let window = *window;
        self.ensure(window <= WINDOW_MOST, || format!("a window of {window}"));
    }

    fn acknowledged(&mut self) {
        let Some(parameters) = self.announced.pop_front() else {
            let lenient = self.lenient;
            return self.ensure(lenient, || "SETTINGS are acknowledged twice".to_owned());
        };
        for (parameter, value) in parameters {
            match parameter {
                1 => self.decoder.acknowledged(value),
                3 => self.permitted = Some(value),
                4 => {
                    let by = i64::from(value) - self.window;
                    self.window += by;
                    self.streams.values_mut().for_each(|stream| stream.receive += by);
                }
                _ => {}
            }
        }
    }
}

// The peer's own use of the client's windows.
impl Reader {
    /// The bytes that may be sent on a stream now.
    pub(super) fn room(&self, stream: u32) -> i64 {
        self.streams.get(&stream).map_or(0, |stream| stream.send.min(self.send))
    }

    /// Records that `len` bytes were sent on a stream.
    pub(super) fn spend(&mut self, stream: u32, len: usize) {
        self.send -= len as i64;
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.send -= len as i64;
        }
    }
}
