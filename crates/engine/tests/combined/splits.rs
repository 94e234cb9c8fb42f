//! How the input is cut never changes what becomes of requests.

use proptest::prelude::*;
use trueload_meter::{Redirects, Streams};

use super::peer::Answer;
use super::play::{Asks, PINNED, Play, Speaks};
use super::{hops, lines};

/// What becomes of one request: the redirects before its final answer, and that.
type Chain = (usize, usize);

/// Good and bad final answers.
fn finals() -> [Answer; 5] {
    [
        Answer::ok(&["a\n", "b\nc\n"]),
        Answer::ok(&["d\n", "e"]),
        Answer::ok(&[]),
        Answer::ok(&["f\n"]).status(500),
        Answer::redirect("http://elsewhere/"),
    ]
}

/// What was asked and counted.
#[derive(Debug, PartialEq)]
struct Became {
    asked: Vec<String>,
    ok: u64,
    failed: Vec<(String, u64)>,
    redirects: Redirects,
    streams: Streams,
}

/// Plays requests in flight together. Each input has the next answers to all of them, and is cut at
/// some of its bytes.
fn play(speaks: Speaks, chains: &[Chain], cuts: &[prop::sample::Index]) -> Became {
    let count = chains.len();
    let asks = Asks::at_once(count, count as u64);
    let mut play = Play::begin(hops(speaks, lines()), speaks, asks);
    let mut asked = play.asked();
    // The chains in flight, in the order of their present requests on the connection.
    let mut open: Vec<(usize, Chain)> = chains.iter().copied().enumerate().collect();
    let mut nth = 0;
    for round in 1.. {
        play.at(10 * round);
        let (mut input, mut next) = (Vec::new(), Vec::new());
        for (chain, (left, end)) in open {
            let answer = match left {
                0 => finals()[end].clone(),
                _ => Answer::redirect(&format!("/{chain}/{left}")),
            };
            input.extend(play.peer().written(nth, &answer));
            nth += 1;
            next.extend((left > 0).then(|| (chain, (left - 1, end))));
        }
        let mut pieces = Vec::new();
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(input.len())).collect();
        ends.sort_unstable();
        ends.into_iter().rev().for_each(|end| pieces.push(input.split_off(end)));
        pieces.push(input);
        play.answer_in(pieces.into_iter().rev());
        asked.extend(play.asked());
        open = next;
        if open.is_empty() {
            break;
        }
    }
    let (done, _) = play.end();
    let failed = done.meter.failed().map(|(class, count)| (class.to_string(), count)).collect();
    Became {
        asked,
        ok: done.meter.ok,
        failed,
        redirects: *done.meter.redirects.expect("redirects are followed"),
        streams: *done.meter.streams.expect("answers are streams"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cut_never_changes_what_becomes_of_requests(
        chains in prop::collection::vec((0..4_usize, 0..finals().len()), 1..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        for speaks in PINNED {
            let whole = play(speaks, &chains, &[]);
            let requests = chains.iter().map(|(hops, _)| hops + 1).sum::<usize>();
            prop_assert_eq!(whole.asked.len(), requests);
            prop_assert_eq!(play(speaks, &chains, &cuts), whole, "{:?}", speaks);
        }
    }
}
