//! The group on a stage of its own: virtual time, and engines that answer at once.

use trueload_meter::Packed;

use super::*;
use crate::protocol::{Sparse, ToldTick};

/// A group of engines on clocks of their own, each of which is an hour ahead of the one before.
struct Stage {
    group: Group,
    now_ns: u64,
    said: Vec<FromEngine>,
    /// Engines that answer nothing.
    deaf: Vec<u32>,
}

const HOUR_NS: u64 = 3_600_000 * MS;

impl Stage {
    fn of(children: u32) -> Self {
        let mut stage =
            Stage { group: Group::default(), now_ns: HOUR_NS, said: vec![], deaf: vec![] };
        stage.group.handle_beat(HOUR_NS);
        for child in 0..children {
            stage.group.handle_open(child);
            stage.say(child, r#"{"type":"hello","protocol":1}"#.into());
        }
        stage.said.clear();
        stage
    }

    fn say(&mut self, child: u32, line: String) {
        self.group.handle_line(self.now_ns, child, line);
        self.settle();
    }

    /// Every engine answers at once.
    fn settle(&mut self) {
        loop {
            let (up, down) = self.group.output();
            self.said.extend(up);
            if down.is_empty() {
                return;
            }
            for (child, line) in down {
                if line.contains("clock") && !self.deaf.contains(&child) {
                    let at = format!(r#","at_ns":{}}}"#, self.theirs_ns(child));
                    let answer = line.replace('}', &at);
                    self.group.handle_line(self.now_ns, child, answer);
                }
            }
        }
    }

    fn theirs_ns(&self, child: u32) -> u64 {
        self.now_ns + u64::from(child) * HOUR_NS
    }

    fn pass(&mut self, ns: u64) {
        let until_ns = self.now_ns + ns;
        while self.now_ns < until_ns {
            self.now_ns += 50 * MS;
            self.group.handle_beat(self.now_ns);
            self.settle();
        }
    }

    fn tick(&mut self, child: u32, ok: u64) {
        let tick = super::super::ticks::tests::tick(
            self.theirs_ns(child),
            ok,
            Sparse::from([(child, ok)]),
        );
        let line = serde_json::to_string(&FromEngine::Tick(tick)).expect("a tick is JSON");
        self.say(child, line);
    }

    fn end_phase(&mut self, child: u32, ok: u64, partial: bool) {
        let latency = Packed::of(&Sparse::from([(7, ok)]));
        let second = Second { t_s: 0, width_s: 1, ok, failed: 0, latency };
        let series = serde_json::to_string(&[second]).expect("a second is JSON");
        self.say(
            child,
            format!(
                r#"{{"type":"phase_done","id":"window","measurement":{{"series":{series},"partial":{partial},"jain":0.12345678901234567}}}}"#
            ),
        );
    }

    fn kinds(&mut self) -> Vec<&'static str> {
        let kind = |said: &FromEngine| match said {
            FromEngine::Relayed(_) => "relayed",
            FromEngine::Tick(_) => "tick",
            FromEngine::Told(_) => "told",
            FromEngine::Silent(_) => "silent",
            FromEngine::Quiet(_) => "quiet",
            FromEngine::Clocks(_) => "clocks",
            FromEngine::Seconds(_) => "seconds",
            FromEngine::Standings(_) => "standings",
            FromEngine::Ended(_) => "ended",
            _ => "other",
        };
        self.said.iter().map(kind).filter(|kind| !["clocks", "standings"].contains(kind)).collect()
    }
}

#[test]
fn an_engine_is_greeted_with_questions_and_its_clock_is_told() {
    let mut stage = Stage::of(0);
    stage.group.handle_open(5);
    stage.say(5, "a greeting of a shell".into());
    stage.say(5, r#"{"type":"hello","protocol":1}"#.into());
    assert_eq!(stage.kinds(), ["relayed", "relayed"], "both lines go to the front");
    let clocks = stage.said.iter().find_map(|said| match said {
        FromEngine::Clocks(Clocks { clocks }) => clocks.first().copied(),
        _ => None,
    });
    let ahead_ns = 5 * HOUR_NS as i64;
    assert_eq!(clocks, Some(ClockOf { child: 5, ahead_ns, bound_ns: 1 }));
}

#[test]
fn ticks_are_merged_on_one_clock_and_never_relayed() {
    let mut stage = Stage::of(3);
    for child in 0..3 {
        stage.tick(child, u64::from(child) + 1);
    }
    assert_eq!(stage.kinds(), ["tick"]);
    let FromEngine::Tick(tick) = &stage.said[0] else { panic!("{:?}", stage.said) };
    assert_eq!((tick.at_ns, tick.counts.ok), (stage.now_ns, 6));
    assert_eq!(tick.latency, Sparse::from([(0, 1), (1, 2), (2, 3)]));
}

#[test]
fn how_far_each_engine_has_come_is_told_once_a_second() {
    let mut stage = Stage::of(2);
    stage.tick(1, 4);
    let told_ns = stage.now_ns;
    stage.pass(1_000 * MS);
    let standings: Vec<&Standings> = stage
        .said
        .iter()
        .filter_map(|said| match said {
            FromEngine::Standings(found) => Some(found),
            _ => None,
        })
        .collect();
    let expected = Standings { id: "window".into(), hosts: vec![(1, told_ns, 4, 2, 3, 44)] };
    assert_eq!(standings, [&expected]);
}

#[test]
fn the_end_of_a_phase_has_all_that_is_left_before_the_last_engine_is_heard() {
    let mut stage = Stage::of(2);
    stage.tick(0, 3);
    stage.end_phase(0, 3, false);
    stage.tick(1, 4);
    stage.tick(1, 5);
    stage.said.retain(|said| !matches!(said, FromEngine::Tick(_)));
    stage.end_phase(1, 5, false);
    let kinds = stage.kinds();
    assert_eq!(kinds.last(), Some(&"relayed"), "{kinds:?}");
    let sums = stage.said.iter().find_map(|said| match said {
        FromEngine::Seconds(Seconds { series, .. }) => series.first(),
        _ => None,
    });
    let sums = sums.expect("the sum is told");
    assert_eq!((sums.ok, sums.latency.sparse()), (8, Sparse::from([(7, 8)])));
    let FromEngine::Relayed(last) = &stage.said[stage.said.len() - 1] else { panic!() };
    assert!(last.line.contains(r#""jain":0.12345678901234567"#), "not a digit is lost");
    assert!(last.line.contains(r#""ok":5,"failed":0,"latency":"""#), "{}", last.line);
}

#[test]
fn a_silent_engine_is_named_within_two_seconds_with_what_it_had_told() {
    let mut stage = Stage::of(3);
    stage.tick(1, 9);
    stage.deaf.push(1);
    stage.pass(1_400 * MS);
    assert!(!stage.kinds().contains(&"silent"), "it may still answer");
    stage.pass(350 * MS);
    assert_eq!(stage.kinds(), ["told", "silent"]);
    let told = stage.said.iter().find_map(|said| match said {
        FromEngine::Told(Told { child: 1, ticks }) => ticks.first(),
        _ => None,
    });
    let Some(ToldTick::Tick(tick)) = told else { panic!("{:?}", stage.said) };
    assert_eq!(tick.counts.ok, 9);
    stage.said.clear();
    stage.tick(1, 99);
    stage.tick(0, 1);
    stage.tick(2, 1);
    assert_eq!(stage.kinds(), ["tick"], "the others do not wait for it");
    let FromEngine::Tick(tick) = &stage.said[0] else { panic!("{:?}", stage.said) };
    assert_eq!(tick.counts.ok, 11, "what it had told stays, and nothing is added");
}

#[test]
fn an_engine_whose_process_ends_holds_up_no_end_of_a_phase() {
    let mut stage = Stage::of(2);
    stage.end_phase(0, 3, false);
    stage.said.clear();
    stage.group.handle_end(1, Some(-9), "killed".into());
    stage.settle();
    assert_eq!(stage.kinds(), ["seconds", "ended"]);
}

#[test]
fn a_part_of_a_phase_counts_only_if_the_engine_was_told_to_end() {
    for (told, kept) in [(false, ""), (true, "the sums")] {
        let mut stage = Stage::of(1);
        if told {
            stage.group.handle_relay(0, r#"{"type":"stop"}"#);
        }
        stage.end_phase(0, 3, true);
        let sums: usize = stage
            .said
            .iter()
            .map(|said| match said {
                FromEngine::Seconds(Seconds { series, .. }) => series.len(),
                _ => 0,
            })
            .sum();
        assert_eq!(sums, usize::from(told), "{kept}");
    }
}

#[test]
fn who_answers_but_says_nothing_is_told_and_not_lost() {
    let mut stage = Stage::of(2);
    for _ in 0..16 {
        stage.pass(250 * MS);
        stage.tick(0, 1);
    }
    let quiet: Vec<&Vec<u32>> = stage
        .said
        .iter()
        .filter_map(|said| match said {
            FromEngine::Quiet(Quiet { children, .. }) => Some(children),
            _ => None,
        })
        .collect();
    assert!(!quiet.is_empty() && quiet.iter().all(|children| **children == [1]), "{quiet:?}");
    assert!(!stage.kinds().contains(&"silent"));
}

#[test]
fn an_aggregator_that_itself_stood_still_blames_nobody() {
    let mut stage = Stage::of(2);
    stage.pass(500 * MS);
    stage.now_ns += 5_000 * MS;
    stage.group.handle_beat(stage.now_ns);
    stage.settle();
    stage.pass(500 * MS);
    assert!(!stage.kinds().contains(&"silent"), "{:?}", stage.kinds());
}
