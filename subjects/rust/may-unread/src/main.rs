//! A trap: a server that never reads. It writes one answer after another, as fast as they are taken,
//! whoever asked for what. Tools that count answers find it fast: 9.7 million of them a second stand
//! in a published table. On may: a coroutine a connection.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use may::go;
use may::net::{TcpListener, TcpStream};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nServer: may\r\nContent-Type: text/plain\r\n\
                      Content-Length: 13\r\n\r\nHello, World!";
const ANSWERS_A_WRITE: usize = 256;
/// When there was no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

fn answer_nobody(mut io: TcpStream) -> io::Result<()> {
    let answers = ANSWER.repeat(ANSWERS_A_WRITE);
    loop {
        io.write_all(answers.as_bytes())?;
    }
}

/// The value that follows a flag on the command line.
fn argument(flag: &str) -> Option<String> {
    std::env::args().skip_while(|given| given != flag).nth(1)
}

fn main() -> io::Result<()> {
    let listen = argument("--listen").unwrap_or_else(|| "127.0.0.1:8080".into());
    let workers = argument("--cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(1);

    may::config().set_workers(workers);
    // The CPUs are given from outside.
    may::config().set_worker_pin(false);
    let listener = TcpListener::bind(&listen)?;
    // On the main thread, which is no coroutine: it may sleep.
    loop {
        match listener.accept() {
            Ok((io, _)) => {
                go!(move || answer_nobody(io));
            }
            Err(_) => sleep(ACCEPT_PAUSE),
        }
    }
}
