//! A conversation that is played by hand: its steps, and what the client made of the server's bytes.

use std::cell::RefCell;
use std::sync::Arc;

use trueload_wire::chance::Chance;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome};
use trueload_wire::message::{self, Event, Form, Initials, Rules, Speech, Wants, Written};
use trueload_wire::websocket::conversation::{Client, Manner, Shared};
use trueload_wire::websocket::{self, Limits, Receiver, Role, Scratch, server};

/// The run whose stamps are looked for.
pub const RUN: u32 = 7;
pub const MESSAGE: Form =
    Form::Message { is_text: true, sends: true, awaits: true, within_ns: None };
pub const SENT: Form = Form::Message { is_text: true, sends: true, awaits: false, within_ns: None };
pub const AWAITED: Form =
    Form::Message { is_text: true, sends: false, awaits: true, within_ns: None };

/// The steps of a conversation: the form of each, what it sends, and what the awaited message begins
/// with.
pub struct Book {
    steps: Vec<(Form, &'static str, &'static str)>,
    rules: Rules,
    pub heard: RefCell<Vec<u8>>,
}

impl message::Book<usize> for Book {
    fn rules_of(&self, _: &usize) -> &Rules {
        &self.rules
    }

    fn wants(&self) -> Wants {
        Wants::Content(Initials::ANY)
    }

    fn speech(&self, step: &usize) -> Speech {
        Speech { form: self.steps[*step].0, is_last: *step + 1 == self.steps.len() }
    }

    fn awaits(&self, step: &usize, _is_text: bool, message: &[u8]) -> bool {
        message.starts_with(self.steps[*step].2.as_bytes())
    }

    fn write(&self, step: &usize, put: &mut impl FnMut(Written<'_>)) {
        put(Written::Filled(self.steps[*step].1.as_bytes()));
    }

    fn note(&self, _: &usize, event: Event<'_>) {
        if let Event::Body(body) = event {
            self.heard.borrow_mut().extend_from_slice(body);
        }
    }
}

/// One connection, played by hand.
pub struct Play {
    pub client: Client<usize>,
    pub shared: Shared,
    pub book: Book,
    /// The step to be asked next.
    pub next: usize,
    pub sent: Vec<u8>,
    pub outcomes: Vec<Outcome<usize>>,
    pub now_ns: u64,
}

impl Play {
    pub fn of(steps: &[(Form, &'static str, &'static str)], ignores: bool) -> Self {
        Self::offering(steps, ignores, false)
    }

    /// The same, where the upgrade may offer compression.
    pub fn offering(
        steps: &[(Form, &'static str, &'static str)],
        ignores: bool,
        deflates: bool,
    ) -> Self {
        let replies = Arc::from([("2".to_owned(), "3".to_owned())]);
        let manner = Manner { deflates, ignores, replies };
        let (rules, heard) = Default::default();
        let book = Book { steps: steps.to_vec(), rules, heard };
        let shared = Shared::new(manner, Some(RUN), Chance::new(1));
        let (client, sent, outcomes) = Default::default();
        Play { client, shared, book, next: 0, sent, outcomes, now_ns: 7 }
    }

    /// Asks the next step, and gives it the input that a due one waits for.
    pub fn ask(&mut self) -> Disposition {
        self.client.ask(self.next);
        self.next += 1;
        self.client.wait_to_write();
        self.client.write(self.now_ns, &self.book, &mut self.shared, &mut self.sent);
        if self.client.next_timer().is_some() { self.hear(b"") } else { Disposition::Open }
    }

    pub fn hear(&mut self, bytes: &[u8]) -> Disposition {
        let Play { client, shared, book, sent, outcomes, now_ns, .. } = self;
        client.handle_input(*now_ns, bytes, book, shared, sent, &mut |one| outcomes.push(one))
    }

    /// The connection is upgraded by the step asked now.
    pub fn upgrade(&mut self) {
        self.ask();
        let answer = accepted(&self.sent);
        self.sent.clear();
        assert_eq!(self.hear(&answer), Disposition::Open);
    }

    pub fn endings(&self) -> Vec<(usize, Ending)> {
        self.outcomes.iter().map(|one| (one.tag, one.ending)).collect()
    }

    /// The messages that were sent, each in words.
    pub fn said(&self) -> Vec<String> {
        let (mut receiver, mut said) = (Receiver::new(Role::Server).deflating(true), Vec::new());
        let (limits, mut scratch) = (Limits::default(), Scratch::default());
        let fed = receiver.feed(&self.sent, &limits, &mut scratch, &mut |event| {
            said.push(match event {
                websocket::Event::Message { payload, .. } => {
                    String::from_utf8_lossy(payload).into_owned()
                }
                websocket::Event::Close { code, .. } => format!("close {code:?}"),
                other => format!("{other:?}"),
            });
        });
        assert_eq!(fed, Ok(()));
        said
    }
}

/// The answer that accepts this upgrade, and compression if it is offered.
pub fn accepted(request: &[u8]) -> Vec<u8> {
    let mut server = server::Opening::default();
    let taken = server.feed(request, &message::Limits::default());
    assert_eq!(taken, Ok(Some(request.len())));
    let mut answer = Vec::new();
    server.judge().expect("a request for an upgrade").write(None, &mut answer);
    if request.windows(DEFLATE.len()).any(|window| window == DEFLATE.as_bytes()) {
        answer.truncate(answer.len() - 2);
        let line =
            format!("Sec-WebSocket-Extensions: {DEFLATE}; server_no_context_takeover\r\n\r\n");
        answer.extend_from_slice(line.as_bytes());
    }
    answer
}

const DEFLATE: &str = "permessage-deflate";
pub const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: h\r\n\r\n";
