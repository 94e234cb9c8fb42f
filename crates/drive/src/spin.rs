//! Polls for a while before the thread sleeps. Waking a thread costs both ends some microseconds,
//! which a few connections cannot hide, and now and then it is late.

use std::io;

use crate::Clock;

/// The time to poll before a sleep, and the time polled in vain so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spin {
    most_ns: u64,
    awake_until_ns: u64,
    spun_ns: u64,
}

impl Spin {
    /// Polls up to `most_ns` before each sleep; 0 for not at all.
    pub(crate) fn up_to(most_ns: u64) -> Self {
        Spin { most_ns, ..Spin::default() }
    }

    /// Forbids sleep until then.
    pub(crate) fn stay_awake_until(&mut self, at_ns: u64) {
        self.awake_until_ns = at_ns;
    }

    /// Time spent polling without an event, in ns.
    pub(crate) fn spun_ns(&self) -> u64 {
        self.spun_ns
    }

    /// Polls until `poll` has something to do or `wake_at_ns` has come, which makes sleep
    /// unnecessary (true). False when the time to poll is over.
    pub(crate) fn spares_sleep(
        &mut self,
        clock: Clock,
        wake_at_ns: Option<u64>,
        mut poll: impl FnMut() -> io::Result<bool>,
    ) -> io::Result<bool> {
        if self.most_ns == 0 && self.awake_until_ns == 0 {
            return Ok(false);
        }
        let began_ns = clock.now_ns();
        let until_ns = self.awake_until_ns.max(began_ns.saturating_add(self.most_ns));
        let mut now_ns = began_ns;
        loop {
            let before_ns = now_ns;
            let happened = poll()?;
            now_ns = clock.now_ns();
            if happened || wake_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                self.spun_ns += before_ns - began_ns;
                return Ok(true);
            }
            if now_ns >= until_ns {
                self.awake_until_ns = 0;
                self.spun_ns += now_ns - began_ns;
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_polling_in_vain_counts_as_spun() {
        let clock = Clock::start();
        let mut spin = Spin::up_to(u64::MAX);
        let mut polls = 0;
        let spared = spin.spares_sleep(clock, None, || {
            polls += 1;
            Ok(true)
        });
        assert_eq!((spared.ok(), polls, spin.spun_ns()), (Some(true), 1, 0));
        let spared = spin.spares_sleep(clock, None, || {
            polls += 1;
            Ok(polls == 100)
        });
        assert_eq!((spared.ok(), polls), (Some(true), 100));
        assert!(spin.spun_ns() > 0);
    }

    #[test]
    fn a_spin_ends_when_its_time_is_over() {
        let clock = Clock::start();
        let mut spin = Spin::up_to(1000);
        assert_eq!(spin.spares_sleep(clock, None, || Ok(false)).ok(), Some(false));
        assert!(spin.spun_ns() >= 1000);
        let mut never = Spin::up_to(0);
        assert_eq!(never.spares_sleep(clock, None, || Ok(true)).ok(), Some(false));
    }

    #[test]
    fn who_is_to_stay_awake_does_not_sleep_until_then_and_may_again() {
        let clock = Clock::start();
        let mut spin = Spin::up_to(0);
        let until_ns = clock.now_ns() + 100_000;
        spin.stay_awake_until(until_ns);
        let mut polled_ns = Vec::new();
        let spared = spin.spares_sleep(clock, None, || {
            polled_ns.push(clock.now_ns());
            Ok(false)
        });
        assert_eq!(spared.ok(), Some(false));
        assert!(clock.now_ns() >= until_ns);
        let polls = polled_ns.len();
        let spared = spin.spares_sleep(clock, None, || {
            polled_ns.push(clock.now_ns());
            Ok(true)
        });
        assert_eq!((spared.ok(), polled_ns.len()), (Some(false), polls), "it sleeps at once");
    }
}
