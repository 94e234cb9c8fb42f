//! The answers of the reference server, ready to be copied.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use trueload_drive::Net;
use trueload_wire::http1::request::Request;
use trueload_wire::http2::hpack::literal;

use super::faults::Fault;
use super::redirect::Chain;
use super::stream::{Shape, number};

/// The longest wait that `/wait/MS` grants: an hour.
const WAIT_MS_MOST: u64 = 3_600_000;

/// The body of `GET /perf`: 84 bytes of JSON, the same for every subject (`contracts/`).
pub(super) const PERF_BODY: &str = "{\"path\":\"/perf\",\"status\":\"ok\",\"message\":\"Hello, World!\",\
                                    \"numbers\":[1,2,3,5,8,13,21]}";

/// The body of `GET /bytes/65536`; that of `/bytes/1024` is its beginning.
const BYTES: &[u8] = &[b'x'; 65_536];

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Hello,
    Perf,
    Bytes1024,
    Bytes65536,
    Wait {
        ns: u64,
    },
    /// Parts, one after the other.
    Stream(Shape),
    /// A redirect.
    Redirect(Chain),
    /// The documents' examples: an item, what was created, and the pages that sessions ask for.
    Item,
    Created,
    Items,
    User,
    LogIn,
    Form,
    FormSent,
    Unknown,
}

impl Route {
    #[inline]
    pub(super) fn of(method: &str, path: &str) -> Self {
        match path {
            "/" => Route::Hello,
            "/perf" => Route::Perf,
            "/bytes/1024" => Route::Bytes1024,
            "/bytes/65536" => Route::Bytes65536,
            "/item" | "/cart" if method == "POST" => Route::Created,
            "/item" => Route::Item,
            "/items" => Route::Items,
            "/login" if method == "POST" => Route::LogIn,
            "/form" if method == "POST" => Route::FormSent,
            "/form" => Route::Form,
            _ => Route::of_name(path).unwrap_or(Route::Unknown),
        }
    }

    /// The target of a path that says more behind its name.
    fn of_name(path: &str) -> Option<Self> {
        let (name, rest) = path.strip_prefix('/')?.split_once('/')?;
        match name {
            "item" => Some(Route::Item),
            "user" => Some(Route::User),
            "stream" => Shape::read(rest, WAIT_MS_MOST).map(Route::Stream),
            "redirect" => Chain::read(rest).map(Route::Redirect),
            "wait" => number(rest, WAIT_MS_MOST).map(|ms| Route::Wait { ns: ms * 1_000_000 }),
            _ => None,
        }
    }

    /// The time that the answer waits, in ns.
    #[inline]
    pub(super) fn wait_ns(self) -> u64 {
        if let Route::Wait { ns } = self { ns } else { 0 }
    }

    #[inline]
    pub(super) fn status(self) -> u16 {
        match self {
            Route::Unknown => 404,
            Route::Created => 201,
            Route::FormSent => 303,
            Route::Redirect(chain) => chain.status,
            _ => 200,
        }
    }

    /// Its index in [`PARTS`].
    #[inline]
    fn place(self) -> usize {
        match self {
            Route::Hello => 0,
            Route::Perf => 1,
            Route::Wait { .. } => 2,
            Route::Bytes1024 => 3,
            Route::Bytes65536 => 4,
            Route::Item => 5,
            Route::Created => 6,
            Route::Unknown => 7,
            Route::Stream(shape) if shape.lines => LINES,
            Route::Stream(_) => EVENTS,
            Route::Redirect(_) => REDIRECT,
            Route::Items => 12,
            Route::User => 13,
            Route::LogIn => LOG_IN,
            Route::Form => FORM,
            Route::FormSent => FORM_SENT,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) route: Route,
    pub(super) head_only: bool,
    pub(super) keep_alive: bool,
    pub(super) http10: bool,
    pub(super) fault: Fault,
    /// The connection is deliberately closed after it, whatever it says.
    pub(super) closes: bool,
}

impl Answer {
    /// The answer to a request that leaves its connection open.
    pub(super) fn to(method: &str, path: &str) -> Self {
        let route = Route::of(method, path);
        Answer { route, head_only: method == "HEAD", ..HELLO }
    }

