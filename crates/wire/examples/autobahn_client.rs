//! Our client against Autobahn's fuzzing server: every message comes back as it came, until the server says close.
//! Compression is offered, and used where the server agrees.
//!
//! `autobahn_client 127.0.0.1:9001 NAME` runs all cases, and has the suite write its report; `make conformance` uses it.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use trueload_wire::message;
use trueload_wire::websocket::{Deflater, Event, Limits, Receiver, Role, Scratch, client, send};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(agent)) = (arguments.next(), arguments.next()) else {
        return Err("usage: autobahn_client ADDRESS AGENT".into());
    };
    let count: u32 = run(&address, "/getCaseCount")?.trim().parse()?;
    for case in 1..=count {
        // A server that drops the connection in the middle of a case is a part of some.
        if let Err(error) = run(&address, &format!("/runCase?case={case}&agent={agent}")) {
            eprintln!("case {case}: {error}");
        }
    }
    run(&address, &format!("/updateReports?agent={agent}"))?;
    println!("{count} cases");
    Ok(())
}

/// Opens a path, and sends back what comes until it is over. Returns the last text.
fn run(address: &str, path: &str) -> Outcome<String> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    let headers = [("Host".to_owned(), address.to_owned())];
    let opening = client::Opening::new(path, &headers)?.deflating(true);
    let mut out = Vec::new();
    let mut awaited = opening.write(*b"the sample nonce", &mut out);
    socket.write_all(&out)?;

    let mut input = vec![0; 64 * 1024];
    let mut connection = Connection::new();
    let mut open = false;
    while !connection.over {
        let count = socket.read(&mut input)?;
        if count == 0 {
            break;
        }
        let mut bytes = &input[..count];
        if !open {
            let Some(taken) = awaited.feed(&opening, bytes, &message::Limits::default())? else {
                continue;
            };
            bytes = &bytes[taken..];
            connection.agree(awaited.deflates());
            open = true;
        }
        connection.receive(bytes);
        socket.write_all(&connection.out)?;
    }
    // The server ends the connection; what it still sends is of no concern.
    while connection.over && socket.read(&mut input).is_ok_and(|count| count > 0) {}
    Ok(connection.last)
}

struct Connection {
    receiver: Receiver,
    /// Compresses messages, if the server has agreed.
    deflater: Option<Deflater>,
    scratch: Scratch,
    out: Vec<u8>,
    last: String,
    over: bool,
    sent: u32,
}

impl Connection {
    fn new() -> Self {
        Connection {
            receiver: Receiver::new(Role::Client),
            deflater: None,
            scratch: Scratch::default(),
            out: Vec::new(),
            last: String::new(),
            over: false,
            sent: 0,
        }
    }

    fn agree(&mut self, deflates: bool) {
        self.receiver = Receiver::new(Role::Client).deflating(deflates);
        self.deflater = deflates.then(Deflater::default);
    }

    /// Receives frames, and writes what is due for them.
    fn receive(&mut self, bytes: &[u8]) {
        let Self { receiver, deflater, scratch, out, last, over, sent } = self;
        out.clear();
        let mut key = || {
            *sent += 1;
            // Good enough for a test: it differs from frame to frame.
            Some(sent.wrapping_mul(0x9e37_79b9).to_ne_bytes())
        };
        let fed = receiver.feed(bytes, &Limits::default(), scratch, &mut |event| match event {
            Event::Message { kind, payload } => {
                last.clear();
                last.push_str(&String::from_utf8_lossy(payload));
                send::message_by(deflater.as_mut(), out, kind, payload, key());
            }
            Event::Ping(payload) => send::pong(out, payload, key()),
            Event::Pong(_) => {}
            Event::Close { code, .. } => {
                send::close(out, code, "", key());
                *over = true;
            }
        });
        if let Err(error) = fed {
            send::close(out, Some(error.close_code()), "", key());
            *over = true;
        }
    }
}
