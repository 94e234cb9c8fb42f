//! The messages of the WebSocket contract, with their payload as the JSON text that it came in.
//! This file must not use connections.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub struct Asked<'a> {
    #[serde(rename = "type")]
    pub kind: Kind,
    #[serde(borrow)]
    pub payload: &'a RawValue,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    Echo,
    Broadcast,
    BroadcastResult,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said<'a> {
    #[serde(rename = "type")]
    pub kind: Kind,
    pub payload: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listener_count: Option<usize>,
}

impl Said<'_> {
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("what was read can be written")
    }
}
