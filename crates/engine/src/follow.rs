//! Checks a plan whose redirects are followed.

use crate::failure::Failure;
use crate::protocol::GeneratePlan;
use crate::request;
use trueload_wire::message::is_redirect;

/// Most redirects of one request.
const FOLLOW_MOST: u8 = 100;

/// Refuses redirects that cannot be followed, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    let Some(most) = plan.follow else { return Ok(()) };
    let refused = |what: String| Err(Failure::Plan(what));
    if most == 0 || most > FOLLOW_MOST {
        return refused(format!("follow: must be 1 to {FOLLOW_MOST}"));
    }
    if plan.exchange.is_some() {
        return refused("follow: excludes exchange".to_owned());
    }
    if plan.connect_open {
        return refused("follow: excludes connect_open".to_owned());
    }
    for (field, request, expect) in request::all(plan) {
        if !request.path.starts_with('/') {
            return refused(format!(
                "{field}.path: must begin with / where redirects are followed"
            ));
        }
        if expect.statuses.iter().flatten().any(|status| is_redirect(*status)) {
            return refused(format!("{field}: expects a redirect, and they are followed"));
        }
    }
    Ok(())
}
