//! The protocol's schemas and golden examples are what this build speaks.
//!
//! `TRUELOAD_BLESS=1 cargo test -p trueload-engine --test all schema::` writes the schemas again.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::Schema;
use serde_json::Value;
use trueload_engine::lines;
use trueload_engine::protocol::{FromEngine, ToEngine};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema")
}

fn holds(name: &str, schema: &Schema) {
    let path = folder().join(name);
    let written = serde_json::to_string_pretty(schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("TRUELOAD_BLESS").is_some() {
        fs::write(&path, &written).expect("schema/ can be written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, written, "{name} is not up to date; see the head of this test");
}

#[test]
fn the_schemas_are_up_to_date() {
    holds("to-engine.schema.json", &schemars::schema_for!(ToEngine));
    holds("from-engine.schema.json", &schemars::schema_for!(FromEngine));
}

fn examples(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join("examples").join(name)).expect("the examples");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("an example is JSON"));
    lines.collect()
}

#[test]
fn what_the_front_says_survives_a_round_trip() {
    let examples = examples("to-engine.jsonl");
    for example in &examples {
        let read = lines::parse(&example.to_string()).expect("an example is understood");
        let written = serde_json::to_value(read).expect("a message is JSON");
        assert_eq!(&written, example);
    }
    assert!(examples.len() >= 6, "every kind of line has an example");
}

#[test]
fn what_the_engine_says_survives_a_round_trip() {
    let examples = examples("from-engine.jsonl");
    for example in &examples {
        let read: FromEngine = serde_json::from_value(example.clone()).expect("understood");
        let written = serde_json::to_value(read).expect("a message is JSON");
        assert_eq!(&written, example);
    }
    assert!(examples.len() >= 9, "every kind of line has an example");
}
