//! Whatever comes, each request ends once.

use proptest::prelude::*;
use trueload_wire::exchange::{Disposition, Exchange, PeerClose};
use trueload_wire::http2::frame::{ErrorCode, Kind};

use super::peer::{OK, Peer, block};
use super::play::{Play, idempotent};

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Ask(usize),
    TimeOut(usize),
    /// What the peer sends, with some bytes changed, cut at these places.
    PeerSends(Vec<Sent>, Vec<(prop::sample::Index, u8)>, prop::sample::Index),
}

#[derive(Clone, Debug)]
enum Sent {
    Answer(u32),
    Head(u32, bool),
    Data(u32, usize, bool),
    Trailers(u32),
    Reset(u32, u32),
    Window(u32, u32),
    Settings(u16, u32),
    Goaway(u32),
    Ping(bool),
    Pong,
    Any(u8, u8, u32, Vec<u8>),
}

fn write(peer: Peer, sent: &Sent) -> Peer {
    match sent {
        Sent::Answer(stream) => peer.answer(*stream),
        Sent::Head(stream, end) => {
            peer.headers(*stream, &[(":status", "200"), ("content-length", "5")], *end)
        }
        Sent::Data(stream, len, end) => peer.data(*stream, &vec![0; *len], *end),
        Sent::Trailers(stream) => peer.headers(*stream, &[("x", "y")], true),
        Sent::Reset(stream, code) => peer.reset(*stream, ErrorCode::of(*code)),
        Sent::Window(stream, by) => peer.window(*stream, *by),
        Sent::Settings(parameter, value) => peer.settings(&[(*parameter, *value)]),
        Sent::Goaway(last) => peer.goaway(*last, ErrorCode::NoError),
        Sent::Ping(ack) => peer.ping(*ack),
        Sent::Pong => peer.pong(),
        Sent::Any(kind, flags, stream, payload) => {
            let kind = [Kind::HEADERS, Kind::DATA, Kind::CONTINUATION, Kind(*kind)]
                [usize::from(*kind) % 4];
            peer.frame(kind, *flags, *stream, payload)
        }
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let stream = || (0..24u32).prop_map(|nth| 2 * nth + 1);
    prop_oneof![
        8 => stream().prop_map(Sent::Answer),
        4 => (stream(), any::<bool>()).prop_map(|(stream, end)| Sent::Head(stream, end)),
        4 => (stream(), 0..9usize, any::<bool>())
            .prop_map(|(stream, len, end)| Sent::Data(stream, len, end)),
        1 => stream().prop_map(Sent::Trailers),
        2 => (stream(), 0..14u32).prop_map(|(stream, code)| Sent::Reset(stream, code)),
        1 => (stream(), 0..9u32).prop_map(|(stream, by)| Sent::Window(stream, by)),
        1 => (1..7u16, 0..9u32).prop_map(|(parameter, value)| Sent::Settings(parameter, value)),
        1 => (0..50u32).prop_map(Sent::Goaway),
        1 => any::<bool>().prop_map(Sent::Ping),
        1 => (any::<u8>(), any::<u8>(), 0..50u32, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(kind, flags, stream, payload)| Sent::Any(kind, flags, stream, payload)),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let changes = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..3),
    ];
    let step = prop_oneof![
        2 => (1usize..6).prop_map(Step::Ask),
        1 => (0usize..24).prop_map(Step::TimeOut),
        6 => (prop::collection::vec(sent(), 1..6), changes, any::<prop::sample::Index>())
            .prop_map(|(sent, changes, cut)| Step::PeerSends(sent, changes, cut)),
        // Alone: a client that receives a part of an input may have sent the PING that the rest
        // acknowledges.
        1 => any::<prop::sample::Index>()
            .prop_map(|cut| Step::PeerSends(vec![Sent::Pong], vec![], cut)),
    ];
    prop::collection::vec(step, 1..60)
}

fn over(link: Disposition) -> bool {
    matches!(link, Disposition::Broken | Disposition::Unsolicited | Disposition::Refused)
}

/// Plays the steps, with each input whole or cut in two; returns how it went.
fn play(steps: &[Step], uploads: bool, cut: bool) -> (Play, usize) {
    let body = uploads.then_some(&[b'x'; 70][..]);
    let mut play = Play::with(2, idempotent(), body, &[(4, 60), (3, 9)]);
    let mut asked = 2;
    for step in steps {
        match step {
            Step::Ask(count) => {
                let count = play.client.capacity(play.client.outstanding() + count);
                play.ask(count);
                asked += count;
            }
            Step::TimeOut(below) => {
                play.time_out(*below);
            }
            Step::PeerSends(sent, changes, at) => {
                let mut bytes = sent.iter().fold(Peer::default(), write).0;
                for (place, change) in changes {
                    let place = place.index(bytes.len());
                    bytes[place] ^= change;
                }
                let at = if cut { at.index(bytes.len()) } else { bytes.len() };
                // Between the parts no stream is begun: what comes for one that is not is a
                // mistake.
                if over(play.take_in(&bytes[..at])) || over(play.take_in(&bytes[at..])) {
                    break;
                }
                play.write();
            }
        }
        assert_eq!(play.client.outstanding(), asked - play.endings.len());
    }
    play.end(PeerClose::Fin);
    (play, asked)
}

proptest! {
    #[test]
    fn each_request_ends_once_and_a_split_changes_nothing(
        steps in steps(),
        uploads in any::<bool>(),
    ) {
        let (whole, asked) = play(&steps, uploads, false);
        let mut tags: Vec<_> = whole.endings.iter().map(|(tag, _)| *tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..asked).collect::<Vec<_>>());
        prop_assert_eq!(whole.client.outstanding(), 0);
        let (cut, _) = play(&steps, uploads, true);
        prop_assert_eq!((whole.endings, whole.link), (cut.endings, cut.link));
    }

    #[test]
    fn answers_to_all_settle_all_in_whatever_order(
        order in Just((0..200u32).collect::<Vec<_>>()).prop_shuffle(),
        with_body in any::<bool>(),
    ) {
        let mut play = Play::asked(200);
        let mut peer = Peer::default();
        for nth in order {
            peer = match with_body {
                true => peer.headers(2 * nth + 1, OK, false).data(2 * nth + 1, b"a", true),
                false => peer.frame(Kind::HEADERS, 5, 2 * nth + 1, &block(OK)),
            };
        }
        prop_assert_eq!(play.receive(peer), Disposition::Open);
        prop_assert_eq!(play.endings.len(), 200);
        prop_assert_eq!(play.client.outstanding(), 0);
    }
}
