//! The choice of the driver that runs a program. It is made once, at the start, with the reason if
//! another driver had to be used.
//!
//! The rest of the engine holds a [`Driver`] and does not know which one it is. A kernel that
//! refuses io_uring is not an error: epoll is always available, and the note says why it is used.

use std::io;

use rustix::io::Errno;

use crate::{Choice, Clock, Epoll, Listener, Program, Settings, Uring, Waker};

/// A driver of either kind.
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
    /// Creates the requested driver, or epoll with a note. It accepts connections if given a
    /// listening socket.
    ///
    /// It may be made on one thread and run on another. It fails if the kernel does not even grant
    /// an epoll.
    pub fn new(settings: &Settings, clock: Clock, listener: Option<Listener>) -> io::Result<Self> {
        let (listener, note) = match settings.choice {
            Choice::Epoll => (listener, None),
            Choice::Auto | Choice::IoUring => match Uring::new(clock, listener, settings) {
                Ok(uring) => return Ok(Driver { kind: Kind::Uring(uring), note: None }),
                Err((error, listener)) => (listener, Some(why_not(&error))),
            },
        };
        Ok(Driver { kind: Kind::Epoll(Epoll::new(clock, listener, settings)?), note })
    }

    /// A waker that other threads use to wake this driver.
    pub fn waker(&self) -> Waker {
        match &self.kind {
            Kind::Epoll(epoll) => epoll.waker(),
            Kind::Uring(uring) => uring.waker(),
        }
    }

    /// Runs until the program is done. An error means that waiting itself failed; nothing a peer
    /// does can cause that.
    pub fn run<P: Program>(&mut self, program: &mut P) -> io::Result<()> {
        match &mut self.kind {
            Kind::Epoll(epoll) => epoll.run(program),
            Kind::Uring(uring) => uring.run(program),
        }
    }

    /// Its name in records.
    pub fn name(&self) -> &'static str {
        match &self.kind {
            Kind::Epoll(_) => "epoll",
            Kind::Uring(_) => "io_uring",
        }
    }

    /// Why it is not the requested driver.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

/// The reason why there is no ring, in words.
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
        for choice in [Choice::Auto, Choice::IoUring] {
            let settings = Settings { choice, ..Settings::default() };
            let driver = Driver::new(&settings, Clock::start(), None).expect("a driver");
            assert_eq!(driver.name() != "io_uring", driver.note().is_some(), "{choice:?}");
        }
    }
}
