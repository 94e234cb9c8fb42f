//! Requests that ask nothing more: one that is always the same, or several that take turns.

use std::ops::Range;
use std::sync::Arc;

use trueload_wire::exchange::Outcome;
use trueload_wire::http2::request::Template as Http2Template;
use trueload_wire::message::{self, Event, Head, Request, Rules, Written};
use trueload_wire::parts::{Rule, Streaming};

use super::watch::{StreamWatch, Watching};
use super::{Asks, Dialogue, Moment};
use crate::generator::messages::DoneReport;
use crate::generator::requests::Requests;
use crate::generator::slot::Tag;

/// The requests to send.
#[derive(Clone, Debug)]
pub enum Sending {
    /// All requests are alike.
    Alike(Alike),
    /// They differ.
    Several(Arc<Requests>),
}

/// One request, over and over.
#[derive(Clone, Debug)]
pub struct Alike {
    /// Copies of it over HTTP/1 in a row: what a connection takes at once is mostly a part of it.
    pub burst: Arc<[u8]>,
    /// The length of one; 0 if HTTP/1 is not spoken.
    pub len: usize,
    /// The request over HTTP/2, if that is spoken.
    pub http2: Option<Http2Template>,
    /// The request in no version's form, if redirects are followed.
    pub whole: Option<Arc<Request>>,
    /// The rules for a good answer.
    pub rules: Rules,
}

impl Sending {
    /// Always the same request over HTTP/1: `burst` has it `times` times.
    pub fn http1(burst: Arc<[u8]>, times: usize, rules: Rules) -> Self {
        let len = burst.len() / times;
        Sending::Alike(Alike { burst, len, http2: None, whole: None, rules })
    }

    /// Always the same request over HTTP/2.
    pub fn http2(template: Http2Template, rules: Rules) -> Self {
        let burst = Arc::default();
        Sending::Alike(Alike { burst, len: 0, http2: Some(template), whole: None, rules })
    }

    pub(super) fn requests(&self) -> Option<&Arc<Requests>> {
        match self {
            Sending::Alike(_) => None,
            Sending::Several(requests) => Some(requests),
        }
    }

    /// The index of the target of a request.
    #[inline]
    pub(super) fn index(&self, tag: &Tag, drawn: u64) -> usize {
        self.requests().map_or(0, |requests| requests.index(drawn, tag.number))
    }

    #[inline]
    pub(super) fn head(&self, tag: &Tag, drawn: u64) -> usize {
        match self {
            Sending::Alike(_) => 0,
            Sending::Several(requests) => requests.head(requests.index(drawn, tag.number)),
        }
    }

    #[inline]
    pub(super) fn rules_of(&self, tag: &Tag, drawn: u64) -> &Rules {
        match self {
            Sending::Alike(alike) => &alike.rules,
            Sending::Several(requests) => requests.rules_of(drawn, tag.number),
        }
    }

    /// The rules of all targets.
    pub(super) fn rules(&self) -> Vec<&Rules> {
        match self {
            Sending::Alike(alike) => vec![&alike.rules],
            Sending::Several(requests) => requests.rules().collect(),
        }
    }

    #[inline]
    pub(super) fn burst(&self) -> Option<(&Arc<[u8]>, usize)> {
        match self {
            Sending::Alike(Alike { burst, len, .. }) => Some((burst, *len)),
            Sending::Several(_) => None,
        }
    }

    pub(super) fn write(&self, tag: &Tag, drawn: u64, put: &mut impl FnMut(Written<'_>)) {
        match self {
            Sending::Several(requests) => requests.write(drawn, tag, put),
            Sending::Alike(Alike { burst, len, .. }) if burst.len() == *len => {
                put(Written::Fixed(burst))
            }
            Sending::Alike(Alike { burst, len, .. }) => put(Written::Filled(&burst[..*len])),
        }
    }

    #[inline]
    pub(super) fn write_block(&self, tag: &Tag, drawn: u64, out: &mut Vec<u8>) -> Head {
        match self {
            Sending::Alike(Alike { http2, .. }) => {
                http2.as_ref().map_or_else(Head::default, |template| template.write_block(&(), out))
            }
            Sending::Several(requests) => requests.write_block(drawn, tag, out),
        }
    }

    pub(super) fn write_body(&self, tag: &Tag, drawn: u64, part: Range<u64>, out: &mut Vec<u8>) {
        match self {
            Sending::Alike(Alike { http2, .. }) => {
                http2.iter().for_each(|template| template.write_body(&(), part.clone(), out));
            }
            Sending::Several(requests) => requests.write_body(drawn, tag, part, out),
        }
    }
}

/// The dialogue.
#[derive(Debug)]
pub struct Plain {
    sent: Sending,
    /// Answers are streams.
    watch: Option<Box<StreamWatch>>,
}

impl Plain {
    /// Sends these requests. Reads their answers as streams by a rule, if there is one.
    pub fn new(sent: Sending, rule: Option<Rule>) -> Self {
        Plain { sent, watch: StreamWatch::new(rule) }
    }
}

impl Dialogue for Plain {
    type Tag = Tag;
    type State = ();
    type Book<'a> = Book<'a>;

    const LISTENS: bool = false;

    #[inline]
    fn asks(&self) -> Asks<'_> {
        Asks { requests: self.sent.requests(), watch: self.watch.as_deref(), follows: false }
    }

    #[inline]
    fn book<'a>(&'a mut self, _state: &'a mut (), at: Moment) -> Book<'a> {
        let watching = Watching { watch: self.watch.as_deref(), at_ns: at.arrived_ns };
        Book { sent: &self.sent, watching, drawn: at.drawn }
    }

    #[inline]
    fn hears<'a, 'b: 'a, F: FnMut(Outcome<Tag>)>(
        _: &'a Book<'b>,
        on_outcome: &'a mut F,
    ) -> impl FnMut(Outcome<Tag>) + 'a {
        on_outcome
    }

    #[inline]
    fn begin(_state: &mut (), tag: Tag, _count: usize) -> Tag {
        tag
    }

    #[inline]
    fn end(_state: &mut (), tag: Tag) -> Tag {
        tag
    }

    fn complete(&mut self, report: &mut DoneReport) {
        self.watch.iter().for_each(|watch| watch.complete(report));
    }
}

/// The requests, and the rules for their answers.
#[derive(Debug)]
pub struct Book<'a> {
    sent: &'a Sending,
    watching: Watching<'a>,
    drawn: u64,
}

impl message::Book<Tag> for Book<'_> {
    #[inline]
    fn rules_of(&self, tag: &Tag) -> &Rules {
        self.sent.rules_of(tag, self.drawn)
    }

    #[inline]
    fn memory_of(&self, tag: &Tag) -> usize {
        self.sent.head(tag, self.drawn)
    }

    #[inline]
    fn streaming(&self) -> Option<Streaming<'_>> {
        self.watching.streaming()
    }

    fn note(&self, tag: &Tag, event: Event<'_>) {
        self.watching.note(tag, event);
    }

    #[inline]
    fn burst(&self) -> Option<(&Arc<[u8]>, usize)> {
        self.sent.burst()
    }

    fn write(&self, tag: &Tag, put: &mut impl FnMut(Written<'_>)) {
        self.sent.write(tag, self.drawn, put);
    }

    #[inline]
    fn write_block(&self, tag: &Tag, out: &mut Vec<u8>) -> Head {
        self.sent.write_block(tag, self.drawn, out)
    }

    fn write_body(&self, tag: &Tag, part: Range<u64>, out: &mut Vec<u8>) {
        self.sent.write_body(tag, self.drawn, part, out);
    }
}
