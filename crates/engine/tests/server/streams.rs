//! Streams of the reference server: each part leaves at its time, and faults strike half way.

use trueload_engine::protocol::FaultsPlan;

use super::get;
use super::world::{MS, World};

fn event(number: u32) -> String {
    let content =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"token {number} \"}}}}]}}\n\n");
    format!("{:x}\r\n{content}\r\n", content.len())
}

/// What was sent, with its time in ms, without the head.
fn sent(world: &World) -> Vec<(u64, String)> {
    let body = |text: String| text.rsplit("\r\n\r\n\r\n").next().unwrap_or_default().to_owned();
    world.wire.sent.iter().map(|sent| (sent.at_ns / MS, body(sent.text()))).collect()
}

#[test]
fn a_part_leaves_every_so_many_ms_and_the_end_behind_the_last() {
    let mut world = World::recording();
    world.receive(&[get("/stream/3/10", ""), get("/", "")].concat());
    world.pass(5 * MS);
    assert!(
        world.sent().contains("Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n")
    );
    assert!(!world.sent().contains("Content-Length"));
    world.wire.sent.clear();
    world.pass(40 * MS);
    let end = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
    let sent = sent(&world);
    assert_eq!(sent[..2], [(10, event(1)), (20, event(2))]);
    assert_eq!(sent[2].0, 30);
    assert!(sent[2].1.starts_with(&(event(3) + end)), "{}", sent[2].1);
    assert!(world.sent().ends_with("Hello, World!"), "the next answer follows");
    let seen = world.mark();
    assert_eq!((seen.requests, seen.ok), (2, 2));
    assert_eq!(seen.delay_error_ns.expect("parts that were due").count, 3);
}

#[test]
fn parts_that_are_all_due_leave_together() {
    let mut world = World::new();
    world.receive(&get("/stream/2/0", ""));
    world.pass(MS);
    let sent = world.sent();
    let body = sent.split_once("\r\n\r\n").expect("a head").1;
    assert_eq!(body, event(1) + &event(2) + "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
}

#[test]
fn lines_may_be_asked_for_and_http_1_0_has_no_chunks() {
    let mut world = World::new();
    world.receive(b"GET /stream/2/1/jsonl HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    world.pass(5 * MS);
    let sent = world.sent();
    let (head, body) = sent.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("application/x-ndjson\r\nConnection: close"), "{head}");
    let line = |number| format!("{{\"token\":\"token {number} \",\"done\":false}}\n");
    assert_eq!(body, line(1) + &line(2) + "{\"done\":true}\n");
    assert!(world.is_closed());
}

#[test]
fn head_has_no_parts_and_an_odd_stream_is_unknown() {
    let mut world = World::new();
    world.receive(b"HEAD /stream/3/10 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(world.sent().ends_with("Transfer-Encoding: chunked\r\n\r\n"), "{}", world.sent());
    world.receive(&get("/stream/0/10", ""));
    assert_eq!(world.statuses(), ["200", "404"]);
}

#[test]
fn a_stream_that_is_cut_ends_half_way_with_its_connection() {
    let mut world = World::failing(FaultsPlan { cut_share: 1.0, ..FaultsPlan::default() });
    world.receive(&get("/stream/4/10", ""));
    world.pass(100 * MS);
    assert_eq!(world.wire.sent.last().map(|sent| sent.at_ns / MS), Some(20));
    assert!(world.is_closed());
    let seen = world.mark();
    assert_eq!((seen.faults.get("cut"), seen.ok), (Some(&1), 0));
}

#[test]
fn another_answer_that_is_cut_has_half_of_its_body() {
    let mut world = World::failing(FaultsPlan { cut_share: 1.0, ..FaultsPlan::default() });
    world.receive(&get("/", ""));
    world.pass(MS);
    assert!(world.sent().ends_with("\r\n\r\nHello,"), "{}", world.sent());
    assert!(world.is_closed());
}

#[test]
fn a_stream_that_stalls_goes_on_later_or_never() {
    for (stall_ns, expected) in [(Some(100 * MS), vec![10, 20, 130, 140]), (None, vec![10, 20])] {
        let plan = FaultsPlan { stall_share: 1.0, stall_ns, ..FaultsPlan::default() };
        let mut world = World::failing(plan);
        world.receive(&get("/stream/4/10", ""));
        world.pass(1);
        world.wire.sent.clear();
        world.pass(1000 * MS);
        let times: Vec<u64> = world.wire.sent.iter().map(|sent| sent.at_ns / MS).collect();
        assert_eq!(times, expected);
        assert!(!world.is_closed());
    }
}
