//! HTTP/1.0 and HTTP/1.1, read strictly (RFC 9112).

pub mod limits;
pub mod request;
pub mod response;

pub use limits::{Limits, ParseError};