    /// The answer to a request of HTTP/1.
    pub(super) fn to_http1(request: &Request<'_>) -> Self {
        let answer = Answer::to(request.method, request.path());
        // In HTTP/1.0 only the close of the connection can end a stream.
        let ends = request.http10 && matches!(answer.route, Route::Stream(_));
        Answer { keep_alive: request.keep_alive && !ends, http10: request.http10, ..answer }
    }

    /// Its body; empty if it is sent in parts.
    pub(super) fn body(self) -> &'static [u8] {
        if self.head_only { &[] } else { PARTS[place_of(self)].2 }
    }

    /// The stream that is its body, if it has one.
    #[inline]
    pub(super) fn stream(&self) -> Option<Shape> {
        match self.route {
            Route::Stream(shape) if !self.head_only && self.fault != Fault::Error => Some(shape),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn is_streamed(&self) -> bool {
        self.stream().is_some()
    }

    /// Whether the connection ends with it.
    #[inline]
    pub(super) fn is_last(&self) -> bool {
        !self.keep_alive || self.closes
    }

    /// Its status, as it is sent.
    pub(super) fn status(&self) -> u16 {
        if self.fault == Fault::Error { 500 } else { self.route.status() }
    }
}

/// Status, content type and body of each route's answer, and of a deliberate error.
const PARTS: [(&str, &str, &[u8]); 17] = [
    ("200 OK", "text/plain", b"Hello, World!"),
    ("200 OK", "application/json", PERF_BODY.as_bytes()),
    ("200 OK", "text/plain", b"ok"),
    ("200 OK", "text/plain", BYTES.split_at(1024).0),
    ("200 OK", "text/plain", BYTES),
    ("200 OK", "text/plain", b"an item\n"),
    ("201 Created", "text/plain", b"created\n"),
    ("404 Not Found", "text/plain", b"not found\n"),
    ("500 Internal Server Error", "text/plain", b"error\n"),
    ("200 OK", "text/event-stream", b""),
    ("200 OK", "application/x-ndjson", b""),
    ("302 Found", "text/plain", b"redirected\n"),
    ("200 OK", "text/plain", b"items\n"),
    ("200 OK", "text/plain", b"a user\n"),
    ("200 OK", "application/json", b"{\"token\":\"token-1\"}"),
    ("200 OK", "text/html", b"<form method=\"post\"><input name=\"csrf\" value=\"f-77\"></form>\n"),
    ("303 See Other", "text/plain", b"sent\n"),
];
const ERROR: usize = 8;
/// Streams, whose bodies have no length and are sent part by part.
const EVENTS: usize = 9;
const LINES: usize = 10;
/// Redirects, whose status and Location differ.
const REDIRECT: usize = 11;
/// What sessions begin with: a token, a number and a cookie, the same for everybody.
const LOG_IN: usize = 14;
const FORM: usize = 15;
const FORM_SENT: usize = 16;

/// The index of an answer in [`PARTS`].
#[inline]
fn place_of(answer: Answer) -> usize {
    if answer.fault == Fault::Error { ERROR } else { answer.route.place() }
}

/// The fields that an answer has beside the usual ones.
fn own_fields(place: usize) -> &'static [(&'static str, &'static str)] {
    match place {
        LOG_IN => &[("x-id", "1"), ("set-cookie", "sid=1; Path=/; HttpOnly")],
        FORM => &[("set-cookie", "form=open; Path=/form")],
        FORM_SENT => &[("location", "/")],
        _ => &[],
    }
}

fn is_stream(place: usize) -> bool {
    matches!(place, EVENTS | LINES)
}

fn length(len: usize) -> String {
    format!("Content-Length: {len}\r\n")
}

/// The most frequent answer.
const HELLO: Answer = Answer {
    route: Route::Hello,
    head_only: false,
    keep_alive: true,
    http10: false,
    fault: Fault::None,
    closes: false,
};

/// Number of copies of the most frequent answer that are kept in a row: more are rarely asked for
/// in one read.
const ROW: usize = 64;

/// Responses with the Date of the driver's clock. Many copies of the most frequent one are kept in
/// a row.
#[derive(Debug, Default)]
pub(super) struct Responses {
    date: String,
    /// For HTTP/2: the fields of each of [`PARTS`].
    blocks: [Vec<u8>; PARTS.len()],
    hellos: Arc<[u8]>,
    hello_len: usize,
}

impl Responses {
    /// Sets the Date before the first answer; later [`Responses::refresh`] does.
    pub(super) fn begin(&mut self, net: &impl Net) {
        if self.date.is_empty() {
            self.refresh(net);
        }
    }

