//! Arrivals: their times, how threads divide them, and what joining changes.

use super::*;
use crate::Origins;
use proptest::prelude::*;

const S: u64 = 1_000_000_000;

fn stage(seconds: u64, from: f64, to: f64) -> Stage {
    Stage { ns: seconds * S, from, to }
}

fn all(stages: &[Stage], arrivals: Arrivals, thread: u32, threads: u32) -> Vec<u64> {
    drawn(Schedule::new(stages, arrivals, thread, threads))
}

fn drawn(mut schedule: Schedule) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(ns) = schedule.next_ns() {
        times.push(ns);
        schedule.advance();
    }
    times
}

#[test]
fn constant_arrivals_are_evenly_spaced_and_none_is_lost() {
    let times = all(&[stage(2, 1000.0, 1000.0)], Arrivals::Constant, 0, 1);
    assert_eq!(times.len(), 2000);
    let off = times.iter().enumerate().map(|(k, ns)| ns.abs_diff(k as u64 * 1_000_000)).max();
    assert!(off.is_some_and(|ns| ns <= 1), "{off:?}");
}

#[test]
fn a_ramp_reaches_its_end_and_sends_its_area() {
    let times = all(&[stage(10, 0.0, 100.0)], Arrivals::Constant, 0, 1);
    assert_eq!(times.len(), 500);
    let first_half = times.iter().filter(|ns| **ns < 5 * S).count();
    assert_eq!(first_half, 125);
}

#[test]
fn a_stage_of_silence_is_passed_over() {
    let stages = [stage(1, 10.0, 10.0), stage(5, 0.0, 0.0), stage(1, 10.0, 10.0)];
    let times = all(&stages, Arrivals::Constant, 0, 1);
    assert_eq!(times.len(), 20);
    assert!(times[9] < S && times[10] >= 6 * S, "{:?}", &times[9..11]);
}

#[test]
fn poisson_gaps_have_the_mean_and_spread_of_an_exponential_and_the_seed_decides() {
    let arrivals = Arrivals::Poisson { seed: 7 };
    let times = all(&[stage(100, 1000.0, 1000.0)], arrivals, 0, 1);
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean / 1e6 - 1.0).abs() < 0.02, "mean {mean}");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "spread {}", variance.sqrt() / mean);
    assert_eq!(times, all(&[stage(100, 1000.0, 1000.0)], arrivals, 0, 1));
    let other = Arrivals::Poisson { seed: 8 };
    assert_ne!(times[..10], all(&[stage(1, 1000.0, 1000.0)], other, 0, 1)[..10]);
}

#[test]
fn random_bits_are_those_of_xorshift64_star() {
    // The values of Rosetta Code, "Pseudo-random numbers/Xorshift star", for the state 1234567.
    let mut chance = Chance(1_234_567);
    for upper in [3_540_625_527, 2_750_739_987, 4_037_983_143, 1_993_361_440, 3_809_424_708] {
        assert_eq!(chance.next() >> 32, upper);
    }
}

#[test]
fn the_first_random_arrival_comes_after_a_gap() {
    for seed in 0..100 {
        let times = all(&[stage(1, 10.0, 10.0)], Arrivals::Poisson { seed }, 0, 1);
        assert!(times.first() > Some(&0), "seed {seed}");
    }
}

#[test]
fn an_arrival_at_the_very_end_of_what_is_skipped_is_not_skipped() {
    for from in 0..5 {
        let mut schedule = Schedule::new(&[stage(9, 1.0, 1.0)], Arrivals::Constant, 0, 1);
        assert_eq!(schedule.skip_until(from * S), from);
        assert_eq!(schedule.next_ns(), Some(from * S));
    }
}

#[test]
fn values_between_stages_are_on_the_line() {
    let stages = [stage(10, 500.0, 500.0), stage(30, 1000.0, 20_000.0)];
    let cases = [(0, 500.0), (10 * S, 1000.0), (25 * S, 10_500.0), (99 * S, 20_000.0)];
    for (elapsed_ns, expected) in cases {
        assert!((value_at(&stages, elapsed_ns) - expected).abs() < 1e-6, "at {elapsed_ns}");
    }
}

#[test]
fn what_a_rate_beyond_all_reach_asks_for_is_counted_without_drawing_it() {
    let stages = [stage(3600, 1e9, 1e9), stage(1, 5.0, 5.0)];
    let mut schedule = Schedule::new(&stages, Arrivals::Constant, 1, 3);
    assert_eq!(schedule.skip_until(3600 * S), 3_600_000_000_000 / 3);
    assert_eq!(schedule.skip_until(u64::MAX), 2);
    assert_eq!(schedule.next_ns(), None);
}

