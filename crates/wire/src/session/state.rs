//! What one session knows: its values and cookies, and the present request.

use std::time::Duration;

use super::answer::Answer;
use super::extract::{BODY_BYTES_MOST, Extractor};
use super::script::{Script, Step};
use crate::coding::{CONTENT_ENCODING, Coding, Decoder};
use crate::message::cookies::{Jar, SET_COOKIE};
use crate::message::{Initials, Turn, is_json_value};

/// The redirects behind the present request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hops {
    pub(super) count: u8,
    /// It has become a GET without a body.
    pub(super) as_get: bool,
}

/// The state of one virtual user.
#[derive(Debug, Default)]
pub struct Session {
    pub(super) turn: Turn,
    pub(super) values: Vec<Vec<u8>>,
    pub(super) jar: Jar,
    /// The path of the last request.
    pub(super) path: Vec<u8>,
    /// The redirects behind the present request.
    pub(super) hops: Hops,
    /// Length of the last request.
    pub(super) written: usize,
    pub(super) answer: Answer,
    /// Over HTTP/2, the body of the last request, if it has places.
    pub(super) sent_body: Vec<u8>,
}

impl Session {
    /// Begins a request: the first one of a session forgets everything about the one before.
    pub fn begin(&mut self, turn: Turn) {
        if turn.request == 0 {
            self.values.iter_mut().for_each(Vec::clear);
            self.jar.clear();
        }
        self.turn = turn;
        self.hops = Hops::default();
        self.forget_answer();
    }

    pub(super) fn step<'s>(&self, script: &'s Script) -> Option<&'s Step> {
        let step = script.steps.get(self.turn.step as usize)?;
        Some(step.as_get.as_deref().filter(|_| self.hops.as_get).unwrap_or(step))
    }

    /// The present request.
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// The length of the last request in bytes.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Begins the head of an answer; an interim one before it is forgotten.
    pub fn note_head(&mut self) {
        self.answer.clear();
    }

    /// The first letters of the fields that are used of the answer.
    #[inline]
    pub fn initials(&self, script: &Script) -> Initials {
        self.step(script).map_or(Initials::ANY, |step| step.initials)
    }

    /// Notes a field of the head.
    pub fn note_field(&mut self, script: &Script, name: &[u8], value: &[u8]) {
        if script.follows && name.eq_ignore_ascii_case(b"location") {
            self.answer.location.add(value);
        }
        let Some(step) = self.step(script) else { return };
        if step.needs_body && name.eq_ignore_ascii_case(CONTENT_ENCODING) {
            self.answer.coding.add(value);
        }
        if is_used(step, name) {
            self.answer.add(name, value);
        }
    }

    /// Notes a part of the body, as far as the script needs it.
    pub fn note_body(&mut self, script: &Script, bytes: &[u8]) {
        if !self.step(script).is_some_and(|step| step.needs_body) {
            return;
        }
        let Answer { body, is_too_long, .. } = &mut self.answer;
        *is_too_long |= body.len() + bytes.len() > BODY_BYTES_MOST;
        if !*is_too_long {
            body.extend_from_slice(bytes);
        }
    }

    /// Bytes of memory that all of its texts take.
    pub fn bytes(&self) -> usize {
        let values = self.values.iter().map(Vec::capacity).sum::<usize>();
        let written = self.path.capacity() + self.sent_body.capacity();
        values + written + self.jar.bytes() + self.answer.bytes()
    }

    /// Forgets the part of an answer that has come: its connection is gone.
    pub fn forget_answer(&mut self) {
        self.answer.clear();
    }

    /// Takes cookies and values from the answer, which is complete.
    pub fn take(&mut self, script: &Script, unix_time: Duration) -> Result<(), Untaken> {
        let Some(step) = self.step(script) else { return Err(Untaken::Missing) };
        self.jar.take(self.answer.headers(), &script.site, &self.path, unix_time);
        let taken = self.decode_body().and_then(|()| {
            if self.take_values(script, step) { Ok(()) } else { Err(Untaken::Missing) }
        });
        self.forget_answer();
        taken
    }

    /// Decodes the body, if it is compressed and a value is in it.
    fn decode_body(&mut self) -> Result<(), Untaken> {
        let Answer { body, coding, is_too_long, .. } = &mut self.answer;
        if *is_too_long {
            return Err(Untaken::Missing);
        }
        if *coding == Coding::Identity {
            return Ok(());
        }
        let (mut content, decoder) = (Vec::new(), Decoder::new(*coding, BODY_BYTES_MOST));
        let decoder = decoder.decode(body, &mut |slice| content.extend_from_slice(slice));
        *body = content;
        if decoder.finish() { Ok(()) } else { Err(Untaken::Encoded) }
    }

    fn take_values(&mut self, script: &Script, step: &Step) -> bool {
        if step.takes.is_empty() {
            return true;
        }
        self.values.resize_with(script.values.len().max(self.values.len()), Vec::new);
        let Session { values, answer, .. } = self;
        step.takes.iter().all(|(index, from)| {
            let value = &mut values[*index];
            let breaks = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
            from.find(answer, value)
                && !(script.in_header[*index] && value.iter().any(breaks))
                && (!script.as_json[*index] || is_json_value(value))
        })
    }
}

/// Why nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untaken {
    /// The answer has no such value.
    Missing,
    /// The answer is compressed in a way that cannot be read.
    Encoded,
}

/// Whether a field is used: it sets a cookie, or the step takes its value.
fn is_used(step: &Step, name: &[u8]) -> bool {
    let is = |other: &[u8]| name.len() == other.len() && name.eq_ignore_ascii_case(other);
    let takes = |from: &Extractor| matches!(from, Extractor::Header(one) if is(one.as_bytes()));
    is(SET_COOKIE) || step.takes.iter().any(|(_, from)| takes(from))
}
