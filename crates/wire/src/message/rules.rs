//! What a good answer is, and who is told what an answer says, by the tag of a request.

use super::limits::Limits;
use super::location::Location;
use crate::parts::{Arrived, Streaming, Whole};

/// The criteria for a good answer to a request, and properties of the request itself.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The accepted status codes; none accepts any 2xx.
    pub statuses: Option<Vec<u16>>,
    /// The exact body expected; none accepts any.
    pub body: Option<Vec<u8>>,
    /// The requests are HEAD: answers have no body.
    pub head_request: bool,
    /// A request may be sent again if its connection went stale (RFC 9110 §9.2.2).
    pub idempotent: bool,
    /// Caps on the sizes that the peer decides.
    pub limits: Limits,
}

impl Rules {
    pub(crate) fn accepts(&self, status: u16) -> bool {
        match &self.statuses {
            Some(codes) => codes.contains(&status),
            None => (200..300).contains(&status),
        }
    }
}

/// Selects the rules for the answer to a request.
pub trait Rulebook<T> {
    /// The rules for a request that was asked with this tag.
    fn rules_of(&self, tag: &T) -> &Rules;

    /// The index of the remembered head that the answer to a request is compared with.
    #[inline]
    fn memory_of(&self, _tag: &T) -> usize {
        0
    }

    /// The rule for answers that are streams, and the time of the present input; none if answers
    /// are not read for their parts.
    #[inline]
    fn streaming(&self) -> Option<Streaming<'_>> {
        None
    }

    /// Called when parts have come of a good answer that is a stream.
    #[inline]
    fn note_parts(&self, _tag: &T, _arrived: Arrived) {}

    /// Called when a stream has come to its end, before its outcome.
    #[inline]
    fn note_stream(&self, _tag: &T, _whole: Whole) {}

    /// Whether redirects are followed, so that their Location is wanted.
    #[inline]
    fn follows(&self) -> bool {
        false
    }

    /// Called with the Location of a redirect, just before its outcome.
    #[inline]
    fn note_location(&self, _location: Location) {}

    /// What is told the content of answers; none if nobody wants it.
    #[inline]
    fn listener(&self) -> Option<&dyn Listener> {
        None
    }
}

/// Is told the content of answers, of one request at a time. An answer that is told may still turn
/// out to be faulty. Its end is the outcome of its request.
pub trait Listener {
    /// The head of an answer begins; over HTTP/2 it may be an interim one.
    fn note_head(&self);

    /// A field of the head has come.
    fn note_field(&self, name: &[u8], value: &[u8]);

    /// A part of the body has come.
    fn note_body(&self, bytes: &[u8]);

    /// A field behind the body has come.
    fn note_trailer(&self, _name: &[u8], _value: &[u8]) {}
}

/// The same rules for all requests.
impl<T> Rulebook<T> for Rules {
    #[inline]
    fn rules_of(&self, _: &T) -> &Rules {
        self
    }
}
