//! What a good answer to a request is.

use super::limits::Limits;

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
    #[inline]
    pub(crate) fn accepts(&self, status: u16) -> bool {
        match &self.statuses {
            Some(codes) => codes.contains(&status),
            None => (200..300).contains(&status),
        }
    }
}
