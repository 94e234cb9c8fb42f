//! The UDP echo machine: whatever the network does to datagrams, every request ends once, and the counters add up.

use proptest::prelude::*;
use trueload_wire::echo::Messages;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, PeerClose};
use trueload_wire::udp_echo::{Client, Counts, SIZE_LEAST};

const SIZE: usize = 20;
const NONCE: [u8; 8] = *b"our-side";

/// Three messages, each of its own letter.
fn messages() -> Messages {
    let bytes: Vec<u8> = b"abc".iter().flat_map(|letter| [*letter; SIZE]).collect();
    Messages::new(bytes.into(), SIZE).unwrap()
}

/// A connection over which a test is the network.
struct World {
    client: Client<usize>,
    sent: Vec<Vec<u8>>,
    endings: Vec<(usize, Ending)>,
    counts: Counts,
    delivered: u64,
}

impl World {
    /// A connection on which so many requests have been sent; their tags are their numbers.
    fn asked(count: usize) -> Self {
        let mut client = Client::default();
        client.open(NONCE);
        let (sent, endings, counts) = (Vec::new(), Vec::new(), Counts::default());
        let mut world = World { client, sent, endings, counts, delivered: 0 };
        world.ask(count);
        world
    }

    fn ask(&mut self, count: usize) {
        let mut out = Vec::new();
        for _ in 0..count {
            let tag = self.sent.len() + out.len() / SIZE;
            self.client.ask_alike(tag, 1);
            self.client.write(1, &messages(), &mut out);
        }
        self.sent.extend(out.chunks(SIZE).map(<[u8]>::to_vec));
    }

    fn deliver(&mut self, bytes: &[u8]) {
        let World { client, endings, counts, .. } = self;
        let mut on_outcome = |outcome: Outcome<usize>| endings.push((outcome.tag, outcome.ending));
        client.handle_datagram(1, bytes, &messages(), counts, &mut on_outcome);
        self.delivered += 1;
    }

    /// The datagram of this number comes back, as it was.
    fn answer(&mut self, number: usize) {
        let datagram = self.sent[number].clone();
        self.deliver(&datagram);
    }

    fn time_out(&mut self) {
        let World { client, endings, .. } = self;
        let mut on_outcome = |outcome: Outcome<usize>| endings.push((outcome.tag, outcome.ending));
        // Only the oldest is out of time.
        let oldest = client.next_timeout_ns(|tag| *tag as u64);
        let deadline_ns = |tag: &usize| if Some(*tag as u64) == oldest { 2 } else { 3 };
        let link = client.handle_timeout(2, deadline_ns, &mut Output::default(), &mut on_outcome);
        assert_eq!(link, Disposition::Open, "the connection lives on");
    }

    fn end(&mut self, end: PeerClose) {
        let World { client, endings, .. } = self;
        client.handle_end(3, end, &mut |outcome| endings.push((outcome.tag, outcome.ending)));
    }
}

#[test]
fn answers_settle_their_own_requests_in_any_order() {
    let mut world = World::asked(4);
    [2, 0, 3, 1].into_iter().for_each(|number| world.answer(number));
    assert_eq!(world.endings, [2, 0, 3, 1].map(|number| (number, Ending::Ok)));
    assert_eq!(world.counts, Counts { reordered: 2, ..Counts::default() });
    assert_eq!(world.client.outstanding(), 0);
}

#[test]
fn a_lost_request_ends_alone_and_its_late_answer_settles_nothing() {
    let mut world = World::asked(3);
    world.time_out();
    assert_eq!(
        (world.endings.as_slice(), world.client.outstanding()),
        (&[(0, Ending::Lost)][..], 2)
    );
    world.answer(0);
    world.answer(0);
    world.answer(1);
    world.answer(1);
    assert_eq!(world.endings[1..], [(1, Ending::Ok)]);
    assert_eq!(world.counts, Counts { late: 1, duplicated: 2, ..Counts::default() });
    let next = world.client.next_timeout_ns(|tag| *tag as u64);
    assert_eq!((next, world.client.capacity(3)), (Some(2), 2));
}

