//! The cookies of a session: what the site's answers set, and what a request has to carry.

use super::course::{Course, Ends};
use super::{Id, value_of};
use crate::scenario::{Place, Scenario, Talk};

/// A cookie that is set, or taken back.
type Change = (String, Option<String>);

/// The values of Set-Cookie in the answer to a hop, and what they change. Some change nothing
/// (RFC 6265 section 5.3).
pub(super) fn set_by(scenario: &Scenario, talk: &Talk, id: &Id) -> Vec<(String, Option<Change>)> {
    let mut set = Vec::new();
    let course = Course::of(scenario, talk, id);
    let ends = !course.goes_on(id.hop);
    let Some(step) = talk.steps.get(id.step) else { return set };
    if ends && course.ends == Ends::Well && step.takes == Some(Place::Cookie) {
        let value = value_of(scenario, id);
        set.push((format!("t={value}; Path=/"), Some(("t".to_owned(), Some(value)))));
    }
    if !talk.site.cookies {
        return set;
    }
    let mut chance = id.chance(scenario, true);
    let value = format!("{}-{}-{}", id.number, id.repeat, id.hop);
    let name = format!("c{}", id.step);
    let kept = Some((name.clone(), Some(value.clone())));
    set.push(match chance.below(6) {
        0 | 1 => (format!("{name}={value}; Path=/; HttpOnly"), kept),
        2 => (format!("{name}={value}; path=/; Max-Age=3600"), kept),
        3 => (format!("{name}={value}; Path=/; Domain=elsewhere.example"), None),
        4 => (format!("{name}={value}; Path=/other"), None),
        _ => (format!("{name}=gone; Path=/; Max-Age=0"), Some((name, None))),
    });
    set
}

/// The cookies that a request has to carry, in the order of their names.
pub(super) fn jar(scenario: &Scenario, talk: &Talk, id: &Id) -> Vec<String> {
    let mut jar = std::collections::BTreeMap::new();
    for before in before(scenario, talk, id) {
        for (name, value) in set_by(scenario, talk, &before).into_iter().filter_map(|(_, it)| it) {
            match value {
                Some(value) => jar.insert(name, value),
                None => jar.remove(&name),
            };
        }
    }
    jar.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Every hop of a session before this one, in order.
fn before(scenario: &Scenario, talk: &Talk, id: &Id) -> Vec<Id> {
    let mut all = Vec::new();
    for (step, plan) in talk.steps.iter().enumerate().take(id.step + 1) {
        for repeat in 1..=plan.repeat {
            let whole = Id { number: id.number, step, repeat, hop: 0 };
            let own = (step, repeat) == (id.step, id.repeat);
            let last = if own { id.hop } else { Course::of(scenario, talk, &whole).hops + 1 };
            all.extend((0..last).map(|hop| Id { hop, ..whole.clone() }));
            if own {
                return all;
            }
        }
    }
    all
}
