//! TCP echo on mio: one thread, one poll, no runtime.
//!
//! mio reports a change once (edge-triggered), so each event is handled until the socket would
//! block. What is read is sent at once. If the client is slow to read, its connection keeps the
//! rest, and is not read until the rest is sent. So a client can make us hold at most one buffer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use signal_hook_mio::v1_0::Signals;
use slab::Slab;
use socket2::{Domain, Protocol, Socket, Type};

const READ_BYTES: usize = 64 * 1024;
const EVENTS_PER_WAIT: usize = 512;
const BACKLOG: i32 = 4096;
/// The pause after a failed accept, mostly because no descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const SIGTERM: i32 = 15;
const LISTENER: Token = Token(usize::MAX - 1);
const SIGNALS: Token = Token(usize::MAX - 2);

struct Connection {
    io: TcpStream,
    /// Bytes not sent yet. Until they are sent, nothing is read.
    output: Vec<u8>,
}

/// The state of a connection after an event.
#[derive(PartialEq)]
enum Outcome {
    Waits,
    Over,
}

impl Connection {
    /// Handles an event: reads and sends until the socket would block.
    fn serve(&mut self, buffer: &mut [u8]) -> Outcome {
        match self.try_serve(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Outcome::Waits,
            _ => Outcome::Over,
        }
    }

    /// Returns an error (mostly WouldBlock), or Ok when the client has ended its side.
    fn try_serve(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            while !self.output.is_empty() {
                let sent = retried(|| self.io.write(&self.output))?;
                self.output.drain(..sent);
            }
            let read = retried(|| self.io.read(buffer))?;
            if read == 0 {
                return Ok(());
            }
            self.send(&buffer[..read])?;
        }
    }

    /// Sends the bytes, and keeps those that the socket does not take.
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match retried(|| self.io.write(bytes)) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) => {
                    self.output = bytes.to_vec();
                    return Err(error);
                }
            }
        }
        // An idle connection must not hold memory.
        self.output = Vec::new();
        Ok(())
    }
}

fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

struct Server {
    poll: Poll,
    listener: TcpListener,
    connections: Slab<Connection>,
    buffer: Vec<u8>,
    /// No descriptor was free: accepting is tried again after a pause.
    accept_again: bool,
}

impl Server {
    fn new(listener: TcpListener) -> io::Result<Server> {
        let (poll, connections) = (Poll::new()?, Slab::new());
        let mut server = Server {
            poll,
            listener,
            connections,
            buffer: vec![0; READ_BYTES],
            accept_again: false,
        };
        server.poll.registry().register(&mut server.listener, LISTENER, Interest::READABLE)?;
        Ok(server)
    }

    fn accept_all(&mut self) -> io::Result<()> {
        self.accept_again = false;
        loop {
            match self.listener.accept() {
                Ok((io, _)) => self.adopt(io)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    self.accept_again = true;
                    return Ok(());
                }
            }
        }
    }

    fn adopt(&mut self, mut io: TcpStream) -> io::Result<()> {
        let place = self.connections.vacant_entry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut io, Token(place.key()), interest)?;
        place.insert(Connection { io, output: Vec::new() });
        Ok(())
    }

    fn serve(&mut self, token: Token) {
        if let Some(connection) = self.connections.get_mut(token.0)
            && connection.serve(&mut self.buffer) == Outcome::Over
        {
            self.connections.remove(token.0);
        }
    }

    /// Runs until SIGTERM.
    fn run(&mut self) -> io::Result<()> {
        let mut signals = Signals::new([SIGTERM])?;
        self.poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
        let mut events = Events::with_capacity(EVENTS_PER_WAIT);
        loop {
            let pause = self.accept_again.then_some(ACCEPT_PAUSE);
            match self.poll.poll(&mut events, pause) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept_all()?,
                    SIGNALS => return Ok(()),
                    token => self.serve(token),
                }
            }
            if self.accept_again {
                self.accept_all()?;
            }
        }
    }
}

/// Creates the listening socket. Connections inherit TCP_NODELAY from it.
fn listen(address: SocketAddr, reuse_port: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(Ok(address)) = arguments.next().map(|text| text.parse()) else {
        eprintln!("usage: subject ADDRESS:PORT [--reuse-port]");
        std::process::exit(2);
    };
    let reuse_port = arguments.next().as_deref() == Some("--reuse-port");
    Server::new(listen(address, reuse_port)?)?.run()
}