#[test]
fn what_is_no_answer_of_ours_is_counted_and_ends_nothing() {
    let ours = World::asked(1).sent.remove(0);
    let (mut foreign, mut unsent) = (ours.clone(), ours.clone());
    foreign[0] ^= 1;
    unsent[15] = 1;
    for (bytes, what) in [
        (&b""[..], "empty"),
        (&ours[..SIZE_LEAST - 1], "too short for its numbers"),
        (&foreign, "of another connection"),
        (&unsent, "to a request that was not sent"),
    ] {
        let mut world = World::asked(1);
        world.deliver(bytes);
        assert_eq!(world.counts, Counts { unsolicited: 1, ..Counts::default() }, "{what}");
        assert_eq!(world.client.outstanding(), 1, "{what}");
    }
}

#[test]
fn an_answer_with_other_content_is_a_mismatch_of_its_request_alone() {
    let ours = World::asked(5).sent;
    let other = [&ours[1][..SIZE_LEAST], &ours[2][SIZE_LEAST..]].concat();
    let long = [&ours[1][..], b"x"].concat();
    for (bytes, what) in [
        (&ours[1][..SIZE - 1], "one byte short"),
        (&ours[1][..SIZE_LEAST], "nothing but its numbers"),
        (&long, "one byte too many"),
        (&other, "the message of another request"),
    ] {
        let mut world = World::asked(5);
        world.deliver(bytes);
        assert_eq!(world.endings, [(1, Ending::Mismatch)], "{what}");
        world.answer(0);
        assert_eq!(world.client.outstanding(), 3, "{what}");
    }
}

#[test]
fn the_end_of_the_socket_ends_all_that_is_outstanding() {
    for (end, ending) in [(PeerClose::Refused, Ending::Refused), (PeerClose::Reset, Ending::Reset)]
    {
        let mut world = World::asked(3);
        world.answer(1);
        world.end(end);
        assert_eq!(world.endings[1..], [(0, ending), (2, ending)]);
        world.client.open(*b"next one");
        world.answer(0);
        assert_eq!(world.counts.unsolicited, 1, "an answer to the connection before");
    }
}

#[test]
fn a_fresh_connection_counts_from_the_start() {
    let mut world = World::asked(3);
    world.answer(2);
    world.end(PeerClose::Reset);
    world.client.open(NONCE);
    assert!(!world.client.standing().answered);
    world.sent.clear();
    world.ask(1);
    world.answer(0);
    assert_eq!(
        world.counts,
        Counts::default(),
        "number 0 of this one is not behind number 2 of that"
    );
    assert_eq!(world.endings.last(), Some(&(0, Ending::Ok)));
}

#[test]
fn tags_are_changed_from_the_newest_on_until_one_is_not() {
    let mut world = World::asked(4);
    world.answer(2);
    world.client.change_newest(|tag| {
        *tag += 10;
        *tag != 11
    });
    world.end(PeerClose::Reset);
    assert_eq!(world.endings[1..].iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [0, 11, 13]);
}

#[test]
fn counts_of_several_connections_add_up_each_to_its_own_kind() {
    let mut all = Counts { late: 1, duplicated: 20, reordered: 300, unsolicited: 4000 };
    all += Counts { late: 5, duplicated: 60, reordered: 700, unsolicited: 8000 };
    let sum = Counts { late: 6, duplicated: 80, reordered: 1000, unsolicited: 12_000 };
    assert_eq!(all, sum);
}

#[test]
fn one_answer_to_the_first_request_is_an_answer() {
    let mut world = World::asked(1);
    assert!(!world.client.standing().answered);
    world.answer(0);
    assert!(world.client.standing().answered);
}

