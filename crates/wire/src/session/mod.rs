//! Sessions: several requests in order, where later ones use values from earlier answers.
//!
//! How it works: a [`Script`] has the requests of all sessions, cut into pieces once. A [`Session`]
//! has what one virtual user knows at the moment: values, cookies, and what it needs of the answer
//! that is arriving. It writes the next request. It is told the fields and the body of each answer,
//! and takes from them what the script wants.
//!
//! Must not know: when a request is sent, whether an answer is good, and what a failure means.

mod answer;
mod expected;
mod extract;
mod hops;
mod script;
mod state;
mod writing;

pub use expected::Wanted;
pub use extract::{BODY_BYTES_MOST, Extractor, REGEX_BYTES_MOST, VALUE_BYTES_MOST};
pub use script::{Lines, Script, Step, Take};
pub use state::{Session, Untaken};
