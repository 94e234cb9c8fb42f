//! Converts the requests of a plan to what the generators send: checks them, frames them, and adds
//! the rules for their answers.
//!
//! One request that is always the same becomes a burst, which is all that the plain path knows.
//! Several requests, or one with placeholders, become numbered requests.

use std::sync::Arc;
use trueload_wire::message::{Limits, Names, Rules, Texts};

use trueload_load::{Mix, Places, RowOrder};
use trueload_wire::http1::template::Template;
use trueload_wire::{http2, message};

use crate::blobs::{self, Blobs};
use crate::data::Rows;
use crate::failure::{Failure, refuse_if, refused};
use crate::generator::{Alike, Requests, Sending, Target, Text};
use crate::protocol::{DataOrder, ExpectPlan, GeneratePlan, RequestPlan};
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
        return refused("request: either this or targets must be given");
    }
    refuse_if!(plan.targets.len() > TARGETS_MOST, "targets: must be at most {TARGETS_MOST}");
    order(plan)?;
    all(plan).try_for_each(|(field, request, _)| check_request(&field, request))
}

/// Refuses a request with a part that ends its line: the rest would be another request.
pub(crate) fn check_request(field: &str, request: &RequestPlan) -> Result<(), Failure> {
    let visible = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let token = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    refuse_if!(!token(&request.method), "{field}.method: must be a token");
    refuse_if!(!visible(&request.path), "{field}.path: must be visible ASCII");
    for (index, (name, value)) in request.headers.iter().enumerate() {
        refuse_if!(!token(name), "{field}.headers[{index}]: its name is no token");
        if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return refused(format_args!("{field}.headers[{index}]: its value breaks the line"));
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

/// The requests that a plan sends, over each version that it may speak; its bodies must have come.
/// Requests that differ have the same numbers over each. `places` are those of one of several
/// origins.
pub(crate) fn sending(
    plan: &GeneratePlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<Sending, Failure> {
    if let Some(requests) = recorded(plan, blobs)? {
        return Ok(Sending::Several(requests));
    }
    let targets = all(plan).map(|(_, request, expect)| planned(plan, request, expect, blobs));
    let targets: Vec<_> = targets.collect();
    if let Some(alike) = alike(plan, &targets) {
        return Ok(Sending::Alike(alike));
    }
    let value_most = blobs.rows().map_or(0, |rows| rows.longest());
    let len_most =
        |target: &Target| target.text.http1().map_or(0, |template| template.len_most(value_most));
    check_length(targets.iter().map(len_most).max().unwrap_or(0), plan.depth())?;
    Ok(Sending::Several(several(plan, targets, blobs, places)?))
}

/// The only request of a plan, if it is always the same.
fn alike(plan: &GeneratePlan, targets: &[Target]) -> Option<Alike> {
    let (request, target) = (plan.request.as_ref()?, targets.first()?);
    let (burst, len) = match target.text.http1() {
        None if request.template => return None,
        None => (Arc::default(), 0),
        Some(template) => {
            let one = template.fixed()?;
            (burst(one, plan.depth()), one.len())
        }
    };
    let whole = target.whole.as_ref().map(|template| Arc::new(template.fill(&())));
    let (http2, rules) = (target.text.http2().cloned(), target.rules.clone());
    Some(Alike { burst, len, http2, whole, rules })
}

/// The same for one thread, which sends bytes of its own.
pub(crate) fn own(sending: &Sending) -> Sending {
    match sending {
        Sending::Alike(alike) => {
            Sending::Alike(Alike { burst: blobs::own(&alike.burst), ..alike.clone() })
        }
        Sending::Several(requests) => Sending::Several(Arc::clone(requests)),
    }
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

/// The columns of a plan's data, by name.
pub(crate) fn columns(plan: &GeneratePlan) -> &[String] {
    plan.data.as_ref().map_or(&[], |data| &data.columns)
}

/// The names that placeholders of a plan's requests may have.
pub(crate) fn names(plan: &GeneratePlan) -> Names {
    Names { columns: columns(plan).to_vec(), environment: plan.environment.clone() }
}

/// A request before it has a version's form. It may have placeholders if it is a `template`.
pub(crate) fn cut(plan: &GeneratePlan, texts: &Texts<'_>, template: bool) -> message::Template {
    message::Template::new(texts, template.then(|| names(plan)).as_ref())
}

/// A request in the form of each version that a plan may speak, and in none if redirects are
/// followed, with the rules for its answers.
pub(crate) fn target(plan: &GeneratePlan, request: message::Template, rules: Rules) -> Target {
    let scheme = if plan.tls.is_some() { "https" } else { "http" };
    let (http1, http2) =
        (|| Template::of(&request), || http2::request::Template::of(scheme, &request));
    let text = match plan.http2 {
        None => Text::Http1(http1()),
        Some(terms) if terms.http1_pipeline.is_none() => Text::Http2(http2()),
        Some(_) => Text::Both(http1(), http2()),
    };
    Target { text, whole: plan.follow.map(|_| Box::new(request)), rules }
}

/// Copies of a request in a row: no more than one connection takes at once, nor than is worth
/// copying.
fn burst(request: &Arc<[u8]>, depth: usize) -> Arc<[u8]> {
    match (BURST_BYTES / request.len()).clamp(1, depth) {
        1 => Arc::clone(request),
        times => Arc::from(request.repeat(times)),
    }
}

/// What is sent for a request of a plan.
fn planned(
    plan: &GeneratePlan,
    request: &RequestPlan,
    expect: &ExpectPlan,
    blobs: &Blobs,
) -> Target {
    let body = blobs.get(request.body_sha256.as_ref());
    let (method, path) = (request.method.as_str(), request.path.as_str());
    let texts = Texts { method, path, headers: &request.headers, body: body.map(Vec::as_slice) };
    target(plan, cut(plan, &texts, request.template), rules(request, expect, blobs))
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
            let burst: Arc<[u8]> = Arc::from(vec![b'a'; len]);
            let rules = Rules::default();
            let alike = Alike { burst: Arc::clone(&burst), len, http2: None, whole: None, rules };
            let sent = Sending::Alike(alike);
            let threads = [own(&sent), own(&sent)];
            // One is ours, and one is in `sent`.
            assert_eq!(Arc::strong_count(&burst) - 1, users, "{len} bytes: {threads:?}");
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
    fn what_does_not_differ_has_no_numbers_over_any_version() {
        for (path, template, differs) in
            [("/", false, false), ("/", true, false), ("/{counter}", true, true)]
        {
            let mut plan = plan(path, template);
            let either = r#"{"stream_window":65535,"connection_window":65535,"http1_pipeline":1}"#;
            for http2 in [None, Some(serde_json::from_str(either).expect("terms"))] {
                plan.http2 = http2;
                let sending = sending(&plan, &Blobs::default(), None).expect("a plan");
                assert_eq!(matches!(sending, Sending::Several(_)), differs, "{path} {template}");
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
            let row = burst(&one, depth);
            assert_eq!(row.len(), times * len, "{len} bytes, {depth} in flight");
            assert!(times > 1 || Arc::ptr_eq(&row, &one), "{len} bytes are not copied");
        }
    }
}
