//! Reads recorded traffic of a plan once, beside the engine's other work, into what generators send.
//!
//! Equal requests are stored once. An entry of the recording is a time and the index of a request.
//! Must not know how the traffic was recorded: the front has read its file.

use std::sync::Arc;
use trueload_wire::message::{Limits, Rules, Texts};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trueload_load::Recording;

use crate::blobs::Blobs;
use crate::failure::{Failure, refuse_if, refused};
use crate::generator::Target;
use crate::protocol::{
    ArrivalsPlan, GeneratePlan, LoadPlan, PhasePlan, RecordedRequest, ReplayPlan, RequestPlan,
};
use crate::recorded::Replay;
use crate::request;

/// Most entries of a recording.
const ENTRIES_MOST: u64 = 10_000_000;
/// Most requests of a recording that differ.
const REQUESTS_MOST: usize = 1_000_000;
/// Bytes of an entry: 8 for its time, 4 for the index of its request.
const ENTRY_BYTES: usize = 12;

fn unusable(what: &str) -> Failure {
    Failure::Plan(format!("replay.{what}"))
}

/// The names of the blobs that hold recorded traffic.
pub(crate) fn named(replay: &ReplayPlan) -> impl Iterator<Item = &String> {
    replay.requests.iter().chain(&replay.entries)
}

/// Takes the pieces of recorded traffic, which have all come: of its requests, and of its entries.
pub(crate) fn take(replay: &ReplayPlan, blobs: &mut Blobs) -> [Vec<Vec<u8>>; 2] {
    [&replay.requests, &replay.entries].map(|names| blobs.take_pieces(names))
}

/// Reads recorded traffic.
pub(crate) fn read(
    plan: &GeneratePlan,
    [requests, entries]: [Vec<Vec<u8>>; 2],
) -> Result<Replay, Failure> {
    let mut targets = Vec::new();
    let mut longest = 0;
    let pieces = requests.iter().map(Vec::as_slice);
    for line in pieces.flat_map(|piece| piece.split(|byte| *byte == b'\n')) {
        if line.is_empty() {
            continue;
        }
        if targets.len() == REQUESTS_MOST {
            return refused(format_args!("replay.requests: must be at most {REQUESTS_MOST}"));
        }
        let target = target(plan, line)?;
        let len = target.text.http1().map_or(0, |template| template.len_most(0));
        longest = longest.max(len);
        targets.push(target);
    }
    let recording = recording(&entries)
        .ok_or_else(|| unusable("entries: must be whole, in order of time, and at least one"))?;
    if plan.replay.as_ref().is_some_and(|replay| replay.count != recording.count()) {
        return refused("replay.count: is not that of the entries");
    }
    if recording.last_request() as usize >= targets.len() {
        return refused("replay.entries: one has no request");
    }
    Ok(Replay { recording: Arc::new(recording), targets: targets.into(), longest })
}

/// A request in the form that is sent, from its line.
fn target(plan: &GeneratePlan, line: &[u8]) -> Result<Target, Failure> {
    let unreadable = |error: serde_json::Error| unusable(&format!("requests: {error}"));
    let recorded: RecordedRequest = serde_json::from_slice(line).map_err(unreadable)?;
    let RecordedRequest { method, path, headers, latin1, body, statuses } = recorded;
    let decoded = body.map(|text| STANDARD.decode(text)).transpose();
    let body = decoded.map_err(|_| unusable("requests: a body is not base64"))?;
    let request = RequestPlan { method, path, headers, body_sha256: None, template: false };
    request::check_request("replay.requests", &request)?;
    let RequestPlan { method, path, headers, .. } = &request;
    let texts = Texts { method, path, headers, body: body.as_deref() };
    let rules = Rules {
        statuses: statuses.or_else(|| plan.expect.statuses.clone()),
        body: None,
        head_request: method == "HEAD",
        idempotent: request::is_idempotent(method),
        limits: Limits::default(),
    };
    let made = request::cut(plan, &texts, false);
    let made = if latin1 { made.with_headers(bytes_of(headers)?) } else { made };
    Ok(request::target(plan, made, rules))
}

