//! `trueload-engine --pipe` as a process: standard input and output of a program on another host.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

const ENGINE: &str = env!("CARGO_BIN_EXE_trueload-engine");
/// Fills the pipe and the socket many times over.
const MUCH_BYTES: usize = 8 << 20;

fn pipe_to(address: &str) -> Child {
    Command::new(ENGINE)
        .args(["--pipe", address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address").to_string();
    (listener, address)
}

#[test]
fn every_byte_goes_both_ways_and_last_words_come_after_the_end_of_input() {
    let (listener, address) = listen();
    let mut pipe = pipe_to(&address);
    let (mut peer, _) = listener.accept().expect("it connects");
    let sent: Vec<u8> = (0..MUCH_BYTES).map(|index| (index % 251) as u8).collect();
    let mut input = pipe.stdin.take().expect("a pipe");
    let copy = sent.clone();
    let writer = std::thread::spawn(move || input.write_all(&copy));
    let mut received = Vec::new();
    peer.read_to_end(&mut received).expect("its input ends, and so does ours");
    writer.join().expect("it ends").expect("all is taken");
    assert!(received == sent, "{} of {MUCH_BYTES} bytes", received.len());
    std::thread::spawn(move || peer.write_all(&sent));
    let mut back = Vec::new();
    pipe.stdout.take().expect("a pipe").read_to_end(&mut back).expect("it closes its output");
    assert!(back == received, "{} of {MUCH_BYTES} bytes", back.len());
    assert!(pipe.wait().expect("it ends").success());
}

#[test]
fn a_line_is_not_kept_back() {
    let (listener, address) = listen();
    let mut pipe = pipe_to(&address);
    let (mut peer, _) = listener.accept().expect("it connects");
    let mut input = pipe.stdin.take().expect("a pipe");
    let mut output = pipe.stdout.take().expect("a pipe");
    let mut four = [0; 4];
    for _ in 0..3 {
        input.write_all(b"ask\n").expect("it reads");
        peer.read_exact(&mut four).expect("it comes without another");
        peer.write_all(b"said").expect("it reads");
        output.read_exact(&mut four).expect("it comes without a newline");
    }
    drop(peer);
    assert!(pipe.wait().expect("it ends with the connection").success());
}

#[test]
fn a_host_that_cannot_be_reached_is_named_on_stderr() {
    let (listener, address) = listen();
    drop(listener);
    for (address, why) in [(address.as_str(), "refused"), ("h1", "invalid socket address")] {
        let ended = pipe_to(address).wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1));
        assert!(said.starts_with(address) && said.contains(why), "{said}");
    }
}
