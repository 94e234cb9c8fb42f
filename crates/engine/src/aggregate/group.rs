//! The engines below an aggregator, as a state machine: it takes what they say and the time, and
//! returns lines for the front and for them. It starts no process and reads no clock.
//!
//! How: ticks of a phase are merged, and clocks are compared here. Of the end of a phase, the series
//! is added up, and each engine's own keeps only counts. All else is relayed as it is, so the front
//! deals with each engine as without an aggregator.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::protocol::{
    ClockOf, Clocks, Ended, FromEngine, Quiet, Relayed, Second, Seconds, Silent, Standing,
    Standings, Tick, Told, ToldTick,
};

use super::clock::Comparison;
use super::series::{Series, condensed};
use super::ticks::Ticks;
use super::told;

const MS: u64 = 1_000_000;
/// A quarter of an engine's lease of 2 s, and six answers before silence.
const ASK_EVERY_NS: u64 = 250 * MS;
/// An engine that answers nothing for so long is lost (design §9).
const SILENCE_NS: u64 = 1_500 * MS;
/// Ten ticks; the front knows whether the engine has work.
const QUIET_NS: u64 = 2_500 * MS;
/// If we ourselves stood still for so long, we cannot tell who was silent.
const STALL_NS: u64 = 500 * MS;
const TELL_EVERY_NS: u64 = 1_000 * MS;
/// Questions before an engine's clock is told: the quickest of them counts.
const COMPARED_AT_START: usize = 8;

/// One engine, from when its process was started until that has ended or it is lost.
#[derive(Debug, Default)]
struct Child {
    comparison: Comparison,
    /// Open questions: their number, and when they were asked.
    asked_ns: BTreeMap<u64, u64>,
    heard_ns: u64,
    spoke_ns: u64,
    /// It has said `hello`, so it understands questions.
    greeted: bool,
    /// It has been told to end, or has said `done`.
    ending: bool,
    told: BTreeMap<String, told::Told>,
    /// Its last tick that was not told as its standing yet, and the phase.
    standing: Option<(String, Standing)>,
}

/// A phase that not all have ended.
#[derive(Debug, Default)]
struct Phase {
    ticks: Ticks,
    series: Series,
    ended: BTreeSet<u32>,
}

/// The engines, and what is to be sent.
#[derive(Debug, Default)]
pub(super) struct Group {
    children: BTreeMap<u32, Child>,
    phases: BTreeMap<String, Phase>,
    questions: u64,
    beat_ns: u64,
    asked_ns: u64,
    clocks_ns: u64,
    up: Vec<FromEngine>,
    down: Vec<(u32, String)>,
}

/// The line `phase_done`, of which all but the series is passed on as it was written.
#[derive(Deserialize)]
struct PhaseDone {
    id: String,
    measurement: BTreeMap<String, Box<RawValue>>,
}

