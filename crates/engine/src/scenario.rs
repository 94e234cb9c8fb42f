//! Converts the scenario of a plan to what the virtual users of a generator need, and checks it.

use std::sync::Arc;
use std::time::Duration;
use trueload_wire::message::{BUILT_IN, Site, Texts, is_name};

use trueload_load::{Mix, random};
use trueload_wire::session::{Extractor, Lines, Script, Take, Wanted};

use crate::blobs::Blobs;
use crate::failure::{Failure, refuse_if, refused};
use crate::generator::{ENDLESS, Requests, Scenario, StepPace, Target, Text};
use crate::protocol::{FromPlan, GeneratePlan, MessagePlan, MessagesPlan, StepPlan, TakePlan};
use crate::request;

/// Most steps of a scenario.
const STEPS_MOST: usize = 1_000;
/// Most requests of one step in a row.
const REPEAT_MOST: u32 = 100_000;
/// Keeps the numbers that mark stamps apart from those of `{random}`.
const STAMPS: u64 = 0x7374_616d_7073;
/// Most values of a step.
const TAKES_MOST: usize = 100;

/// Refuses a scenario that cannot be carried out, naming the field. Bodies may be still to come.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    if plan.request.is_some() || !plan.targets.is_empty() {
        return refused("scenario: excludes request and targets");
    }
    if plan.pipeline > 1 || plan.close || !plan.origins.is_empty() {
        return refused("scenario: excludes pipeline, close and origins");
    }
    refuse_if!(plan.scenario.len() > STEPS_MOST, "scenario: must have at most {STEPS_MOST} steps");
    for (index, step) in plan.scenario.iter().enumerate() {
        let field = format!("scenario[{index}]");
        request::check_request(&format!("{field}.request"), &step.request)?;
        if step.repeat == 0 || step.repeat > REPEAT_MOST {
            return refused(format_args!("{field}.repeat: must be 1 to {REPEAT_MOST}"));
        }
        let think = step.think;
        if think.least_ns > think.most_ns || think.most_ns > plan.timeout_ns {
            return refused(format_args!("{field}.think: must be at most timeout_ns"));
        }
        if step.users.is_some_and(|users| users.of == 0) {
            return refused(format_args!("{field}.users.of: must be greater than 0"));
        }
        if step.take.len() > TAKES_MOST {
            return refused(format_args!("{field}.take: must have at most {TAKES_MOST} values"));
        }
    }
    check_order(plan)?;
    let values = plan.scenario.iter().flat_map(|step| &step.take).map(|take| take.value.as_str());
    let mut names = values.chain(BUILT_IN);
    if let Some(name) = names.find(|name| request::columns(plan).iter().any(|one| one == name)) {
        return refused(format_args!("data.columns: '{name}' is the name of another value"));
    }
    script(plan, &Blobs::default()).map(drop)
}

/// Refuses messages before the one step that upgrades the connection, and requests behind it.
fn check_order(plan: &GeneratePlan) -> Result<(), Failure> {
    let mut upgraded = false;
    for (index, step) in plan.scenario.iter().enumerate() {
        let field = format!("scenario[{index}]");
        if step.messages.is_some() != upgraded || (step.upgrade && step.repeat > 1) {
            return refused(format_args!(
                "{field}: must be a request before one upgrade, or messages behind it"
            ));
        }
        upgraded |= step.upgrade;
        let listens = step.request.body_sha256.is_none() && step.repeat == 1;
        if is_endless(step) && !listens {
            return refused(format_args!("{field}: endless excludes a body and repeat"));
        }
    }
    let excluded =
        upgraded && (plan.http2.is_some() || plan.follow.is_some() || plan.stream.is_some());
    refuse_if!(excluded, "scenario: an upgrade excludes http2, follow and stream");
    Ok(())
}

/// The requests of all steps; bodies that have not come are left out.
fn script(plan: &GeneratePlan, blobs: &Blobs) -> Result<Script, Failure> {
    let mut script = Script::new(site(plan)).with_names(request::names(plan));
    if plan.http2.is_some() {
        script = script.over_http2();
    }
    if plan.follow.is_some() {
        script = script.following();
    }
    for (index, step) in plan.scenario.iter().enumerate() {
        let request = &step.request;
        let texts = Texts {
            method: &request.method,
            path: &request.path,
            headers: &request.headers,
            body: blobs.get(request.body_sha256.as_ref()).map(Vec::as_slice),
        };
        let takes = step.take.iter().map(|take| taken(index, take));
        let takes = takes.collect::<Result<_, _>>()?;
        let added = match &step.messages {
            Some(messages) => script.add_lines(lines(index, texts.body, messages)?, takes),
            None => script.add(&texts, takes),
        };
        added.map_err(|name| {
            let what = format!("scenario[{index}].request: no step before takes '{name}'");
            Failure::Plan(what)
        })?;
        if step.upgrade {
            script.upgrade();
        }
    }
    Ok(script)
}

