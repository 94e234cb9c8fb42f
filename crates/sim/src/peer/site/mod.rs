//! The server side of a conversation, in any version of HTTP: which answer a request has, and what
//! the client may ask next.
//!
//! How it works: the path of a request has its number, or its session and step. These and the seed
//! decide everything about its answer, so that the site needs no memory to check a request: it knows
//! which value, row and cookies it has to carry. Must not know: connections, and bytes on the wire.

mod book;
mod cookies;
mod course;
mod reply;

use crate::scenario::{Place, Scenario, Talk};

pub use book::Book;
pub(crate) use book::Shared;
pub(crate) use reply::{Part, Reply};

use crate::chance::Chance;

/// The part of the seed that decides about answers.
const ANSWERS: u64 = 0x517e;
/// The body of a request that has one.
pub(crate) const UPLOAD: &str = "name=value";

/// A request as its version of HTTP has delivered it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) host: String,
    /// The cookies, as they stand in one header.
    pub(crate) cookies: String,
    /// Bytes of its body.
    pub(crate) body: usize,
}

/// A request by what its path says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Id {
    /// The number of the request, or of its session.
    pub(super) number: u64,
    /// The step and its repetition, from 1; 0 and 0 for a request by itself.
    pub(super) step: usize,
    pub(super) repeat: u32,
    /// The redirects behind it.
    pub(super) hop: u64,
}

/// The texts of a path besides its numbers.
#[derive(Debug, Default)]
struct Carried {
    user: u64,
    row: String,
    value: String,
}

impl Id {
    /// The request that this one is a hop of, as one number.
    pub(crate) fn whole(&self) -> u64 {
        let within = (self.step as u64) << 16 | u64::from(self.repeat);
        self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ within
    }

    /// This hop of it, as one number.
    fn key(&self) -> u64 {
        self.whole().rotate_left(17) ^ self.hop
    }

    /// A stream of random numbers for this request; with `hop` for this hop of it.
    fn chance(&self, scenario: &Scenario, hop: bool) -> Chance {
        Chance::part(scenario.seed ^ ANSWERS, if hop { self.key() } else { self.whole() })
    }

    /// Reads a path.
    fn of(path: &str) -> Option<(Self, Carried)> {
        let mut texts = path.strip_prefix('/')?.split('/');
        let kind = texts.next()?;
        let number = texts.next()?.parse().ok()?;
        let mut next = || texts.next().map(str::to_owned);
        if kind == "q" {
            let (row, hop) = (next()?, next()?.parse().ok()?);
            let carried = Carried { row, ..Carried::default() };
            return (next().is_none()).then_some((Id { number, hop, ..Id::default() }, carried));
        }
        let (step, repeat, user) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?);
        let (row, value, hop) = (next()?, next()?, next()?.parse().ok()?);
        let carried = Carried { user: user.parse().ok()?, row, value };
        let id = Id { number, step, repeat, hop };
        (kind == "s" && next().is_none()).then_some((id, carried))
    }
}

/// The path of a request by itself, with places for what differs.
pub(crate) fn path(talk: &Talk) -> String {
    let number = if talk.is_numbered() { "{counter}" } else { "0" };
    let row = if talk.rows.is_some() { "{row}" } else { "0" };
    format!("/q/{number}/{row}/0")
}

/// The path of a step, likewise.
pub(crate) fn path_of_step(talk: &Talk, step: usize) -> String {
    let row = if talk.rows.is_some() { "{row}" } else { "0" };
    let value = source(talk, step).map_or("0".to_owned(), |from| format!("{{v{from}}}"));
    format!("/s/{{counter}}/{step}/{{repeat}}/{{vu}}/{row}/{value}/0")
}

/// The step whose value this one uses: the last before it that takes one.
fn source(talk: &Talk, step: usize) -> Option<usize> {
    (0..step).rev().find(|before| talk.steps[*before].takes.is_some())
}

/// The value in the answer to a request.
fn value_of(scenario: &Scenario, id: &Id) -> String {
    let drawn = Chance::part(scenario.seed ^ ANSWERS ^ 1, id.whole()).below(1_000_000);
    format!("t{drawn}")
}

/// The value that a request has to carry.
fn value_for(scenario: &Scenario, talk: &Talk, id: &Id) -> String {
    let Some(step) = source(talk, id.step) else { return "0".to_owned() };
    let repeat = talk.steps[step].repeat;
    value_of(scenario, &Id { number: id.number, step, repeat, hop: 0 })
}

/// The text of a row.
pub(crate) fn row_text(row: u64) -> String {
    format!("r{row}")
}

/// The host of an origin.
pub(crate) fn host(talk: &Talk, origin: u32) -> String {
    if talk.origins.is_empty() { "a".to_owned() } else { format!("o{origin}") }
}

/// The expression that finds a value in a body.
pub(crate) const PATTERN: &str = "t=([a-z0-9]+);";

/// The name of the value that a step takes.
pub(crate) fn value_name(step: usize) -> String {
    format!("v{step}")
}

/// The kinds of final answer that hold a value.
fn body_with(place: Option<Place>, value: &str) -> String {
    match place {
        Some(Place::Json) => format!(r#"{{"s":[1,{{}}],"t":"{value}"}}"#),
        Some(Place::Body) => format!("x t=; t={value};"),
        _ => crate::scenario::BODY.to_owned(),
    }
}