#[test]
fn of_random_arrivals_beyond_all_reach_as_many_are_counted_as_there_are_on_average() {
    let stages = [stage(3600, 1e9, 1e9), stage(1, 5.0, 5.0)];
    let mut schedule = Schedule::new(&stages, Arrivals::Poisson { seed: 7 }, 1, 3);
    let mean = 3_600_000_000_000 / 3;
    let counted: u64 = (1..=4).map(|quarter| schedule.skip_until(quarter * 900 * S)).sum();
    assert!(counted.abs_diff(mean) < 10_000, "{counted}");
    assert!(schedule.next_ns().is_none_or(|next_ns| next_ns >= 3600 * S));
    schedule.skip_until(u64::MAX);
    assert_eq!(schedule.next_ns(), None);
}

#[test]
fn stages_go_on_from_any_time() {
    let stages = [stage(10, 0.0, 100.0), stage(5, 7.0, 7.0)];
    for (from_s, rest) in [
        (0, stages.to_vec()),
        (4, vec![stage(6, 40.0, 100.0), stages[1]]),
        (10, vec![stages[1]]),
        (12, vec![stage(3, 7.0, 7.0)]),
        (15, vec![]),
        (99, vec![]),
    ] {
        assert_eq!(stages_from(&stages, from_s * S), rest, "from second {from_s}");
    }
}

#[test]
fn random_arrivals_at_a_rate_that_can_be_sent_are_counted_one_by_one() {
    let stages = [stage(4, 1e6, 1e6)];
    let arrivals = Arrivals::Poisson { seed: 7 };
    let mut schedule = Schedule::new(&stages, arrivals, 0, 1);
    let counted: u64 = (1..=16).map(|quarter| schedule.skip_until(quarter * S / 4)).sum();
    assert_eq!(counted, all(&stages, arrivals, 0, 1).len() as u64);
}

