//! Answers that are streams: each is judged by its own end, and stalls alone.

use std::cell::RefCell;
use trueload_wire::message::{self, Event, Rules};

use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, Timer};
use trueload_wire::http2::frame;
use trueload_wire::parts::{Arrived, End, Kind, Rule, Streaming, Whole};

use super::peer::{OK, Peer};
use super::play::{Play, idempotent};

/// Rules for streams, and what was noted of them.
struct Book {
    rules: Rules,
    rule: Rule,
    at_ns: u64,
    arrived: RefCell<Vec<(usize, Arrived)>>,
    whole: RefCell<Vec<(usize, Whole)>>,
}

impl message::Book<usize> for Book {
    fn rules_of(&self, _: &usize) -> &Rules {
        &self.rules
    }

    fn streaming(&self) -> Option<Streaming<'_>> {
        Some(Streaming { rule: &self.rule, at_ns: self.at_ns })
    }

    fn note(&self, tag: &usize, event: Event<'_>) {
        match event {
            Event::Parts(arrived) => self.arrived.borrow_mut().push((*tag, arrived)),
            Event::Stream(whole) => self.whole.borrow_mut().push((*tag, whole)),
            other => panic!("{other:?}"),
        }
    }
}

/// A connection whose answers are streams.
struct World {
    play: Play,
    book: Book,
    endings: Vec<(usize, Ending)>,
}

impl World {
    fn asked(count: usize, kind: Kind, end: Option<End>) -> Self {
        let rule = Rule { kind, end, stall_ns: Some(50) };
        let (arrived, whole) = (RefCell::default(), RefCell::default());
        let book = Book { rules: idempotent(), rule, at_ns: 0, arrived, whole };
        let mut play = Play::asked(count);
        play.frames();
        World { play, book, endings: Vec::new() }
    }

    fn receive(&mut self, at_ns: u64, peer: &Peer) -> Disposition {
        let World { play, book, endings } = self;
        book.at_ns = at_ns;
        play.client.handle_input(at_ns, &peer.0, book, &mut play.sent, &mut |outcome| {
            endings.push((outcome.tag, outcome.ending));
        })
    }

    fn time_out(&mut self, now_ns: u64) -> Disposition {
        let World { play, endings, .. } = self;
        let mut output = Output::default();
        let mut on_outcome = |one: Outcome<_>| endings.push((one.tag, one.ending));
        let client = &mut play.client;
        let link = if client.next_timeout_ns(|_| 1000).is_some_and(|due_ns| due_ns <= now_ns) {
            client.handle_timeout(now_ns, |_| 1000, &mut output, &mut on_outcome)
        } else {
            client.handle_timer(now_ns, Timer::Stall, &mut output, &mut on_outcome)
        };
        play.sent.append(&mut output.bytes);
        link
    }

    fn due_ns(&self) -> Option<u64> {
        let client = &self.play.client;
        let timer = client.next_timer().map(|(at_ns, _)| at_ns);
        client.next_timeout_ns(|_| 1000).into_iter().chain(timer).min()
    }
}

fn data(at: u32, text: &str) -> Peer {
    Peer::default().data(at, text.as_bytes(), false)
}

#[test]
fn a_frame_is_a_part_however_it_is_read() {
    let peer = Peer::default()
        .headers(1, OK, false)
        .data(1, b"abc", false)
        .data(1, b"", false)
        .padded(frame::Kind::DATA, 1, b"de", 3);
    for cut in 0..=peer.0.len() {
        let mut world = World::asked(1, Kind::Chunks, None);
        let (one, two) = peer.0.split_at(cut);
        world.receive(5, &Peer(one.to_vec()));
        world.receive(5, &Peer(two.to_vec()));
        assert_eq!(world.endings, [(0, Ending::Ok)], "cut at {cut}");
        assert_eq!(*world.book.whole.borrow(), [(0, Whole { first_ns: 5, parts: 2 })]);
    }
}

#[test]
fn each_stream_is_judged_by_its_own_end() {
    let mut world = World::asked(4, Kind::Sse, Some(End::Content { text: "[DONE]".into() }));
    let answers = Peer::default()
        .headers(1, OK, false)
        .headers(3, OK, false)
        .headers(5, &[(":status", "500")], false)
        .headers(7, OK, true)
        .data(1, b"data: a\n\ndata: b\n\n", false)
        .data(3, b"data: a\n\n", true)
        .data(5, b"data: a\n\n", true)
        .data(1, b"data: [DONE]\n\n", true);
    assert_eq!(world.receive(5, &answers), Disposition::Open);
    let expected =
        [(3, Ending::Mismatch), (1, Ending::Truncated), (2, Ending::Status), (0, Ending::Ok)];
    assert_eq!(world.endings, expected);
    let arrived = Arrived { is_first: true, gap_ns: None, together: 1 };
    let alone = Arrived { together: 0, ..arrived };
    assert_eq!(*world.book.arrived.borrow(), [(0, arrived), (1, alone)]);
}

#[test]
fn a_stream_that_stalls_is_reset_and_the_others_go_on() {
    let mut world = World::asked(2, Kind::Sse, None);
    world.receive(5, &Peer::default().headers(1, OK, false).headers(3, OK, false));
    assert_eq!(world.due_ns(), Some(1000), "the first part has the whole time of the request");
    world.receive(10, &data(1, "data: a\n\n"));
    world.receive(30, &data(3, "data: a\n\n"));
    assert_eq!(world.due_ns(), Some(60));
    world.receive(40, &data(1, "data: b\n\n"));
    assert_eq!(world.time_out(60), Disposition::Open);
    assert_eq!((&world.endings[..], world.due_ns()), (&[][..], Some(80)));
    assert_eq!(world.time_out(80), Disposition::Open);
    assert_eq!(world.endings, [(1, Ending::TimeoutStall)]);
    assert_eq!(world.due_ns(), Some(90), "the time of the other stream");
    assert_eq!(world.play.frames()[0], "RST 3 Cancel");
    world.receive(85, &Peer::default().data(1, b"data: c\n\n", true));
    assert_eq!(world.endings, [(1, Ending::TimeoutStall), (0, Ending::Ok)]);
}
