//! What is a part, how a stream ends, and that a split never changes either.

use proptest::prelude::*;

use super::*;

/// What was seen of a body.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    parts: u64,
    ending: Ending,
}

fn rule(kind: Kind, end: Option<End>) -> Rule {
    Rule { kind, end, stall_ns: None }
}

fn content(text: &str) -> Option<End> {
    Some(End::Content { text: text.into() })
}

/// Reads a body in these slices; each is a chunk.
fn read(rule: &Rule, slices: &[&[u8]]) -> Seen {
    let mut parts = Parts::new(rule);
    for slice in slices {
        parts.take(rule, slice);
        parts.end_chunk(rule);
    }
    parts.end_body(rule);
    parts.note(Streaming { rule, at_ns: 1 });
    Seen { parts: parts.whole().parts, ending: parts.ending(rule) }
}

fn seen(parts: u64, ending: Ending) -> Seen {
    Seen { parts, ending }
}

#[test]
fn an_event_stream_has_the_events_that_the_standard_says() {
    use Ending::{Mismatch, Ok, Truncated};
    for (body, expected) in [
        ("data: a\n\ndata: b\n\n", seen(2, Ok)),
        ("data: a\r\n\r\ndata: b\r\n\r\n", seen(2, Ok)),
        ("data: a\r\rdata: b\r\r", seen(2, Ok)),
        ("data: a\n\r\ndata: b\r\n\n", seen(2, Ok)),
        ("\u{feff}data: a\n\n", seen(1, Ok)),
        ("\u{feff}\u{feff}data: a\n\n", seen(0, Mismatch)),
        ("\u{fefe}data: a\n\n", seen(0, Mismatch)),
        (": comment\n\ndata: a\n\n: more", seen(1, Ok)),
        ("data: a\ndata: b\n\n", seen(1, Ok)),
        ("data\n\n", seen(1, Ok)),
        ("data:\n\n", seen(1, Ok)),
        ("event: ping\n\n", seen(0, Mismatch)),
        ("id: 7\nretry: 5\n\ndata: a\n\n", seen(1, Ok)),
        ("event: token\nid: 1\ndata: a\n\n", seen(1, Ok)),
        ("dat: a\n\ndatas: b\n\n data: c\n\nDATA: d\n\n", seen(0, Mismatch)),
        ("", seen(0, Mismatch)),
        ("\n\n\n", seen(0, Mismatch)),
        ("<html><body>\n</body></html>\n", seen(0, Mismatch)),
        ("data: a\n\ndata: b\n", seen(1, Truncated)),
        ("data: a\n\ndata: b", seen(1, Truncated)),
        ("data: a\n\nda", seen(1, Truncated)),
        ("data: a", seen(0, Truncated)),
        ("Hello, World!", seen(0, Mismatch)),
    ] {
        let rule = rule(Kind::Sse, None);
        assert_eq!(read(&rule, &[body.as_bytes()]), expected, "{body:?}");
    }
}

#[test]
fn a_stream_is_whole_only_with_its_end_behind_all_its_parts() {
    use Ending::{Mismatch, Ok, Truncated};
    let done = || content("[DONE]");
    for (body, end, expected) in [
        ("data: a\n\ndata: [DONE]\n\n", done(), seen(1, Ok)),
        ("data: a\n\ndata:[DONE]\n\n", done(), seen(1, Ok)),
        ("data: a\n\ndata:  [DONE]\n\n", done(), seen(2, Truncated)),
        ("data: a\n\ndata: [DONE]x\n\n", done(), seen(2, Truncated)),
        ("data: a\n\ndata: [DON\n\n", done(), seen(2, Truncated)),
        ("data: a\n\ndata: [DONE]\n", done(), seen(1, Truncated)),
        ("data: a\n\n", done(), seen(1, Truncated)),
        ("data: a\n\ndata: [DONE]\n\n: bye\n\n", done(), seen(1, Ok)),
        ("data: a\n\ndata: [DONE]\n\ndata: b\n\n", done(), seen(2, Mismatch)),
        ("data: [DONE]\n\n", done(), seen(0, Mismatch)),
        ("data: a\ndata: b\n\ndata: c\n\n", content("a\nb"), seen(1, Mismatch)),
        ("data: c\n\ndata: a\ndata: b\n\n", content("a\nb"), seen(1, Ok)),
        (
            "data: a\n\nevent: done\ndata: {}\n\n",
            Some(End::Event { name: "done".into() }),
            seen(1, Ok),
        ),
        (
            "data: a\n\ndata: {}\nevent: done\n\n",
            Some(End::Event { name: "done".into() }),
            seen(1, Ok),
        ),
        (
            "data: a\n\nevent: done\n\n",
            Some(End::Event { name: "done".into() }),
            seen(1, Truncated),
        ),
        (
            "data: a\n\nevent: done\nevent: x\ndata: b\n\n",
            Some(End::Event { name: "done".into() }),
            seen(2, Truncated),
        ),
    ] {
        let rule = rule(Kind::Sse, end);
        assert_eq!(read(&rule, &[body.as_bytes()]), expected, "{body:?}");
    }
}

