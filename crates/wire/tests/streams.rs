//! Answers that are streams over HTTP/1.1: their parts, how their requests end, and when they have
//! stalled.

use std::cell::RefCell;
use trueload_wire::message::{self, Event, Rules};

use proptest::prelude::*;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, PeerClose, Timer};
use trueload_wire::http1::client::Client;
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::parts::{End, Kind, Rule, Streaming, Whole};

/// Rules for streams, and what was noted of them.
#[derive(Debug)]
struct Book {
    rules: Rules,
    rule: Rule,
    at_ns: u64,
    parts: RefCell<u64>,
    gaps: RefCell<Vec<u64>>,
    whole: RefCell<Vec<(u64, Whole)>>,
}

impl message::Book<u64> for Book {
    fn rules_of(&self, _: &u64) -> &Rules {
        &self.rules
    }

    fn streaming(&self) -> Option<Streaming<'_>> {
        Some(Streaming { rule: &self.rule, at_ns: self.at_ns })
    }

    fn note(&self, tag: &u64, event: Event<'_>) {
        match event {
            Event::Parts(arrived) => {
                let new = u64::from(arrived.is_first || arrived.gap_ns.is_some());
                *self.parts.borrow_mut() += new + arrived.together;
                self.gaps.borrow_mut().extend(arrived.gap_ns);
            }
            Event::Stream(whole) => self.whole.borrow_mut().push((*tag, whole)),
            other => panic!("{other:?}"),
        }
    }
}

/// A connection, and the outcomes of its requests.
struct World {
    client: Client<u64>,
    book: Book,
    heads: Vec<HeadMemory>,
    outcomes: Vec<Outcome<u64>>,
}

impl World {
    fn asked(kind: Kind, end: Option<End>, stall_ns: Option<u64>, tags: &[u64]) -> Self {
        let book = Book {
            rules: Rules::default(),
            rule: Rule { kind, end, stall_ns },
            at_ns: 0,
            parts: RefCell::default(),
            gaps: RefCell::default(),
            whole: RefCell::default(),
        };
        let (heads, outcomes) = (Default::default(), Vec::new());
        let mut world = World { client: Client::default(), book, heads, outcomes };
        tags.iter().for_each(|tag| world.client.ask(*tag));
        world
    }

    fn done(tags: &[u64]) -> Self {
        World::asked(Kind::Sse, Some(End::Content { text: "[DONE]".into() }), None, tags)
    }

    fn receive(&mut self, at_ns: u64, bytes: &[u8]) -> Disposition {
        let World { client, book, heads, outcomes } = self;
        book.at_ns = at_ns;
        client.handle_input(at_ns, bytes, book, heads, &mut |one| outcomes.push(one))
    }

    fn end(&mut self, end: PeerClose) {
        let World { client, book, outcomes, .. } = self;
        client.handle_end(99, end, book, &mut |one| outcomes.push(one));
    }

    fn endings(&self) -> Vec<Ending> {
        let endings = |one: &Outcome<u64>| std::iter::repeat_n(one.ending, one.count);
        self.outcomes.iter().flat_map(endings).collect()
    }

