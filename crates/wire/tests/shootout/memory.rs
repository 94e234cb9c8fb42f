//! The memory of broadcasts under way: never another meaning than the parser's.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trueload_wire::shootout::{Dialect, Due, Key, Memory, Parsed};

/// The broadcast as a server sends it, or in another form of the same meaning.
fn delivered(dialect: Dialect, key: Key, form: u8) -> Vec<u8> {
    let (mut message, mut due) = (Vec::new(), Due::default());
    dialect.write_broadcast(key, b"xxxxxxxx", &mut message);
    dialect.answer(&message, 1, &mut due);
    if dialect != Dialect::Binary {
        due.to_all.extend(std::iter::repeat_n(b' ', usize::from(form)));
    }
    due.to_all
}

#[derive(Clone, Debug)]
enum Step {
    Deliver { key: Key, form: u8, altered: Option<usize> },
    Over(Key),
}

fn any_key() -> impl Strategy<Value = Key> {
    (0u32..3, 0u32..4).prop_map(|(sender, sequence)| Key { sender, sequence })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any_key(), 0u8..2, prop::option::weighted(0.1, 0usize..200))
            .prop_map(|(key, form, altered)| Step::Deliver { key, form, altered }),
        1 => any_key().prop_map(Step::Over),
    ]
}

proptest! {
    #[test]
    fn what_is_recognised_is_what_would_be_parsed(
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
        steps in prop::collection::vec(any_step(), 0..80),
    ) {
        let mut memory = Memory::default();
        let mut received_first: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Over(key) => {
                    memory.forget(key);
                    received_first.remove(&key);
                }
                Step::Deliver { key, form, altered } => {
                    let mut bytes = delivered(dialect, key, form);
                    if let Some(at) = altered {
                        let at = at % bytes.len();
                        bytes[at] ^= 1;
                    }
                    let parsed = dialect.parse(&bytes, b"xxxxxxxx");
                    let known = memory.recognise(&bytes);
                    let expected = received_first.values().any(|first| *first == bytes);
                    prop_assert_eq!(known.is_some(), expected);
                    match (known, parsed) {
                        (Some(known), _) => prop_assert_eq!(Parsed::Broadcast(known), parsed),
                        (None, Parsed::Broadcast(key)) => {
                            memory.remember(key, key, &bytes);
                            received_first.entry(key).or_insert(bytes);
                        }
                        (None, _) => {}
                    }
                }
            }
        }
    }
}

#[test]
fn a_broadcast_that_is_over_is_no_longer_known() {
    let mut memory = Memory::default();
    let keys = [1, 2, 3].map(|sequence| Key { sender: 0, sequence });
    for key in keys {
        memory.remember(key, key, &delivered(Dialect::Json, key, 0));
    }
    memory.forget(keys[1]);
    let known = keys.map(|key| memory.recognise(&delivered(Dialect::Json, key, 0)));
    assert_eq!(known, [Some(keys[0]), None, Some(keys[2])]);
}

#[test]
fn with_more_broadcasts_under_way_than_it_holds_it_knows_the_latest() {
    let mut memory = Memory::default();
    let keys: Vec<Key> = (0..3000).map(|sequence| Key { sender: 1, sequence }).collect();
    for key in &keys {
        memory.remember(*key, *key, &delivered(Dialect::Binary, *key, 0));
    }
    let known = keys.into_iter().filter(|key| {
        let bytes = delivered(Dialect::Binary, *key, 0);
        memory.recognise(&bytes).is_some_and(|found| found == *key)
    });
    assert!(known.map(|key| key.sequence).eq(3000 - 1024..3000));
}
