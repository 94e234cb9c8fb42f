//! The meaning of a head: how the body is framed, and whether the connection stays open. Pure
//! decisions.
//!
//! Must not know: bytes.

use super::fields::Facts;
use super::limits::ParseError::{self, Framing};

/// The way in which the end of a body is marked (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framed {
    Empty,
    Length(u64),
    Chunked,
    UntilClose,
}

/// Decides how the body of a response is framed.
///
/// A malformed or contradictory head is refused even if no body can follow. A well-formed
/// Content-Length or Transfer-Encoding is ignored in that case (RFC 9112 §6.3 item 1).
pub(crate) fn response_body(
    facts: &Facts,
    http10: bool,
    status: u16,
    head_request: bool,
) -> Result<Framed, ParseError> {
    check(facts, http10)?;
    Ok(match facts.length {
        _ if head_request || matches!(status, 100..=199 | 204 | 304) => Framed::Empty,
        _ if facts.chunked => Framed::Chunked,
        Some(length) => Framed::Length(length),
        None => Framed::UntilClose,
    })
}

/// Decides how the body of a request is framed. Also checks the Host rule of RFC 9112 §3.2.
pub(crate) fn request_body(facts: &Facts, http10: bool) -> Result<Framed, ParseError> {
    check(facts, http10)?;
    match facts.hosts {
        0 if !http10 => return Err(Framing("an HTTP/1.1 request without Host")),
        0 | 1 => {}
        _ => return Err(Framing("a second Host")),
    }
    Ok(match facts.length {
        _ if facts.chunked => Framed::Chunked,
        Some(length) => Framed::Length(length),
        None => Framed::Empty,
    })
}

fn check(facts: &Facts, http10: bool) -> Result<(), ParseError> {
    if facts.chunked && facts.length.is_some() {
        return Err(Framing("Content-Length with Transfer-Encoding"));
    }
    // RFC 9112 §6.1: such a message has faulty framing, even with a Content-Length.
    if facts.chunked && http10 {
        return Err(Framing("Transfer-Encoding in an HTTP/1.0 message"));
    }
    Ok(())
}

/// Whether the connection stays open after this message (RFC 9112 §9.3).
pub(crate) fn keeps_alive(facts: &Facts, http10: bool) -> bool {
    !facts.close && (!http10 || facts.keep_alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::Coding;

    const NONE: Facts = Facts {
        length: None,
        chunked: false,
        close: false,
        keep_alive: false,
        expect_continue: false,
        hosts: 1,
        coding: Coding::Identity,
    };
    const LENGTH: Facts = Facts { length: Some(5), ..NONE };
    const CHUNKED: Facts = Facts { chunked: true, ..NONE };
    const BOTH: Facts = Facts { chunked: true, ..LENGTH };

    #[test]
    fn the_body_of_a_response_is_framed_by_its_status_its_request_and_its_fields() {
        let refused = Err(());
        for (sentence, facts, http10, status, head_request, framed) in [
            ("a length frames", LENGTH, false, 200, false, Ok(Framed::Length(5))),
            ("chunked frames", CHUNKED, false, 404, false, Ok(Framed::Chunked)),
            ("else the close does", NONE, false, 200, false, Ok(Framed::UntilClose)),
            ("HEAD has no body", LENGTH, false, 200, true, Ok(Framed::Empty)),
            ("HEAD has none until close", NONE, true, 200, true, Ok(Framed::Empty)),
            ("204 has no body", LENGTH, false, 204, false, Ok(Framed::Empty)),
            ("304 has no body", CHUNKED, false, 304, false, Ok(Framed::Empty)),
            ("205 may say so only by a length", NONE, false, 205, false, Ok(Framed::UntilClose)),
            ("1xx has no body", LENGTH, false, 103, false, Ok(Framed::Empty)),
            ("both contradict", BOTH, false, 200, false, refused),
            ("both contradict on HEAD", BOTH, false, 200, true, refused),
            ("both contradict on 304", BOTH, false, 304, false, refused),
            ("1.0 knows no chunks", CHUNKED, true, 200, false, refused),
            ("1.0 knows no chunks on HEAD", CHUNKED, true, 200, true, refused),
            ("1.0 has a length", LENGTH, true, 200, false, Ok(Framed::Length(5))),
        ] {
            let found = response_body(&facts, http10, status, head_request).map_err(|_| ());
            assert_eq!(found, framed, "{sentence}");
        }
    }

    #[test]
    fn a_request_without_framing_fields_has_no_body() {
        assert_eq!(request_body(&NONE, false), Ok(Framed::Empty));
        assert_eq!(request_body(&LENGTH, true), Ok(Framed::Length(5)));
        assert_eq!(request_body(&CHUNKED, false), Ok(Framed::Chunked));
        assert!(request_body(&BOTH, false).is_err());
    }

    #[test]
    fn a_request_has_one_host() {
        for (hosts, http10, ok) in [(0, false, false), (0, true, true), (1, false, true)] {
            let facts = Facts { hosts, ..NONE };
            assert_eq!(request_body(&facts, http10).is_ok(), ok, "{hosts} in 1.0: {http10}");
        }
        assert!(request_body(&Facts { hosts: 2, ..NONE }, true).is_err());
    }

    #[test]
    fn close_wins_and_http10_has_to_ask() {
        for (close, keep_alive, http10, alive) in [
            (false, false, false, true),
            (true, false, false, false),
            (true, true, false, false),
            (false, false, true, false),
            (false, true, true, true),
            (true, true, true, false),
        ] {
            let facts = Facts { close, keep_alive, ..NONE };
            assert_eq!(keeps_alive(&facts, http10), alive, "{facts:?} in 1.0: {http10}");
        }
    }
}
