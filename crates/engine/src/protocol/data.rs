//! The protocol's data: rows that fill the placeholders of requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Data that fills placeholders. Each request that uses a column takes one row; in a `scenario`,
/// each session takes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataPlan {
    /// A file on the engine's machine; null if the content comes as blobs.
    pub path: Option<String>,
    /// The SHA-256 of each piece of the content, in order (see `blob`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<String>,
    /// The format of the content.
    pub format: DataFormat,
    /// The columns that requests use, by name.
    pub columns: Vec<String>,
    /// Which row a request takes.
    pub order: DataOrder,
}

/// The format of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataFormat {
    /// Fields separated by commas; the first row names the columns.
    Csv,
    /// The same, separated by semicolons, as spreadsheets write CSV where a comma is in numbers.
    Ssv,
    /// The same, separated by tabs.
    Tsv,
    /// One JSON object per line.
    Jsonl,
}

/// Which row a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataOrder {
    /// The next row; after the last, the first again.
    Sequential,
    /// Each pass over the rows has its own random order, which `seed` decides.
    Shuffled,
    /// The next row. After the last one, the phase ends, with the last session if there are
    /// sessions.
    Unique,
}

/// The rows of data that requests took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataUse {
    /// The number of rows in the data.
    pub rows: u64,
    /// The number of rows taken since the engine began. A row counts again each time it is taken.
    pub taken: u64,
    /// Whether the phase ended because each row may be taken only once and none was left.
    pub spent: bool,
}