/// The messages of a step that sends this.
fn lines<'a>(
    step: usize,
    sends: Option<&'a [u8]>,
    messages: &'a MessagesPlan,
) -> Result<Lines<'a>, Failure> {
    let awaits = match &messages.expected {
        None => None,
        Some(MessagePlan::Any) => Some((Wanted::Any, None)),
        Some(MessagePlan::Binary) => Some((Wanted::Binary, None)),
        Some(MessagePlan::Text { text }) => Some((Wanted::Text, Some(text.as_bytes()))),
        Some(MessagePlan::Prefix { text }) => Some((Wanted::Prefix, Some(text.as_bytes()))),
        Some(MessagePlan::Has { from, text }) => {
            let from = extractor(from)
                .map_err(|why| Failure::Plan(format!("scenario[{step}].messages: {why}")))?;
            Some((Wanted::Has(from), text.as_ref().map(String::as_bytes)))
        }
    };
    Ok(Lines { sends, is_text: messages.text, awaits, within_ns: messages.within_ns })
}

fn extractor(from: &FromPlan) -> Result<Extractor, String> {
    match from {
        FromPlan::Json { pointer } => Extractor::json(pointer),
        FromPlan::Header { name } => Ok(Extractor::Header(name.clone())),
        FromPlan::Cookie { name } => Ok(Extractor::Cookie(name.clone())),
        FromPlan::Regex { pattern } => Extractor::regex(pattern),
    }
}

/// Whether the sessions of a plan are conversations over WebSocket.
pub(crate) fn is_conversation(plan: &GeneratePlan) -> bool {
    plan.scenario.iter().any(|step| step.upgrade)
}

fn taken(step: usize, take: &TakePlan) -> Result<Take, Failure> {
    let value = take.value.as_str();
    refuse_if!(
        !is_name(value.as_bytes()) || BUILT_IN.contains(&value),
        "scenario[{step}].take: '{value}' cannot be the name of a value"
    );
    let from = extractor(&take.from)
        .map_err(|why| Failure::Plan(format!("scenario[{step}].take.{value}: {why}")))?;
    Ok(Take { value: value.to_owned(), from })
}

/// The site whose cookies are kept: the host that the first request names.
fn site(plan: &GeneratePlan) -> Site {
    let first = plan.scenario.first();
    let host = first.and_then(|step| {
        let is_host = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("host");
        step.request.headers.iter().find(is_host).map(|(_, value)| value.to_ascii_lowercase())
    });
    let host = host.unwrap_or_default();
    // The port is behind the last colon, unless that is part of an IPv6 address.
    let end = host.rfind(':').filter(|colon| !host[*colon..].contains(']')).unwrap_or(host.len());
    Site { host: host[..end].to_owned(), secure: plan.tls.is_some() }
}

fn is_endless(step: &StepPlan) -> bool {
    step.messages.as_ref().is_some_and(|messages| messages.endless)
}

fn pace(step: &StepPlan) -> StepPace {
    StepPace {
        repeat: if is_endless(step) { ENDLESS } else { step.repeat },
        think_least_ns: step.think.least_ns,
        think_most_ns: step.think.most_ns,
        users: step.users,
        listens: step.messages.is_some() && step.request.body_sha256.is_none(),
    }
}

/// What the sessions of a plan do; its bodies and data must have come. `unix_time` is the time since
/// 1970 at zero of the engine's clock.
pub(crate) fn scenario(
    plan: &GeneratePlan,
    blobs: &Blobs,
    unix_time: Duration,
) -> Result<Scenario, Failure> {
    let script = Arc::new(script(plan, blobs)?);
    refuse_if!(plan.data.is_some() && !script.has_column(), "data: no step uses its columns");
    let rules = plan.scenario.iter().map(|step| Target {
        text: Text::Session,
        whole: None,
        rules: request::rules(&step.request, &step.expect, blobs),
    });
    let order = Mix::new(&[1]).ok_or_else(|| Failure::Plan("scenario: has no order".to_owned()))?;
    let part = plan.part.places().ok_or_else(|| Failure::Plan(request::PARTS.to_owned()))?;
    let data = request::rows(plan, blobs);
    let paces: Vec<_> = plan.scenario.iter().map(pace).collect();
    let requests = Requests::new(rules.collect(), order, plan.seed, true, part);
    Ok(Scenario {
        follow: plan.follow,
        script,
        requests: Arc::new(requests.in_sessions(paces, data)),
        seed: plan.seed,
        run: random(plan.seed ^ STAMPS, plan.part.index.into(), 0) as u32,
        unix_time,
        stream: plan.stream.clone(),
    })
}
