//! TLS, both ends, without a socket: what is received, in any split, and what each mistake is
//! called.

mod faults;
mod pair;
mod records;

use pair::{Issuer, Pair, client, now, options, self_signed, server, trusting};
use proptest::prelude::*;
use trueload_wire::tls::client::{Setup, Trust};
use trueload_wire::tls::{Identity, SetupError, State, certificates};

const YEARS: (i32, i32) = (2025, 2035);

fn setups_of(old: bool) -> (Setup, trueload_wire::tls::server::Setup) {
    let pems = self_signed(&["localhost"], YEARS, false);
    let server = if old { pair::old_server(&pems) } else { server(&pems) };
    (client(&options(trusting(&pems.certificate))), server)
}

fn setups() -> (Setup, trueload_wire::tls::server::Setup) {
    setups_of(false)
}

#[test]
fn what_one_end_sends_the_other_receives() {
    let (client, server) = setups();
    let mut pair = Pair::open(&client, &server);
    pair.client_sends(b"ping");
    pair.settle();
    pair.server_sends(b"pong");
    pair.settle();
    assert_eq!(
        (pair.server_received.as_slice(), pair.client_received.as_slice()),
        (&b"ping"[..], &b"pong"[..])
    );
    let secured = pair.client.secured().unwrap();
    assert_eq!(secured.version, "TLSv1.3");
    assert!(secured.cipher.starts_with("TLS_AES_"), "{}", secured.cipher);
    assert_eq!(secured.alpn.as_deref(), Some("http/1.1"));
}

#[test]
fn a_body_of_many_records_comes_whole() {
    let (client, server) = setups();
    let mut pair = Pair::open(&client, &server);
    let body: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    pair.server_sends(&body);
    pair.settle_cut(|_| 1460);
    assert!(pair.client_received == body, "the same million bytes");
}

#[test]
fn a_handshake_byte_by_byte_is_a_handshake() {
    let (client, server) = setups();
    let mut pair = Pair::new(&client, &server);
    pair.settle_cut(|_| 1);
    assert_eq!((pair.failed.clone(), pair.client.state()), (None, State::Open));
    pair.server_sends(b"pong");
    pair.settle_cut(|_| 1);
    assert_eq!(pair.client_received, b"pong");
}

#[test]
fn a_close_notify_ends_what_is_received_and_what_comes_behind_is_ignored() {
    let (client, server) = setups();
    for cut in [usize::MAX, 1] {
        let mut pair = Pair::open(&client, &server);
        pair.server_sends(b"last words");
        pair.server.close(&mut pair.to_client);
        pair.to_client.extend_from_slice(b"\x17\x03\x03\x00\x01x and junk");
        pair.settle_cut(|_| cut);
        assert_eq!((pair.failed.clone(), pair.client.state()), (None, State::Closed));
        assert_eq!(pair.client_received, b"last words");
    }
}

#[test]
fn the_peer_receives_a_close_and_an_end_that_is_closed_sends_nothing_more() {
    let (client, server) = setups();
    let mut pair = Pair::open(&client, &server);
    pair.client.close(&mut pair.to_server);
    pair.client_sends(b"too late");
    pair.settle();
    assert_eq!(pair.server.state(), State::Closed);
    assert_eq!(pair.server_received, b"");
}

#[test]
fn nothing_is_sent_before_the_handshake_is_done() {
    let (client, _) = setups();
    let mut one = client.connect().unwrap();
    let mut sealed = Vec::new();
    one.start(&mut Default::default()).unwrap();
    one.seal(b"too early", &mut sealed);
    assert_eq!(sealed, b"");
    assert_eq!(one.secured(), None);
}

#[test]
fn the_second_connection_resumes_the_first_unless_resumption_is_off() {
    let pems = self_signed(&["localhost"], YEARS, false);
    let server = server(&pems);
    for resumption in [true, false] {
        let mut options = options(trusting(&pems.certificate));
        options.resumption = resumption;
        let client = client(&options);
        let resumed: Vec<bool> =
            (0..3).map(|_| Pair::open(&client, &server).client.is_resumed()).collect();
        assert_eq!(resumed, [false, resumption, resumption], "resumption: {resumption}");
    }
}

#[test]
fn an_older_version_resumes_as_well() {
    let (client, server) = setups_of(true);
    let pairs: Vec<Pair> = (0..3).map(|_| Pair::open(&client, &server)).collect();
    let resumed: Vec<bool> = pairs.iter().map(|pair| pair.client.is_resumed()).collect();
    assert_eq!(resumed, [false, true, true]);
    let secured = pairs[2].client.secured().unwrap();
    assert_eq!(secured.version, "TLSv1.2");
    assert!(secured.cipher.starts_with("TLS_ECDHE_ECDSA_WITH_"), "{}", secured.cipher);
}

#[test]
fn tickets_are_shared_by_connections_that_are_open_at_once() {
    let (client, server) = setups();
    let _first: Vec<Pair> = (0..20).map(|_| Pair::open(&client, &server)).collect();
    // The first has none to use; every one after it brings more than it takes.
    let then: Vec<Pair> = (0..20).map(|_| Pair::open(&client, &server)).collect();
    assert!(then.iter().all(|pair| pair.client.is_resumed()));
}

