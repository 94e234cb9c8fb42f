//! Requests that differ: several targets by weight, or one whose text depends on its number.
//!
//! Every request of a run has a number, drawn when it is sent from a counter that all threads
//! share. The number determines the target and the values of the request's placeholders, so nothing
//! else has to be kept about it. A run whose requests are all alike does not use this.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trueload_load::{Mix, Places, Recording, RowOrder, random};
use trueload_wire::http1::template::Template;
use trueload_wire::http2::request::Template as Http2Template;
use trueload_wire::message::{self, Filling, Head, Request, Rules, Written};

use super::rows::Taking;
use super::slot::Tag;
use crate::data::{DataUse, Row, Rows};
use crate::protocol::UsersPlan;

/// The repetitions of a step that goes on until the load ends.
pub const ENDLESS: u32 = u32::MAX;

/// How one step follows the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepPace {
    /// How often it is sent in a row.
    pub repeat: u32,
    /// The shortest pause before each of its requests, in ns.
    pub think_least_ns: u64,
    /// The longest.
    pub think_most_ns: u64,
    /// The users that have it; none for all.
    pub users: Option<UsersPlan>,
    /// It sends nothing, and ends with a message that comes.
    pub listens: bool,
}

impl StepPace {
    /// Whether a user has this step.
    pub fn is_of(&self, user: u32) -> bool {
        self.users.is_none_or(|UsersPlan { first, count, of }| {
            let place = user.saturating_sub(1).checked_rem(of).unwrap_or(0);
            (first..first.saturating_add(count)).contains(&place)
        })
    }
}

/// Answer heads that are remembered for the requests of a recording, which may be a million.
const HEADS_MOST: usize = 256;

/// One of the requests that are sent, and the rules for a good answer to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The text of the request.
    pub text: Text,
    /// The same in no version's form, if redirects are followed.
    pub whole: Option<Box<message::Template>>,
    /// The rules for a good answer.
    pub rules: Rules,
}

/// A request in its protocol's form.
#[derive(Clone, Debug)]
pub enum Text {
    /// Over HTTP/1.
    Http1(Template),
    /// Over HTTP/2.
    Http2(Http2Template),
    /// Over either, written by its session.
    Session,
    /// Over either.
    Both(Template, Http2Template),
}

impl Text {
    /// The request in HTTP/1.1; none if only HTTP/2 is spoken.
    #[inline]
    pub(crate) fn http1(&self) -> Option<&Template> {
        match self {
            Text::Http1(template) | Text::Both(template, _) => Some(template),
            Text::Http2(_) | Text::Session => None,
        }
    }

    /// The request in HTTP/2; none if only HTTP/1.1 is spoken.
    #[inline]
    pub(crate) fn http2(&self) -> Option<&Http2Template> {
        match self {
            Text::Http2(template) | Text::Both(_, template) => Some(template),
            Text::Http1(_) | Text::Session => None,
        }
    }

    /// Whether it has a placeholder of a column of data.
    fn has_column(&self) -> bool {
        self.http1().is_some_and(Template::has_column)
            || self.http2().is_some_and(Http2Template::has_column)
    }
}

/// All requests that a run sends.
#[derive(Debug)]
pub struct Requests {
    targets: Arc<[Target]>,
    order: Mix,
    /// Numbers are those of the entries of a recording, instead of turns in the order.
    recording: Option<Arc<Recording>>,
    seed: u64,
    /// Whether counts are kept for each target.
    apart: bool,
    /// If the targets are the steps of sessions, how these follow each other: a number is the index
    /// of its step.
    paces: Arc<[StepPace]>,
    /// The turns of this engine among those of all: no two send the same number.
    part: Places,
    /// For one of several origins: its own places among all turns.
    places: Option<Places>,
    /// The rows of data that they take, if there are any.
    taking: Option<Taking>,
    /// The number of requests that can be sent; without bound unless the data is used up.
    most: u64,
    drawn: AtomicU64,
}

impl Requests {
    /// Takes targets in the order of their turns; with `apart` each is counted separately. `part`
    /// has the turns of this engine: those at an index, of a number of engines.
    pub fn new(
        targets: Vec<Target>,
        order: Mix,
        seed: u64,
        apart: bool,
        part: impl Into<Places>,
    ) -> Self {
        Requests {
            targets: targets.into(),
            order,
            recording: None,
            seed,
            apart,
            paces: Arc::default(),
            part: part.into(),
            places: None,
            taking: None,
            most: u64::MAX,
            drawn: AtomicU64::new(0),
        }
    }

