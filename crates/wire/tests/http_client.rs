//! One connection that asks one kind of request: how each ends, by its answer's body, its time and the connection's end.

use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, PeerClose};
use trueload_wire::http1::client::Client;
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::message::Rules;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A connection, its rules, and the outcomes of its requests.
#[derive(Default)]
struct World {
    client: Client<u64>,
    rules: Rules,
    heads: Vec<HeadMemory>,
    outcomes: Vec<Outcome<u64>>,
}

impl World {
    /// A connection on which requests of these tags are outstanding.
    fn asked(rules: &Rules, tags: &[u64]) -> Self {
        let mut world = World { rules: rules.clone(), ..World::default() };
        tags.iter().for_each(|tag| world.client.ask(*tag));
        world
    }

    fn receive(&mut self, bytes: &[u8]) -> Disposition {
        let World { client, rules, heads, outcomes } = self;
        client.handle_input(7, bytes, rules, heads, &mut |one| outcomes.push(one))
    }

    fn end(&mut self, end: PeerClose) {
        let World { client, rules, outcomes, .. } = self;
        client.handle_end(9, end, rules, &mut |one| outcomes.push(one));
    }

    fn endings(&self) -> Vec<Ending> {
        let endings = |one: &Outcome<u64>| std::iter::repeat_n(one.ending, one.count);
        self.outcomes.iter().flat_map(endings).collect()
    }
}

/// Every way to cut bytes into two reads, one of which may be empty.
fn halves(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    (0..=bytes.len()).map(|cut| [&bytes[..cut], &bytes[cut..]])
}

#[test]
fn a_body_is_the_expected_one_or_a_mismatch_and_the_next_answer_starts_afresh() {
    let rules = Rules { body: Some(b"ok".to_vec()), ..Rules::default() };
    for (sentence, body, ending) in [
        ("the same", "ok", Ending::Ok),
        ("other bytes, as many", "no", Ending::Mismatch),
        ("another last byte", "ox", Ending::Mismatch),
        ("its beginning", "o", Ending::Mismatch),
        ("its end", "k", Ending::Mismatch),
        ("more than it", "okk", Ending::Mismatch),
        ("twice", "okok", Ending::Mismatch),
        ("nothing", "", Ending::Mismatch),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let both = [answer.as_bytes(), OK].concat();
        for [first, second] in halves(&both) {
            let mut world = World::asked(&rules, &[1, 2]);
            world.receive(first);
            assert_eq!(world.receive(second), Disposition::Open, "{sentence}");
            let cut = first.len();
            assert_eq!(world.endings(), [ending, Ending::Ok], "{sentence}, cut at {cut}");
        }
    }
}

#[test]
fn the_answer_to_head_is_held_against_no_body() {
    let rules = Rules { body: Some(b"ok".to_vec()), head_request: true, ..Rules::default() };
    let mut world = World::asked(&rules, &[1]);
    world.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(world.endings(), [Ending::Ok]);
}

#[test]
fn the_last_byte_of_an_answer_again_is_no_other_answer() {
    for [first, second] in halves(&[OK, b"k"].concat()) {
        let mut world = World::asked(&Rules::default(), &[1, 1]);
        let link = [world.receive(first), world.receive(second)]
            .into_iter()
            .find(|link| *link != Disposition::Open);
        let found = (world.endings(), link);
        let wanted = (vec![Ending::Ok, Ending::Framing], Some(Disposition::Broken));
        assert_eq!(found, wanted, "cut at {}", first.len());
    }
}

#[test]
fn each_answer_settles_one_request_and_requests_alike_are_told_together() {
    for (tags, answers, expected) in [
        (&[1, 1, 1][..], 3, &[(1, 1), (1, 2)][..]),
        (&[1, 1, 1], 2, &[(1, 1), (1, 1)]),
        (&[1, 2, 3, 3], 3, &[(1, 1), (2, 1), (3, 1)]),
        (&[1, 2, 3, 3], 4, &[(1, 1), (2, 1), (3, 2)]),
    ] {
        let mut world = World::asked(&Rules::default(), tags);
        assert_eq!(world.receive(&OK.repeat(answers)), Disposition::Open);
        let found: Vec<_> = world.outcomes.iter().map(|one| (one.tag, one.count)).collect();
        assert_eq!(found, expected, "{answers} answers to {tags:?}");
        assert_eq!(world.client.outstanding(), tags.len() - answers);
    }
}

