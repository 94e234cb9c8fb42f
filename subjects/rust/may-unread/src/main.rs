//! A trap: a server on may that never reads. A coroutine per connection writes one answer after
//! another, as fast as the client accepts them, whether or not it has sent a request. Tools that
//! only count answers find it fast: a published table gives it 9.7 million per second.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use may::go;
use may::net::{TcpListener, TcpStream};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nServer: may\r\nContent-Type: text/plain\r\n\
                      Content-Length: 13\r\n\r\nHello, World!";
const ANSWERS_A_WRITE: usize = 256;
/// The pause after a failed accept, mostly because no descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

fn answer_nobody(mut io: TcpStream) -> io::Result<()> {
    let answers = ANSWER.repeat(ANSWERS_A_WRITE);
    loop {
        io.write_all(answers.as_bytes())?;
    }
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
    let listener = TcpListener::bind(&listen)?;
    // The main thread is no coroutine, so it may sleep.
    loop {
        match listener.accept() {
            Ok((io, _)) => {
                go!(move || answer_nobody(io));
            }
            Err(_) => sleep(ACCEPT_PAUSE),
        }
    }
}
