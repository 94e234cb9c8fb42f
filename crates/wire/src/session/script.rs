//! The requests of a session, in order, and what is taken from their answers.

use super::expected::{Expected, Wanted};
use super::extract::Extractor;
use crate::coding::CONTENT_ENCODING;
use crate::message::cookies::SET_COOKIE;
use crate::message::fit::{Body, Fit};
use crate::message::places::{self, Piece, Places};
use crate::message::{Form, Initials, Names, Site, Template, Texts, is_of_body};
use crate::{http1, http2};

/// A value that is taken from the answer to a step.
#[derive(Clone, Debug)]
pub struct Take {
    /// The name of the value.
    pub value: String,
    /// Where it is taken from.
    pub from: Extractor,
}

/// The messages of a step of a conversation over WebSocket.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    /// What is sent, if anything.
    pub sends: Option<&'a [u8]>,
    /// A text is sent; else binary data.
    pub is_text: bool,
    /// What is awaited, if anything, and the text that it is compared with.
    pub awaits: Option<(Wanted, Option<&'a [u8]>)>,
    /// It must come within this time.
    pub within_ns: Option<u64>,
}

/// One step: its request in the form of each version, and what is taken from its answer.
#[derive(Clone, Debug)]
pub struct Step {
    pub(super) method: Box<[u8]>,
    pub(super) path: Box<[Piece]>,
    pub(super) http1: http1::template::Template,
    pub(super) http2: Option<http2::request::Template>,
    /// It has a Cookie header of its own, and gets none from the jar.
    pub(super) has_cookies: bool,
    /// For each value that is taken: its index, and where it is from.
    pub(super) takes: Vec<(usize, Extractor)>,
    pub(super) needs_body: bool,
    /// The first letters of the fields that are used of its answer.
    pub(super) initials: Initials,
    /// The server that it names.
    pub(super) host: Box<[u8]>,
    /// What it is once a redirect has made it a GET, if redirects are followed.
    pub(super) as_get: Option<Box<Step>>,
    /// The values that its headers use.
    in_headers: Vec<usize>,
    /// The values that must be JSON where its body has them.
    as_json: Vec<usize>,
    has_column: bool,
    /// What it is in a conversation.
    pub(super) form: Form,
    /// The message that it sends in a conversation.
    pub(super) message: Box<[Piece]>,
    /// The message that it awaits in a conversation.
    pub(super) expected: Option<Expected>,
}

/// The steps of every session.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) steps: Vec<Step>,
    /// The names of the values that are taken.
    pub(super) values: Vec<String>,
    names: Names,
    /// For each value: a header uses it, so that it must be one line.
    pub(super) in_header: Vec<bool>,
    /// For each value: it must be JSON where a body has it.
    pub(super) as_json: Vec<bool>,
    pub(super) site: Site,
    /// Requests go over HTTP/2.
    http2: bool,
    pub(super) follows: bool,
}

impl Script {
    /// A script without steps, for one site.
    pub fn new(site: Site) -> Self {
        Script { site, ..Script::default() }
    }

    /// The same script, whose steps may use these names. No column of data may have the name of a
    /// value.
    pub fn with_names(self, names: Names) -> Self {
        Script { names, ..self }
    }

    /// The same script, whose requests go over HTTP/2.
    pub fn over_http2(self) -> Self {
        Script { http2: true, ..self }
    }

    /// The same script, whose sessions follow redirects.
    pub fn following(self) -> Self {
        Script { follows: true, ..self }
    }

    /// Makes the step added last the request for the upgrade.
    pub fn upgrade(&mut self) {
        self.steps.iter_mut().last().into_iter().for_each(|step| step.form = Form::Upgrade);
    }

    /// Whether a message has a stamp.
    pub fn stamps(&self) -> bool {
        self.steps.iter().any(|step| step.message.contains(&Piece::Stamp))
    }

    /// Adds a step of messages, likewise.
    pub fn add_lines(&mut self, lines: Lines<'_>, takes: Vec<Take>) -> Result<(), String> {
        let Lines { sends, is_text, awaits, within_ns } = lines;
        let (sends_one, awaits_one) = (sends.is_some(), awaits.is_some());
        let form = Form::Message { is_text, sends: sends_one, awaits: awaits_one, within_ns };
        let places = Places { names: &self.names, taken: Some(&self.values) };
        let cut = |text: &[u8]| places.cut_body(text, Body::Unnamed);
        let message = sends.map(cut).transpose()?.unwrap_or_default();
        let expected = match awaits {
            Some((wanted, text)) => Some(Expected { wanted, text: text.map(cut).transpose()? }),
            None => None,
        };
        self.add(&Texts { method: "GET", path: "/", headers: &[], body: sends }, takes)?;
        if let Some(step) = self.steps.last_mut() {
            (step.form, step.message, step.expected) = (form, message, expected);
        }
        Ok(())
    }