#[test]
fn an_orderly_close_ends_each_request_by_what_came_before() {
    use Ending::{ClosedPipelined, Empty, Ok, Stale, Truncated, UnusedEnd};
    let idempotent = Rules { idempotent: true, ..Rules::default() };
    for (sentence, answered, asked, come, endings) in [
        ("a fresh connection", false, 1, &b""[..], &[UnusedEnd][..]),
        ("a fresh connection, several", false, 2, b"", &[Empty, ClosedPipelined]),
        ("a reused connection", true, 1, b"", &[Stale]),
        ("a reused connection, several", true, 2, b"", &[ClosedPipelined, ClosedPipelined]),
        ("in the middle", true, 2, b"HTTP/1.1 2", &[Truncated, ClosedPipelined]),
        ("the close ends a body", false, 1, b"HTTP/1.1 200 OK\r\n\r\nok", &[Ok]),
    ] {
        let mut world = World::asked(&idempotent, &vec![1; asked + usize::from(answered)]);
        if answered {
            world.receive(OK);
        }
        world.receive(come);
        world.end(PeerClose::Fin);
        assert_eq!(&world.endings()[usize::from(answered)..], endings, "{sentence}");
    }
}

#[test]
fn a_request_that_is_out_of_time_says_whether_its_answer_had_begun() {
    use Ending::{TimeoutFirstByte, TimeoutTotal};
    let (open, broken) = (Disposition::Open, Disposition::Broken);
    for (sentence, come, now_ns, link, endings) in [
        ("too early", &b""[..], 8, open, &[][..]),
        ("in time, no byte", b"", 9, broken, &[TimeoutFirstByte, TimeoutFirstByte]),
        ("late, no byte", b"", 10, broken, &[TimeoutFirstByte, TimeoutFirstByte]),
        ("late, a part", b"HTTP/1.1 200 OK\r\n", 10, broken, &[TimeoutTotal, TimeoutFirstByte]),
        ("too early, a part", b"HTTP/1.1 200 OK\r\n", 8, open, &[]),
    ] {
        // A tag is its deadline; only the oldest one's counts.
        let mut world = World::asked(&Rules::default(), &[9, 99]);
        world.receive(come);
        let World { client, outcomes, .. } = &mut world;
        let mut on_outcome = |one| outcomes.push(one);
        let found =
            client.handle_timeout(now_ns, |tag| *tag, &mut Output::default(), &mut on_outcome);
        assert_eq!((found, &world.endings()[..]), (link, endings), "{sentence}");
    }
}

#[test]
fn an_answer_lasts_until_the_end_only_where_its_head_says_so() {
    for (come, lasts) in [
        (&b""[..], false),
        (b"HTTP/1.1 200 OK\r\n", false),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", false),
        (b"HTTP/1.1 200 OK\r\n\r\n", true),
        (b"HTTP/1.1 200 OK\r\n\r\nok", true),
    ] {
        let mut world = World::asked(&Rules::default(), &[1]);
        world.receive(come);
        assert_eq!(world.client.standing().lasts_until_end, lasts, "{}", come.escape_ascii());
    }
}

#[test]
fn what_a_body_was_like_is_told_however_it_came_unless_it_was_held_against_one() {
    let counted =
        |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nHello, \r\n6\r\nWorld!\r\n0\r\n\r\n";
    let hello = counted("Hello, World!");
    let contents_of = |rules: &Rules, first: &[u8], second: &[u8]| {
        let mut world = World::asked(rules, &[1, 2, 3]);
        world.receive(first);
        world.receive(second);
        let contents = |one: &Outcome<u64>| std::iter::repeat_n(one.content, one.count);
        world.outcomes.iter().flat_map(contents).collect::<Vec<_>>()
    };
    let any = Rules::default();
    let whole = contents_of(&any, hello.as_bytes(), b"")[0];
    assert_eq!(whole.map(|content| content.bytes), Some(13));
    for (three, alike) in [
        ([hello.as_str(), hello.as_str(), hello.as_str()], [true, true, true]),
        ([hello.as_str(), chunked, hello.as_str()], [true, true, true]),
        ([hello.as_str(), &counted("Hello, Worle!"), &counted("")], [true, false, false]),
        ([chunked, &counted(""), chunked], [true, false, true]),
    ] {
        let bytes = three.concat();
        for [first, second] in halves(bytes.as_bytes()) {
            let found = contents_of(&any, first, second);
            let same: Vec<_> = found.iter().map(|content| *content == whole).collect();
            assert_eq!(same, alike, "{three:?}, cut at {}", first.len());
        }
    }
    let expected = Rules { body: Some(b"Hello, World!".to_vec()), ..Rules::default() };
    assert_eq!(contents_of(&expected, hello.as_bytes(), b""), [None]);
}