#[test]
fn a_line_is_a_part_and_the_last_one_may_end_with_the_body() {
    use Ending::{Mismatch, Ok, Truncated};
    for (body, end, expected) in [
        ("{}\n{}\n", None, seen(2, Ok)),
        ("{}\r\n\r\n\n{}", None, seen(2, Ok)),
        ("\r\n", None, seen(0, Mismatch)),
        ("{}\nend\n", content("end"), seen(1, Ok)),
        ("{}\nend\r\n", content("end"), seen(1, Ok)),
        ("{}\nend", content("end"), seen(1, Ok)),
        ("{}\ne\rnd\n", content("end"), seen(2, Truncated)),
        ("{}\ne\rnd\n", content("e\rnd"), seen(1, Ok)),
        ("{}\n{}\n", content("end"), seen(2, Truncated)),
        ("end\n{}\n", content("end"), seen(1, Mismatch)),
    ] {
        let rule = rule(Kind::Jsonl, end);
        assert_eq!(read(&rule, &[body.as_bytes()]), expected, "{body:?}");
    }
}

#[test]
fn a_chunk_is_a_part_unless_it_is_empty() {
    use Ending::{Mismatch, Ok, Truncated};
    for (chunks, end, expected) in [
        (&["a", "b"][..], None, seen(2, Ok)),
        (&["a", "", "b"], None, seen(2, Ok)),
        (&[""], None, seen(0, Mismatch)),
        (&["a", "end"], content("end"), seen(1, Ok)),
        (&["a", "b"], content("end"), seen(2, Truncated)),
    ] {
        let rule = rule(Kind::Chunks, end);
        let slices: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        assert_eq!(read(&rule, &slices), expected, "{chunks:?}");
    }
    let rule = rule(Kind::Chunks, None);
    let mut parts = Parts::new(&rule);
    parts.take(&rule, b"a body without chunks");
    assert_eq!(parts.ending(&rule), Ending::Truncated);
}

#[test]
fn parts_of_one_read_come_together_and_the_gap_is_from_the_part_before() {
    let rule = Rule { stall_ns: Some(100), ..rule(Kind::Jsonl, content("end")) };
    let mut parts = Parts::new(&rule);
    let mut read = |slice: &[u8], at_ns| {
        parts.take(&rule, slice);
        let arrived = parts.note(Streaming { rule: &rule, at_ns });
        (arrived, parts.stalls_at_ns())
    };
    let first = Some(Arrived { is_first: true, gap_ns: None, together: 1 });
    let arrived = |gap_ns, together| Some(Arrived { is_first: false, gap_ns, together });
    assert_eq!(read(b"1", 10), (None, NEVER_NS), "nothing can stall before the first part");
    assert_eq!(read(b"\n2\n3", 20), (first, 120));
    assert_eq!(read(b"3", 30), (None, 120), "half a part does not help");
    assert_eq!(read(b"\n", 50), (arrived(Some(30), 0), 150));
    assert_eq!(read(b"4\n", 50), (arrived(None, 1), 150));
    assert_eq!(read(b"5\n6\n", 40), (arrived(None, 2), 150), "time does not go back");
    assert_eq!(read(b"end\n", 70), (None, NEVER_NS), "the end is no part, and cannot stall");
    assert_eq!(parts.whole(), Whole { first_ns: 20, parts: 6 });
}

/// Counts events by the words of the standard: whole lines, one after the other.
fn events_by_lines(body: &str) -> (u64, bool) {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let (whole, rest) = body.rsplit_once('\n').unwrap_or(("", &body));
    let lines: Vec<&str> = if body.contains('\n') { whole.split('\n').collect() } else { vec![] };
    let (mut events, mut has_data) = (0, false);
    for line in lines {
        if line.is_empty() {
            events += u64::from(std::mem::take(&mut has_data));
        }
        has_data |= line == "data" || line.starts_with("data:");
    }
    let half = rest.split_once(':').map_or(rest, |(name, _)| name);
    let half_line = if rest.contains(':') { half == "data" } else { !rest.is_empty() };
    (events, has_data || (half_line && events > 0) || half == "data" && rest.contains(':'))
}

fn cut<'a>(body: &'a [u8], at: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = at.iter().map(|cut| cut.index(body.len() + 1)).collect();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

fn fragments() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "data",
        "data:",
        "data: ",
        "event: done",
        ":",
        ": ping",
        "id: 1",
        "x",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "[DONE]",
        "data: [DONE]\n\n",
        "\u{feff}",
        " ",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_text_has_the_events_of_its_lines(body in fragments()) {
        let rule = rule(Kind::Sse, None);
        let (events, within) = events_by_lines(&body);
        let ending = match (within, events) {
            (true, _) => Ending::Truncated,
            (false, 0) => Ending::Mismatch,
            (false, _) => Ending::Ok,
        };
        prop_assert_eq!(read(&rule, &[body.as_bytes()]), seen(events, ending));
    }

    #[test]
    fn a_split_never_changes_what_is_seen(
        body in fragments(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        kind in prop::sample::select(vec![Kind::Sse, Kind::Jsonl]),
        end in prop::sample::select(vec![
            None, content("[DONE]"), Some(End::Event { name: "done".into() }),
        ]),
    ) {
        let rule = rule(kind, end);
        let whole = read(&rule, &[body.as_bytes()]);
        prop_assert_eq!(read(&rule, &cut(body.as_bytes(), &cuts)), whole);
    }
}
