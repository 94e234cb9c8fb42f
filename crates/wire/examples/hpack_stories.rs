//! The stories of <https://github.com/http2jp/hpack-test-case>, both ways: `hpack_stories FOLDER`.
//!
//! Every block of every story is decoded and held against its headers; the headers are encoded with ours, and decoded
//! again. Exit: 0 all came back, 1 one did not.

use std::error::Error;
use std::path::{Path, PathBuf};

use serde_json::Value;
use trueload_wire::http2::hpack::{Decoder, Encoder, Indexing};

type List = Vec<(Vec<u8>, Vec<u8>)>;

const LIST_BYTES: usize = 1 << 20;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, Box<dyn Error>> {
    let mut list = List::new();
    decoder.decode(block, LIST_BYTES, &mut |field| {
        list.push((field.name.into(), field.value.into()));
    })?;
    Ok(list)
}

fn hex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16);
    Ok((0..text.len()).step_by(2).map(byte).collect::<Result<_, _>>()?)
}

fn headers(case: &Value) -> Option<List> {
    let fields = case["headers"].as_array()?.iter().flat_map(|field| field.as_object());
    let fields = fields.flatten().map(|(name, value)| Some((name, value.as_str()?)));
    fields
        .map(|field| field.map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())))
        .collect()
}

/// Plays one story; returns how many blocks it has.
fn play(story: &Value) -> Result<usize, Box<dyn Error>> {
    let (mut theirs, mut ours, mut encoder) =
        (Decoder::default(), Decoder::default(), Encoder::new(4096));
    let cases = story["cases"].as_array().ok_or("no cases")?;
    for case in cases {
        let expected = headers(case).ok_or("no headers")?;
        if let Some(size) = case["header_table_size"].as_u64() {
            theirs.acknowledged(size as u32);
            ours.acknowledged(size as u32);
            encoder.resize(size as u32);
        }
        if let Some(wire) = case["wire"].as_str() {
            let decoded = decode(&mut theirs, &hex(wire)?)?;
            if decoded != expected {
                return Err(format!("case {}: the block says something else", case["seqno"]).into());
            }
        }
        for indexing in [Indexing::Insert, Indexing::Without, Indexing::Never] {
            let mut block = Vec::new();
            encoder.begin_block(&mut block);
            for (name, value) in &expected {
                encoder.field(&mut block, name, value, indexing);
            }
            if decode(&mut ours, &block)? != expected {
                return Err(format!("case {}: does not come back", case["seqno"]).into());
            }
        }
    }
    Ok(cases.len())
}

fn stories(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            stories(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: hpack_stories FOLDER")?;
    let mut paths = Vec::new();
    stories(Path::new(&folder), &mut paths)?;
    paths.sort();
    let mut blocks = 0;
    for path in &paths {
        let story: Value = serde_json::from_slice(&std::fs::read(path)?)?;
        blocks += play(&story).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if blocks == 0 {
        return Err(format!("{folder}: there is no story").into());
    }
    println!("{} stories, {blocks} blocks: all came back", paths.len());
    Ok(())
}
