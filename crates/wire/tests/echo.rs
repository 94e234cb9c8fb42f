//! The echo machine: what comes back is compared byte by byte, however it is cut.

use proptest::prelude::*;
use trueload_wire::echo::{Client, Messages};
use trueload_wire::exchange::{Disposition, Ending, Exchange, InOrder, Outcome, Output, PeerClose};

/// Three messages of four bytes.
fn messages() -> Messages {
    Messages::new((*b"abcdefghijkl").into(), 4).unwrap()
}

/// What became of the requests of a connection that asked `asked` and received these pieces.
fn outcomes(
    asked: usize,
    pieces: &[&[u8]],
    end: Option<PeerClose>,
) -> (Vec<(usize, Ending)>, Disposition) {
    let (mut client, messages) = (Client::default(), messages());
    (0..asked).for_each(|tag| client.ask(tag));
    let mut endings = Vec::new();
    let mut link = Disposition::Open;
    let mut on_outcome = |outcome: Outcome<usize>| {
        endings.push((outcome.tag, outcome.ending));
    };
    for (now_ns, piece) in (1..).zip(pieces) {
        link = client.handle_input(now_ns, piece, &messages, &mut on_outcome);
        if link != Disposition::Open {
            break;
        }
    }
    match end {
        Some(end) if link == Disposition::Open => client.handle_end(99, end, &mut on_outcome),
        _ => {}
    }
    assert_eq!(
        client.outstanding() == 0,
        end.is_some() || link == Disposition::Broken || endings.len() == asked
    );
    (endings, link)
}

#[test]
fn every_message_ends_once_with_the_right_ending() {
    use Ending::{ClosedPipelined, Empty, Mismatch, Ok, Reset, Truncated};
    let fin = Some(PeerClose::Fin);
    #[expect(clippy::type_complexity)]
    let table: &[(&str, usize, &[u8], Option<PeerClose>, &[Ending], Disposition)] = &[
        ("all come back", 2, b"abcdefgh", None, &[Ok, Ok], Disposition::Open),
        (
            "and the first has its turn again",
            4,
            b"abcdefghijklabcd",
            None,
            &[Ok; 4],
            Disposition::Open,
        ),
        ("a wrong byte", 1, b"abXd", None, &[Mismatch], Disposition::Broken),
        (
            "a wrong byte, others behind it",
            3,
            b"abcdefXh",
            None,
            &[Ok, Mismatch, ClosedPipelined],
            Disposition::Broken,
        ),
        ("the first message twice", 2, b"abcdabcd", None, &[Ok, Mismatch], Disposition::Broken),
        ("one byte too many", 1, b"abcde", None, &[Ok], Disposition::Unsolicited),
        ("a short echo, then a close", 1, b"abc", fin, &[Truncated], Disposition::Open),
        ("nothing, then a close", 1, b"", fin, &[Empty], Disposition::Open),
        (
            "one of three, then a close",
            3,
            b"abcd",
            fin,
            &[Ok, Empty, ClosedPipelined],
            Disposition::Open,
        ),
        (
            "a part, then a reset",
            2,
            b"ab",
            Some(PeerClose::Reset),
            &[Reset, Reset],
            Disposition::Open,
        ),
        ("an echo that nobody asked for", 0, b"abcd", None, &[], Disposition::Unsolicited),
    ];
    for (what, asked, bytes, end, endings, link) in table {
        let wanted: Vec<_> = endings.iter().copied().enumerate().collect();
        let pieces = if bytes.is_empty() { vec![] } else { vec![*bytes] };
        assert_eq!(outcomes(*asked, &pieces, *end), (wanted, *link), "{what}");
    }
}

#[test]
fn a_message_out_of_time_says_whether_it_had_begun() {
    for (bytes, first) in [(&b""[..], Ending::TimeoutFirstByte), (b"ab", Ending::TimeoutTotal)] {
        let (mut client, mut endings) = (Client::default(), Vec::new());
        (0..2).for_each(|tag: u32| client.ask(tag));
        client.handle_input(1, bytes, &messages(), &mut |_| {});
        client.handle_timeout(9, |_| 9, &mut Output::default(), &mut |outcome| {
            endings.push(outcome.ending)
        });
        assert_eq!(endings, [first, Ending::TimeoutFirstByte], "{bytes:?}");
    }
}

#[test]
fn messages_lie_in_as_few_pieces_as_can_be() {
    let (messages, mut offset, mut pieces) = (messages(), 4, Vec::new());
    messages.take(&mut offset, 3, |piece| pieces.push(piece));
    assert_eq!((pieces, offset), (vec![4..12, 0..4], 4));
    assert!(Messages::new((*b"abc").into(), 2).is_none(), "it does not come out even");
    assert!(Messages::new((*b"").into(), 1).is_none(), "there is nothing to send");
}

#[test]
fn a_connection_sends_its_messages_in_turn_and_begins_with_the_first_when_it_is_opened_again() {
    let (messages, mut client) = (messages(), Client::<u32>::default());
    let take = |client: &mut Client<u32>, count| {
        let mut pieces = Vec::new();
        client.take(&messages, count, |piece| pieces.push((piece.start, piece.end)));
        pieces
    };
    assert_eq!(take(&mut client, 2), vec![(0, 8)]);
    assert_eq!(take(&mut client, 2), vec![(8, 12), (0, 4)]);
    client.ask(1);
    client.handle_input(1, b"abcd", &messages, &mut |_| {});
    assert!(client.standing().answered);
    client.reset();
    assert!(!client.standing().answered);
    assert_eq!(take(&mut client, 1), vec![(0, 4)]);
    client.ask(1);
    let mut endings = Vec::new();
    client.handle_input(1, b"abcd", &messages, &mut |outcome| endings.push(outcome.ending));
    assert_eq!(endings, [Ending::Ok], "the first message is to come back first, too");
}

#[test]
fn the_first_byte_of_an_echo_is_that_of_its_own_message() {
    let (mut client, messages) = (Client::default(), messages());
    (1..=3).for_each(|tag| client.ask(tag));
    let mut settled = Vec::new();
    for (now_ns, piece) in [(10, &b"a"[..]), (20, b"bcde"), (30, b"fghijkl")] {
        let mut on_outcome =
            |outcome: Outcome<u32>| settled.push((outcome.tag, outcome.first_byte_ns));
        client.handle_input(now_ns, piece, &messages, &mut on_outcome);
    }
    assert_eq!(settled, [(1, 10), (2, 20), (3, 30)]);
}

proptest! {
    #[test]
    fn a_split_or_a_mutation_never_changes_what_is_received(
        asked in 0..6_usize,
        mut bytes in proptest::collection::vec(Just(0_u8), 0..30),
        wrong in proptest::option::of((0..30_usize, any::<u8>())),
        cuts in proptest::collection::vec(0..30_usize, 0..6),
    ) {
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = b"abcdefghijkl"[at % 12];
        }
        if let Some((at, byte)) = wrong
            && at < bytes.len()
        {
            bytes[at] = byte;
        }
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            if cut > from {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
        }
        let whole = if bytes.is_empty() { vec![] } else { vec![&bytes[..]] };
        prop_assert_eq!(
            outcomes(asked, &pieces, Some(PeerClose::Fin)),
            outcomes(asked, &whole, Some(PeerClose::Fin))
        );
    }
}