/// Headers of which each character stands for one byte.
fn bytes_of(headers: &[(String, String)]) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let header = |(name, value): &(String, String)| {
        let bytes = value.chars().map(u8::try_from).collect::<Result<_, _>>();
        let bytes = bytes.map_err(|_| unusable("requests: a header is not Latin-1"))?;
        Ok((name.clone(), bytes))
    };
    headers.iter().map(header).collect()
}

/// The entries in their pieces; none if they are no recording.
fn recording(pieces: &[Vec<u8>]) -> Option<Recording> {
    let count = pieces.iter().map(|piece| piece.len() / ENTRY_BYTES).sum();
    let (mut at_ns, mut requests) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for piece in pieces {
        let entries = piece.chunks_exact(ENTRY_BYTES);
        if !entries.remainder().is_empty() {
            return None;
        }
        for entry in entries {
            let (time, request) = entry.split_at(8);
            at_ns.push(u64::from_le_bytes(time.try_into().ok()?));
            requests.push(u32::from_le_bytes(request.try_into().ok()?));
        }
    }
    Recording::new(at_ns, requests)
}

/// Refuses recorded traffic that cannot be sent, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    let Some(replay) = &plan.replay else { return Ok(()) };
    let others = plan.request.is_some()
        || plan.exchange.is_some()
        || plan.data.is_some()
        || !(plan.targets.is_empty() && plan.scenario.is_empty() && plan.origins.is_empty());
    refuse_if!(others, "replay: excludes request, targets, scenario, origins, data and exchange");
    if !plan.part.more.is_empty() {
        return refused("replay: hosts share it in equal parts: excludes part.more");
    }
    if !(1..=ENTRIES_MOST).contains(&replay.count) {
        return refused(format_args!("replay.count: must be 1 to {ENTRIES_MOST}"));
    }
    if replay.requests.is_empty() || replay.entries.is_empty() {
        return refused("replay.requests: these and entries must come as blobs");
    }
    Ok(())
}

