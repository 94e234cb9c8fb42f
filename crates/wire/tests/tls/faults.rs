//! What each mistake of a server is called, and the words for it.

use trueload_wire::tls::client::{Options, Trust};
use trueload_wire::tls::{Buffers, Failure, Kind, State, server};

use super::YEARS;
use super::pair::{
    Issuer, Pair, Pems, client, demanding, now, options, self_signed, server as serving, trusting,
};

fn outcome(options: &Options, pems: &Pems) -> Option<Failure> {
    let mut pair = Pair::new(&client(options), &serving(pems));
    pair.settle();
    pair.failed
}

#[test]
fn each_certificate_is_accepted_or_refused_for_its_reason() {
    let issuer = Issuer::new("ours");
    let ours = Some(issuer.pem());
    let good = issuer.issue(&["localhost", "127.0.0.1"], YEARS);
    let itself = self_signed(&["localhost"], YEARS, false);
    let as_issuer = self_signed(&["localhost"], YEARS, true);
    let given = |pems: &Pems| Some(pems.certificate.clone());
    // Certificate, what is trusted, name, why it is refused.
    let rows = [
        ("issued", &good, ours.clone(), "localhost", None),
        ("issued, by address", &good, ours.clone(), "127.0.0.1", None),
        ("another address", &good, ours.clone(), "127.0.0.2", Some("not for '127.0.0.2'")),
        (
            "another name",
            &good,
            ours.clone(),
            "example.org",
            Some("not for 'example.org', but for localhost, 127.0.0.1"),
        ),
        (
            "another issuer",
            &good,
            given(&itself),
            "localhost",
            Some("an issuer that is not trusted"),
        ),
        ("nobody is trusted", &good, None, "localhost", Some("an issuer that is not trusted")),
        ("self-signed", &itself, ours.clone(), "localhost", Some("an issuer that is not trusted")),
        ("self-signed, given", &itself, given(&itself), "localhost", None),
        ("as an issuer, given", &as_issuer, given(&as_issuer), "localhost", None),
        ("as an issuer, not given", &as_issuer, ours.clone(), "localhost", Some("an issuer's own")),
        ("as an issuer, other name", &as_issuer, given(&as_issuer), "a.b", Some("not for 'a.b'")),
    ];
    for (name, pems, trusted, server_name, refused) in rows {
        let trust = trusted.map_or(Trust::Given(Vec::new()), |pem| trusting(&pem));
        let mut asked = options(trust);
        asked.server_name = server_name.to_owned();
        check(name, outcome(&asked, pems), refused);
        asked.trust = Trust::Anybody;
        check(&format!("{name}, unverified"), outcome(&asked, pems), None);
    }
}

#[test]
fn a_certificate_is_held_against_the_time() {
    let issuer = Issuer::new("ours");
    for (years, refused) in [((2020, 2025), "has expired"), ((2027, 2030), "not valid yet")] {
        for pems in [
            issuer.issue(&["localhost"], years),
            self_signed(&["localhost"], years, false),
            self_signed(&["localhost"], years, true),
        ] {
            let trusted = format!("{}{}", issuer.pem(), pems.certificate);
            check("in time", outcome(&options(trusting(&trusted)), &pems), Some(refused));
        }
    }
}

fn check(name: &str, failed: Option<Failure>, refused: Option<&str>) {
    match (&failed, refused) {
        (None, None) => {}
        (Some(failure), Some(why)) => {
            assert_eq!(failure.kind, Kind::Certificate, "{name}: {failure}");
            assert!(failure.why.contains(why), "{name}: {failure}");
        }
        _ => panic!("{name}: {failed:?}, not {refused:?}"),
    }
}

#[test]
fn a_client_without_a_certificate_learns_that_one_is_demanded() {
    let pems = self_signed(&["localhost"], YEARS, false);
    let server = demanding(&pems, &Issuer::new("clients").pem());
    let mut pair = Pair::new(&client(&options(trusting(&pems.certificate))), &server);
    pair.settle();
    let failure = pair.failed.unwrap();
    assert_eq!(failure.kind, Kind::Alert);
    assert!(failure.why.contains("demands a client certificate"), "{failure}");
}

#[test]
fn an_application_protocol_that_must_be_chosen_and_is_not_is_alpn() {
    let pems = self_signed(&["localhost"], YEARS, false);
    let mut asked = options(trusting(&pems.certificate));
    asked.alpn = vec!["h2".to_owned()];
    asked.alpn_required = true;
    assert_eq!(outcome(&asked, &pems).unwrap().kind, Kind::Alpn, "by an alert");
    let silent = server::Setup::new(pems.identity(), &[], now()).unwrap();
    let mut pair = Pair::new(&client(&asked), &silent);
    pair.settle();
    assert_eq!(pair.failed.unwrap().kind, Kind::Alpn, "by leaving it out");
    let offered = server::Setup::new(pems.identity(), &["h2"], now()).unwrap();
    let mut pair = Pair::new(&client(&asked), &offered);
    pair.settle();
    assert_eq!(pair.failed, None, "it was chosen");
    asked.alpn_required = false;
    let mut pair = Pair::new(&client(&asked), &silent);
    pair.settle();
    assert_eq!(pair.failed, None);
}

