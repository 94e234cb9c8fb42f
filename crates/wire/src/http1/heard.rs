//! What is told of an answer besides its body: the fields of its head and trailers, and its Location.
//!
//! How it works: a section that comes in one piece is read where it is. One that comes in several is
//! kept until it is whole. The parser caps both.
//!
//! Must not know: what the fields are wanted for.

use crate::message::{Event, Initials, Location, Wants, is_redirect};

/// The part of a section that has come, and the Location of the answer.
#[derive(Debug, Default)]
pub(super) struct Heard {
    part: Vec<u8>,
    pub(super) location: Location,
}

/// Takes the next bytes of a head, whose status is known at its end.
#[inline(never)]
pub(super) fn head(
    heard: &mut Option<Box<Heard>>,
    part: &[u8],
    status: Option<u16>,
    wants: Wants,
    note: &dyn Fn(Event<'_>),
) {
    let is_interim = status.is_some_and(|status| status < 200);
    let wants_location = wants == Wants::Location && status.is_some_and(is_redirect);
    let mut location = Location::Missing;
    section(heard, part, status.is_some(), |head| {
        let behind = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
        let lines = &head[behind..];
        match wants {
            Wants::Content(initials) if !is_interim => {
                note(Event::Head);
                fields(lines, initials).for_each(|(name, value)| note(Event::Field(name, value)));
            }
            Wants::Location if wants_location => {
                let name = &b"location"[..];
                fields(lines, Initials::of([name]))
                    .filter(|(found, _)| found.eq_ignore_ascii_case(name))
                    .for_each(|(_, value)| location.add(value));
            }
            _ => {}
        }
    });
    if wants_location {
        heard.get_or_insert_default().location = location;
    }
}

/// Takes the next bytes of trailers.
#[inline(never)]
pub(super) fn trailers(
    heard: &mut Option<Box<Heard>>,
    part: &[u8],
    whole: bool,
    note: &dyn Fn(Event<'_>),
) {
    section(heard, part, whole, |lines| {
        let fields = fields(lines, Initials::ANY);
        fields.for_each(|(name, value)| note(Event::Trailer(name, value)));
    });
}

/// Passes a section to `tell` when it is whole, and keeps its parts until then.
fn section(heard: &mut Option<Box<Heard>>, part: &[u8], whole: bool, tell: impl FnOnce(&[u8])) {
    match heard {
        None if whole => tell(part),
        Some(heard) if whole && heard.part.is_empty() => tell(part),
        _ => {
            let kept = &mut heard.get_or_insert_default().part;
            kept.extend_from_slice(part);
            if whole {
                tell(kept);
                kept.clear();
            }
        }
    }
}

/// The names and values of a section, whose lines are legal: of the fields whose names begin with
/// one of the initials. A folded value still has its line breaks.
fn fields(mut lines: &[u8], initials: Initials) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let line = loop {
            let mut end = 0;
            loop {
                end += memchr::memchr(b'\n', &lines[end..])? + 1;
                if !matches!(lines.get(end), Some(b' ' | b'\t')) {
                    break;
                }
            }
            let (line, rest) = lines.split_at(end);
            lines = rest;
            if initials.have(line[0]) {
                break line;
            }
        };
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

#[cfg(test)]
mod tests {
    use crate::message::LOCATION_BYTES_MOST;
    use std::cell::RefCell;

    use super::*;

    const CONTENT: Wants = Wants::Content(Initials::ANY);

    #[derive(Default)]
    struct Told(RefCell<Vec<String>>);

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    impl Told {
        fn note(&self, event: Event<'_>) {
            self.0.borrow_mut().push(match event {
                Event::Field(name, value) => format!("{}={}", text(name), text(value)),
                Event::Trailer(name, value) => format!("trailer {}={}", text(name), text(value)),
                _ => "head".to_owned(),
            });
        }
    }

    #[test]
    fn a_split_never_changes_what_is_told() {
        let head = b"HTTP/1.1 200 O: K\r\nA: 1\r\nB:\r\n 2\r\n\t3\r\nC:4 \r\n\r\n";
        for cut in 0..head.len() {
            let (told, mut heard) = (Told::default(), None);
            let note = |event: Event<'_>| told.note(event);
            super::head(&mut heard, &head[..cut], None, CONTENT, &note);
            super::head(&mut heard, &head[cut..], Some(200), CONTENT, &note);
            trailers(&mut heard, b"D: 5\r\n\r\n", true, &note);
            let expected = ["head", "A=1", "B=2\r\n\t3", "C=4", "trailer D=5"];
            assert_eq!(*told.0.borrow(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn of_fields_with_other_initials_nothing_is_told() {
        let head =
            b"HTTP/1.1 200 OK\r\nDate: x\r\n y\r\nset-cookie: a\r\nSERVER: s\r\nX-Id: 1\r\n\r\n";
        for (names, expected) in [
            (&["Set-Cookie"][..], &["head", "set-cookie=a", "SERVER=s"][..]),
            (&["x-id", "set-cookie"], &["head", "set-cookie=a", "SERVER=s", "X-Id=1"]),
            (&[], &["head"]),
        ] {
            let (told, mut heard) = (Told::default(), None);
            let note = |event: Event<'_>| told.note(event);
            let initials = Initials::of(names.iter().map(|name| name.as_bytes()));
            super::head(&mut heard, head, Some(200), Wants::Content(initials), &note);
            assert_eq!(*told.0.borrow(), expected, "{names:?}");
        }
    }

    #[test]
    fn the_fields_of_an_interim_head_are_not_told() {
        let heads = [(103, "Location: /a"), (302, "Location: /b")];
        for wants in [CONTENT, Wants::Location] {
            let (told, mut heard) = (Told::default(), None);
            for (status, field) in heads {
                let head = format!("HTTP/1.1 {status} X\r\n{field}\r\n\r\n");
                let note = |event: Event<'_>| told.note(event);
                super::head(&mut heard, head.as_bytes(), Some(status), wants, &note);
            }
            let location = heard.map(|heard| heard.location);
            if wants == CONTENT {
                assert_eq!(*told.0.borrow(), ["head", "Location=/b"]);
            } else {
                assert_eq!(location, Some(Location::At(b"/b"[..].into())));
            }
        }
    }

    #[test]
    fn one_location_is_read_and_several_must_agree() {
        let at = |value: &str| Location::At(value.as_bytes().into());
        let long = format!("Location: /{}\r\n", "a".repeat(LOCATION_BYTES_MOST));
        for (lines, expected) in [
            ("Date: now\r\nLocation: /login\r\nX: y\r\n", at("/login")),
            ("location:https://h/a?b=c\r\n", at("https://h/a?b=c")),
            ("LOCATION: \t/a \r\n", at("/a")),
            ("Location:\r\n", at("")),
            ("Location: /a\r\nLocation: /a\r\n", at("/a")),
            ("Location: /a\r\nLocation: /b\r\n", Location::Malformed),
            ("Location: /a\r\n /b\r\n", Location::Malformed),
            ("X: y\r\n Location: /a\r\n", Location::Missing),
            ("X-Location: /a\r\n", Location::Missing),
            ("Content-Location: /a\r\n", Location::Missing),
            (&long, Location::Malformed),
            ("", Location::Missing),
        ] {
            let head = format!("HTTP/1.1 302 Found: Location: /no\r\n{lines}\r\n");
            let mut heard = None;
            super::head(&mut heard, head.as_bytes(), Some(302), Wants::Location, &|_| ());
            let location = heard.map(|heard| heard.location);
            assert_eq!(location, Some(expected), "{lines:?}");
        }
    }
}
