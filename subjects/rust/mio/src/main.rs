//! TCP echo on mio: one thread, one poll, no runtime.
//!
//! How it works: mio reports a change once (edge-triggered), so each event is followed until the
//! socket would block. What is read is sent at once; what the client is slow to take is kept with its
//! connection, which is then not read until it is gone: a client can make us hold one buffer.

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
/// When there was no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const SIGTERM: i32 = 15;
const LISTENER: Token = Token(usize::MAX - 1);
const SIGNALS: Token = Token(usize::MAX - 2);

struct Connection {
    io: TcpStream,
    /// Not sent yet; while there is any, nothing is read.
    output: Vec<u8>,
}

/// What a connection came to.
#[derive(PartialEq)]
enum Outcome {
    Waits,
    Over,
}

impl Connection {
    /// Follows an event until the socket would block.
    fn serve(&mut self, buffer: &mut [u8]) -> Outcome {
        match self.try_serve(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Outcome::Waits,
            _ => Outcome::Over,
        }
    }

    /// Ends with an error, mostly that it would block, or when the client has ended its side.
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

    /// Sends, and keeps what is not taken.
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
        // An idle connection keeps no memory.
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
    /// Out of descriptors: clients wait until a moment later.
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

    /// Until SIGTERM.
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

/// Connections inherit TCP_NODELAY from it.
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
