//! What a request and an answer mean, whatever version of HTTP carries them: rules, caps, templates
//! and what fills them, what is told of an answer, redirects and cookies.
//!
//! Must not know: frames, streams and connections.

mod book;
pub(crate) mod cookies;
pub(crate) mod fit;
pub(crate) mod places;
mod redirect;
mod request;
mod resolve;
mod rules;
mod stamp;

pub use book::{Book, Event, Form, Head, Initials, Speech, Wants};
pub use cookies::Site;
pub use fit::is_json_value;
pub use places::{BUILT_IN, Filling, Names, Turn, Written, is_name};
pub use redirect::{LOCATION_BYTES_MOST, Location, Unfollowed, becomes_get, is_redirect};
pub use request::{Request, Template, Texts, is_of_body};
pub use resolve::{Server, resolve};
pub use rules::{Limits, Rules};
pub use stamp::Stamp;