    /// Sets the Date to the present second.
    pub(super) fn refresh(&mut self, net: &impl Net) {
        // RFC 9110 §6.6.1 tolerates a Date that is 250 ms ahead or behind.
        let unix_time = net.unix_time() + Duration::from_millis(1);
        let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + unix_time);
        if date != self.date {
            self.date = date;
            self.build_blocks();
            let mut hello = Vec::with_capacity(192);
            self.build(&mut hello, HELLO);
            self.hello_len = hello.len();
            self.hellos = hello.repeat(ROW).into();
        }
    }

    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>, answer: Answer) {
        match self.shared(answer, 1) {
            Some((hellos, one)) => out.extend_from_slice(&hellos[one]),
            None => self.build(out, answer),
        }
    }

    /// The range of `count` copies of this answer in a row, if they are kept.
    #[inline]
    pub(super) fn shared(
        &self,
        answer: Answer,
        count: usize,
    ) -> Option<(&Arc<[u8]>, Range<usize>)> {
        let plain = answer.keep_alive && !answer.head_only && !answer.http10;
        let plain = plain && answer.fault != Fault::Error;
        let hello = plain && answer.route == Route::Hello && count <= ROW;
        hello.then_some((&self.hellos, 0..count * self.hello_len))
    }

    /// Appends the answer to input that is not HTTP.
    pub(super) fn malformed(&self, out: &mut Vec<u8>) {
        self.plain(out, "400 Bad Request", "Connection: close\r\n", "bad request\n", false);
    }

    /// Appends an answer in plain text; for HEAD only its head.
    pub(super) fn plain(
        &self,
        out: &mut Vec<u8>,
        status: &str,
        fields: &str,
        body: &str,
        head_only: bool,
    ) {
        self.head(out, status, "text/plain", &length(body.len()), fields);
        if !head_only {
            out.extend_from_slice(body.as_bytes());
        }
    }

    fn build(&self, out: &mut Vec<u8>, answer: Answer) {
        let place = place_of(answer);
        let (mut status, kind, body) = PARTS[place];
        let connection = match (answer.keep_alive, answer.http10) {
            (true, true) => "Connection: keep-alive\r\n",
            (true, false) => "",
            (false, _) => "Connection: close\r\n",
        };
        let framing = match is_stream(place) {
            false => length(body.len()),
            true if answer.http10 => String::new(),
            true => "Transfer-Encoding: chunked\r\n".to_owned(),
        };
        let mut fields = String::from(connection);
        if let Some(chain) = redirect(answer) {
            status = chain.status_line();
            fields += &format!("Location: {}\r\n", chain.location());
        }
        for (name, value) in own_fields(place) {
            fields += &format!("{name}: {value}\r\n");
        }
        self.head(out, status, kind, &framing, &fields);
        if !answer.head_only {
            out.extend_from_slice(body);
        }
    }

    /// The answer on an HTTP/2 stream: the block of its fields, and its body.
    #[inline]
    pub(super) fn of_stream(&self, answer: Answer) -> (Cow<'_, [u8]>, &'static [u8]) {
        let (place, body) = (place_of(answer), answer.body());
        let Some(chain) = redirect(answer) else {
            return (Cow::Borrowed(&self.blocks[place]), body);
        };
        let mut block = Vec::new();
        write_block(&mut block, place, &chain.status.to_string(), &self.date);
        literal::field(&mut block, b"location", chain.location().as_bytes(), false);
        (Cow::Owned(block), body)
    }

    fn build_blocks(&mut self) {
        for (place, ((status, ..), block)) in PARTS.iter().zip(&mut self.blocks).enumerate() {
            block.clear();
            let status = status.split(' ').next().unwrap_or_default();
            write_block(block, place, status, &self.date);
        }
    }

    fn head(&self, out: &mut Vec<u8>, status: &str, kind: &str, framing: &str, connection: &str) {
        let date = &self.date;
        let head = format!(
            "HTTP/1.1 {status}\r\nServer: trueload\r\nDate: {date}\r\n\
             Content-Type: {kind}\r\n{framing}{connection}\r\n"
        );
        out.extend_from_slice(head.as_bytes());
    }
}

