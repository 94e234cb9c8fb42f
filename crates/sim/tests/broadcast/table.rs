//! The rows: how a server errs, and what must come of it. Unless a row says otherwise four clients send ten messages
//! in turn, two at a time, to a server that speaks JSON.

use trueload_wire::shootout::Dialect;

use super::Seen;
use super::peer::{Fault, Way};

/// One row.
pub struct Row {
    pub name: &'static str,
    pub fault: Fault,
    pub clients: u32,
    pub concurrent: u32,
    pub messages: u64,
    pub dialects: &'static [Dialect],
    pub check: fn(&Seen, &str),
}

impl Row {
    pub const fn of(name: &'static str, fault: Fault, check: fn(&Seen, &str)) -> Self {
        let dialects = &[Dialect::Json];
        Row { name, fault, clients: 4, concurrent: 2, messages: 10, dialects, check }
    }

    const fn in_all(self) -> Self {
        Row { dialects: &Dialect::ALL, ..self }
    }

    const fn with(self, clients: u32, concurrent: u32) -> Self {
        Row { clients, concurrent, ..self }
    }

    const fn text(self) -> Self {
        Row { dialects: &[Dialect::Json, Dialect::ActionCable, Dialect::Phoenix], ..self }
    }

    const fn binary(self) -> Self {
        Row { dialects: &[Dialect::Binary], ..self }
    }

    pub const fn where_joined(self) -> Self {
        Row { dialects: &[Dialect::ActionCable, Dialect::Phoenix], ..self }
    }
}

const MASKED: Fault = Fault::Sends(3, b"\x81\x82\0\0\0\0{}");
const RESERVED_CODE: Fault = Fault::Sends(1, b"\x88\x02\x03\xed");

fn all_is_well(seen: &Seen, why: &str) {
    settles(seen, 10, &[], [40, 40, 0, 0, 0], why);
}

/// Ok, failed by class, and deliveries are these.
fn settles(seen: &Seen, ok: u64, failed: &[(&str, u64)], deliveries: [u64; 5], why: &str) {
    assert_eq!((seen.established, seen.ok), (4, ok), "{why}");
    assert!(
        seen.failed.iter().map(|(class, count)| (*class, *count)).eq(failed.iter().copied()),
        "{why}"
    );
    assert_eq!(seen.deliveries, deliveries, "{why}");
}

/// Nobody got in: all four for this reason, and nothing was sent.
fn refused(seen: &Seen, class: &str, why: &str) {
    assert_eq!((seen.established, seen.refused.get(class)), (0, Some(&4)), "{why}");
    assert_eq!((seen.ok, seen.unsent, seen.failed.len()), (0, 10, 0), "{why}");
    assert_eq!(seen.deliveries, [0; 5], "{why}");
}

/// Client 1 erred at the second broadcast, its own, and was closed: the others have had everything.
fn one_is_out(seen: &Seen, class: &str, why: &str) {
    settles(seen, 9, &[(class, 1)], [31, 31, 0, 0, 0], why);
}

/// Something came to client 1 that settles nothing: the connection is closed, and its message in flight pays.
fn one_is_unsolicited(seen: &Seen, why: &str) {
    one_is_out(seen, "unsolicited", why);
}

/// Clients 0 and 2 went: what they were to have is lost, what they had asked failed, the others go on.
fn half_is_gone(seen: &Seen, class: &str, why: &str) {
    let [expected, delivered, lost, duplicate, _] = seen.deliveries;
    assert_eq!((seen.established, seen.unsent, duplicate), (4, 0, 0), "{why}");
    assert_eq!(expected, 40, "who was dropped is still to have what is sent: {why}");
    assert!(lost >= 18 && delivered >= 4, "{why}");
    let known = |name: &&str| *name == class || *name == "lost" || *name == "reset";
    assert!(seen.failed.keys().all(known) && seen.failed.contains_key("lost"), "{why}");
}

/// Client 3, which had nothing outstanding, was closed at the second broadcast: a message of its own pays.
fn idle_is_out(seen: &Seen, class: &str, why: &str) {
    let [_, delivered, lost, duplicate, _] = seen.deliveries;
    assert_eq!((seen.established, seen.unsent, lost, duplicate), (4, 0, 0, 0), "{why}");
    assert_eq!(seen.failed.get(class), Some(&1), "{why}");
    let known = |name: &&str| [class, "reset"].contains(name);
    assert!(delivered >= 28 && seen.failed.keys().all(known), "{why}");
}