/// Refuses a phase that sends something else than the recorded traffic, or has none to send.
pub(crate) fn check_phase(plan: &GeneratePlan, phase: &PhasePlan) -> Result<(), Failure> {
    let silent = Some(phase.idle) == phase.connections;
    match (&phase.load, &plan.replay) {
        (LoadPlan::Open { arrivals: ArrivalsPlan::Recorded, .. }, None) => {
            refused("load.arrivals: only a plan with a replay has recorded ones")
        }
        (LoadPlan::Open { arrivals: ArrivalsPlan::Recorded, .. }, Some(_)) => Ok(()),
        (LoadPlan::Open { from_ns, .. }, _) if *from_ns > 0 => {
            refused("load.from_ns: is for recorded arrivals")
        }
        (_, Some(_)) if !silent => refused("load.arrivals: those of a replay are recorded"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use trueload_wire::http1::template::Template;

    use super::*;
    use crate::protocol::ToEngine;

    fn plan() -> GeneratePlan {
        let examples = include_str!("../../../schema/examples/to-engine.jsonl");
        let mut plans = examples.lines().filter_map(|line| match serde_json::from_str(line) {
            Ok(ToEngine::Generate(plan)) => Some(*plan),
            _ => None,
        });
        plans.find(|plan| plan.replay.is_some()).expect("an example")
    }

    fn entries(all: &[(u64, u32)]) -> Vec<u8> {
        all.iter()
            .flat_map(|(ns, request)| [&ns.to_le_bytes()[..], &request.to_le_bytes()].concat())
            .collect()
    }

    const GET: &str = r#"{"method":"GET","path":"/a","headers":[["Host","h"]]}"#;
    const POST: &str =
        r#"{"method":"POST","path":"/b","headers":[],"body":"aGk=","statuses":[200,404]}"#;

    fn read_of(requests: &[&str], all: &[&[(u64, u32)]], count: u64) -> Result<Replay, String> {
        let mut plan = plan();
        plan.replay.as_mut().expect("a replay").count = count;
        let lines = requests.iter().map(|line| format!("{line}\n").into_bytes()).collect();
        let entries = all.iter().map(|piece| entries(piece)).collect();
        read(&plan, [lines, entries]).map_err(|failure| failure.to_string())
    }

    #[test]
    fn recorded_traffic_is_read_from_its_pieces() {
        let replay = read_of(&[GET, POST], &[&[(0, 1), (5, 0)], &[(5, 1)]], 3).expect("traffic");
        let sent: Vec<_> = (0..3).map(|number| replay.recording.request(number)).collect();
        assert_eq!((sent, replay.recording.last_ns()), (vec![1, 0, 1], 5));
        let text = |at: usize| {
            let fixed = replay.targets[at].text.http1().and_then(Template::fixed);
            String::from_utf8_lossy(fixed.expect("a text")).into_owned()
        };
        assert_eq!(text(0), "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(text(1), "POST /b HTTP/1.1\r\n\r\nhi");
        assert_eq!(replay.targets[1].rules.statuses, Some(vec![200, 404]));
        assert!(replay.targets[0].rules.idempotent && !replay.targets[1].rules.idempotent);
    }

    #[test]
    fn headers_may_have_bytes_that_are_no_text() {
        let latin1 = r#"{"method":"GET","path":"/","headers":[["A","\u00e9é~"]],"latin1":true}"#;
        let replay = read_of(&[latin1], &[&[(0, 0)]], 1).expect("traffic");
        let fixed = replay.targets[0].text.http1().and_then(Template::fixed).expect("a text");
        assert_eq!(&fixed[..], b"GET / HTTP/1.1\r\nA: \xe9\xe9~\r\n\r\n");
    }

    #[test]
    fn traffic_that_cannot_be_sent_is_refused_by_its_field() {
        let broken = r#"{"method":"GET","path":"/ a","headers":[]}"#;
        let body = r#"{"method":"GET","path":"/","headers":[],"body":"?"}"#;
        type Entries<'a> = &'a [&'a [(u64, u32)]];
        let wide = r#"{"method":"GET","path":"/","headers":[["A","\u0100"]],"latin1":true}"#;
        let cases: [(&[&str], Entries<'_>, u64, &str); 8] = [
            (&[GET], &[&[(1, 0), (0, 0)]], 2, "replay.entries: must be whole, in order of time"),
            (&[GET], &[], 1, "replay.entries: must be whole, in order of time, and at least one"),
            (&[GET], &[&[(0, 1)]], 1, "replay.entries: one has no request"),
            (&[GET], &[&[(0, 0)]], 2, "replay.count: is not that of the entries"),
            (&["{}"], &[&[(0, 0)]], 1, "replay.requests: missing field"),
            (&[broken], &[&[(0, 0)]], 1, "replay.requests.path: must be visible ASCII"),
            (&[body], &[&[(0, 0)]], 1, "replay.requests: a body is not base64"),
            (&[wide], &[&[(0, 0)]], 1, "replay.requests: a header is not Latin-1"),
        ];
        for (requests, all, count, why) in cases {
            let error = read_of(requests, all, count).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
        assert!(recording(&[vec![0; 13]]).is_none(), "not whole");
    }

    #[test]
    fn a_plan_with_more_than_its_recorded_traffic_is_refused() {
        assert!(check(&plan()).is_ok());
        type Spoil = fn(&mut GeneratePlan, &mut ReplayPlan);
        let cases: [(Spoil, &str); 4] = [
            (|plan, _| plan.part.more = vec![1], "replay: hosts share it in equal parts"),
            (
                |plan, _| {
                    plan.origins =
                        vec![crate::protocol::OriginPlan { addresses: Vec::new(), tls: None }]
                },
                "replay: excludes",
            ),
            (|_, replay| replay.count = 0, "replay.count: must be 1 to"),
            (|_, replay| replay.entries.clear(), "replay.requests: these and entries"),
        ];
        for (spoil, why) in cases {
            let mut spoiled = plan();
            let mut replay = spoiled.replay.clone().expect("a replay");
            spoil(&mut spoiled, &mut replay);
            spoiled.replay = Some(replay);
            let error = check(&spoiled).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