#[test]
fn each_ticket_of_a_connection_resumes_another() {
    let (client, server) = setups();
    Pair::open(&client, &server);
    let mut both = [Pair::new(&client, &server), Pair::new(&client, &server)];
    both.iter_mut().for_each(Pair::settle);
    assert_eq!(both.map(|pair| pair.client.is_resumed()), [true, true]);
}

#[test]
fn a_part_of_a_record_is_told_until_the_rest_has_come() {
    let (client, server) = setups();
    let mut pair = Pair::open(&client, &server);
    pair.server_sends(b"pong");
    let record = std::mem::take(&mut pair.to_client);
    assert!(!pair.client.is_in_record());
    pair.client_receives(&record[..7]);
    assert!(pair.client.is_in_record());
    pair.client_receives(&record[7..]);
    assert!(!pair.client.is_in_record());
    assert_eq!(pair.client_received, b"pong");
}

#[test]
fn who_receives_a_close_may_still_send_something_and_close_too() {
    let (client, server) = setups();
    let mut pair = Pair::open(&client, &server);
    pair.server.close(&mut pair.to_client);
    pair.settle();
    assert_eq!(pair.client.state(), State::Closed);
    pair.client_sends(b"bye");
    pair.client.close(&mut pair.to_server);
    pair.settle();
    assert_eq!(
        (pair.server_received.as_slice(), pair.server.state()),
        (&b"bye"[..], State::Closed)
    );
}

#[test]
fn names_and_pems_that_cannot_be_used_are_told_apart() {
    let pems = self_signed(&["localhost"], YEARS, false);
    let other = self_signed(&["localhost"], YEARS, false);
    assert_eq!(certificates(b"").unwrap_err(), SetupError::NoCertificate);
    assert_eq!(certificates(pems.key.as_bytes()).unwrap_err(), SetupError::NoCertificate);
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    assert_eq!(certificates(broken.as_bytes()).unwrap_err(), SetupError::BadCertificate);
    let identity = |key: &str| Identity::from_pem(pems.certificate.as_bytes(), key.as_bytes());
    assert_eq!(identity(&pems.certificate).unwrap_err(), SetupError::NoKey);
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert_eq!(identity(locked).unwrap_err(), SetupError::EncryptedKey);
    let locked = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
                  DEK-Info: AES-128-CBC,00\n\nAA==\n-----END EC PRIVATE KEY-----\n";
    assert_eq!(identity(locked).unwrap_err(), SetupError::EncryptedKey, "in the old form");
    let mut asked = options(Trust::Anybody);
    asked.identity = Some(identity(&other.key).unwrap());
    assert_eq!(Setup::new(&asked, now()).unwrap_err(), SetupError::OtherKey);
    asked = options(Trust::Anybody);
    asked.server_name = "no name".to_owned();
    assert_eq!(Setup::new(&asked, now()).unwrap_err(), SetupError::BadName);
}

#[test]
fn a_key_is_never_shown() {
    let pems = self_signed(&["localhost"], YEARS, false);
    assert_eq!(format!("{:?}", pems.identity()), "Identity { certificates: 1 }");
    let (client, server) = setups();
    let pair = Pair::open(&client, &server);
    assert_eq!(format!("{:?}", pair.client), "Session { state: Open, .. }");
}

#[test]
fn a_client_certificate_is_shown_to_a_server_that_asks() {
    let issuer = Issuer::new("clients");
    let pems = self_signed(&["localhost"], YEARS, false);
    let server = pair::demanding(&pems, &issuer.pem());
    let mut asked = options(trusting(&pems.certificate));
    asked.identity = Some(issuer.issue(&["me"], YEARS).identity());
    let mut pair = Pair::open(&client(&asked), &server);
    pair.client_sends(b"ping");
    pair.settle();
    assert_eq!(pair.server_received, b"ping");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_split_never_changes_what_is_received(
        cuts in prop::collection::vec(1usize..3000, 1..60),
        answers in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 0..6),
        closes in any::<bool>(),
        old in any::<bool>(),
    ) {
        let (client, server) = setups_of(old);
        let mut pair = Pair::new(&client, &server);
        let mut at = 0;
        let mut cut = |_| {
            at += 1;
            cuts[at % cuts.len()]
        };
        pair.settle_cut(&mut cut);
        prop_assert_eq!(pair.client.state(), State::Open);
        for answer in &answers {
            pair.server_sends(answer);
        }
        if closes {
            pair.server.close(&mut pair.to_client);
        }
        pair.settle_cut(&mut cut);
        prop_assert_eq!(&pair.failed, &None);
        prop_assert_eq!(&pair.client_received, &answers.concat());
        let state = if closes { State::Closed } else { State::Open };
        prop_assert_eq!(pair.client.state(), state);
    }

    #[test]
    fn a_change_on_the_way_is_never_received(
        place in any::<prop::sample::Index>(),
        with in 1u8..=255,
    ) {
        let (client, server) = setups();
        let mut pair = Pair::open(&client, &server);
        pair.server_sends(b"pong");
        pair.server_sends(b"pong");
        let place = place.index(pair.to_client.len());
        pair.to_client[place] ^= with;
        pair.settle();
        // A length that was made longer waits for the rest, the version of a record means nothing,
        // all else is refused.
        let received = pair.client_received.as_slice();
        prop_assert!(b"pongpong".starts_with(received), "{received:?}");
    }
}
