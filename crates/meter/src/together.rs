//! Long waits that end together, as those of slots that a pause of the server has held up.
//!
//! How it works: answers are counted by how long they took at least, in powers of two. One that
//! comes within a sixteenth of that time after another that took as long follows it.

/// The shortest wait that is long: 2^23 ns, 8.4 ms. A scheduler's turns are not much longer.
const LONG_SHIFT: u32 = 23;
const LEVELS: usize = 16;
/// The binary logarithm of a wait to the time in which those of one pause end.
const SOON_SHIFT: u32 = 4;

/// Long waits by length: those of a level took at least twice as long as those of the one before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Together {
    levels: [Level; LEVELS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    answers: u64,
    followers: u64,
    /// When the last of them came, in ns since the start.
    last_ns: Option<u64>,
}

impl Together {
    /// Notes `count` answers that came at `since_ns` after the start and took `took_ns` each.
    pub(crate) fn note(&mut self, took_ns: u64, since_ns: u64, count: u64) {
        let longest = (took_ns >> LONG_SHIFT).checked_ilog2();
        let reached = longest.map_or(0, |level| LEVELS.min(level as usize + 1));
        for (shift, level) in (LONG_SHIFT - SOON_SHIFT..).zip(&mut self.levels[..reached]) {
            let soon_ns = 1 << shift;
            let follows = level.last_ns.is_some_and(|last_ns| since_ns < last_ns + soon_ns);
            level.answers += count;
            level.followers += count - u64::from(!follows);
            level.last_ns = Some(since_ns);
        }
    }

    /// Adds the waits of another thread, which holds other slots.
    pub(crate) fn merge(&mut self, other: &Together) {
        for (mine, theirs) in self.levels.iter_mut().zip(&other.levels) {
            mine.answers += theirs.answers;
            mine.followers += theirs.followers;
        }
    }

    /// Answers and followers of each level, up to the last that has any.
    pub(crate) fn report(&self) -> Vec<(u64, u64)> {
        let found = self.levels.iter().take_while(|level| level.answers > 0);
        found.map(|level| (level.answers, level.followers)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sixteenth of the shortest long wait.
    const SOON_NS: u64 = 1 << (LONG_SHIFT - SOON_SHIFT);

    /// Answers: how long they took, and when they came, in this unit, and how many they are.
    fn of(answers: &[(u64, u64, u64)]) -> Together {
        let mut together = Together::default();
        for (took, since, count) in answers {
            together.note(took * SOON_NS, since * SOON_NS, *count);
        }
        together
    }

    #[test]
    fn an_answer_follows_one_that_came_just_before_it_and_took_as_long() {
        for (answers, report) in [
            (&[(15, 100, 5)][..], vec![]),
            (&[(16, 100, 1)], vec![(1, 0)]),
            (&[(31, 100, 3)], vec![(3, 2)]),
            (&[(16, 100, 1), (16, 100, 1)], vec![(2, 1)]),
            (&[(16, 100, 1), (16, 101, 1)], vec![(2, 0)]),
            (&[(32, 100, 1), (16, 100, 1), (32, 101, 1)], vec![(3, 1), (2, 1)]),
            (&[(64, 100, 1), (64, 103, 1), (64, 107, 1)], vec![(3, 0), (3, 0), (3, 1)]),
        ] {
            assert_eq!(of(answers).report(), report, "{answers:?}");
        }
        assert_eq!(of(&[(u64::MAX / SOON_NS, 1, 1)]).report().len(), LEVELS);
    }

    #[test]
    fn answers_of_two_threads_do_not_follow_each_other() {
        let mut one = of(&[(16, 100, 2)]);
        one.merge(&of(&[(16, 100, 1), (32, 300, 1)]));
        assert_eq!(one.report(), [(4, 1), (1, 0)]);
    }
}