#[test]
fn a_datagram_carries_its_connection_its_number_and_the_message_whose_turn_it_is() {
    let world = World::asked(4);
    for (number, (datagram, letter)) in (0..).zip(world.sent.iter().zip(b"abca")) {
        let (nonce, rest) = datagram.split_at(8);
        assert_eq!((nonce, &rest[..8]), (&NONCE[..], &u64::to_be_bytes(number)[..]));
        assert_eq!(rest[8..], [*letter; SIZE - SIZE_LEAST]);
    }
}

#[test]
fn of_lost_requests_the_newest_4096_are_told_from_duplicates() {
    let mut world = World::asked(4098);
    for _ in 0..4097 {
        world.time_out();
    }
    for (number, late, duplicated) in [(0, 0, 1), (1, 1, 1), (2, 2, 1), (4096, 3, 1), (2, 3, 2)] {
        world.answer(number);
        let counts = Counts { late, duplicated, ..Counts::default() };
        assert_eq!(world.counts, counts, "after the answer to number {number}");
    }
}

/// What the network does next.
#[derive(Clone, Debug)]
enum Step {
    Ask(usize),
    Answer(prop::sample::Index),
    /// With one byte changed, or cut short.
    Mutate(prop::sample::Index, prop::sample::Index, u8),
    Cut(prop::sample::Index, prop::sample::Index),
    TimeOut,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (1usize..5).prop_map(Step::Ask),
        6 => any::<prop::sample::Index>().prop_map(Step::Answer),
        1 => (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1u8..)
            .prop_map(|(which, place, change)| Step::Mutate(which, place, change)),
        1 => (any::<prop::sample::Index>(), any::<prop::sample::Index>())
            .prop_map(|(which, place)| Step::Cut(which, place)),
        1 => Just(Step::TimeOut),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn every_request_ends_once_and_every_datagram_counts_once(steps in steps()) {
        let mut world = World::asked(1);
        for step in steps {
            match step {
                Step::Ask(count) => world.ask(count),
                Step::Answer(which) => world.answer(which.index(world.sent.len())),
                Step::Mutate(which, place, change) => {
                    let mut datagram = which.get(&world.sent).clone();
                    datagram[place.index(SIZE)] ^= change;
                    world.deliver(&datagram);
                }
                Step::Cut(which, place) => {
                    let datagram = which.get(&world.sent)[..place.index(SIZE)].to_vec();
                    world.deliver(&datagram);
                }
                Step::TimeOut => world.time_out(),
            }
            let left = world.sent.len() - world.endings.len();
            prop_assert_eq!(world.client.outstanding(), left);
            prop_assert_eq!(world.client.next_timeout_ns(|_| 0).is_some(), left > 0);
        }
        let settled = world.endings.iter().filter(|(_, ending)| *ending != Ending::Lost).count();
        let Counts { late, duplicated, reordered, unsolicited } = world.counts;
        prop_assert_eq!(settled as u64 + late + duplicated + unsolicited, world.delivered);
        prop_assert!(reordered <= settled as u64);
        let lost = world.endings.len() - settled;
        prop_assert!(late <= lost as u64);
        world.end(PeerClose::Refused);
        let mut tags: Vec<_> = world.endings.iter().map(|(tag, _)| *tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..world.sent.len()).collect::<Vec<_>>());
    }

    #[test]
    fn what_comes_back_once_and_whole_is_answered_in_whatever_order(
        order in Just((0..50usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut world = World::asked(50);
        order.iter().for_each(|number| world.answer(*number));
        prop_assert!(world.endings.iter().all(|(_, ending)| *ending == Ending::Ok));
        let highest = order.iter().scan(0, |highest, number| {
            let behind = *number < *highest;
            *highest = (*highest).max(*number);
            Some(u64::from(behind))
        });
        prop_assert_eq!(world.counts, Counts { reordered: highest.sum(), ..Counts::default() });
    }
}
