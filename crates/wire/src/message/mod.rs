//! What a request says, whatever version of HTTP carries it.
//!
//! Must not know: frames, streams and connections.

mod request;
mod requests;

pub use request::{Request, Template, is_of_body};
pub use requests::{Head, Requests};
