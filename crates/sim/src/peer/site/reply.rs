//! The answer to a request, before a version of HTTP gives it its form.

use super::course::{self, Course, Ends};
use super::{Asked, Id, body_with, cookies, value_of};
use crate::chance::Chance;
use crate::scenario::{Leads, PartEnd, PartKind, Place, Scenario, Stream, Talk};

/// A piece of a body that is sent at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The time from the piece before it, in ns.
    pub(crate) gap_ns: u64,
    pub(crate) bytes: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) body: Vec<Part>,
    /// The parts of the stream that it is, if it is one and good.
    pub(crate) parts: Option<u64>,
    /// Its parts are chunks, so that it needs them.
    pub(crate) chunks: bool,
    /// It leads on to the next hop.
    pub(crate) leads: bool,
    /// The request that this is a hop of.
    pub(crate) whole: u64,
    /// It answers HEAD, so that the body is left out.
    pub(crate) head: bool,
}

impl Reply {
    /// The answer to a request that cannot be read.
    fn bad(head: bool) -> Self {
        let (fields, body, whole) = (Vec::new(), Vec::new(), 0);
        let (parts, chunks, leads) = (None, false, false);
        Reply { status: 400, fields, body, parts, chunks, leads, whole, head }
    }

    /// The length of the body.
    pub(crate) fn len(&self) -> usize {
        self.body.iter().map(|part| part.bytes.len()).sum()
    }
}

/// The answer to a request.
pub(crate) fn reply(scenario: &Scenario, talk: &Talk, asked: &Asked) -> Reply {
    let head = asked.method == "HEAD";
    let Some((id, _)) = Id::of(&asked.path) else { return Reply::bad(head) };
    let course = Course::of(scenario, talk, &id);
    let mut chance = id.chance(scenario, true);
    // The first draw is that of the status.
    let status = course::status(scenario, &id);
    chance.draw();
    let whole = id.whole();
    let set = cookies::set_by(scenario, talk, &id);
    let mut fields: Vec<_> = set.into_iter().map(|(line, _)| ("Set-Cookie", line)).collect();
    let at = (asked.host.as_str(), asked.path.as_str());
    let location = if course.goes_on(id.hop) {
        Some(course::location(&mut chance, scenario, at, id.hop + 1))
    } else {
        match course.ends {
            Ends::Led(Leads::Elsewhere) => Some(course::elsewhere(&mut chance, scenario, at)),
            Ends::Led(Leads::InCircles) => Some(asked.path.clone()),
            Ends::Led(Leads::Nowhere) if chance.one_in(2) => Some(String::new()),
            Ends::Led(Leads::Nowhere) => Some("http://:x/".to_owned()),
            _ => None,
        }
    };
    if let Some(location) = location {
        if !location.is_empty() {
            fields.push(("Location", location));
        }
        let body = vec![Part { gap_ns: 0, bytes: b"there".to_vec() }];
        let leads = course.goes_on(id.hop);
        let (parts, chunks) = (None, false);
        return Reply { status, fields, body, parts, chunks, leads, whole, head };
    }
    let (well, parts) = (course.ends == Ends::Well, None);
    let takes = talk.steps.get(id.step).is_some_and(|step| step.takes.is_some());
    let lacks = !well && talk.site.lacks_value && takes;
    let cut = !well && talk.cuts();
    let status = if well || lacks || cut { 200 } else { chance.pick(&[401, 403, 404, 500]) };
    let (body, chunks, leads) = (Vec::new(), false, false);
    let final_answer = Reply { status, fields, body, parts, chunks, leads, whole, head };
    end(scenario, talk, &id, final_answer, chance, (well, cut))
}

/// Gives a final answer its body: a good one, or a stream that is cut.
fn end(
    scenario: &Scenario,
    talk: &Talk,
    id: &Id,
    mut reply: Reply,
    mut chance: Chance,
    (well, cut): (bool, bool),
) -> Reply {
    let place = talk.steps.get(id.step).and_then(|step| step.takes).filter(|_| well);
    let value = value_of(scenario, id);
    if place == Some(Place::Header) {
        reply.fields.push(("X-Value", value.clone()));
    }
    if let Some(stream) = talk.stream.filter(|_| well || cut) {
        let count = chance.between(1, stream.parts_most.max(1));
        let end = if cut { PartEnd::Body } else { stream.end };
        reply.body = parts(&Stream { end, ..stream }, count, talk.site.padding, &mut chance);
        reply.parts = well.then_some(count);
        reply.chunks = stream.kind == PartKind::Chunk;
        return reply;
    }
    let mut bytes = body_with(place, &value).into_bytes();
    bytes.resize(bytes.len() + talk.site.padding, b' ');
    reply.body.push(Part { gap_ns: 0, bytes });
    reply
}

/// The body of a stream of so many parts. Other texts stand between them.
fn parts(stream: &Stream, count: u64, padding: usize, chance: &mut Chance) -> Vec<Part> {
    let mut body = Vec::new();
    let mut add = |chance: &mut Chance, text: String| {
        let gap_ns = if chance.one_in(3) { 0 } else { chance.below(stream.gap_ns + 1) };
        body.push(Part { gap_ns, bytes: text.into_bytes() });
    };
    for number in 0..count {
        let long = if number == 0 { "y".repeat(padding) } else { String::new() };
        let text = match stream.kind {
            PartKind::Event => match chance.below(4) {
                0 => format!(": a comment\n\nevent: some\ndata: {number}{long}\n\n"),
                1 => format!("data: {number}\r\ndata:{long}\r\n\r\n"),
                2 => format!("id: 7\n\ndata\ndata: [DONE] {long}\n\n"),
                _ => format!("data: {number}{long}\n\n"),
            },
            PartKind::Line => match chance.below(3) {
                0 => format!("\n{{\"number\":{number}}}{long}\r\n"),
                _ => format!("{number}{long}\n"),
            },
            PartKind::Chunk => format!("{number}{long}"),
        };
        add(chance, text);
    }
    match (stream.end, stream.kind) {
        (PartEnd::Body, _) => {}
        (PartEnd::Content, PartKind::Event) => add(chance, "data: [DONE]\n\n".to_owned()),
        (PartEnd::Content, PartKind::Line) => add(chance, "[DONE]\n".to_owned()),
        (PartEnd::Content, PartKind::Chunk) => add(chance, "[DONE]".to_owned()),
        (PartEnd::Event, _) => add(chance, "event: end\ndata: 1\n\n".to_owned()),
    }
    body
}
