//! What the driver asks of any client machine: what is outstanding, until when, and whether it has been answered.

use trueload_wire::exchange::{Exchange, InOrder};
use trueload_wire::http1::client::Client;
use trueload_wire::message::Rules;
use trueload_wire::udp_echo;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn answered(client: &mut Client<u64>) {
    client.handle_input(7, OK, &Rules::default(), &mut Vec::new(), &mut |_| {});
}

#[test]
fn a_connection_knows_its_requests_from_asking_to_their_end() {
    let mut client = Client::default();
    assert_eq!((client.outstanding(), client.capacity(4)), (0, 4));
    assert_eq!(client.next_timeout_ns(|tag| *tag), None);
    client.ask(50);
    client.ask_alike(70, 2);
    assert_eq!((client.outstanding(), client.capacity(4), client.capacity(2)), (3, 1, 0));
    assert_eq!(client.next_timeout_ns(|tag| *tag), Some(50));
    answered(&mut client);
    assert_eq!((client.outstanding(), client.next_timeout_ns(|tag| *tag)), (2, Some(70)));
    client.ask(90);
    let mut changed = Vec::new();
    client.change_newest(|tag| {
        changed.push(*tag);
        *tag += 1;
        changed.len() < 2
    });
    assert_eq!(changed, [90, 70], "requests alike have one tag");
    assert_eq!(client.cancel().collect::<Vec<_>>(), [71, 71, 91]);
    assert_eq!(client.outstanding(), 0);
}

#[test]
fn a_connection_that_is_opened_again_has_answered_nothing() {
    let mut client = Client::default();
    client.ask(1);
    assert!(!client.standing().answered);
    answered(&mut client);
    assert!(client.standing().answered);
    client.reset();
    assert!(!client.standing().answered);
}

#[test]
fn requests_are_unsent_until_the_last_one_begins_to_leave() {
    let mut client = Client::default();
    client.ask_alike(1, 2);
    for (unsent, is_unsent) in [(0, false), (1, true), (2, true), (0, false)] {
        client.note_unsent(unsent);
        assert_eq!(client.is_unsent(), is_unsent, "{unsent} have not begun to leave");
    }
}

#[test]
fn a_datagram_is_never_unsent_and_its_answer_never_lasts() {
    let mut client = udp_echo::Client::default();
    client.ask(1);
    assert!(!client.is_unsent());
    assert!(!client.standing().lasts_until_end);
    assert_eq!(client.standing().broken, None);
}
