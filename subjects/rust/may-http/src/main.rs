//! HTTP/1 server on may with httparse: a coroutine for each connection reads, parses the complete
//! requests, and writes their answers in one go.

mod answers;

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::thread::sleep;
use std::time::Duration;

use answers::{Answer, Persistence, refusal, route};
use httparse::{Request, Status};
use may::net::{TcpListener, TcpStream};
use may::{coroutine, go};

const READ_BYTES: usize = 4 * 1024;
/// A longer request head is refused.
const HEAD_BYTES_MOST: usize = 8 * 1024;
const HEADERS_MOST: usize = 64;
/// Answers are written at the latest when this many bytes have gathered.
const WRITE_BYTES: usize = 32 * 1024;
/// The pause after a failed accept, mostly because no descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// After the last answer, at most this many bytes are still read, because a close with unread bytes
/// would be a reset.
const DRAIN_BYTES: usize = 256 * 1024;

struct Connection {
    io: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of a request body still to be skipped.
    body_left: u64,
}

impl Connection {
    /// Serves the connection until the client ends it, or asks us to do so.
    fn serve(mut self) -> io::Result<()> {
        self.io.set_nodelay(true)?;
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let n = self.io.read(&mut bytes)?;
            if n == 0 {
                return Ok(());
            }
            self.input.extend_from_slice(&bytes[..n]);
            let open = self.answer_all()?;
            self.flush()?;
            if !open {
                return self.end(&mut bytes);
            }
        }
    }

    /// Answers the complete requests. Returns false after the last request of the connection.
    fn answer_all(&mut self) -> io::Result<bool> {
        let mut used = 0;
        let mut open = true;
        while open {
            let skipped = self.body_left.min((self.input.len() - used) as u64);
            self.body_left -= skipped;
            used += skipped as usize;
            if used == self.input.len() {
                break;
            }
            let (head_bytes, answer, body_bytes) = match read_head(&self.input[used..]) {
                Some(head) => head,
                None => break,
            };
            used += head_bytes;
            self.body_left = body_bytes;
            if !answer.wait.is_zero() {
                self.flush()?;
                coroutine::sleep(answer.wait);
            }
            answer.write(&mut self.output);
            open = answer.persistence != Persistence::Close;
            if self.output.len() >= WRITE_BYTES {
                self.flush()?;
            }
        }
        self.input.drain(..used);
        Ok(open)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.io.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }

    fn end(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.io.shutdown(Shutdown::Write)?;
        let mut drained = 0;
        while drained < DRAIN_BYTES {
            match self.io.read(bytes)? {
                0 => break,
                n => drained += n,
            }
        }
        Ok(())
    }
}

/// Reads the head at the beginning. Returns its length, its answer and the length of its body, or
/// None if it is not complete.
fn read_head(bytes: &[u8]) -> Option<(usize, Answer, u64)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MOST];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Complete(len)) => {
            let (answer, body_bytes) = answer_to(&request);
            Some((len, answer, body_bytes))
        }
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES_MOST => None,
        Ok(Status::Partial) => {
            Some((bytes.len(), refusal("431 Request Header Fields Too Large"), 0))
        }
        Err(_) => Some((bytes.len(), refusal("400 Bad Request"), 0)),
    }
}

/// Returns the answer and the length of the body. With HTTP/1.0, keep-alive must be stated.
fn answer_to(request: &Request<'_, '_>) -> (Answer, u64) {
    let old = request.version == Some(0);
    let mut persistence = if old { Persistence::Close } else { Persistence::Stay };
    let mut body_bytes = None;
    for header in request.headers.iter() {
        let value = header.value;
        if header.name.eq_ignore_ascii_case("connection") {
            if has_token(value, "close") {
                persistence = Persistence::Close;
            } else if old && has_token(value, "keep-alive") {
                persistence = Persistence::StayOld;
            }
        } else if header.name.eq_ignore_ascii_case("content-length") {
            match (body_bytes, digits(value)) {
                (None, Some(length)) => body_bytes = Some(length),
                _ => return (refusal("400 Bad Request"), 0),
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return (refusal("501 Not Implemented"), 0);
        }
    }
    if request.method != Some("GET") {
        return (refusal("405 Method Not Allowed"), 0);
    }
    (route(request.path.unwrap_or(""), persistence), body_bytes.unwrap_or(0))
}

fn has_token(list: &[u8], token: &str) -> bool {
    let text = std::str::from_utf8(list).unwrap_or("");
    text.split(',').any(|each| each.trim().eq_ignore_ascii_case(token))
}

fn digits(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let known = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if known { text.parse().ok() } else { None }
}

/// Returns the value that follows a flag on the command line.
fn argument(flag: &str) -> Option<String> {
    std::env::args().skip_while(|given| given != flag).nth(1)
}

fn main() -> io::Result<()> {
    let listen = argument("--listen").unwrap_or_else(|| "127.0.0.1:8080".into());
    let workers = argument("--cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(1);

    may::config().set_workers(workers);
    // trueload already pins the process to its CPUs.
    may::config().set_worker_pin(false);
    answers::keep_date();
    let listener = TcpListener::bind(&listen)?;
    // The main thread is no coroutine, so it may sleep.
    loop {
        match listener.accept() {
            Ok((io, _)) => {
                let (input, output) = (Vec::new(), Vec::new());
                let connection = Connection { io, input, output, body_left: 0 };
                go!(move || connection.serve());
            }
            Err(_) => sleep(ACCEPT_PAUSE),
        }
    }
}