    /// The requests of a recording, which are not counted separately: an entry's number decides
    /// which it sends. None if an entry names a request that there is not.
    pub fn of_recording(targets: Arc<[Target]>, recording: Arc<Recording>) -> Option<Self> {
        let known = (recording.last_request() as usize) < targets.len();
        let requests = Requests::new(Vec::new(), Mix::new(&[1])?, 0, false, (0, 1));
        known.then_some(Requests { targets, recording: Some(recording), ..requests })
    }

    /// Makes these the requests of one of several origins: each is numbered by its turn among those
    /// of all.
    pub fn at(self, places: Option<Places>) -> Self {
        Requests { places, ..self }
    }

    /// Fills the placeholders of columns from these rows, taken in this order. None if no request
    /// has such a placeholder, or, with several origins, not every one.
    pub fn taking(self, rows: Arc<Rows>, order: RowOrder) -> Option<Self> {
        let takes: Box<[bool]> = self.targets.iter().map(|each| each.text.has_column()).collect();
        if self.places.is_some() && takes.contains(&false) {
            return None;
        }
        let (places, part) = (self.places.clone(), self.part.clone());
        let taking = Taking::of((rows, order), takes, &self.order, places, part)?;
        Some(Requests { most: taking.requests(), taking: Some(taking), ..self })
    }

    /// Makes the targets the steps of sessions, which follow each other like this. Each session takes
    /// one of these rows, if there are any, in this order.
    pub fn in_sessions(
        self,
        paces: impl Into<Arc<[StepPace]>>,
        data: Option<(Arc<Rows>, RowOrder)>,
    ) -> Self {
        let taking = data
            .and_then(|data| Taking::of(data, [true].into(), &self.order, None, self.part.clone()));
        let most = taking.as_ref().map_or(u64::MAX, Taking::requests);
        Requests { paces: paces.into(), most, taking, ..self }
    }

    /// The row of a session, by its number over all engines.
    #[inline]
    pub(super) fn row_of(&self, session: u64) -> Row<'_> {
        self.taking.as_ref().map_or_else(Row::default, |taking| taking.row_at(session))
    }

    /// How the steps of sessions follow each other; empty if the targets are no steps.
    pub(super) fn paces(&self) -> Arc<[StepPace]> {
        Arc::clone(&self.paces)
    }

    /// Whether the targets are the steps of sessions.
    #[inline]
    pub(super) fn are_steps(&self) -> bool {
        !self.paces.is_empty()
    }

    /// Whether a request has its number before it is drawn: from its step, or its recording.
    #[inline]
    pub(super) fn are_numbered(&self) -> bool {
        self.are_steps() || self.recording.is_some()
    }

    /// The number of entries of the recording; 0 without one.
    pub(super) fn recorded(&self) -> u64 {
        self.recording.as_ref().map_or(0, |recording| recording.count())
    }

    #[inline]
    fn target(&self, number: u64) -> usize {
        match &self.recording {
            None => self.order.pick(number),
            Some(recording) => recording.request(number) as usize,
        }
    }

    /// The number of targets that are counted separately.
    pub(super) fn counted(&self) -> usize {
        if self.apart { self.targets.len() } else { 0 }
    }

    /// The index of the remembered head for the answers of a target.
    #[inline]
    pub(super) fn head(&self, target: usize) -> usize {
        if self.recording.is_some() { target % HEADS_MOST } else { target }
    }

    /// Draws `count` new numbers, or fewer if the data does not last for so many requests.
    pub(super) fn draw(&self, count: u64) -> Range<u64> {
        let first = self.drawn.fetch_add(count, Ordering::Relaxed).min(self.most);
        first..first.saturating_add(count).min(self.most)
    }

    /// Whether no row is left for the next request.
    pub(super) fn is_spent(&self) -> bool {
        self.drawn.load(Ordering::Relaxed) >= self.most
    }

    /// The rows taken by now; `spent`: that they were used up has ended the phase.
    pub(super) fn taken(&self, spent: bool) -> Option<DataUse> {
        let requests = self.drawn.load(Ordering::Relaxed).min(self.most);
        self.taking.as_ref().map(|taking| taking.taken(requests, spent))
    }

    /// The target of the request whose number has this lower half, when `drawn` numbers have been
    /// drawn.
    #[inline]
    pub(super) fn index(&self, drawn: u64, low: u32) -> usize {
        if self.are_steps() {
            return low as usize;
        }
        self.target(number(drawn, low))
    }

    /// The rules of all targets, in order.
    pub(super) fn rules(&self) -> impl Iterator<Item = &Rules> {
        self.targets.iter().map(|target| &target.rules)
    }

    /// The rules of the request whose number has this lower half. Not inlined: where all requests
    /// are alike, the choice is to stay small.
    #[inline(never)]
    pub(super) fn rules_of(&self, drawn: u64, low: u32) -> &Rules {
        &self.targets[self.index(drawn, low)].rules
    }

    /// Passes the parts of the request of a tag over HTTP/1 to `put`.
    pub(super) fn write(&self, drawn: u64, tag: &Tag, put: &mut impl FnMut(Written<'_>)) {
        let (target, filled) = self.found(drawn, tag);
        if let Some(template) = target.text.http1() {
            template.write(&filled, put);
        }
    }

    /// Appends its header block over HTTP/2.
    pub(super) fn write_block(&self, drawn: u64, tag: &Tag, out: &mut Vec<u8>) -> Head {
        let (target, filled) = self.found(drawn, tag);
        let template = target.text.http2();
        template.map_or_else(Head::default, |template| template.write_block(&filled, out))
    }

    /// Appends a part of its body over HTTP/2.
    pub(super) fn write_body(&self, drawn: u64, tag: &Tag, part: Range<u64>, out: &mut Vec<u8>) {
        let (target, filled) = self.found(drawn, tag);
        if let Some(template) = target.text.http2() {
            template.write_body(&filled, part, out);
        }
    }

    /// The request of a tag in no version's form.
    pub(super) fn whole(&self, drawn: u64, tag: &Tag) -> Option<Request> {
        let (target, filled) = self.found(drawn, tag);
        target.whole.as_ref().map(|template| template.fill(&filled))
    }

    /// The target of the request of a tag, and the values of its placeholders.
    fn found(&self, drawn: u64, tag: &Tag) -> (&Target, Filled<'_>) {
        let number = number(drawn, tag.number);
        let index = self.target(number);
        (&self.targets[index], self.filled(index, number))
    }

    /// The values of the placeholders of a request of this target.
    fn filled(&self, target: usize, number: u64) -> Filled<'_> {
        let row = self.taking.as_ref().map(|taking| taking.row(target, number));
        Filled { seed: self.seed, written: self.turn(number), row: row.unwrap_or_default() }
    }

    /// The number of a request, or of a session, over all engines.
    pub(super) fn turn(&self, number: u64) -> u64 {
        self.part.place(self.places.as_ref().map_or(number, |places| places.place(number)))
    }
}

