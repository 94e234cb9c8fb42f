//! Any bytes as a message of the contract ws-shootout, to a client and to a server; the first byte chooses the dialect.
//! What a server makes of a message is always in the dialect, and what is known by its bytes is what was parsed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueload_wire::shootout::{Asked, Dialect, Due, Memory, Parsed, Wrong};

fuzz_target!(|data: &[u8]| {
    let Some((choice, message)) = data.split_first() else {
        return;
    };
    let dialect = Dialect::ALL[usize::from(*choice) % Dialect::ALL.len()];
    let mut memory = Memory::default();
    if let Parsed::Broadcast(key) = dialect.parse(message, b"xx") {
        memory.remember(key, key, message);
        assert_eq!(memory.recognise(message), Some(key));
    } else {
        assert_eq!(memory.recognise(message), None);
    }
    let stamped = dialect.parse_stamped(message, b"xx");
    assert!(!matches!(stamped, Parsed::Broadcast(_)), "without its stamp");
    let mut due = Due::default();
    let asked = dialect.answer(message, 3, &mut due);
    let parts = [&due.to_all, &due.to_sender];
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let parsed = dialect.parse(part, b"xx");
        assert!(!matches!(parsed, Parsed::Error(Wrong::Malformed)), "{asked:?}, then {parsed:?}");
    }
    if matches!(asked, Asked::Error(_)) {
        assert_eq!(due, Due::default());
    }
});