    fn parts(&self) -> u64 {
        *self.book.parts.borrow()
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunk(content: &str) -> String {
    format!("{:x}\r\n{content}\r\n", content.len())
}

/// A chunked answer with these chunks.
fn answer(chunks: &[&str]) -> String {
    let chunks: String = chunks.iter().map(|content| chunk(content)).collect();
    format!("{HEAD}{chunks}0\r\n\r\n")
}

#[test]
fn each_answer_is_judged_by_its_end() {
    use Ending::{Mismatch, Ok, Status, Truncated};
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\ndata: a\n\ndata: [DONE]\n\n";
    let length = length.replace("22", "23");
    let failed = answer(&["data: a\n\n"]).replace("200 OK", "500 No");
    for (sentence, answer, ending, parts) in [
        ("whole", answer(&["data: a\n\n", "data: [DONE]\n\n"]), Ok, 1),
        ("one chunk", answer(&["data: a\n\ndata: b\n\ndata: [DONE]\n\n"]), Ok, 2),
        ("events across chunks", answer(&["dat", "a: a\n", "\ndata: [DO", "NE]\n\n"]), Ok, 1),
        ("a body with a length", length, Ok, 1),
        ("no end", answer(&["data: a\n\n", "data: b\n\n"]), Truncated, 2),
        ("half an event", answer(&["data: a\n\n", "data: [DO"]), Truncated, 1),
        ("a part behind the end", answer(&["data: [DONE]\n\n", "data: a\n\n"]), Mismatch, 1),
        ("no stream at all", answer(&["<html>\n"]), Mismatch, 0),
        ("an empty body", answer(&[]), Mismatch, 0),
        ("another status", failed, Status, 0),
    ] {
        let mut world = World::done(&[1, 2]);
        let link = world.receive(5, answer.as_bytes());
        assert_eq!((world.endings(), link), (vec![ending], Disposition::Open), "{sentence}");
        assert_eq!(world.parts(), parts, "{sentence}");
        assert_eq!(world.book.whole.borrow().len(), usize::from(ending == Ok), "{sentence}");
        assert!(world.outcomes.iter().all(|outcome| outcome.complete && outcome.content.is_none()));
    }
}

#[test]
fn equal_answers_that_come_together_are_judged_one_by_one() {
    let one = answer(&["data: a\n\n", "data: b\n\n", "data: [DONE]\n\n"]);
    let mut world = World::done(&[1, 2, 3]);
    world.receive(5, one.repeat(3).as_bytes());
    assert_eq!(world.endings(), [Ending::Ok; 3]);
    assert_eq!(world.parts(), 6);
    let whole = Whole { first_ns: 5, parts: 2 };
    assert_eq!(*world.book.whole.borrow(), [(1, whole), (2, whole), (3, whole)]);
}

#[test]
fn chunks_are_parts_however_they_are_read() {
    let bytes = answer(&["a", "bc", "d"]);
    for cut in 0..=bytes.len() {
        let mut world = World::asked(Kind::Chunks, None, None, &[1]);
        world.receive(5, &bytes.as_bytes()[..cut]);
        world.receive(9, &bytes.as_bytes()[cut..]);
        assert_eq!((world.endings(), world.parts()), (vec![Ending::Ok], 3), "cut at {cut}");
    }
}

#[test]
fn a_stream_until_the_close_may_end_with_a_line_that_has_no_end() {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    for (body, end, ending, parts) in [
        ("{}\n{}", None, Ending::Ok, 2),
        ("{}\nend", Some(End::Content { text: "end".into() }), Ending::Ok, 1),
        ("{}\n{}\n", Some(End::Content { text: "end".into() }), Ending::Truncated, 2),
    ] {
        let mut world = World::asked(Kind::Jsonl, end, None, &[1]);
        world.receive(5, format!("{head}{body}").as_bytes());
        world.end(PeerClose::Fin);
        assert_eq!((world.endings(), world.parts()), (vec![ending], parts), "{body:?}");
    }
}

#[test]
fn a_chunked_stream_that_is_cut_is_truncated_and_its_gaps_are_known() {
    let mut world = World::done(&[1]);
    world.receive(10, format!("{HEAD}{}", chunk("data: a\n\n")).as_bytes());
    world.receive(40, chunk("data: b\n\n").as_bytes());
    world.end(PeerClose::Fin);
    assert_eq!((world.endings(), world.parts()), (vec![Ending::Truncated], 2));
    assert_eq!(*world.book.gaps.borrow(), [30]);
    assert!(world.book.whole.borrow().is_empty());
}

#[test]
fn a_stream_stalls_between_its_parts_and_neither_before_nor_behind_them() {
    let due_ns = |world: &World| {
        let timer = world.client.next_timer().map(|(at_ns, _)| at_ns);
        world.client.next_timeout_ns(|_| 1000).into_iter().chain(timer).min()
    };
    let end = Some(End::Content { text: "[DONE]".into() });
    let mut world = World::asked(Kind::Sse, end, Some(50), &[1, 2]);
    world.receive(10, HEAD.as_bytes());
    assert_eq!(due_ns(&world), Some(1000), "the first part has the whole time of the request");
    world.receive(20, chunk("data: a\n\n").as_bytes());
    assert_eq!(due_ns(&world), Some(70));
    world.receive(60, chunk(": only a comment\n\n").as_bytes());
    assert_eq!(due_ns(&world), Some(70));
    world.receive(65, chunk("data: b\n\n").as_bytes());
    assert_eq!(due_ns(&world), Some(115));
    world.receive(70, chunk("data: [DONE]\n\n").as_bytes());
    assert_eq!(due_ns(&world), Some(1000), "only the end of the body is to come");
    world.receive(80, b"0\r\n\r\n");
    assert_eq!((world.endings(), due_ns(&world)), (vec![Ending::Ok], Some(1000)));
}

#[test]
fn a_stalled_stream_ends_with_its_connection() {
    let mut world = World::asked(Kind::Sse, None, Some(50), &[1, 2]);
    world.receive(20, format!("{HEAD}{}", chunk("data: a\n\n")).as_bytes());
    let World { client, outcomes, .. } = &mut world;
    let mut stalls = |now_ns| {
        let output = &mut Output::default();
        client.handle_timer(now_ns, Timer::Stall, output, &mut |one| outcomes.push(one))
    };
    assert_eq!(stalls(69), Disposition::Open);
    assert_eq!(stalls(70), Disposition::Broken);
    assert_eq!(world.endings(), [Ending::TimeoutStall, Ending::TimeoutFirstByte]);
    let mut world = World::asked(Kind::Sse, None, Some(50), &[1]);
    world.receive(20, format!("{HEAD}{}", chunk("data: a\n\n")).as_bytes());
    let World { client, outcomes, .. } = &mut world;
    client.handle_timeout(70, |_| 60, &mut Output::default(), &mut |one| outcomes.push(one));
    assert_eq!(world.endings(), [Ending::TimeoutTotal], "its whole time was over before");
}

proptest! {
    #[test]
    fn a_split_never_changes_how_a_stream_ends(
        chunks in prop::collection::vec(
            prop::sample::select(vec![
                "data: a\n\n", "data: b\r\n\r\n", "dat", "a: c\n", "\n", ": x\n\n",
                "event: done\ndata\n\n", "data: [DONE]\n\n",
            ]),
            0..8,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        kind in prop::sample::select(vec![Kind::Sse, Kind::Chunks, Kind::Jsonl]),
        end in prop::sample::select(vec![
            None, Some(End::Content { text: "[DONE]".into() }), Some(End::Content { text: "data: [DONE]\n\n".into() }),
        ]),
    ) {
        let bytes = answer(&chunks).into_bytes();
        let mut whole = World::asked(kind, end.clone(), None, &[1]);
        whole.receive(5, &bytes);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut split = World::asked(kind, end, None, &[1]);
        for pair in cuts.windows(2) {
            split.receive(5, &bytes[pair[0]..pair[1]]);
        }
        prop_assert_eq!(split.endings(), whole.endings());
        prop_assert_eq!(split.parts(), whole.parts());
        let (split, whole) = (split.book.whole.borrow(), whole.book.whole.borrow());
        prop_assert_eq!(&*split, &*whole);
    }
}
