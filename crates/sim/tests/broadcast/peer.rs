//! A server of the contract that errs in one way: what it sends to each client, and when it leaves.

use std::cell::RefCell;
use std::rc::Rc;

use trueload_sim::peers::{Act, Peers, What};
use trueload_sim::scenario::Accept;
use trueload_wire::message;
use trueload_wire::shootout::{Asked, Dialect, Due, STAMP_BYTES};
use trueload_wire::websocket::server::Opening;
use trueload_wire::websocket::{Event, Kind, Limits, Receiver, Role, Scratch, fake, send};

/// How it errs; clients are numbered as they connect, broadcasts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Every delivery has other white space, and comes in two fragments with a ping between.
    Verbose,
    /// The receipt leaves before any delivery.
    ReceiptFirst,
    /// Answers the upgrade with 200.
    Answers200,
    /// Answers the upgrade with another key's proof.
    WrongAccept,
    /// Refuses the join, or what stands for it.
    RefusesJoin,
    /// Never returns the echo of a join.
    NeverEchoes,
    /// Sends nothing to the upgrade.
    Silent,
    /// Sends something else than JSON to the join.
    JoinsWithGarbage,
    /// At the second broadcast every other client is closed: FIN, RST or a close frame before it.
    DropsHalf(Way),
    /// Client 1 has the second broadcast twice.
    Repeats,
    /// Client 1 has every broadcast again with the next one.
    RepeatsLater,
    /// Client 1 misses the second broadcast.
    Misses,
    /// Clients 1, 3 and so on do.
    MissedByHalf,
    /// Client 1 has nothing from the second broadcast on, and no receipt.
    Stalls,
    /// Client 1 has these bytes for the second broadcast.
    SendsText(&'static str),
    /// Client 1 has the second broadcast with other padding.
    Alters,
    /// Client 1 has the second broadcast with a reserved bit.
    Reserved,
    /// Client 1 has a text that is not UTF-8.
    NotUtf8,
    /// The receipt of the second broadcast comes twice.
    ReceiptTwice,
    /// The second broadcast has no receipt.
    NoReceipt,
    /// The receipt of the second broadcast goes to all.
    ReceiptToAll,
    /// Client 1 has the first broadcast only behind the third.
    Swaps,
    /// All connections end with the second broadcast, and no new ones are taken.
    Goes(Way),
    /// Answers every other upgrade with 200.
    UpgradesHalf,
    /// Closes instead of returning the echo of a join.
    DropsJoin(Way),
    /// Never confirms a join, where it is to be confirmed.
    NeverConfirms,
    /// Answers a join, or client 1 instead of the second broadcast, with the dialect's own close message.
    Goodbye,
    /// Returns the echo of a join twice.
    EchoesTwice,
    /// The client has these bytes for the second broadcast.
    Sends(usize, &'static [u8]),
    /// Client 1 has half of the second broadcast, and a FIN.
    Cuts,
    /// The second broadcast goes to nobody; its receipt comes.
    OnlyReceipt,
    /// The receipt of the second broadcast goes to another client.
    ReceiptAstray,
    /// The receipts count so many listeners.
    Counts(&'static str),
    /// A hundred pings and pongs before each delivery.
    Floods,
    /// Nobody has anything from the second broadcast on.
    StallsAll,
    /// Frames are of the other kind than the dialect's.
    OtherKind,
    /// Everybody has the second broadcast twice.
    RepeatsToAll,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Fin,
    Rst,
    Frame,
}

/// What the server does to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Bytes(Vec<u8>),
    End(Way),
}

/// The server, as one of several engines has it.
#[derive(Debug)]
pub struct Side {
    server: Rc<RefCell<Server>>,
    engine: u32,
    engines: u32,
    mail: Vec<(u32, Act)>,
}

impl Side {
    pub fn new(server: &Rc<RefCell<Server>>, engine: u32, engines: u32) -> Self {
        Side { server: Rc::clone(server), engine, engines, mail: Vec::new() }
    }

    /// The engines have their clients in turn.
    fn client(&self, index: u32) -> usize {
        (index * self.engines + self.engine) as usize
    }
}

impl Peers for Side {
    fn attempt(&mut self, _: u32, _: u32) -> Accept {
        if self.server.borrow().refuses { Accept::Refused } else { Accept::Yes }
    }

    fn connected(&mut self, index: u32, _: u64, _: &mut Vec<Act>) {
        let client = self.client(index);
        self.server.borrow_mut().accept(client);
    }

    fn receive(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        let client = self.client(index);
        for (client, action) in self.server.borrow_mut().receive(client, bytes) {
            let client = client as u32;
            let what = match action {
                Action::Bytes(bytes) => What::Send(bytes, None),
                Action::End(Way::Rst) => What::Reset,
                Action::End(_) => What::Fin,
            };
            let act = Act { on: client / self.engines, at_ns, what };
            match client % self.engines {
                engine if engine == self.engine => acts.push(act),
                engine => self.mail.push((engine, act)),
            }
        }
    }

    fn ended(&mut self, _: u32, _: u64, _: &mut Vec<Act>) {}

    fn gone(&mut self, index: u32) {
        let client = self.client(index);
        self.server.borrow_mut().gone(client);
    }

    fn mail(&mut self) -> Vec<(u32, Act)> {
        std::mem::take(&mut self.mail)
    }

    /// Only messages count; the law that looks at this is that of each row.
    fn requests(&self) -> u64 {
        0
    }
}

#[derive(Debug, Default)]
struct Client {
    opening: Option<Box<Opening>>,
    receiver: Option<Receiver>,
    listens: bool,
    open: bool,
    held: Vec<Vec<u8>>,
}

/// The server.
#[derive(Debug)]
pub struct Server {
    fault: Fault,
    dialect: Dialect,
    clients: Vec<Client>,
    broadcasts: u32,
    /// Pings answered.
    pub pongs: u32,
    pub heartbeats: u32,
    refuses: bool,
    /// Several engines share the broadcast.
    pub has_stamps: bool,
}

impl Server {
    pub fn new(fault: Fault, dialect: Dialect) -> Self {
        Server {
            fault,
            dialect,
            clients: Vec::new(),
            broadcasts: 0,
            pongs: 0,
            heartbeats: 0,
            refuses: false,
            has_stamps: false,
        }
    }

    fn accept(&mut self, client: usize) {
        if self.clients.len() <= client {
            self.clients.resize_with(client + 1, Client::default);
        }
        self.clients[client] = Client {
            opening: Some(Box::default()),
            receiver: Some(Receiver::new(Role::Server)),
            listens: false,
            open: true,
            held: Vec::new(),
        };
    }

    /// A client has closed.
    fn gone(&mut self, client: usize) {
        self.clients[client].open = false;
    }

    /// Bytes of a client have come: what is done, in order, and to whom.
    fn receive(&mut self, from: usize, bytes: &[u8]) -> Vec<(usize, Action)> {
        let mut actions = Vec::new();
        if !self.clients[from].open {
            return actions;
        }
        let mut rest = bytes;
        if let Some(opening) = &mut self.clients[from].opening {
            match opening.feed(bytes, &message::Limits::default()).expect("our own request") {
                None => return actions,
                Some(taken) => rest = &bytes[taken..],
            }
            self.upgrade(from, &mut actions);
        }
        let (mut messages, mut scratch) = (Vec::new(), Scratch::default());
        let receiver = self.clients[from].receiver.as_mut().expect("it is connected");
        let fed = receiver.feed(rest, &Limits::default(), &mut scratch, &mut |event| match event {
            Event::Message { payload, .. } => messages.push(payload.to_vec()),
            Event::Pong(_) => self.pongs += 1,
            Event::Ping(_) | Event::Close { .. } => {}
        });
        fed.expect("our own frames");
        for message in messages {
            self.answer(from, &message, &mut actions);
        }
        actions
    }

    fn upgrade(&mut self, from: usize, actions: &mut Vec<(usize, Action)>) {
        let opening = self.clients[from].opening.take().expect("there");
        let mut output = Vec::new();
        match self.fault {
            Fault::Silent => return,
            Fault::UpgradesHalf | Fault::Answers200
                if self.fault == Fault::Answers200 || from.is_multiple_of(2) =>
            {
                output.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            Fault::WrongAccept => output.extend_from_slice(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                  Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            ),
            _ => {
                let acceptance = opening.judge().expect("our own request");
                acceptance.write(self.dialect.subprotocol(), &mut output);
                let mut welcome = Vec::new();
                self.dialect.write_welcome(&mut welcome);
                if !welcome.is_empty() {
                    output.extend(self.frame(&welcome));
                }
            }
        }
        self.clients[from].listens = !self.dialect.is_joined();
        actions.push((from, Action::Bytes(output)));
    }

    fn frame(&self, message: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let is_text = self.dialect.is_text() != (self.fault == Fault::OtherKind);
        let kind = if is_text { Kind::Text } else { Kind::Binary };
        if self.fault == Fault::Verbose && message.len() > 10 {
            let (head, tail) = message.split_at(message.len() / 2);
            fake::fragment(&mut frame, Some(kind), false, head, None);
            fake::ping(&mut frame, b"there?", None);
            fake::fragment(&mut frame, None, true, tail, None);
        } else {
            send::message(&mut frame, kind, message, None);
        }
        frame
    }

    fn answer(&mut self, from: usize, message: &[u8], actions: &mut Vec<(usize, Action)>) {
        let mut due = Due::default();
        match self.dialect.answer(message, 3, &mut due) {
            Asked::Join if self.fault == Fault::RefusesJoin => {
                let refused = String::from_utf8_lossy(&due.to_sender)
                    .replace("confirm_subscription", "reject_subscription")
                    .replace(r#""ok""#, r#""error""#);
                actions.push((from, Action::Bytes(self.frame(refused.as_bytes()))));
            }
            Asked::Echo if self.fault == Fault::NeverEchoes => {}
            Asked::Join if self.fault == Fault::NeverConfirms => {}
            Asked::Join if self.fault == Fault::Goodbye && from == 0 => {
                actions.push((from, Action::Bytes(self.frame(self.goodbye()))));
            }
            Asked::Echo if matches!(self.fault, Fault::DropsJoin(_)) => {
                if let Fault::DropsJoin(way) = self.fault {
                    self.end(from, way, actions);
                }
            }
            Asked::Echo if self.fault == Fault::JoinsWithGarbage => {
                actions.push((from, Action::Bytes(self.frame(b"come in"))));
            }
            Asked::Heartbeat => {
                self.heartbeats += 1;
                actions.push((from, Action::Bytes(self.frame(&due.to_sender))));
            }
            Asked::Join | Asked::Echo => {
                self.clients[from].listens = true;
                let times = if self.fault == Fault::EchoesTwice { 2 } else { 1 };
                let answer = self.frame(&due.to_sender).repeat(times);
                actions.push((from, Action::Bytes(answer)));
            }
            Asked::Broadcast => self.broadcast(from, &due, actions),
            other => panic!("our own message is {other:?}"),
        }
    }

    fn broadcast(&mut self, from: usize, due: &Due, actions: &mut Vec<(usize, Action)>) {
        self.broadcasts += 1;
        let second = self.broadcasts == 2;
        match self.fault {
            Fault::DropsHalf(way) if second => {
                (0..self.clients.len())
                    .step_by(2)
                    .for_each(|client| self.end(client, way, actions));
            }
            Fault::Goes(way) if second => {
                self.refuses = true;
                (0..self.clients.len()).for_each(|client| self.end(client, way, actions));
                return;
            }
            _ => {}
        }
        let receipts = match self.fault {
            Fault::NoReceipt if second => 0,
            Fault::StallsAll if self.broadcasts > 1 => 0,
            Fault::ReceiptTwice if second => 2,
            Fault::Stalls if from == 1 && self.broadcasts > 1 => 0,
            _ => 1,
        };
        let to = if self.fault == Fault::ReceiptAstray && second { 3 } else { from };
        let reply = match self.fault {
            Fault::Counts(count) => String::from_utf8_lossy(&due.to_sender)
                .replace(r#""listenerCount":3"#, &format!(r#""listenerCount":{count}"#))
                .into_bytes(),
            _ => due.to_sender.clone(),
        };
        let receipt = |server: &Server, actions: &mut Vec<(usize, Action)>| {
            let times = if server.clients[to].open { receipts } else { 0 };
            (0..times).for_each(|_| actions.push((to, Action::Bytes(server.frame(&reply)))));
        };
        if self.fault == Fault::ReceiptFirst {
            receipt(self, actions);
        }
        for client in 0..self.clients.len() {
            if self.clients[client].listens && self.clients[client].open {
                for bytes in self.delivered(client, &due.to_all) {
                    actions.push((client, Action::Bytes(bytes)));
                }
                if self.fault == Fault::Cuts && second && client == 1 {
                    self.end(client, Way::Fin, actions);
                }
                if self.fault == Fault::ReceiptToAll && second && client != from {
                    actions.push((client, Action::Bytes(self.frame(&due.to_sender))));
                }
            }
        }
        if self.fault != Fault::ReceiptFirst {
            receipt(self, actions);
        }
    }

    /// What a client has of a broadcast.
    fn delivered(&mut self, client: usize, message: &[u8]) -> Vec<Vec<u8>> {
        let frame = match self.fault {
            Fault::Verbose if self.dialect.is_text() => {
                self.frame(&[message, &b" ".repeat(client)].concat())
            }
            _ => self.frame(message),
        };
        let second = self.broadcasts == 2;
        match self.fault {
            Fault::Sends(to, bytes) if second && client == to => vec![bytes.to_vec()],
            Fault::OnlyReceipt if second => vec![],
            Fault::StallsAll if self.broadcasts > 1 => vec![],
            Fault::RepeatsToAll if second => vec![frame.clone(), frame],
            Fault::Floods => vec![b"\x89\x02hi\x8a\x00".repeat(100), frame],
            Fault::MissedByHalf if second && !client.is_multiple_of(2) => vec![],
            _ if client != 1 => vec![frame],
            Fault::Goodbye if second => vec![self.frame(self.goodbye())],
            Fault::Cuts if second => vec![frame[..frame.len() / 2].to_vec()],
            Fault::Repeats if second => vec![frame.clone(), frame],
            Fault::RepeatsLater => {
                let held = &mut self.clients[client].held;
                held.push(frame.clone());
                if held.len() > 1 { vec![held.remove(0), frame] } else { vec![frame] }
            }
            Fault::Misses if second => vec![],
            Fault::Stalls if self.broadcasts > 1 => vec![],
            Fault::SendsText(text) if second => vec![self.frame(self.stamped(text).as_bytes())],
            Fault::Alters if second => {
                let mut altered = message.to_vec();
                let at = message.iter().position(|byte| *byte == b'x').expect("padding");
                altered[at] = b'y';
                vec![self.frame(&altered)]
            }
            Fault::Reserved if second => vec![[&[frame[0] | 0x40], &frame[1..]].concat()],
            Fault::NotUtf8 if second => vec![b"\x81\x02\xc3\x28".to_vec()],
            Fault::Swaps if self.broadcasts == 1 => {
                self.clients[client].held.push(frame);
                vec![]
            }
            Fault::Swaps if self.broadcasts == 3 => {
                let first = self.clients[client].held.remove(0);
                vec![frame, first]
            }
            _ => vec![frame],
        }
    }

    /// The text of a row with a stamp that fits no message, where broadcasts have stamps.
    fn stamped(&self, text: &str) -> String {
        let stamped = self.has_stamps && text.contains("broadcast");
        let digits = "0".repeat(if stamped { STAMP_BYTES } else { 0 });
        text.replace(r#""padding":""#, &format!(r#""padding":"{digits}"#))
    }

    fn goodbye(&self) -> &'static [u8] {
        match self.dialect {
            Dialect::ActionCable => br#"{"type":"disconnect","reason":"server_restart"}"#,
            _ => br#"{"topic":"room:lobby","event":"phx_error","payload":{},"ref":null}"#,
        }
    }

    fn end(&mut self, client: usize, way: Way, actions: &mut Vec<(usize, Action)>) {
        if way == Way::Frame {
            let mut frame = Vec::new();
            send::close(&mut frame, Some(1001), "going", None);
            actions.push((client, Action::Bytes(frame)));
            actions.push((client, Action::End(Way::Fin)));
        } else {
            actions.push((client, Action::End(way)));
        }
        self.clients[client].open = false;
        self.clients[client].listens = false;
    }
}
