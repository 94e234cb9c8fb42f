//! A TLS server whose bytes are changed on their way to the client: by three bytes of input each, a place and what it
//! is changed with. The first byte says how the client receives them cut.

#![no_main]

#[path = "../../crates/wire/tests/tls/pair.rs"]
#[allow(dead_code, unreachable_pub, clippy::unwrap_used)]
mod pair;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use pair::{Pair, Pems, client, options, self_signed, server, trusting};
use trueload_wire::tls::{client as tls_client, server as tls_server};

const SENT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Made once: keys take longer than all the rest.
fn setups() -> &'static (tls_client::Setup, tls_server::Setup) {
    static SETUPS: OnceLock<(tls_client::Setup, tls_server::Setup)> = OnceLock::new();
    SETUPS.get_or_init(|| {
        let pems: Pems = self_signed(&["localhost"], (2025, 2035), false);
        (client(&options(trusting(&pems.certificate))), server(&pems))
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((&cut, changes)) = data.split_first() else {
        return;
    };
    let (client, server) = setups();
    let mut pair = Pair::new(client, server);
    let mut changes = changes.chunks_exact(3).peekable();
    let mut passed = 0;
    for round in 0..6 {
        pair.server_receives_all();
        if round == 2 {
            pair.server_sends(SENT);
        }
        // The places go on from round to round, so that late ones lie in the answer.
        let end = passed + pair.to_client.len();
        while let Some(change) = changes.peek() {
            let place = usize::from(u16::from_be_bytes([change[0], change[1]]));
            if place >= end {
                break;
            }
            if let Some(byte) = place.checked_sub(passed).and_then(|at| pair.to_client.get_mut(at))
            {
                *byte ^= change[2];
            }
            changes.next();
        }
        passed = end;
        let bytes = std::mem::take(&mut pair.to_client);
        bytes.chunks(usize::from(cut).max(1)).for_each(|piece| pair.client_receives(piece));
    }
    // What is left of the input comes as it is.
    changes.for_each(|piece| pair.client_receives(piece));
    assert!(SENT.starts_with(&pair.client_received), "only what was said is heard");
});