/// A server hello of TLS 1.0, as an old server answers ours.
fn old_hello() -> Vec<u8> {
    let mut hello = vec![0x16, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
    hello.extend([7; 32]);
    hello.extend([0, 0, 0x2f, 0]);
    hello
}

#[test]
fn what_comes_instead_of_a_handshake_is_told_apart() {
    let http = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".to_vec();
    let rows: [(&str, Vec<u8>, Kind); 9] = [
        ("plain HTTP", http, Kind::Protocol),
        ("junk", vec![0xff; 100], Kind::Protocol),
        ("a record of data", b"\x17\x03\x03\x00\x05hello".to_vec(), Kind::Protocol),
        (
            "a record that is too long",
            [&[0x16, 3, 3, 0xff, 0xff][..], &[0; 70_000]].concat(),
            Kind::Protocol,
        ),
        ("an endless certificate", endless_certificate(), Kind::Protocol),
        ("a hello of TLS 1.0", old_hello(), Kind::Version),
        ("the alert of a version", b"\x15\x03\x01\x00\x02\x02\x46".to_vec(), Kind::Version),
        ("the alert of ALPN", b"\x15\x03\x03\x00\x02\x02\x78".to_vec(), Kind::Alpn),
        ("another alert", b"\x15\x03\x03\x00\x02\x02\x28".to_vec(), Kind::Alert),
    ];
    let setup = client(&options(Trust::Anybody));
    for (name, bytes, kind) in rows {
        for cut in [bytes.len(), 1] {
            let mut one = setup.connect().unwrap();
            let mut buffers = Buffers::default();
            one.start(&mut buffers).unwrap();
            let failed =
                bytes.chunks(cut).find_map(|piece| one.handle_input(piece, &mut buffers).err());
            assert_eq!(
                failed.map(|failure| failure.kind),
                Some(kind),
                "{name}, in pieces of {cut}"
            );
            assert_eq!(buffers.plain, b"", "{name}");
        }
    }
}

/// A handshake message of 16 MiB, in records as they should be.
fn endless_certificate() -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in 0..40 {
        bytes.extend([0x16, 3, 3, 0x40, 0x00]);
        let mut payload = vec![0; 0x4000];
        if record == 0 {
            payload[..4].copy_from_slice(&[2, 0xff, 0xff, 0xff]);
        }
        bytes.extend(payload);
    }
    bytes
}

#[test]
fn a_close_notify_that_anybody_could_have_sent_does_not_end_a_handshake() {
    let setup = client(&options(Trust::Anybody));
    let mut one = setup.connect().unwrap();
    let mut buffers = Buffers::default();
    one.start(&mut buffers).unwrap();
    let state = one.handle_input(b"\x15\x03\x03\x00\x02\x01\x00", &mut buffers).unwrap();
    assert_eq!(state, State::Handshaking, "the FIN behind it decides");
}

#[test]
fn junk_on_an_open_connection_is_a_breach_and_the_peer_is_told() {
    let pems = self_signed(&["localhost"], YEARS, false);
    let (client, server) = (client(&options(trusting(&pems.certificate))), serving(&pems));
    let junk: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"\x17\x03\x03\x00\x20________________________________",
        b"\x16\x03\x03\x00\x04\x00\x00\x00\x00",
        b"\x15\x03\x03\x00\x02\x02\x28",
    ];
    for bytes in junk {
        let mut pair = Pair::open(&client, &server);
        pair.server_sends(b"pong");
        pair.to_client.extend_from_slice(bytes);
        let sent = std::mem::take(&mut pair.to_client);
        pair.client_receives(&sent);
        assert_eq!(pair.failed.clone().map(|failure| failure.kind), Some(Kind::Protocol));
        assert_eq!(pair.client_received, b"pong", "what came before it is heard");
        assert!(!pair.to_server.is_empty(), "an alert");
        // What has failed neither receives nor sends.
        let (sent, received) = (pair.to_server.len(), pair.client_received.len());
        let after = pair.client.handle_input(bytes, &mut pair.buffers);
        pair.client_sends(b"ping");
        assert_eq!((after, pair.to_server.len()), (Ok(State::Closed), sent));
        assert_eq!(pair.client_received.len(), received);
    }
}