/// Appends the fields of an answer over HTTP/2.
fn write_block(block: &mut Vec<u8>, place: usize, status: &str, date: &str) {
    let (_, kind, body) = PARTS[place];
    let length = body.len().to_string();
    for (name, value) in [
        (":status", status),
        ("server", "trueload"),
        ("date", date),
        ("content-type", kind),
        ("content-length", &length),
    ] {
        if name != "content-length" || !is_stream(place) {
            literal::field(block, name.as_bytes(), value.as_bytes(), false);
        }
    }
    for (name, value) in own_fields(place) {
        literal::field(block, name.as_bytes(), value.as_bytes(), false);
    }
}

#[inline]
fn redirect(answer: Answer) -> Option<Chain> {
    match answer.route {
        Route::Redirect(chain) if answer.fault != Fault::Error => Some(chain),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_perf_has_84_bytes() {
        assert_eq!(PERF_BODY.len(), 84);
    }

    #[test]
    fn paths_lead_where_the_contracts_say() {
        let cases = [
            ("/", Route::Hello),
            ("/perf", Route::Perf),
            ("/bytes/1024", Route::Bytes1024),
            ("/bytes/65536", Route::Bytes65536),
            ("/bytes/1", Route::Unknown),
            ("/wait/10", Route::Wait { ns: 10_000_000 }),
            ("/wait/0", Route::Wait { ns: 0 }),
            ("/wait/", Route::Unknown),
            ("/wait/-1", Route::Unknown),
            ("/wait/+1", Route::Unknown),
            ("/wait/3600001", Route::Unknown),
            ("/wait/99999999999999999999", Route::Unknown),
            ("/hello", Route::Unknown),
        ];
        for (path, route) in cases {
            assert_eq!(Route::of("GET", path), route, "{path}");
        }
    }

    #[test]
    fn what_the_documents_ask_for_is_there() {
        let cases = [
            ("GET", "/item/7", Route::Item, 200),
            ("POST", "/item", Route::Created, 201),
            ("GET", "/item", Route::Item, 200),
            ("GET", "/items", Route::Items, 200),
            ("POST", "/cart", Route::Created, 201),
            ("GET", "/cart", Route::Unknown, 404),
            ("GET", "/user/ann", Route::User, 200),
            ("POST", "/login", Route::LogIn, 200),
            ("GET", "/login", Route::Unknown, 404),
            ("GET", "/form", Route::Form, 200),
            ("POST", "/form", Route::FormSent, 303),
        ];
        for (method, path, route, status) in cases {
            let found = Route::of(method, path);
            assert_eq!((found, found.status()), (route, status), "{method} {path}");
        }
    }
}
