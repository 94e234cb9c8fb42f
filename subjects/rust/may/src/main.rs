//! TCP echo on may: a coroutine for each connection, which reads and writes in turn.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::thread::sleep;
use std::time::Duration;

use may::go;
use may::net::{TcpListener, TcpStream};

const READ_BYTES: usize = 16 * 1024;
/// The pause after a failed accept, mostly because no descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Returns when the client ends its side; this ends our side after the last byte.
fn echo(mut io: TcpStream) -> io::Result<()> {
    io.set_nodelay(true)?;
    // On the heap, because a coroutine's stack is small.
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let n = io.read(&mut buffer)?;
        if n == 0 {
            return io.shutdown(Shutdown::Write);
        }
        io.write_all(&buffer[..n])?;
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
                go!(move || echo(io));
            }
            Err(_) => sleep(ACCEPT_PAUSE),
        }
    }
}