impl PhaseDone {
    /// Writes the line.
    fn line(&self) -> Option<String> {
        let id = serde_json::to_string(&self.id).ok()?;
        let measurement = serde_json::to_string(&self.measurement).ok()?;
        Some(format!(r#"{{"type":"phase_done","id":{id},"measurement":{measurement}}}"#))
    }
}

impl Phase {
    /// Adds the series of one engine, and returns what its own line keeps of it.
    fn sum(&mut self, done: &PhaseDone) -> Option<Box<RawValue>> {
        let series = done.measurement.get("series")?;
        let series: Vec<Second> = serde_json::from_str(series.get()).ok()?;
        let own = to_raw_value(&condensed(&series)).ok()?;
        self.series.add(&series);
        Some(own)
    }
}

/// The line `clock`.
#[derive(Deserialize)]
struct Answer {
    id: u64,
    at_ns: u64,
}

impl Group {
    /// Takes the lines that are to be sent: to the front, and to engines.
    pub(super) fn output(&mut self) -> (Vec<FromEngine>, Vec<(u32, String)>) {
        (mem::take(&mut self.up), mem::take(&mut self.down))
    }

    /// An engine's process was started.
    pub(super) fn handle_open(&mut self, child: u32) {
        self.children.insert(child, Child::default());
    }

    /// The front sends a line to an engine.
    pub(super) fn handle_relay(&mut self, child: u32, line: &str) {
        if let Some(found) = self.children.get_mut(&child) {
            found.ending |= line.starts_with(r#"{"type":"stop""#);
            self.down.push((child, line.to_owned()));
        }
    }

    /// An engine has said a line, which came at this time.
    pub(super) fn handle_line(&mut self, now_ns: u64, child: u32, line: String) {
        let Some(found) = self.children.get_mut(&child) else { return };
        found.heard_ns = now_ns;
        let kind = line.strip_prefix(r#"{"type":""#).and_then(|rest| rest.split('"').next());
        let (greets, ends) = (kind == Some("hello"), kind == Some("done"));
        if kind != Some("clock") {
            found.spoke_ns = now_ns;
        }
        found.ending |= ends;
        // What cannot be understood is relayed: the front refuses it, and names the engine.
        let taken = match kind {
            Some("clock") => self.take_answer(now_ns, child, &line),
            Some("tick") => self.take_tick(now_ns, child, &line),
            Some("phase_done") => self.take_end_of_phase(child, &line),
            _ => false,
        };
        if !taken {
            self.up.push(FromEngine::Relayed(Relayed { child, line, summed: false }));
        }
        if greets {
            self.greet(now_ns, child);
        }
    }

    /// An engine's process has ended, or its output has.
    pub(super) fn handle_end(&mut self, child: u32, code: Option<i32>, log: String) {
        if self.children.contains_key(&child) {
            self.remove(child);
            self.up.push(FromEngine::Ended(Ended { child, code, log }));
        }
    }

    /// Time has passed: asks clocks, and looks for engines that are silent.
    pub(super) fn handle_beat(&mut self, now_ns: u64) {
        let stood_ns = now_ns - mem::replace(&mut self.beat_ns, now_ns);
        if stood_ns > STALL_NS {
            for child in self.children.values_mut() {
                child.heard_ns += stood_ns;
                child.spoke_ns += stood_ns;
            }
        }
        if now_ns - self.asked_ns >= ASK_EVERY_NS {
            self.asked_ns = now_ns;
            let greeted: Vec<u32> = self.watched().map(|(number, _)| number).collect();
            for child in greeted {
                self.ask(now_ns, child);
            }
        }
        self.lose_the_silent(now_ns);
        if now_ns - self.clocks_ns >= TELL_EVERY_NS {
            self.tell(now_ns);
        }
    }

    /// Engines that have to answer.
    fn watched(&self) -> impl Iterator<Item = (u32, &Child)> {
        let watched = self.children.iter().filter(|(_, child)| child.greeted && !child.ending);
        watched.map(|(number, child)| (*number, child))
    }

    fn greet(&mut self, now_ns: u64, child: u32) {
        if let Some(found) = self.children.get_mut(&child) {
            found.greeted = true;
        }
        self.ask(now_ns, child);
    }

    /// Asks for an engine's clock, which also tells it that we are alive.
    fn ask(&mut self, now_ns: u64, child: u32) {
        self.questions += 1;
        if let Some(found) = self.children.get_mut(&child) {
            found.asked_ns.insert(self.questions, now_ns);
            self.down.push((child, format!(r#"{{"type":"clock","id":{}}}"#, self.questions)));
        }
    }

    fn take_answer(&mut self, now_ns: u64, child: u32, line: &str) -> bool {
        let Ok(answer) = serde_json::from_str::<Answer>(line) else { return false };
        let Some(found) = self.children.get_mut(&child) else { return true };
        let Some(asked_ns) = found.asked_ns.remove(&answer.id) else { return false };
        found.comparison.add(asked_ns, now_ns, answer.at_ns);
        match found.comparison.len() {
            ..COMPARED_AT_START => self.ask(now_ns, child),
            COMPARED_AT_START => {
                let clocks = clock_of(now_ns, child, found).into_iter().collect();
                self.up.push(FromEngine::Clocks(Clocks { clocks }));
            }
            _ => {}
        }
        true
    }

    fn take_tick(&mut self, now_ns: u64, child: u32, line: &str) -> bool {
        // Without its tag it is read in half the time.
        let Some(rest) = line.strip_prefix(r#"{"type":"tick","#) else { return false };
        let Ok(mut tick) = serde_json::from_str::<Tick>(&format!("{{{rest}")) else { return false };
        let count = self.children.len();
        let Some(found) = self.children.get_mut(&child) else { return true };
        let Some(offset) = found.comparison.offset(now_ns) else { return false };
        let Some(id) = tick.id.clone() else { return true };
        tick.at_ns = offset.to_ours(tick.at_ns);
        found.standing = Some((id.clone(), standing_of(child, &tick)));
        let phase = self.phases.entry(id.clone()).or_default();
        self.up.extend(phase.ticks.receive(child, &tick, count).map(FromEngine::Tick));
        found.told.entry(id).or_default().add(tick);
        true
    }

    fn take_end_of_phase(&mut self, child: u32, line: &str) -> bool {
        let Ok(mut done) = serde_json::from_str::<PhaseDone>(line) else { return false };
        let Some(found) = self.children.get_mut(&child) else { return true };
        let is_partial = done.measurement.get("partial").is_none_or(|raw| raw.get() != "false");
        let is_whole = found.ending || !is_partial;
        // The front describes one that is lost by its last tick, so that comes first.
        if is_whole {
            found.told.remove(&done.id);
        } else {
            self.tell_ticks(child);
        }
        let phase = self.phases.entry(done.id.clone()).or_default();
        phase.ended.insert(child);
        // One that has ended by itself within a phase is lost, and no part of its sums. The front
        // decides that, so it gets the whole series.
        let own = if is_whole { phase.sum(&done) } else { None };
        let summed = own.is_some();
        done.measurement.extend(own.map(|own| ("series".into(), own)));
        // The sums come before the last engine's end: then the front has all that it waits for.
        self.end_phases();
        let line = if summed { done.line() } else { Some(line.to_owned()) };
        self.up.extend(line.map(|line| FromEngine::Relayed(Relayed { child, line, summed })));
        true
    }

    /// Sends what is left of phases that all engines have ended.
    fn end_phases(&mut self) {
        let all = |phase: &Phase| self.children.keys().all(|child| phase.ended.contains(child));
        let over = self.phases.iter().filter(|(_, phase)| !phase.ended.is_empty() && all(phase));
        let over: Vec<String> = over.map(|(id, _)| id.clone()).collect();
        for id in over {
            let Some(mut phase) = self.phases.remove(&id) else { continue };
            self.up.extend(phase.ticks.rest().map(FromEngine::Tick));
            let series = phase.series.sums();
            self.up.push(FromEngine::Seconds(Seconds { id, series }));
        }
    }

    fn lose_the_silent(&mut self, now_ns: u64) {
        let silent_ns = |child: &Child| now_ns.saturating_sub(child.heard_ns);
        let lost: Vec<(u32, u64)> = self
            .watched()
            .map(|(number, child)| (number, silent_ns(child)))
            .filter(|(_, ns)| *ns > SILENCE_NS)
            .collect();
        for (child, silent_ns) in lost {
            self.remove(child);
            self.up.push(FromEngine::Silent(Silent { child, silent_ns }));
        }
    }

    /// Forgets an engine.
    fn remove(&mut self, child: u32) {
        self.tell_ticks(child);
        self.children.remove(&child);
        for phase in self.phases.values_mut() {
            phase.ticks.without(child);
        }
        self.end_phases();
    }

    /// Tells what an engine has told of phases that it has not ended: only we know it.
    fn tell_ticks(&mut self, child: u32) {
        let Some(found) = self.children.get_mut(&child) else { return };
        let told = mem::take(&mut found.told).into_values();
        let ticks: Vec<ToldTick> =
            told.flat_map(told::Told::into_ticks).map(ToldTick::Tick).collect();
        if !ticks.is_empty() {
            self.up.push(FromEngine::Told(Told { child, ticks }));
        }
    }

    /// Tells the clocks, who has said nothing for long, and how far all have come.
    fn tell(&mut self, now_ns: u64) {
        self.clocks_ns = now_ns;
        let quiet = |child: &Child| now_ns.saturating_sub(child.spoke_ns) > QUIET_NS;
        let clocks: Vec<ClockOf> =
            self.watched().filter_map(|(number, child)| clock_of(now_ns, number, child)).collect();
        let children: Vec<u32> =
            self.watched().filter(|(_, child)| quiet(child)).map(|(number, _)| number).collect();
        if !clocks.is_empty() {
            self.up.push(FromEngine::Clocks(Clocks { clocks }));
        }
        if !children.is_empty() {
            self.up.push(FromEngine::Quiet(Quiet { at_ns: now_ns, children }));
        }
        let mut standings = BTreeMap::<String, Vec<Standing>>::new();
        for child in self.children.values_mut() {
            if let Some((id, standing)) = child.standing.take() {
                standings.entry(id).or_default().push(standing);
            }
        }
        let told = standings.into_iter().map(|(id, hosts)| Standings { id, hosts });
        self.up.extend(told.map(FromEngine::Standings));
    }
}

fn standing_of(child: u32, tick: &Tick) -> Standing {
    let failed = tick.counts.failed.values().sum();
    (child, tick.at_ns, tick.counts.ok, failed, tick.open, tick.busiest_ns)
}

/// The clock of an engine that has been asked often enough.
fn clock_of(now_ns: u64, number: u32, child: &Child) -> Option<ClockOf> {
    if child.comparison.len() < COMPARED_AT_START {
        return None;
    }
    let offset = child.comparison.offset(now_ns)?;
    Some(ClockOf { child: number, ahead_ns: offset.ahead_ns, bound_ns: offset.bound_ns })
}

#[cfg(test)]
mod tests;
