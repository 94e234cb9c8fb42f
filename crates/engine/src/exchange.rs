//! Converts the exchange of a plan to what the generators speak, where that is not HTTP.

use std::sync::Arc;

use trueload_drive::Address;
use trueload_wire::echo::Messages;
use trueload_wire::message::Texts;
use trueload_wire::shootout::Dialect;
use trueload_wire::udp_echo::{SIZE_LEAST, SIZE_MOST};
use trueload_wire::websocket::Kind;
use trueload_wire::websocket::client::Opening;
use trueload_wire::websocket::echo::Outgoing;

use crate::blobs::{self, Blobs};
use crate::failure::{Failure, refuse_if, refused};
use crate::protocol::{ExchangePlan, GeneratePlan, LoadPlan, PhasePlan, RequestPlan};
use crate::request::{check_request, cut};

/// Bytes of one message, at most.
const MESSAGE_BYTES_MOST: usize = 1 << 20;

/// The name of the blob that an exchange sends, if any.
pub(crate) fn payload(exchange: &ExchangePlan) -> Option<&String> {
    match exchange {
        ExchangePlan::TcpEcho { payload_sha256, .. }
        | ExchangePlan::UdpEcho { payload_sha256, .. }
        | ExchangePlan::WsEcho { payload_sha256, .. } => Some(payload_sha256),
        ExchangePlan::WsBroadcast { .. } => None,
    }
}

/// Refuses a plan that cannot be carried out, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    if plan.request.is_some() || !plan.targets.is_empty() || !plan.scenario.is_empty() {
        return refused("exchange: excludes request, targets and scenario");
    }
    match &plan.exchange {
        Some(ExchangePlan::TcpEcho { half_close: true, .. }) if !plan.close => {
            refused("exchange.half_close: needs close")
        }
        Some(ExchangePlan::TcpEcho { .. }) if plan.tls.is_some() => {
            refused("tls: is not for tcp_echo")
        }
        Some(ExchangePlan::UdpEcho { .. }) if plan.tls.is_some() => {
            refused("tls: is not for udp_echo")
        }
        Some(ExchangePlan::UdpEcho { .. }) if plan.close => refused("close: is not for udp_echo"),
        Some(ExchangePlan::UdpEcho { .. }) if over_socket_file(plan) => {
            refused("addresses: UDP has no socket file")
        }
        Some(ExchangePlan::WsEcho { opening, .. }) => check_request("exchange.opening", opening),
        Some(ExchangePlan::WsBroadcast { opening, padding, .. }) => {
            check_request("exchange.opening", opening)?;
            self::opening(plan, opening)?;
            refuse_if!(
                *padding as usize > MESSAGE_BYTES_MOST,
                "exchange.padding: must be at most {MESSAGE_BYTES_MOST}"
            );
            let shared = plan.threads > 1 || plan.pipeline > 1 || plan.close;
            refuse_if!(shared, "exchange: a broadcast has one thread, pipeline 1 and no close");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn over_socket_file(plan: &GeneratePlan) -> bool {
    plan.addresses.iter().any(|address| matches!(address.0, Address::Unix(_)))
}

/// Whether datagrams carry the requests.
pub(crate) fn is_of_datagrams(plan: &GeneratePlan) -> bool {
    matches!(plan.exchange, Some(ExchangePlan::UdpEcho { .. }))
}

/// The datagrams that a payload is cut into.
pub(crate) fn datagrams(
    payload_sha256: &String,
    size: Option<u32>,
    blobs: &Blobs,
) -> Result<Messages, Failure> {
    let messages = messages(payload_sha256, size, blobs)?;
    refuse_if!(
        !(SIZE_LEAST..=SIZE_MOST).contains(&messages.size()),
        "exchange.size: a datagram has {SIZE_LEAST} to {SIZE_MOST} bytes"
    );
    Ok(messages)
}

/// Refuses a phase that does not fit the exchange, naming the field.
pub(crate) fn check_phase(plan: &GeneratePlan, phase: &PhasePlan) -> Result<(), Failure> {
    let broadcast = matches!(plan.exchange, Some(ExchangePlan::WsBroadcast { .. }));
    match phase.load {
        LoadPlan::Turns { .. } if !broadcast => refused("load: turns are for ws_broadcast"),
        LoadPlan::Turns { concurrent } if concurrent < plan.part.of => {
            refused("load.concurrent: must be at least 1 for each engine")
        }
        LoadPlan::Turns { .. } if phase.idle > 0 => refused("idle: all have their turn"),
        LoadPlan::Turns { .. } => Ok(()),
        _ if broadcast => refused("load: ws_broadcast goes by turns"),
        _ => Ok(()),
    }
}

/// The opening handshake of all connections.
pub(crate) fn opening(plan: &GeneratePlan, request: &RequestPlan) -> Result<Opening, Failure> {
    let (method, path) = (request.method.as_str(), request.path.as_str());
    let texts = Texts { method, path, headers: &request.headers, body: None };
    let filled = cut(plan, &texts, request.template).fill(&());
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let headers = filled.headers.into_iter().map(|(name, value)| (text(name), text(value)));
    Opening::new(&text(filled.target), &headers.collect::<Vec<_>>())
        .map(|opening| opening.deflating(plan.deflate))
        .map_err(|error| Failure::Plan(format!("exchange.opening.headers: {error}")))
}

/// The messages that a payload is cut into.
pub(crate) fn messages(
    payload_sha256: &String,
    size: Option<u32>,
    blobs: &Blobs,
) -> Result<Messages, Failure> {
    let bytes = blobs.get(Some(payload_sha256)).map_or(&[][..], Vec::as_slice);
    let size = size.map_or(bytes.len(), |size| size as usize);
    refuse_if!(size > MESSAGE_BYTES_MOST, "exchange.size: must be at most {MESSAGE_BYTES_MOST}");
    Messages::new(Arc::from(bytes), size).ok_or_else(|| {
        let what = "exchange.size: must be 1 or more, and the payload a multiple of it";
        Failure::Plan(what.to_owned())
    })
}

/// The same messages, with bytes for one thread alone.
pub(crate) fn own(messages: &Messages) -> Messages {
    let own = Messages::new(blobs::own(messages.bytes()), messages.size());
    own.unwrap_or_else(|| messages.clone())
}

/// The messages that are echoed over WebSocket.
pub(crate) fn words(messages: Messages, text: bool, dialect: Option<Dialect>) -> Outgoing {
    match dialect {
        Some(dialect) => Outgoing::Dialect(dialect, messages.at(0).into()),
        None => Outgoing::Plain(messages, if text { Kind::Text } else { Kind::Binary }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_echoes_messages_of_its_own() {
        let messages = Messages::new(Arc::from(&b"pingpong"[..]), 4).expect("two messages");
        let own = own(&messages);
        assert_eq!((own.size(), own.bytes()), (messages.size(), messages.bytes()));
        assert_eq!(Arc::strong_count(messages.bytes()), 1);
    }
}
