//! Sessions: several requests in order, where later ones use values from earlier answers.
//!
//! How it works: a [`Script`] has the requests of all sessions, cut into pieces once. A [`Session`]
//! has what one virtual user knows at the moment: values, cookies, and the bytes of the answer that
//! is arriving. It writes the next request, and reads from each answer what the script takes. Over
//! HTTP/1 it reads the bytes of the answer once more; over HTTP/2 it is told fields and bodies.
//!
//! Must not know: when a request is sent, whether an answer is good, and what a failure means.

mod answer;
mod block;
mod cookies;
mod extract;
mod hops;
mod http2;
mod script;
mod state;
mod text;

pub use answer::Answer;
pub use cookies::{Jar, Site};
pub use extract::{BODY_BYTES_MOST, Extractor, REGEX_BYTES_MOST, VALUE_BYTES_MOST};
pub use script::{Script, Step, StepTexts, Take};
pub use state::{Moment, Session, Turn};
pub use text::{BUILT_IN, is_name};
