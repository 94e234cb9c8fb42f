//! Which driver carries a program: a choice made once, at the start, and the reason when it fell to another.
//!
//! The rest of the engine holds a [`Driver`] and does not know which one it is. What the
//! kernel refuses is not an error: epoll is always there, and the note says why it is used.

use std::io;

use rustix::io::Errno;

use crate::{Clock, Epoll, Listener, Program, Uring, Waker};

/// Which driver is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The fastest that the kernel grants.
    #[default]
    Auto,
    /// `io_uring`, and epoll only where it cannot be had.
    Uring,
    /// epoll.
    Epoll,
}

/// How a driver is to work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Which one.
    pub choice: Choice,
    /// For so long the thread polls before it goes to sleep, in ns; 0 for not at all.
    pub spin_ns: u64,
}

/// A driver, whichever it is.
#[derive(Debug)]
pub struct Driver {
    kind: Kind,
    note: Option<String>,
}

#[derive(Debug)]
enum Kind {
    Epoll(Epoll),
    Uring(Uring),
}

impl Driver {
    /// The driver that the settings ask for, or epoll with a note; with a listening socket if it is to accept.
    ///
    /// It may be made on one thread and run on another.
    ///
    /// # Errors
    /// When the kernel grants not even an epoll.
    pub fn new(settings: &Settings, clock: Clock, listener: Option<Listener>) -> io::Result<Self> {
        let (listener, note) = match settings.choice {
            Choice::Epoll => (listener, None),
            Choice::Auto | Choice::Uring => match Uring::new(clock, listener, settings) {
                Ok(uring) => return Ok(Driver { kind: Kind::Uring(uring), note: None }),
                Err((error, listener)) => (listener, Some(why_not(&error))),
            },
        };
        Ok(Driver { kind: Kind::Epoll(Epoll::new(clock, listener, settings)?), note })
    }

    /// A waker to ring from other threads.
    #[must_use]
    pub fn waker(&self) -> Waker {
        match &self.kind {
            Kind::Epoll(epoll) => epoll.waker(),
            Kind::Uring(uring) => uring.waker(),
        }
    }

    /// Runs until the program is done.
    ///
    /// # Errors
    /// When waiting itself fails; nothing a peer does can cause that.
    pub fn run<P: Program>(&mut self, program: &mut P) -> io::Result<()> {
        match &mut self.kind {
            Kind::Epoll(epoll) => epoll.run(program),
            Kind::Uring(uring) => uring.run(program),
        }
    }

    /// What it is, as it is called in records.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.kind {
            Kind::Epoll(_) => "epoll",
            Kind::Uring(_) => "io_uring",
        }
    }

    /// Why it is not the one that was asked for.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

/// Why there is no ring, for people.
fn why_not(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM | Errno::ACCESS) => "io_uring is forbidden here".to_owned(),
        Some(Errno::NOSYS) => "the kernel has no io_uring".to_owned(),
        Some(Errno::NOMEM) => "io_uring found no memory that may be locked".to_owned(),
        Some(Errno::INVAL) => "the kernel's io_uring is too old".to_owned(),
        _ => format!("io_uring: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoll_is_what_it_is_without_a_note() {
        let settings = Settings { choice: Choice::Epoll, ..Settings::default() };
        let driver = Driver::new(&settings, Clock::start(), None).expect("a driver");
        assert_eq!((driver.name(), driver.note()), ("epoll", None));
    }

    #[test]
    fn why_there_is_no_ring_is_said_in_words() {
        for (errno, why) in [
            (Errno::PERM, "io_uring is forbidden here"),
            (Errno::ACCESS, "io_uring is forbidden here"),
            (Errno::NOSYS, "the kernel has no io_uring"),
            (Errno::NOMEM, "io_uring found no memory that may be locked"),
            (Errno::INVAL, "the kernel's io_uring is too old"),
        ] {
            assert_eq!(why_not(&errno.into()), why);
        }
        assert_eq!(why_not(&io::Error::other("odd")), "io_uring: odd");
    }

    #[test]
    fn a_driver_that_is_not_io_uring_says_why() {
        for choice in [Choice::Auto, Choice::Uring] {
            let settings = Settings { choice, ..Settings::default() };
            let driver = Driver::new(&settings, Clock::start(), None).expect("a driver");
            assert_eq!(driver.name() != "io_uring", driver.note().is_some(), "{choice:?}");
        }
    }
}
