//! Converts the requests of a plan to what the generators send: checks them, frames them, and adds
//! the rules for their answers.
//!
//! One request that is always the same becomes a burst, which is all that the plain path knows.
//! Several requests, or one with placeholders, become numbered requests.

use std::sync::Arc;

use trueload_load::{Mix, Places, RowOrder};
use trueload_wire::http1::Limits;
use trueload_wire::http1::client::Rules;
use trueload_wire::http1::template::{Template, Texts};
use trueload_wire::http2;
use trueload_wire::http2::client::UpgradeRequest;
use trueload_wire::parts::Rule;

use crate::blobs::{self, Blobs};
use crate::data::Rows;
use crate::failure::Failure;
use crate::generator::{Http, Http2, Http2Sent, InFlight, Negotiated, Requests, Target, Text};
use crate::protocol::{DataOrder, ExpectPlan, GeneratePlan, RequestPlan, WindowsPlan};
use crate::recorded::Replay;

/// Bytes kept for copies of a request that is always the same: one call sends as many copies as
/// fit. A longer request is kept once, and sent from there each time.
const BURST_BYTES: usize = 64 * 1024;
/// Most bytes of one connection's outstanding requests, if they differ.
const DIFFERING_BYTES_MOST: usize = 1 << 30;
/// Why a part is refused.
pub(crate) const PARTS: &str = "part: its index and more must rise, and be less than of";
/// Most targets of one engine.
const TARGETS_MOST: usize = 100_000;

/// The requests to send, in the form that generators take.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    /// For one request that is always the same: copies of it in a row, and their number.
    pub(crate) burst: (Arc<[u8]>, usize),
    /// Its rules.
    pub(crate) rules: Rules,
    /// Numbered requests, if they differ.
    pub(crate) requests: Option<Arc<Requests>>,
}

impl Sending {
    /// Requests that differ.
    fn numbered(requests: Arc<Requests>) -> Self {
        let (burst, rules) = ((Arc::default(), 0), Rules::default());
        Sending { burst, rules, requests: Some(requests) }
    }

    /// The HTTP/1 protocol for one thread.
    pub(crate) fn protocol(&self) -> Http {
        match (&self.requests, &self.burst) {
            (None, (burst, times)) => Http::plain(blobs::own(burst), *times, self.rules.clone()),
            (Some(requests), _) => Http::several(Arc::clone(requests)),
        }
    }
}

/// Every request of a plan, with the field that holds it and the expectations of its answers.
pub(crate) fn all(
    plan: &GeneratePlan,
) -> impl Iterator<Item = (String, &RequestPlan, &ExpectPlan)> {
    let only = plan.request.iter().map(|request| ("request".to_owned(), request, &plan.expect));
    let targets = plan.targets.iter().enumerate();
    let steps = plan.scenario.iter().enumerate();
    let only =
        only.chain(steps.map(|(index, step)| {
            (format!("scenario[{index}].request"), &step.request, &step.expect)
        }));
    only.chain(targets.map(|(index, target)| {
        (format!("targets[{index}].request"), &target.request, &target.expect)
    }))
}

/// Refuses requests that cannot be sent, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    if plan.request.is_some() != plan.targets.is_empty() {
        return Err(Failure::Plan("request: either this or targets must be given".into()));
    }
    if plan.targets.len() > TARGETS_MOST {
        return Err(Failure::Plan(format!("targets: must be at most {TARGETS_MOST}")));
    }
    order(plan)?;
    all(plan).try_for_each(|(field, request, _)| check_request(&field, request))
}

/// Refuses a request with a part that ends its line: the rest would be another request.
pub(crate) fn check_request(field: &str, request: &RequestPlan) -> Result<(), Failure> {
    let refused = |what: String| Err(Failure::Plan(format!("{field}.{what}")));
    let visible = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let token = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    if !token(&request.method) {
        return refused("method: must be a token".into());
    }
    if !visible(&request.path) {
        return refused("path: must be visible ASCII".into());
    }
    for (index, (name, value)) in request.headers.iter().enumerate() {
        if !token(name) {
            return refused(format!("headers[{index}]: its name is no token"));
        }
        if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return refused(format!("headers[{index}]: its value breaks the line"));
        }
    }
    Ok(())
}