proptest! {
    #[test]
    fn threads_together_have_the_arrivals_that_one_would_have(
        rates in prop::collection::vec((1u64..4, 0.0f64..300.0, 0.0f64..300.0), 1..4),
        seed in any::<Option<u64>>(),
        threads in 1u32..12,
        requests in 0u64..2000,
    ) {
        let stages: Vec<Stage> =
            rates.iter().map(|(s, from, to)| stage(*s, *from, *to)).collect();
        let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
        let whole = all(&stages, arrivals, 0, 1);
        let shares: Vec<Vec<u64>> =
            (0..threads).map(|thread| all(&stages, arrivals, thread, threads)).collect();
        let mut merged = shares.concat();
        merged.sort_unstable();
        prop_assert_eq!(&merged, &whole);
        // The first so many of all are the first of each thread, as many as its share says.
        let most = requests.min(whole.len() as u64);
        for (thread, mine) in shares.iter().enumerate() {
            let share = crate::share(most, u64::from(threads), thread as u64) as usize;
            let dealt = whole[..most as usize].iter().skip(thread).step_by(threads as usize);
            prop_assert!(mine[..share].iter().eq(dealt), "thread {}", thread);
        }
    }

    #[test]
    fn origins_together_have_the_arrivals_that_one_would_have(
        weights in prop::collection::vec(1u32..20, 1..6),
        seed in any::<Option<u64>>(),
        threads in 1u32..5,
        requests in 0u64..800,
    ) {
        let stages = [stage(2, 0.0, 300.0), stage(1, 500.0, 500.0)];
        let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
        let whole = all(&stages, arrivals, 0, 1);
        let targets: Vec<_> = weights.iter().copied().enumerate().collect();
        let origins = Origins::new(&targets).expect("origins");
        let (mut merged, mut first) = (Vec::new(), Vec::new());
        for origin in 0..origins.count() {
            let places = origins.places(origin);
            let mut own = Vec::new();
            for thread in 0..threads {
                let places = Some(places.clone());
                let schedule = Schedule::from(&stages, arrivals, thread, threads, places, 0);
                own.extend(drawn(schedule));
            }
            own.sort_unstable();
            first.extend(own.iter().copied().take(places.among(requests) as usize));
            merged.extend(own);
        }
        merged.sort_unstable();
        prop_assert_eq!(&merged, &whole);
        // A number of requests is divided as the arrivals are: the first so many of all.
        first.sort_unstable();
        prop_assert_eq!(&first[..], &whole[..whole.len().min(requests as usize)]);
    }

    #[test]
    fn threads_that_join_change_no_arrival_of_all(
        rates in prop::collection::vec((1u64..4, 0.0f64..300.0, 0.0f64..300.0), 1..4),
        seed in any::<Option<u64>>(),
        threads in 1u32..5,
        joins_ms in prop::collection::btree_set(1u64..9_000, 0..4),
    ) {
        let stages: Vec<Stage> =
            rates.iter().map(|(s, from, to)| stage(*s, *from, *to)).collect();
        let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
        let joins: Vec<(u64, u32)> =
            joins_ms.iter().map(|ms| ms * 1_000_000).zip(threads + 1..).collect();
        let part = |thread, (from_ns, threads)| {
            Schedule::from(&stages, arrivals, thread, threads, None, from_ns)
        };
        let told = |mut schedule: Schedule, thread, later: &[(u64, u32)]| {
            later.iter().for_each(|join| schedule.hand_over(join.0, part(thread, *join)));
            schedule
        };
        let of_first = |thread| Schedule::new(&stages, arrivals, thread, threads);
        let mut parts: Vec<_> =
            (0..threads).map(|thread| told(of_first(thread), thread, &joins)).collect();
        for (nth, join) in joins.iter().enumerate() {
            parts.push(told(part(join.1 - 1, *join), join.1 - 1, &joins[nth + 1..]));
        }
        let mut skipping = parts.clone();
        let mut merged: Vec<u64> = parts.into_iter().flat_map(drawn).collect();
        merged.sort_unstable();
        // One thread that draws again at the same times.
        let at_once: Vec<_> = joins.iter().map(|(from_ns, _)| (*from_ns, 1)).collect();
        prop_assert_eq!(&merged, &drawn(told(Schedule::new(&stages, arrivals, 0, 1), 0, &at_once)));
        if seed.is_none() {
            prop_assert_eq!(&merged, &all(&stages, arrivals, 0, 1), "even arrivals go on");
        }
        let until_ns = 4 * S;
        let skipped: u64 = skipping.iter_mut().map(|part| part.skip_until(until_ns)).sum();
        let before = merged.iter().filter(|at_ns| **at_ns < until_ns).count() as u64;
        prop_assert_eq!(skipped, before);
    }

    #[test]
    fn arrivals_never_go_back_in_time(
        rates in prop::collection::vec((1u64..5, 0.0f64..500.0, 0.0f64..500.0), 1..5),
        seed in any::<Option<u64>>(),
        threads in 1u32..4,
    ) {
        let stages: Vec<Stage> =
            rates.iter().map(|(s, from, to)| stage(*s, *from, *to)).collect();
        let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
        let end_ns: u64 = stages.iter().map(|stage| stage.ns).sum();
        for thread in 0..threads {
            let times = all(&stages, arrivals, thread, threads);
            prop_assert!(times.is_sorted());
            prop_assert!(times.iter().all(|ns| *ns <= end_ns));
        }
    }

    #[test]
    fn skipping_counts_what_drawing_would_draw(rate in 1.0f64..2000.0, cut_ms in 0u64..3000) {
        let stages = [stage(2, rate, rate)];
        let mut schedule = Schedule::new(&stages, Arrivals::Constant, 0, 1);
        let before = all(&stages, Arrivals::Constant, 0, 1);
        let expected = before.iter().filter(|ns| **ns < cut_ms * 1_000_000).count() as u64;
        prop_assert_eq!(schedule.skip_until(cut_ms * 1_000_000), expected);
    }

    #[test]
    fn skipping_goes_where_drawing_would(
        rates in prop::collection::vec((1u64..5, 0.0f64..500.0, 0.0f64..500.0), 1..5),
        seed in any::<Option<u64>>(),
        threads in 1u32..4,
        cuts_ms in prop::collection::vec(0u64..20_000, 1..4),
    ) {
        let stages: Vec<Stage> =
            rates.iter().map(|(s, from, to)| stage(*s, *from, *to)).collect();
        let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
        let mut skipping = Schedule::new(&stages, arrivals, threads - 1, threads);
        let mut drawing = skipping.clone();
        for cut_ms in cuts_ms {
            let mut drawn = 0;
            while drawing.next_ns().is_some_and(|ns| ns < cut_ms * 1_000_000) {
                drawing.advance();
                drawn += 1;
            }
            prop_assert_eq!(skipping.skip_until(cut_ms * 1_000_000), drawn);
            prop_assert_eq!(skipping.next_ns(), drawing.next_ns());
        }
    }
}
