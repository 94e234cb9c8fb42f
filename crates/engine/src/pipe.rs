//! Carries standard input and output to another host, by TCP: `trueload-engine --pipe ADDRESS:PORT`.
//! An aggregator inside a cluster starts one for each engine on another host. Must not know what the
//! bytes mean.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Hosts of one cluster answer within milliseconds.
const CONNECT: Duration = Duration::from_secs(5);
const CHUNK_BYTES: usize = 64 * 1024;

/// Carries bytes until the other side closes the connection. Says on stderr what failed.
#[must_use]
pub fn run(address: &str) -> ExitCode {
    match carry(address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{address}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn carry(address: &str) -> io::Result<()> {
    let address: SocketAddr = address.parse().map_err(io::Error::other)?;
    let socket = Arc::new(TcpStream::connect_timeout(&address, CONNECT)?);
    socket.set_nodelay(true)?;
    let (mut input, mut output) = (raw(&io::stdin())?, raw(&io::stdout())?);
    let writer = Arc::clone(&socket);
    thread::Builder::new().name("up".into()).spawn(move || {
        // The other side learns that its input has ended, and may still have something to say.
        let _ = copy(&mut input, &mut &*writer);
        let _ = writer.shutdown(Shutdown::Write);
    })?;
    copy(&mut &*socket, &mut output)
}

/// Copies until the input ends. With `io::copy`, which uses splice(2), a short line did not arrive.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&chunk[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The same open file without a buffer, so that every line goes on at once.
fn raw(stream: &impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}
