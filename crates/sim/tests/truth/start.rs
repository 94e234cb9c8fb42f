//! How a thread comes to begin a phase when the others do.

use std::sync::Arc;

use trueload_load::{Arrivals, Load};

use super::model::{Delay, MS, Model, S};
use super::play::{Play, play};
use super::{open, stage};

#[test]
fn threads_that_start_together_are_prompt_from_shortly_before_until_they_have() {
    const BEFORE: i64 = -5 * MS as i64;
    const AWAKE: (i64, i64) = (-300_000, 0);
    let closed = || Load::Closed { active: Arc::default() };
    let opened = || open(&[stage(1, 100.0, 100.0)], Arrivals::Constant);
    let cases = [
        ("alone", closed(), 1, vec![(0, false)], vec![]),
        ("two", closed(), 2, vec![(BEFORE, true), (0, false)], vec![AWAKE]),
        ("alone, at times that are set", opened(), 1, vec![(0, true)], vec![]),
        ("two, at times that are set", opened(), 2, vec![(BEFORE, true), (0, true)], vec![AWAKE]),
    ];
    for (what, load, threads, prompt, awake) in cases {
        let model = Model::of(Delay::Constant(3 * MS));
        let played = play(&Play { threads, ..Play::new(model, load, S, 4) });
        played.adds_up();
        assert_eq!((played.prompt(), played.awake()), (prompt, awake), "{what}");
    }
}