/// Everybody went in the middle; a client may have its turn before it is known that it, too, is closed.
fn all_are_gone(seen: &Seen, classes: &[&str], why: &str) {
    let [_, delivered, lost, ..] = seen.deliveries;
    assert!(seen.ok <= 1 && seen.unsent >= 4 && delivered == 4 && lost >= 4, "{why}");
    assert!(seen.failed.keys().any(|name| classes.contains(name)), "{why}");
}

pub const ROWS: &[Row] = &[
    Row::of("keeps to the contract", Fault::None, all_is_well).in_all(),
    Row::of(
        "other bytes to each, in fragments, with pings between",
        Fault::Verbose,
        |seen, why| {
            all_is_well(seen, why);
            assert!(seen.pongs >= 40, "{why}");
        },
    )
    .in_all(),
    Row::of("the receipt leaves first", Fault::ReceiptFirst, all_is_well).in_all(),
    Row::of("answers 200", Fault::Answers200, |seen, why| refused(seen, "ws.handshake", why)),
    Row::of("answers another key", Fault::WrongAccept, |seen, why| {
        refused(seen, "ws.handshake", why);
    }),
    Row::of("refuses the join", Fault::RefusesJoin, |seen, why| refused(seen, "ws.handshake", why))
        .where_joined(),
    Row::of("never returns the echo", Fault::NeverEchoes, |seen, why| {
        refused(seen, "timeout.total", why);
    })
    .in_all(),
    Row::of("says nothing", Fault::Silent, |seen, why| refused(seen, "timeout.first_byte", why)),
    Row::of("says garbage to the join", Fault::JoinsWithGarbage, |seen, why| {
        refused(seen, "ws.payload", why);
    })
    .in_all(),
    Row::of("drops half the clients, FIN", Fault::DropsHalf(Way::Fin), |seen, why| {
        half_is_gone(seen, "empty", why);
    }),
    Row::of("drops half the clients, RST", Fault::DropsHalf(Way::Rst), |seen, why| {
        half_is_gone(seen, "reset", why);
    }),
    Row::of("drops half the clients, close frame", Fault::DropsHalf(Way::Frame), |seen, why| {
        half_is_gone(seen, "ws.closed", why);
    }),
    Row::of("repeats a message", Fault::Repeats, |seen, why| {
        settles(seen, 9, &[("duplicate", 1)], [40, 40, 0, 1, 0], why);
    })
    .in_all(),
    Row::of("repeats every message", Fault::RepeatsLater, |seen, why| {
        settles(seen, 1, &[("duplicate", 9)], [40, 40, 0, 9, 0], why);
    }),
    Row::of("misses one message", Fault::Misses, |seen, why| {
        settles(seen, 9, &[("lost", 1)], [40, 39, 1, 0, 0], why);
    })
    .in_all(),
    Row::of("half the clients miss one message", Fault::MissedByHalf, |seen, why| {
        settles(seen, 9, &[("lost", 1)], [40, 38, 2, 0, 0], why);
    }),
    Row::of("stalls one subscriber", Fault::Stalls, |seen, why| {
        let [expected, delivered, lost, ..] = seen.deliveries;
        assert_eq!((delivered, seen.unsent), (31, 0), "the others have had all: {why}");
        assert!(lost > 0 && expected <= 40, "{why}");
        assert_eq!(seen.failed.get("timeout.first_byte"), Some(&2), "{why}");
        assert!(
            seen.failed.keys().all(|name| ["timeout.first_byte", "lost"].contains(name)),
            "{why}"
        );
    }),
    Row::of("garbage JSON", Fault::SendsText("{\"type\":"), |seen, why| {
        one_is_out(seen, "ws.payload", why)
    }),
    Row::of(
        "another's payload",
        Fault::SendsText(r#"{"type":"broadcast","payload":1}"#),
        |seen, why| {
            one_is_out(seen, "mismatch", why);
        },
    ),
    Row::of("alters a message", Fault::Alters, |seen, why| one_is_out(seen, "mismatch", why))
        .in_all(),
    Row::of("a reserved bit", Fault::Reserved, |seen, why| one_is_out(seen, "ws.protocol", why)),
    Row::of("a text that is not UTF-8", Fault::NotUtf8, |seen, why| {
        one_is_out(seen, "ws.payload", why);
    }),
    Row::of(
        "a broadcast that nobody sent",
        Fault::SendsText(
            r#"{"type":"broadcast","payload":{"sender":9,"sequence":9,"padding":"xxxxxxxx"}}"#,
        ),
        one_is_unsolicited,
    ),
    Row::of(
        "an echo that nobody asked for",
        Fault::SendsText(
            r#"{"type":"echo","payload":{"sender":1,"sequence":0,"padding":"xxxxxxxx"}}"#,
        ),
        one_is_unsolicited,
    ),
    Row::of(
        "other words instead of a message",
        Fault::SendsText(r#"{"type":"hi"}"#),
        |seen, why| {
            settles(seen, 9, &[("lost", 1)], [40, 39, 1, 0, 0], why);
        },
    ),
    Row::of("a receipt twice", Fault::ReceiptTwice, |seen, why| {
        settles(seen, 9, &[("unsolicited", 1)], [32, 32, 0, 0, 0], why);
    }),
    Row::of("no receipt", Fault::NoReceipt, |seen, why| {
        settles(seen, 9, &[("timeout.first_byte", 1)], [40, 40, 0, 0, 0], why);
    }),
    Row::of("a receipt to all", Fault::ReceiptToAll, |seen, why| {
        assert_eq!(seen.failed.get("unsolicited"), Some(&3), "{why}");
        assert_eq!(seen.deliveries[2], 0, "we closed them: {why}");
    }),
    Row::of("upgrades every other client", Fault::UpgradesHalf, |seen, why| {
        assert_eq!((seen.established, seen.refused.get("ws.handshake")), (2, Some(&2)), "{why}");
        assert_eq!((seen.ok, seen.deliveries), (10, [20, 20, 0, 0, 0]), "{why}");
    }),
    Row::of("closes instead of the join, FIN", Fault::DropsJoin(Way::Fin), |seen, why| {
        refused(seen, "truncated", why);
    })
    .in_all(),
    Row::of("closes instead of the join, RST", Fault::DropsJoin(Way::Rst), |seen, why| {
        refused(seen, "reset", why);
    }),
    Row::of("closes instead of the join, frame", Fault::DropsJoin(Way::Frame), |seen, why| {
        refused(seen, "ws.closed", why);
    })
    .in_all(),
    Row::of("never confirms the join", Fault::NeverConfirms, |seen, why| {
        refused(seen, "timeout.total", why);
    })
    .where_joined(),
    Row::of("says goodbye to a join, and in the middle", Fault::Goodbye, |seen, why| {
        let [expected, delivered, lost, ..] = seen.deliveries;
        assert_eq!((seen.established, seen.refused.get("ws.closed")), (3, Some(&1)), "{why}");
        assert_eq!((expected, delivered, lost), (30, 21, 9), "the others have had all: {why}");
        // A message of the client that was told to leave fails with that, if one was under way.
        let failed =
            seen.failed.get("lost").unwrap_or(&0) + seen.failed.get("ws.closed").unwrap_or(&0);
        assert_eq!((seen.ok, failed), (1, 9), "{why}");
    })
    .where_joined(),
    Row::of("returns the echo of the join twice", Fault::EchoesTwice, |seen, why| {
        assert_eq!((seen.ok, seen.deliveries), (0, [0; 5]), "{why}");
        assert_eq!(seen.failed.get("unsolicited"), Some(&4), "{why}");
        let reset = seen.failed.get("reset").unwrap_or(&0);
        assert_eq!(seen.unsent + reset, 6, "what was under way, or never sent: {why}");
    }),
    Row::of("a masked frame", Fault::Sends(1, b"\x81\x82\0\0\0\0{}"), |seen, why| {
        one_is_out(seen, "ws.protocol", why);
    }),
    Row::of("a masked frame to who awaits no receipt", MASKED, |seen, why| {
        idle_is_out(seen, "ws.protocol", why);
    }),
    Row::of("a close with a code that must not be sent", RESERVED_CODE, |seen, why| {
        one_is_out(seen, "ws.protocol", why);
    }),
    Row::of("a fragmented ping", Fault::Sends(1, b"\x09\x00"), |seen, why| {
        one_is_out(seen, "ws.protocol", why);
    }),
    Row::of(
        "a frame of 2^62 bytes",
        Fault::Sends(1, b"\x82\x7f\x40\0\0\0\0\0\0\0"),
        |seen, why| {
            one_is_out(seen, "limit", why);
        },
    ),
    Row::of("a continuation of nothing", Fault::Sends(1, b"\x80\x02{}"), |seen, why| {
        one_is_out(seen, "ws.protocol", why);
    }),
    Row::of("another kind of JSON: a number", Fault::SendsText("7"), |seen, why| {
        one_is_out(seen, "ws.payload", why);
    }),
    Row::of("another kind of JSON: null", Fault::SendsText("null"), |seen, why| {
        one_is_out(seen, "ws.payload", why);
    }),
    Row::of(
        "another kind of JSON: an array of the members",
        Fault::SendsText(r#"["broadcast",{"sender":1,"sequence":1,"padding":"xxxxxxxx"},3]"#),
        |seen, why| one_is_out(seen, "ws.payload", why),
    ),
    Row::of(
        "a payload that is an array of the members",
        Fault::SendsText(r#"{"type":"broadcast","payload":[1,1,"xxxxxxxx"]}"#),
        |seen, why| one_is_out(seen, "mismatch", why),
    ),
    Row::of("an empty message", Fault::SendsText(""), |seen, why| {
        one_is_out(seen, "ws.payload", why)
    })
    .in_all(),
    Row::of(
        "an empty message to who awaits no receipt",
        Fault::Sends(3, b"\x82\0"),
        |seen, why| {
            idle_is_out(seen, "ws.payload", why);
        },
    )
    .in_all(),
    Row::of("half a message, then FIN", Fault::Cuts, |seen, why| {
        let [expected, delivered, lost, ..] = seen.deliveries;
        assert_eq!((expected, delivered, lost), (40, 31, 9), "{why}");
        assert_eq!(seen.failed.get("truncated"), Some(&1), "{why}");
        assert_eq!(seen.failed.get("lost"), Some(&8), "{why}");
    }),
    Row::of("a receipt of what nobody had", Fault::OnlyReceipt, |seen, why| {
        settles(seen, 9, &[("lost", 1)], [40, 36, 4, 0, 0], why);
    })
    .in_all(),
    Row::of("the receipt goes to another", Fault::ReceiptAstray, |seen, why| {
        assert_eq!(seen.failed.get("timeout.first_byte"), Some(&1), "{why}");
        assert_eq!(seen.failed.get("unsolicited"), Some(&1), "{why}");
        assert_eq!(seen.deliveries[2..4], [0, 0], "{why}");
    }),
    Row::of("a receipt that counts other listeners", Fault::Counts("70000"), all_is_well),
    Row::of("a receipt with a count that is none", Fault::Counts("-1"), |seen, why| {
        assert_eq!((seen.ok, seen.failed.get("ws.payload")), (0, Some(&4)), "{why}");
    }),
    Row::of("a flood of pings and pongs", Fault::Floods, |seen, why| {
        all_is_well(seen, why);
        assert_eq!(seen.pongs, 4000, "{why}");
    })
    .in_all(),
    Row::of("stalls everybody", Fault::StallsAll, |seen, why| {
        let late = seen.failed.get("timeout.first_byte").unwrap_or(&0);
        assert_eq!((seen.ok, seen.failed.len(), seen.deliveries[1]), (1, 1, 4), "{why}");
        assert!(*late >= 4 && late + seen.unsent == 9, "{why}");
    }),
    Row::of("JSON in binary frames", Fault::OtherKind, all_is_well).text(),
    Row::of("binary messages in text frames", Fault::OtherKind, |seen, why| {
        refused(seen, "ws.payload", why);
    })
    .binary(),
    Row::of("everybody has a message twice", Fault::RepeatsToAll, |seen, why| {
        settles(seen, 9, &[("duplicate", 1)], [40, 40, 0, 4, 0], why);
    })
    .in_all(),
    Row::of("out of order", Fault::Swaps, |seen, why| {
        assert_eq!((seen.ok, seen.deliveries), (10, [20, 20, 0, 0, 1]), "{why}");
    })
    .with(2, 4),
    Row::of("gone in the middle, FIN", Fault::Goes(Way::Fin), |seen, why| {
        all_are_gone(seen, &["empty"], why);
    }),
    Row::of("gone in the middle, RST", Fault::Goes(Way::Rst), |seen, why| {
        all_are_gone(seen, &["reset"], why);
    }),
    Row::of("gone in the middle, close frame", Fault::Goes(Way::Frame), |seen, why| {
        all_are_gone(seen, &["ws.closed"], why);
    }),
];
