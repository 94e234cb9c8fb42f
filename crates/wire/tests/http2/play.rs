//! A connection that a test plays: it asks, and is the peer.

use std::ops::Range;

use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, PeerClose};
use trueload_wire::http2::client::{Client, Terms, Windows};
use trueload_wire::http2::read::{Frame, Piece, Reader};
use trueload_wire::http2::request::Template;
use trueload_wire::message::{self, Book, Head, Rules, Texts};

use super::peer::Peer;

/// The windows that the command asks for by default.
pub(crate) const BROWSER: Windows = Windows { stream: 6 << 20, connection: 15 << 20 };

pub(crate) struct Play {
    pub(crate) client: Client<usize>,
    pub(crate) endings: Vec<(usize, Ending)>,
    pub(crate) outcomes: Vec<Outcome<usize>>,
    /// What the client has sent, behind its opening.
    pub(crate) sent: Vec<u8>,
    pub(crate) link: Disposition,
    pub(crate) rules: Rules,
    pub(crate) template: Template,
    /// The clock.
    pub(crate) now_ns: u64,
    asked: usize,
}

/// Always the same request.
struct Same<'a>(&'a Template, &'a Rules);

impl Book<usize> for Same<'_> {
    fn rules_of(&self, _: &usize) -> &Rules {
        self.1
    }

    fn write_block(&self, _: &usize, out: &mut Vec<u8>) -> Head {
        self.0.write_block(&(), out)
    }

    fn write_body(&self, _: &usize, part: Range<u64>, out: &mut Vec<u8>) {
        self.0.write_body(&(), part, out);
    }
}

pub(crate) fn idempotent() -> Rules {
    Rules { idempotent: true, ..Rules::default() }
}

impl Play {
    /// A connection whose peer has not spoken.
    pub(crate) fn opening(terms: impl Into<Terms>) -> Self {
        let mut client = Client::default();
        let mut sent = Vec::new();
        client.open(terms, &mut sent);
        Play {
            client,
            endings: Vec::new(),
            outcomes: Vec::new(),
            sent: Vec::new(),
            link: Disposition::Opening,
            rules: idempotent(),
            template: get(None),
            now_ns: 7,
            asked: 0,
        }
    }

    /// A connection on which so many requests have been sent; their tags are 0, 1, …, on streams 1, 3, …
    pub(crate) fn asked(count: usize) -> Self {
        Self::with(count, idempotent(), None, &[])
    }

    pub(crate) fn with(
        count: usize,
        rules: Rules,
        body: Option<&[u8]>,
        settings: &[(u16, u32)],
    ) -> Self {
        let mut play = Self::opening(BROWSER);
        (play.rules, play.template) = (rules, get(body));
        play.deliver(&Peer::default().settings(settings).0);
        play.ask(count);
        play
    }

    pub(crate) fn ask(&mut self, count: usize) {
        for _ in 0..count {
            self.client.ask(self.asked);
            self.asked += 1;
        }
        self.write();
    }

    pub(crate) fn write(&mut self) {
        while self.client.waits_to_write() {
            let most = self.sent.len() + 65_536;
            self.client.write(&Same(&self.template, &self.rules), most, &mut self.sent);
        }
        self.client.note(self.now_ns);
    }

    pub(crate) fn deliver(&mut self, bytes: &[u8]) -> Disposition {
        self.take_in(bytes);
        self.write();
        self.client.note_sent();
        self.link
    }

    /// More is to come before the client writes anything.
    pub(crate) fn take_in(&mut self, bytes: &[u8]) -> Disposition {
        let Play { client, outcomes, sent, rules, now_ns, .. } = self;
        self.link =
            client.handle_input(*now_ns, bytes, rules, sent, &mut |outcome| outcomes.push(outcome));
        self.take_over();
        self.link
    }

    pub(crate) fn receive(&mut self, peer: Peer) -> Disposition {
        self.deliver(&peer.0)
    }

    pub(crate) fn end(&mut self, end: PeerClose) {
        let Play { client, outcomes, rules, .. } = self;
        client.handle_end(8, end, rules, &mut |outcome| outcomes.push(outcome));
        self.take_over();
    }

    /// All requests with a lower tag are out of time.
    pub(crate) fn time_out(&mut self, below: usize) -> Disposition {
        let Play { client, outcomes, sent, .. } = self;
        let deadline_ns = |tag: &usize| if *tag < below { 9 } else { 10 };
        let mut output = Output::default();
        let mut on_outcome = |outcome| outcomes.push(outcome);
        let link = client.handle_timeout(9, deadline_ns, &mut output, &mut on_outcome);
        sent.append(&mut output.bytes);
        self.take_over();
        link
    }

    fn take_over(&mut self) {
        let new = &self.outcomes[self.endings.len()..];
        self.endings.extend(new.iter().map(|outcome| (outcome.tag, outcome.ending)));
    }

    /// The frames that the client has sent since this was asked last, without DATA.
    pub(crate) fn frames(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        let (mut reader, mut rest, mut frames) = (Reader::default(), &sent[..], Vec::new());
        while let Some(piece) = reader.next(&mut rest).unwrap() {
            frames.push(match piece {
                Piece::Frame(Frame::Headers { stream, end_stream, .. }) => {
                    format!("HEADERS {stream}{}", if end_stream { " end" } else { "" })
                }
                Piece::Frame(Frame::Continuation { stream, .. }) => {
                    format!("CONTINUATION {stream}")
                }
                Piece::Frame(Frame::Reset { stream, code }) => format!("RST {stream} {code:?}"),
                Piece::Frame(Frame::WindowUpdate { stream, by }) => format!("WINDOW {stream} {by}"),
                Piece::Frame(Frame::Ping { ack, .. }) => {
                    format!("PING{}", if ack { " ack" } else { "" })
                }
                Piece::Frame(Frame::SettingsAck) => "SETTINGS ack".to_owned(),
                Piece::Frame(Frame::GoAway { code, .. }) => format!("GOAWAY {code:?}"),
                Piece::Data(data) => {
                    let end = if data.end_stream { " end" } else { "" };
                    format!("DATA {} {}{end}", data.stream, data.bytes.len())
                }
                Piece::Frame(other) => format!("{other:?}"),
            });
        }
        frames
    }

    /// How many HEADERS the client has sent in all it sent since they were asked for last.
    pub(crate) fn headers_sent(&mut self) -> usize {
        self.frames().iter().filter(|frame| frame.starts_with("HEADERS")).count()
    }
}

pub(crate) fn get(body: Option<&[u8]>) -> Template {
    let headers = [("Host".to_owned(), "a:80".to_owned())];
    let method = if body.is_some() { "POST" } else { "GET" };
    let texts = Texts { method, path: "/", headers: &headers, body };
    Template::of("http", &message::Template::new(&texts, Some(&message::Names::default())))
}
