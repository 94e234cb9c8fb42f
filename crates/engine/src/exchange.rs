//! From the exchange of a plan to what the generators speak, where that is not HTTP.

use std::sync::Arc;

use trueload_wire::echo::Messages;

use crate::control::Failure;
use crate::plan::Blobs;
use crate::protocol::{ExchangePlan, GeneratePlan};
use crate::request::check_request;

/// Bytes of one message, at most.
const MESSAGE_BYTES_MOST: usize = 1 << 20;

/// The blob that an exchange sends.
pub(crate) fn payload(exchange: &ExchangePlan) -> &String {
    match exchange {
        ExchangePlan::TcpEcho { payload_sha256, .. }
        | ExchangePlan::WsEcho { payload_sha256, .. } => payload_sha256,
    }
}

/// Refuses what cannot be carried out, with the field's name.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    let refused = |what: &str| Err(Failure::Plan(what.to_owned()));
    if plan.request.is_some() || !plan.targets.is_empty() {
        return refused("exchange: excludes request and targets");
    }
    match &plan.exchange {
        Some(ExchangePlan::TcpEcho { half_close: true, .. }) if !plan.close => {
            refused("exchange.half_close: needs close")
        }
        Some(ExchangePlan::TcpEcho { .. }) if plan.tls.is_some() => {
            refused("tls: is not for tcp_echo")
        }
        Some(ExchangePlan::WsEcho { opening, .. }) => check_request("exchange.opening", opening),
        _ => Ok(()),
    }
}

/// The messages that a payload is cut into.
pub(crate) fn messages(
    payload_sha256: &String,
    size: Option<u32>,
    blobs: &Blobs,
) -> Result<Messages, Failure> {
    let bytes = blobs.get(Some(payload_sha256)).map_or(&[][..], Vec::as_slice);
    let size = size.map_or(bytes.len(), |size| size as usize);
    if size > MESSAGE_BYTES_MOST {
        let what = format!("exchange.size: must be at most {MESSAGE_BYTES_MOST}");
        return Err(Failure::Plan(what));
    }
    Messages::new(Arc::from(bytes), size).ok_or_else(|| {
        let what = "exchange.size: must be 1 or more, and the payload a multiple of it";
        Failure::Plan(what.to_owned())
    })
}
