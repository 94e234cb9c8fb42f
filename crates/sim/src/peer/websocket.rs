//! A WebSocket server that echoes, or broadcasts as a dialect of the contract asks. It reads frames
//! with its own code, not with the code under test.

use trueload_wire::message;
use trueload_wire::shootout::{Asked, Dialect, Due};
use trueload_wire::websocket::server::Opening;

use super::{Request, Speech};
use crate::scenario::Style;

/// The number of listeners written into receipts; it decides nothing.
const LISTENERS: u64 = 3;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

#[derive(Debug)]
pub(crate) struct WebSocket {
    /// The format of broadcasts; none to echo every message.
    dialect: Option<Dialect>,
    listens: bool,
    /// It ends its side behind the close of a conversation.
    ends: bool,
    closed: bool,
    /// The opening handshake is over.
    opened: bool,
    opening: Opening,
    kept: Vec<u8>,
    /// The offset at which `kept` begins.
    start: u64,
    whole: u64,
}

impl WebSocket {
    pub(crate) fn new(dialect: Option<Dialect>) -> Self {
        WebSocket {
            dialect,
            listens: false,
            ends: false,
            closed: false,
            opened: false,
            opening: Opening::default(),
            kept: Vec::new(),
            start: 0,
            whole: 0,
        }
    }

    /// One that ends its side behind the close, as RFC 6455 §7.1.1 has it.
    pub(crate) fn of_conversations(self) -> Self {
        WebSocket { ends: true, ..self }
    }

    /// Handles a message: adds a request, or a reply to a heartbeat.
    fn take(&mut self, payload: Vec<u8>, requests: &mut Vec<Request>, output: &mut Vec<u8>) {
        let start = self.start;
        let Some(dialect) = self.dialect else {
            self.whole += 1;
            return requests.push(Request { payload, ..Request::at(start) });
        };
        let mut due = Due::default();
        let asked = dialect.answer(&payload, LISTENERS, &mut due);
        let mut to_all = Vec::new();
        match asked {
            Asked::Broadcast => {
                self.whole += 1;
                write(self.opcode(), &due.to_all, &mut to_all);
            }
            Asked::Heartbeat => return write(self.opcode(), &due.to_sender, output),
            _ => self.listens = true,
        }
        let to_all = (asked == Asked::Broadcast).then_some(to_all);
        requests.push(Request { payload: due.to_sender, to_all, ..Request::at(start) });
    }

    fn opcode(&self) -> u8 {
        if self.dialect.is_none_or(Dialect::is_text) { TEXT } else { BINARY }
    }

    fn open(&mut self, output: &mut Vec<u8>) {
        let taken = self.opening.feed(&self.kept, &message::Limits::default());
        match taken {
            Ok(Some(taken)) => {
                self.opened = true;
                self.kept.drain(..taken);
                self.start += taken as u64;
                if let Ok(acceptance) = self.opening.judge() {
                    acceptance.write(self.dialect.and_then(Dialect::subprotocol), output);
                }
                let mut welcome = Vec::new();
                if let Some(dialect) = self.dialect {
                    dialect.write_welcome(&mut welcome);
                }
                if !welcome.is_empty() {
                    write(TEXT, &welcome, output);
                }
            }
            Ok(None) | Err(_) => {
                self.start += self.kept.len() as u64;
                self.kept.clear();
            }
        }
    }

    /// The first complete frame: its opcode, its unmasked payload, and its length on the wire.
    fn frame(&self) -> Option<(u8, Vec<u8>, usize)> {
        let [first, second, ..] = self.kept[..] else { return None };
        let (len, at) = match second & 0x7f {
            126 => {
                let high_low = self.kept.get(2..4)?;
                (usize::from(high_low[0]) << 8 | usize::from(high_low[1]), 4)
            }
            len => (usize::from(len), 2),
        };
        let mask = self.kept.get(at..at + 4)?;
        let payload = self.kept.get(at + 4..at + 4 + len)?;
        let plain = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        Some((first & 0xf, plain.collect(), at + 4 + len))
    }
}

/// Writes an unmasked frame, as a server does.
fn write(opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.push(0x80 | opcode);
    match payload.len() {
        len @ 0..126 => out.push(len as u8),
        len => out.extend_from_slice(&[126, (len >> 8) as u8, len as u8]),
    }
    out.extend_from_slice(payload);
}

impl Speech for WebSocket {
    fn receive(&mut self, bytes: &[u8], requests: &mut Vec<Request>, output: &mut Vec<u8>) {
        self.kept.extend_from_slice(bytes);
        if !self.opened {
            self.open(output);
        }
        while self.opened
            && let Some((opcode, payload, len)) = self.frame()
        {
            match opcode {
                PING => write(PONG, &payload, output),
                CLOSE => {
                    self.closed = true;
                    write(CLOSE, &payload, output);
                }
                PONG => {}
                _ => self.take(payload, requests, output),
            }
            self.kept.drain(..len);
            self.start += len as u64;
        }
    }

    fn answer(&mut self, request: &Request, _: Style, _: bool, out: &mut Vec<u8>) {
        write(self.opcode(), &request.payload, out);
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn is_over(&self) -> bool {
        self.ends && self.closed
    }

    fn begun(&self) -> u64 {
        // In a dialect, the beginning of a frame may belong to a join, which is no request.
        let data =
            self.dialect.is_none() && self.kept.first().is_some_and(|first| first & 0xf < CLOSE);
        self.whole + u64::from(self.opened && data)
    }
}
