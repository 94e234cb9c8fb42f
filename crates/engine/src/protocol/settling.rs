//! The messages that settle a broadcast that several engines share, see
//! [`super::ToEngine::Settle`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::{Class, Failed};

/// The number of the last message that each sender had sent by the end of a phase, of those that sent any in it.
/// Senders are numbered over all engines, messages of each from 1 over all phases.
pub type SentPlan = BTreeMap<u32, u32>;

/// Why a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryFault {
    /// A receiver did not get it in time.
    Lost,
    /// A receiver got it twice.
    Duplicate,
}

/// A message that did not reach every receiver exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedMessage {
    /// The number of its sender.
    pub sender: u32,
    /// Its number among the messages of that sender.
    pub sequence: u32,
    /// Why it failed.
    pub fault: DeliveryFault,
}

impl From<FailedMessage> for Failed {
    fn from(failed: FailedMessage) -> Self {
        let class = match failed.fault {
            DeliveryFault::Lost => Class::Lost,
            DeliveryFault::Duplicate => Class::Duplicate,
        };
        Failed { sender: failed.sender, sequence: failed.sequence, class }
    }
}

impl From<Failed> for FailedMessage {
    fn from(failed: Failed) -> Self {
        let twice = failed.class == Class::Duplicate;
        let fault = if twice { DeliveryFault::Duplicate } else { DeliveryFault::Lost };
        FailedMessage { sender: failed.sender, sequence: failed.sequence, fault }
    }
}
