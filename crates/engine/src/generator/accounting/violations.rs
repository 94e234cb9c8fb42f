//! Which request is charged with bytes that settle none: the one settled last on their connection, or
//! the next one there.

use trueload_meter::{Answered, Class};

use super::Accounting;
use crate::generator::phase::PhaseState;
use crate::generator::slot::{Last, State};

impl Accounting {
    /// Whether the request that was settled last can be charged with a violation: it was not yet,
    /// and its phase is not over.
    pub(in crate::generator) fn can_charge(&self, state: &State) -> bool {
        let over =
            |last: Last| self.phases[usize::from(last.whose().phase)].state == PhaseState::Done;
        state.last.is_some_and(|last| !last.charged && !over(last))
    }

    /// The same for a violation of a phase in which other slots may have sent everything.
    pub(in crate::generator) fn pays(&self, state: &State, phase: usize) -> bool {
        self.can_charge(state)
            && state.last.is_some_and(|last| usize::from(last.whose().phase) == phase)
    }

    /// Counts a violation of a phase in which there is no request to be charged with it, unless
    /// another one shows.
    pub(in crate::generator) fn charge_nobody(&mut self, phase: usize, class: Class) {
        let meter = &mut self.phases[phase].meter;
        if meter.failed().all(|(known, _)| known != class) {
            meter.scheduled += 1;
            meter.issued += 1;
            meter.record_failed(class);
            // It was never sent: the log has it at the time of the phase's last result.
            let at_ns = self.phases[phase].settled_ns;
            self.fail_next(phase, at_ns, (0, class));
        }
    }

    /// Charges bytes that settle no request to the one just settled, or to the next one.
    pub(in crate::generator) fn violated(&mut self, state: &mut State, class: Class) {
        let can_charge = self.can_charge(state);
        let Some(last) = state.last.as_mut().filter(|_| can_charge) else {
            let trouble = state.trouble();
            trouble.uncharged += 1;
            trouble.violation_class = Some(class);
            return;
        };
        last.charged = true;
        if let Some(log) = &mut self.phases[usize::from(last.whose().phase)].log {
            log.amend(state.key, class);
        }
        let meter = &mut self.phases[usize::from(last.whose().phase)].meter;
        match last.failed.replace(class) {
            None => {
                let answered = last.answered();
                meter.retract_ok(&answered, class);
                let latency_ns = answered.latency_ns;
                self.of_target(last.whose(), |target| target.retract_ok(latency_ns, class));
            }
            Some(before) => {
                meter.reclass_failed(before, class);
                self.of_target(last.whose(), |target| target.reclass_failed(before, class));
            }
        }
    }

    /// Turns a request that had ended well into a failure, unless its phase is over.
    pub(in crate::generator) fn take_back(
        &mut self,
        phase: u16,
        answered: &Answered,
        class: Class,
    ) {
        let phase = &mut self.phases[usize::from(phase)];
        if phase.state != PhaseState::Done {
            phase.meter.retract_ok(answered, class);
        }
    }
}
