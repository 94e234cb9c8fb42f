//! Redirects: where each leads is told just before its outcome, and only if it is wanted.

use std::cell::RefCell;
use trueload_wire::message::{self, Event, Location, Rules, Wants};

use trueload_wire::exchange::{Disposition, Ending};

use super::peer::{OK, Peer};
use super::play::{Play, idempotent};

struct Book {
    rules: Rules,
    follows: bool,
    found: RefCell<Vec<Location>>,
}

impl message::Book<usize> for Book {
    fn rules_of(&self, _: &usize) -> &Rules {
        &self.rules
    }

    fn wants(&self) -> Wants {
        if self.follows { Wants::Location } else { Wants::Outcomes }
    }

    fn note(&self, _: &usize, event: Event<'_>) {
        if let Event::Location(location) = event {
            self.found.borrow_mut().push(location);
        }
    }
}

#[test]
fn each_redirect_tells_its_own_location_however_it_is_read() {
    let to = |location| [(":status", "302"), ("location", location)];
    let peer = Peer::default()
        .headers(1, &to("/a"), false)
        .headers(3, &to("/b"), true)
        .headers(5, OK, true)
        .headers(7, &[(":status", "308")], true)
        .headers(9, &[(":status", "200"), ("location", "/no")], true)
        .headers(11, &to("/a"), true)
        .data(1, b"moved", true);
    let at = |path: &str| Location::At(path.as_bytes().into());
    for follows in [true, false] {
        for cut in 0..=peer.0.len() {
            let (mut play, mut endings) = (Play::asked(6), Vec::new());
            let book = Book { rules: idempotent(), follows, found: RefCell::default() };
            play.frames();
            for part in [&peer.0[..cut], &peer.0[cut..]] {
                let link = play.client.handle_input(5, part, &book, &mut play.sent, &mut |one| {
                    endings.push((one.tag, one.ending, book.found.borrow().len()));
                });
                assert_eq!(link, Disposition::Open);
            }
            let moved = |tag, told| (tag, Ending::Status, if follows { told } else { 0 });
            let tags: Vec<_> = endings.iter().map(|(tag, ..)| *tag).collect();
            assert_eq!(tags, [1, 2, 3, 4, 5, 0], "cut at {cut}");
            assert_eq!([endings[0], endings[2]], [moved(1, 1), moved(3, 2)], "cut at {cut}");
            assert_eq!([endings[4], endings[5]], [moved(5, 3), moved(0, 4)], "cut at {cut}");
            let told = [at("/b"), Location::Missing, at("/a"), at("/a")];
            assert_eq!(*book.found.borrow(), if follows { &told[..] } else { &[] });
        }
    }
}
