//! The course that a request takes: through how many redirects, and how it ends.

use super::{Id, UPLOAD};
use crate::chance::Chance;
use crate::scenario::{Leads, Protocol, Scenario, Talk};

/// Redirects, with their statuses.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// How a request ends behind its redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Well,
    /// With an answer that is a failure.
    Badly,
    /// By a redirect that is not followed, or without end.
    Led(Leads),
}

/// The course of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// Redirects before its end.
    pub(super) hops: u64,
    pub(super) ends: Ends,
}

impl Course {
    pub(super) fn of(scenario: &Scenario, talk: &Talk, id: &Id) -> Self {
        let mut chance = id.chance(scenario, false);
        let site = &talk.site;
        let hops = chance.below(site.hops_most + 1);
        let led = site.leads.filter(|_| chance.one_in(4));
        let ends = match led {
            Some(leads) => Ends::Led(leads),
            None if site.fails_one_in > 0 && chance.one_in(site.fails_one_in) => Ends::Badly,
            None => Ends::Well,
        };
        Course { hops, ends }
    }

    /// Whether the answer to this hop leads to the next one.
    pub(super) fn goes_on(&self, hop: u64) -> bool {
        hop < self.hops || self.ends == Ends::Led(Leads::TooFar)
    }
}

/// The status of the redirect that answers a hop.
pub(super) fn status(scenario: &Scenario, id: &Id) -> u16 {
    id.chance(scenario, true).pick(&STATUSES)
}

/// The method of a request's first hop.
fn first_method(scenario: &Scenario, talk: &Talk, step: usize) -> &'static str {
    match (talk.steps.get(step), &scenario.protocol) {
        (Some(step), _) => step.method,
        (None, Protocol::Http2(plan)) => plan.http.method,
        (None, Protocol::Http(plan)) => plan.method,
        _ => "GET",
    }
}

/// The method and the bytes of the body that a hop has to have.
pub(super) fn method(scenario: &Scenario, talk: &Talk, id: &Id) -> (&'static str, usize) {
    let mut method = first_method(scenario, talk, id.step);
    for hop in 0..id.hop {
        // RFC 9110 section 15.4, and fetch section 4.4.
        method = match (status(scenario, &Id { hop, ..id.clone() }), method) {
            (303, "GET" | "HEAD") | (307 | 308, _) => method,
            (303, _) | (_, "POST") => "GET",
            _ => method,
        };
    }
    (method, if method == "POST" { upload(scenario, talk).len() } else { 0 })
}

/// The body of requests that have one.
pub(crate) fn upload(scenario: &Scenario, talk: &Talk) -> String {
    match &scenario.protocol {
        Protocol::Http2(plan) if talk.steps.is_empty() => "z".repeat(plan.body_bytes),
        _ => UPLOAD.to_owned(),
    }
}

/// The Location of a redirect to this last part of a path, in one of the forms of RFC 3986.
pub(super) fn location(
    chance: &mut Chance,
    scenario: &Scenario,
    asked: (&str, &str),
    to: u64,
) -> String {
    let (host, path) = asked;
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let last = folder.rsplit_once('/').map_or("", |(_, last)| last);
    let (scheme, port) = if scenario.tls { ("https", 443) } else { ("http", 80) };
    match chance.below(9) {
        0 => format!("{folder}/{to}"),
        1 => format!("{to}"),
        2 => format!("{scheme}://{host}{folder}/{to}"),
        3 => format!("//{host}{folder}/{to}"),
        4 => format!("{folder}/{to}#there"),
        5 => format!("../{last}/{to}"),
        6 => format!("./{to}"),
        7 => format!("{scheme}://{host}:{port}{folder}/{to}"),
        _ => format!("{folder}/x/../{to}"),
    }
}

/// A Location that leads to another server.
pub(super) fn elsewhere(
    chance: &mut Chance,
    scenario: &Scenario,
    (host, path): (&str, &str),
) -> String {
    let (scheme, other) = if scenario.tls { ("https", "http") } else { ("http", "https") };
    match chance.below(4) {
        0 => format!("{scheme}://elsewhere.example{path}"),
        1 => format!("//{host}.example{path}"),
        2 => format!("{other}://{host}{path}"),
        _ => format!("{scheme}://{host}:8080{path}"),
    }
}