/// The order in which targets take turns; a single request always has the turn.
fn order(plan: &GeneratePlan) -> Result<Mix, Failure> {
    let weights: Vec<u32> = plan.targets.iter().map(|target| target.weight).collect();
    let weights = if weights.is_empty() { vec![1] } else { weights };
    Mix::new(&weights).ok_or_else(|| {
        let most = Mix::CYCLE_MOST;
        Failure::Plan(format!(
            "targets: weights must not be 0, nor add up to more than {most}, less what they have in common"
        ))
    })
}

/// The requests that a plan sends; its bodies must have come. `places` are those of one of several
/// origins.
pub(crate) fn sending(
    plan: &GeneratePlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<Sending, Failure> {
    if let Some(requests) = recorded(plan, blobs)? {
        return Ok(Sending::numbered(requests));
    }
    let make = |texts: &Texts<'_>, template| Text::Http1(over_http1(plan, texts, template));
    sending_of(plan, targets(plan, blobs, make), blobs, places)
}

fn sending_of(
    plan: &GeneratePlan,
    mut targets: Vec<Target>,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<Sending, Failure> {
    let depth = plan.depth();
    if let [Target { text, .. }] = &targets[..]
        && let Some(request) = text.http1().and_then(Template::fixed)
        && plan.targets.is_empty()
    {
        let burst = burst(request, depth);
        let rules = targets.remove(0).rules;
        return Ok(Sending { burst, rules, requests: None });
    }
    let value_most = blobs.rows().map_or(0, |rows| rows.longest());
    let len_most =
        |target: &Target| target.text.http1().map_or(0, |template| template.len_most(value_most));
    check_length(targets.iter().map(len_most).max().unwrap_or(0), depth)?;
    Ok(Sending::numbered(several(plan, targets, blobs, places)?))
}

/// Refuses requests of which so many in flight on a connection would take too much memory.
pub(crate) fn check_length(longest: usize, depth: usize) -> Result<(), Failure> {
    if longest.saturating_mul(depth) > DIFFERING_BYTES_MOST {
        let most = DIFFERING_BYTES_MOST >> 20;
        return Err(Failure::Plan(format!(
            "pipeline: so many requests of this size take more than {most} MiB"
        )));
    }
    Ok(())
}

/// The requests of recorded traffic, if the plan has some.
fn recorded(plan: &GeneratePlan, blobs: &Blobs) -> Result<Option<Arc<Requests>>, Failure> {
    let Some(Replay { recording, targets, longest }) = blobs.replay() else { return Ok(None) };
    check_length(*longest, plan.depth())?;
    let requests = Requests::of_recording(Arc::clone(targets), Arc::clone(recording));
    let missing = || Failure::Plan("replay.entries: one has no request".into());
    requests.map(|requests| Some(Arc::new(requests))).ok_or_else(missing)
}

/// Numbered requests, which differ.
fn several(
    plan: &GeneratePlan,
    targets: Vec<Target>,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<Arc<Requests>, Failure> {
    let part = plan.part.places().ok_or_else(|| Failure::Plan(PARTS.into()))?;
    let apart = !plan.targets.is_empty();
    let requests = Requests::new(targets, order(plan)?, plan.seed, apart, part).at(places);
    let Some((rows, order)) = rows(plan, blobs) else { return Ok(Arc::new(requests)) };
    let untaken = "data: no request, or of several origins not every one, uses its columns";
    let requests = requests.taking(rows, order);
    requests.map(Arc::new).ok_or_else(|| Failure::Plan(untaken.into()))
}

/// The rows of a plan's data, and the order in which they are taken; the data must have come.
pub(crate) fn rows(plan: &GeneratePlan, blobs: &Blobs) -> Option<(Arc<Rows>, RowOrder)> {
    let order = match plan.data.as_ref()?.order {
        DataOrder::Sequential => RowOrder::Sequential,
        DataOrder::Shuffled => RowOrder::Shuffled { seed: plan.seed },
        DataOrder::Unique => RowOrder::Unique,
    };
    Some((Arc::clone(blobs.rows()?), order))
}

/// The requests that a plan sends over HTTP/2; its bodies must have come. `places` are those of one
/// of several origins.
fn http2_sent(
    plan: &GeneratePlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<Http2Sent, Failure> {
    if let Some(requests) = recorded(plan, blobs)? {
        return Ok(Http2Sent::Several(requests));
    }
    let make = |texts: &Texts<'_>, template| Text::Http2(over_http2(plan, texts, template));
    let mut targets = targets(plan, blobs, make);
    let alike = plan.request.as_ref().is_some_and(|request| !request.template);
    if alike && let Some(Target { text: Text::Http2(template), rules }) = targets.pop() {
        return Ok(Http2Sent::Alike(template, rules));
    }
    Ok(Http2Sent::Several(several(plan, targets, blobs, places)?))
}

/// The request that asks for HTTP/2 on connections that begin with HTTP/1.1: it has the head of the
/// plan's first request.
fn upgrade(plan: &GeneratePlan, terms: WindowsPlan) -> Option<UpgradeRequest> {
    let (_, request, _) = all(plan).next()?;
    let (method, path) = (request.method.as_str(), request.path.as_str());
    let texts = Texts { method, path, headers: &request.headers, body: None };
    terms.upgrade.then(|| UpgradeRequest::new(&texts, request.template, terms))
}

/// The requests that a plan sends over either version; its bodies must have come. Requests that
/// differ have the same numbers over both. `places` are those of one of several origins.
pub(crate) fn sent_over_both(
    plan: &GeneratePlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<(Sending, Http2Sent), Failure> {
    if let Some(requests) = recorded(plan, blobs)? {
        return Ok((Sending::numbered(Arc::clone(&requests)), Http2Sent::Several(requests)));
    }
    let make = |texts: &Texts<'_>, template| {
        Text::Both(over_http1(plan, texts, template), over_http2(plan, texts, template))
    };
    let targets = targets(plan, blobs, make);
    let first = targets.first().and_then(|target| target.text.http2().cloned());
    let sending = sending_of(plan, targets, blobs, places)?;
    let http2 = match (&sending.requests, first) {
        (Some(requests), _) => Http2Sent::Several(Arc::clone(requests)),
        (None, Some(template)) => Http2Sent::Alike(template, sending.rules.clone()),
        (None, None) => return Err(Failure::Plan("request: there is none".into())),
    };
    Ok((sending, http2))
}

/// What makes the HTTP/1.1 of each thread.
pub(crate) fn http1(
    plan: &GeneratePlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<impl Fn() -> Http + use<>, Failure> {
    let sending = sending(plan, blobs, places)?;
    let stream = stream(plan);
    Ok(move || sending.protocol().streaming(stream.clone()))
}

/// What makes the HTTP/2 of each thread.
pub(crate) fn http2(
    plan: &GeneratePlan,
    terms: WindowsPlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<impl Fn() -> Http2 + use<>, Failure> {
    let sent = http2_sent(plan, blobs, places)?;
    let (upgrade, stream) = (upgrade(plan, terms), stream(plan));
    Ok(move || {
        let speaks = Http2::new(sent.clone(), terms).streaming(stream.clone());
        match &upgrade {
            Some(request) => speaks.upgrading(request.clone()),
            None => speaks,
        }
    })
}

/// What makes the HTTP of each thread where the server chooses the version of each connection;
/// over HTTP/1.1 one has `http1` requests in flight.
pub(crate) fn negotiated(
    plan: &GeneratePlan,
    (terms, http1): (WindowsPlan, u32),
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<impl Fn() -> Negotiated + use<>, Failure> {
    let (sending, sent) = sent_over_both(plan, blobs, places)?;
    let most = InFlight { http1: http1 as usize, http2: plan.pipeline as usize };
    let stream = stream(plan);
    Ok(move || {
        let http1 = sending.protocol().streaming(stream.clone());
        let http2 = Http2::new(sent.clone(), terms).streaming(stream.clone());
        Negotiated::new(http1, http2, most)
    })
}

/// The rule for answers that are streams.
fn stream(plan: &GeneratePlan) -> Option<Rule> {
    plan.stream.clone().map(Rule::from)
}

/// Every request of a plan, in the form that `make` gives it.
fn targets(
    plan: &GeneratePlan,
    blobs: &Blobs,
    make: impl Fn(&Texts<'_>, bool) -> Text,
) -> Vec<Target> {
    all(plan).map(|(_, request, expect)| target(request, expect, blobs, &make)).collect()
}

fn over_http1(plan: &GeneratePlan, texts: &Texts<'_>, template: bool) -> Template {
    if template { Template::with_columns(texts, columns(plan)) } else { Template::plain(texts) }
}

/// The columns of a plan's data, by name.
pub(crate) fn columns(plan: &GeneratePlan) -> &[String] {
    plan.data.as_ref().map_or(&[], |data| &data.columns)
}

pub(crate) fn over_http2(
    plan: &GeneratePlan,
    texts: &Texts<'_>,
    template: bool,
) -> http2::request::Template {
    use http2::request::Template;
    let scheme = if plan.tls.is_some() { "https" } else { "http" };
    if template {
        Template::with_columns(scheme, texts, columns(plan))
    } else {
        Template::plain(scheme, texts)
    }
}

/// Copies of a request in a row, and their number: no more than one connection takes at once, nor
/// than is worth copying.
fn burst(request: &Arc<[u8]>, depth: usize) -> (Arc<[u8]>, usize) {
    match (BURST_BYTES / request.len()).clamp(1, depth) {
        1 => (Arc::clone(request), 1),
        times => (Arc::from(request.repeat(times)), times),
    }
}

/// A request in the form that `make` gives it; `make` is told whether it has placeholders.
fn target(
    request: &RequestPlan,
    expect: &ExpectPlan,
    blobs: &Blobs,
    make: impl Fn(&Texts<'_>, bool) -> Text,
) -> Target {
    let body = blobs.get(request.body_sha256.as_ref());
    let (method, path) = (request.method.as_str(), request.path.as_str());
    let texts = Texts { method, path, headers: &request.headers, body: body.map(Vec::as_slice) };
    Target { text: make(&texts, request.template), rules: rules(request, expect, blobs) }
}

/// The rules for a good answer to a request.
pub(crate) fn rules(request: &RequestPlan, expect: &ExpectPlan, blobs: &Blobs) -> Rules {
    let method = request.method.as_str();
    Rules {
        statuses: expect.statuses.clone(),
        body: blobs.get(expect.body_sha256.as_ref()).cloned(),
        head_request: method == "HEAD",
        idempotent: is_idempotent(method),
        limits: Limits::default(),
    }
}

/// Whether a request of this method may be sent again (RFC 9110 §9.2.2).
pub(crate) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ToEngine;

    #[test]
    fn each_thread_sends_bytes_of_its_own() {
        for (len, users) in [(50, 1), (BURST_BYTES, 1), (BURST_BYTES + 1, 3)] {
            let burst = (Arc::from(vec![b'a'; len]), 1);
            let sending = Sending { burst, rules: Rules::default(), requests: None };
            let threads = [sending.protocol(), sending.protocol()];
            assert_eq!(Arc::strong_count(&sending.burst.0), users, "{len} bytes: {threads:?}");
        }
    }

    /// The generator's plan from the schema's examples, with one request.
    fn plan(path: &str, template: bool) -> GeneratePlan {
        let examples = include_str!("../../../schema/examples/to-engine.jsonl");
        let plans = examples.lines().filter_map(|line| match serde_json::from_str(line) {
            Ok(ToEngine::Generate(plan)) => Some(plan),
            _ => None,
        });
        let mut plan = plans.into_iter().find(|plan| plan.request.is_some()).expect("an example");
        let request = plan.request.as_mut().expect("a request");
        (request.path, request.template) = (path.to_owned(), template);
        *plan
    }

    #[test]
    fn what_differs_has_the_same_numbers_over_either_version_and_what_does_not_has_none() {
        for (path, template, differs) in
            [("/", false, false), ("/", true, false), ("/{counter}", true, true)]
        {
            let plan = plan(path, template);
            let (sending, sent) = sent_over_both(&plan, &Blobs::default(), None).expect("a plan");
            match (sending.requests, sent) {
                (Some(one), Http2Sent::Several(other)) => {
                    assert!(differs && Arc::ptr_eq(&one, &other), "{path} {template}");
                }
                (None, Http2Sent::Alike(..)) => assert!(!differs, "{path} {template}"),
                (one, other) => panic!("{path} {template}: {one:?}, {other:?}"),
            }
        }
    }

    #[test]
    fn a_long_request_is_held_once_however_many_are_in_flight() {
        let request = |len: usize| Arc::from(vec![b'a'; len]);
        for (len, depth, times) in [
            (50, 1, 1),
            (50, 16, 16),
            (50, 1_000_000, BURST_BYTES / 50),
            (BURST_BYTES / 2, 16, 2),
            (BURST_BYTES / 2 + 1, 16, 1),
            (BURST_BYTES + 1, 16, 1),
            (4 << 20, 1000, 1),
        ] {
            let one = request(len);
            let (row, held) = burst(&one, depth);
            assert_eq!((held, row.len()), (times, times * len), "{len} bytes, {depth} in flight");
            assert!(times > 1 || Arc::ptr_eq(&row, &one), "{len} bytes are not copied");
        }
    }
}