/// The full number whose lower half is `low`: the last such number before `drawn`. No request waits
/// while four thousand million others are sent.
fn number(drawn: u64, low: u32) -> u64 {
    let last = drawn.wrapping_sub(1);
    last.wrapping_sub(u64::from((last as u32).wrapping_sub(low)))
}

/// The values of one request's placeholders.
#[derive(Clone, Copy, Debug)]
struct Filled<'a> {
    seed: u64,
    /// Its number over all engines together.
    written: u64,
    row: Row<'a>,
}

impl Filling for Filled<'_> {
    fn counter(&self) -> u64 {
        self.written
    }

    fn random(&self, nth: u32) -> u64 {
        random(self.seed, self.written, nth)
    }

    #[inline]
    fn column(&self, index: usize) -> &[u8] {
        self.row.value(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_of_all_engines_take_each_row_once() {
        let mut rows = Rows::of_columns(1);
        (0..10_u8).for_each(|row| rows.push(std::iter::once(&[row][..])));
        let rows = Arc::new(rows.complete());
        for of in 1..5 {
            let mut taken = Vec::new();
            for index in 0..of {
                let mix = Mix::new(&[1]).expect("one");
                let requests = Requests::new(Vec::new(), mix, 1, true, (index, of));
                let data = Some((Arc::clone(&rows), RowOrder::Unique));
                let requests = requests.in_sessions([StepPace::default()], data);
                while let Some(number) = requests.draw(1).next() {
                    taken.push(requests.row_of(requests.turn(number)).value(0)[0]);
                }
                assert!(requests.is_spent());
            }
            taken.sort_unstable();
            assert!(taken.into_iter().eq(0..10), "{of} engines");
        }
    }

    #[test]
    fn a_number_is_known_by_its_lower_half() {
        const TURN: u64 = 1 << 32;
        for (drawn, wanted) in [
            (1, 0),
            (5, 4),
            (5, 0),
            (TURN, TURN - 1),
            (TURN + 1, TURN),
            (TURN + 1, TURN - 1),
            (7 * TURN + 3, 7 * TURN + 2),
            (7 * TURN + 3, 7 * TURN - 9),
            (7 * TURN + 3, 6 * TURN + 3),
        ] {
            assert_eq!(number(drawn, wanted as u32), wanted, "of {drawn}");
        }
    }
}
