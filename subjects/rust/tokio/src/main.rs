//! TCP echo on tokio: a task for each connection, which reads and writes in turn.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

const READ_BYTES: usize = 16 * 1024;
const BACKLOG: u32 = 4096;
/// The pause after a failed accept, mostly because no descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Returns when the client ends its side; this ends our side after the last byte.
async fn echo(mut io: TcpStream) -> io::Result<()> {
    io.set_nodelay(true)?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let n = io.read(&mut buffer).await?;
        if n == 0 {
            return io.shutdown().await;
        }
        io.write_all(&buffer[..n]).await?;
    }
}

async fn accept(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((io, _)) => drop(tokio::spawn(echo(io))),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Returns the value that follows a flag on the command line.
fn argument(flag: &str) -> Option<String> {
    std::env::args().skip_while(|given| given != flag).nth(1)
}

fn main() -> io::Result<()> {
    let address = argument("--listen").and_then(|text| text.parse().ok());
    let threads = argument("--cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(1);

    // With one thread, a work-stealing runtime has no advantage.
    let mut builder =
        if threads > 1 { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    let runtime = builder.worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(address.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))))?;
        let mut terminate = signal(SignalKind::terminate())?;
        let accepting = tokio::spawn(accept(listener));
        terminate.recv().await;
        accepting.abort();
        Ok(())
    })
}
