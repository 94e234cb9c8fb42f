//! The address in a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_drive::Address;

/// An address to connect to: `127.0.0.1:80`, `[::1]:80` or `unix:/run/app.sock`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct AddressPlan(#[schemars(with = "String")] pub Address);

impl TryFrom<String> for AddressPlan {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(AddressPlan)
    }
}

impl From<AddressPlan> for String {
    fn from(address: AddressPlan) -> Self {
        address.0.to_string()
    }
}
