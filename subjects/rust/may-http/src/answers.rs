//! The answer to each path, and how it is written.

use std::io::Write;
use std::sync::RwLock;
use std::thread;
use std::time::{Duration, SystemTime};

const PLAIN: &str = "Hello, World!";
const PERF: &str = "{\"path\":\"/perf\",\"status\":\"ok\",\"message\":\"Hello, World!\",\
                    \"numbers\":[1,2,3,5,8,13,21]}";
/// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD: &str = "X-Pad: .......................................................\r\n";
const WAIT_MS_MOST: u64 = 60_000;
const DATE_EVERY: Duration = Duration::from_millis(250);

static DATE: RwLock<String> = RwLock::new(String::new());

/// Whether the connection is kept. An HTTP/1.0 client must be told so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    Stay,
    StayOld,
    Close,
}

pub struct Answer {
    status: &'static str,
    kind: &'static str,
    body: &'static str,
    pub persistence: Persistence,
    /// The time to wait before the answer is written.
    pub wait: Duration,
}

pub fn route(path: &str, persistence: Persistence) -> Answer {
    let answer =
        |status, kind, body| Answer { status, kind, body, persistence, wait: Duration::ZERO };
    match path {
        "/" => answer("200 OK", "text/plain", PLAIN),
        "/perf" => answer("200 OK", "application/json", PERF),
        _ => match path.strip_prefix("/wait/") {
            Some(text) => match text.parse::<u64>() {
                Ok(ms) if ms <= WAIT_MS_MOST => {
                    let wait = Duration::from_millis(ms);
                    Answer { wait, ..answer("200 OK", "text/plain", "ok") }
                }
                _ => answer("400 Bad Request", "text/plain", "not a number of milliseconds"),
            },
            None => answer("404 Not Found", "text/plain", "not found"),
        },
    }
}

/// The answer to an invalid request. The connection ends after it, as what follows cannot be parsed.
pub fn refusal(status: &'static str) -> Answer {
    let persistence = Persistence::Close;
    Answer { status, kind: "text/plain", body: "", persistence, wait: Duration::ZERO }
}

impl Answer {
    pub fn write(&self, out: &mut Vec<u8>) {
        let connection = match self.persistence {
            Persistence::Stay => "",
            Persistence::StayOld => "Connection: keep-alive\r\n",
            Persistence::Close => "Connection: close\r\n",
        };
        let pad = if self.body == PLAIN { PAD } else { "" };
        let date = DATE.read().expect("nobody panics with it");
        // Writing to memory cannot fail.
        let _ = write!(
            out,
            "HTTP/1.1 {}\r\nServer: may\r\nDate: {date}\r\nContent-Type: {}\r\n\
             Content-Length: {}\r\n{connection}{pad}\r\n{}",
            self.status,
            self.kind,
            self.body.len(),
            self.body,
        );
    }
}

/// Starts a thread that keeps the Date of the answers current.
pub fn keep_date() {
    let refresh =
        || *DATE.write().expect("nobody panics") = httpdate::fmt_http_date(SystemTime::now());
    refresh();
    thread::spawn(move || {
        loop {
            thread::sleep(DATE_EVERY);
            refresh();
        }
    });
}