    /// Adds a step, which may use columns, and the values that steps before it take. An error is
    /// the name of a value that no step before takes.
    pub fn add(&mut self, texts: &Texts<'_>, takes: Vec<Take>) -> Result<(), String> {
        let mut step = self.cut(texts)?;
        step.in_headers.iter().for_each(|value| self.in_header[*value] = true);
        step.as_json.iter().for_each(|value| self.as_json[*value] = true);
        step.needs_body = takes.iter().any(|take| take.from.needs_body());
        step.initials = self.initials(&takes);
        step.takes = takes.into_iter().map(|take| (self.index(take.value), take.from)).collect();
        if self.follows {
            let headers = texts.headers.iter().filter(|(name, _)| !is_of_body(name.as_bytes()));
            let headers: Vec<_> = headers.cloned().collect();
            let get = Texts { method: "GET", path: texts.path, headers: &headers, body: None };
            let (needs_body, takes) = (step.needs_body, step.takes.clone());
            let initials = step.initials;
            step.as_get = Some(Box::new(Step { needs_body, takes, initials, ..self.cut(&get)? }));
        }
        self.steps.push(step);
        Ok(())
    }

    /// Cuts the texts of a step, from whose answer nothing is taken yet.
    fn cut(&self, texts: &Texts<'_>) -> Result<Step, String> {
        let places = Places { names: &self.names, taken: Some(&self.values) };
        let mut request = Template::of_session(texts, places)?;
        let has_column = request.has_column();
        let in_headers = request.headers.iter().flat_map(|(_, value)| value);
        let in_headers = in_headers.filter_map(taken).map(|(value, _)| value).collect();
        let of_body = request.body.iter().filter_map(taken);
        let as_json = of_body.filter(|(_, fit)| fit.must_be_json()).map(|(value, _)| value);
        let as_json = as_json.collect();
        let of_path = [Piece::Path(places::randoms(&request.target))].into();
        let path = std::mem::replace(&mut request.target, of_path);
        let has_cookies = request.header(b"cookie").is_some();
        request.adds_cookies = !has_cookies;
        let scheme = if self.site.secure { "https" } else { "http" };
        let host = texts.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        Ok(Step {
            method: request.method.clone().into(),
            path,
            http1: http1::template::Template::of(&request),
            http2: self.http2.then(|| http2::request::Template::of(scheme, &request)),
            has_cookies,
            takes: Vec::new(),
            needs_body: false,
            initials: Initials::ANY,
            host: host.map(|(_, value)| value.as_bytes().into()).unwrap_or_default(),
            as_get: None,
            in_headers,
            as_json,
            has_column,
            form: Form::Request,
            message: Box::default(),
            expected: None,
        })
    }

    /// The first letters of the fields that are used of an answer.
    fn initials(&self, takes: &[Take]) -> Initials {
        let taken = takes.iter().filter_map(|take| match &take.from {
            Extractor::Header(name) => Some(name.as_bytes()),
            _ => None,
        });
        let location = self.follows.then_some(&b"location"[..]);
        let needs_body = takes.iter().any(|take| take.from.needs_body());
        let coding = needs_body.then_some(CONTENT_ENCODING);
        Initials::of(taken.chain([SET_COOKIE]).chain(location).chain(coding))
    }

    /// The index of a value, which is added if it is new.
    fn index(&mut self, name: String) -> usize {
        self.values.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.values.push(name);
            self.in_header.push(false);
            self.as_json.push(false);
            self.values.len() - 1
        })
    }

    /// Whether a step has a place of a column.
    pub fn has_column(&self) -> bool {
        self.steps.iter().any(|step| step.has_column)
    }

    /// Whether anything is taken from the answers to a step.
    pub fn takes_from(&self, step: usize) -> bool {
        self.steps.get(step).is_some_and(|step| !step.takes.is_empty())
    }
}

/// The index of the taken value that fills a place, and how it is written.
fn taken(piece: &Piece) -> Option<(usize, Fit)> {
    match piece {
        Piece::Taken(index, fit) => Some((*index, *fit)),
        _ => None,
    }
}
