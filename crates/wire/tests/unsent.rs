//! An answer to a request that has not begun to leave is no answer: one who answers without reading is found out.

use trueload_wire::echo::{self, Messages};
use trueload_wire::exchange::{Disposition, Ending, Exchange, InOrder, Outcome};
use trueload_wire::http1::client::Client;
use trueload_wire::message::Rules;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What becomes of three requests of these tags, the last `unsent` of which have not left, when so many answers come at once.
fn outcomes(tags: [u8; 3], unsent: usize, answers: usize) -> (Vec<Ending>, Disposition) {
    let (rules, mut heads) = (Rules::default(), Vec::new());
    let mut client = Client::default();
    tags.into_iter().for_each(|tag| client.ask(tag));
    client.note_unsent(unsent);
    let mut endings = Vec::new();
    let mut on_outcome = |outcome: Outcome<u8>| {
        endings.extend(std::iter::repeat_n(outcome.ending, outcome.count));
    };
    let link = client.handle_input(7, &OK.repeat(answers), &rules, &mut heads, &mut on_outcome);
    (endings, link)
}

#[test]
fn an_answer_to_what_has_not_left_is_unsolicited_and_takes_what_is_behind_it_along() {
    use Ending::{ClosedPipelined, Ok};
    for (unsent, answers, endings, link) in [
        (0, 3, vec![Ok, Ok, Ok], Disposition::Open),
        (1, 2, vec![Ok, Ok], Disposition::Open),
        (1, 3, vec![Ok, Ok, ClosedPipelined], Disposition::Unsolicited),
        (2, 3, vec![Ok, ClosedPipelined, ClosedPipelined], Disposition::Unsolicited),
        (3, 1, vec![ClosedPipelined, ClosedPipelined, ClosedPipelined], Disposition::Unsolicited),
        (9, 1, vec![ClosedPipelined, ClosedPipelined, ClosedPipelined], Disposition::Unsolicited),
    ] {
        let wanted = (endings, link);
        for tags in [[1, 2, 3], [1, 1, 1], [1, 2, 2]] {
            let found = outcomes(tags, unsent, answers);
            assert_eq!(found, wanted, "{unsent} unsent of {tags:?}, {answers} answers");
        }
    }
}

#[test]
fn an_echo_of_what_has_not_left_is_unsolicited() {
    let messages = Messages::new((*b"abcdefgh").into(), 4).expect("whole messages");
    let mut client = echo::Client::default();
    client.take(&messages, 2, |_| ());
    (0..2).for_each(|tag| client.ask(tag));
    client.note_unsent(1);
    let mut endings = Vec::new();
    let mut on_outcome = |outcome: Outcome<u8>| endings.push(outcome.ending);
    let link = client.handle_input(7, b"abcdefgh", &messages, &mut on_outcome);
    assert_eq!(endings, [Ending::Ok, Ending::ClosedPipelined]);
    assert_eq!(link, Disposition::Unsolicited);
}
