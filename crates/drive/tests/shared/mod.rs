//! Either driver, for tests that hold of both.

mod watching;

use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use trueload_drive::{Clock, Epoll, Listener, Program, Settings, Uring};
use watching::{Watching, When};

const MEMORY_IS_BACK: Duration = Duration::from_secs(30);

/// Which driver, and whether all connections are watched for the arrival of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Epoll,
    Uring,
    WatchedEpoll,
    WatchedUring,
    UringWatchedLater,
}

impl Kind {
    /// Runs a program to its end, woken once at the start.
    pub fn run(self, listener: Option<Listener>, program: &mut impl Program) {
        self.run_on(Clock::start(), listener, program);
    }

    /// The same, by a clock that others read, too.
    pub fn run_on(self, clock: Clock, listener: Option<Listener>, program: &mut impl Program) {
        let watching = |program, when| Watching { program, when };
        match self {
            Kind::Epoll => run_epoll(clock, listener, program),
            Kind::Uring => run_uring(clock, listener, program),
            Kind::WatchedEpoll => {
                run_epoll(clock, listener, &mut watching(program, When::AtTheStart));
            }
            Kind::WatchedUring => {
                run_uring(clock, listener, &mut watching(program, When::AtTheStart));
            }
            Kind::UringWatchedLater => {
                run_uring(clock, listener, &mut watching(program, When::WithItsFirstBytes));
            }
        }
    }
}

fn run_epoll(clock: Clock, listener: Option<Listener>, program: &mut impl Program) {
    let mut driver = Epoll::new(clock, listener, &Settings::default()).expect("an epoll");
    driver.waker().wake();
    driver.run(program).expect("the loop runs");
}

fn run_uring(clock: Clock, listener: Option<Listener>, program: &mut impl Program) {
    let mut driver = ring(clock, listener);
    driver.waker().wake();
    driver.run(program).expect("the loop runs");
}

/// A new ring. The kernel limits how much ring memory an ordinary user has, and frees that of a closed ring only
/// some time later, so this waits for it.
fn ring(clock: Clock, mut listener: Option<Listener>) -> Uring {
    let began = Instant::now();
    loop {
        match Uring::new(clock, listener, &Settings::default()) {
            Ok(driver) => return driver,
            Err((error, back)) => {
                let full = error.kind() == ErrorKind::OutOfMemory;
                assert!(full && began.elapsed() < MEMORY_IS_BACK, "no ring: {error}");
                listener = back;
                thread::yield_now();
            }
        }
    }
}

macro_rules! on_both_drivers {
    ($($name:ident)*) => {
        mod on_epoll {
            $(#[test] fn $name() { super::$name(crate::shared::Kind::Epoll); })*
        }
        mod on_io_uring {
            $(#[test] fn $name() { super::$name(crate::shared::Kind::Uring); })*
        }
    };
}

/// The same with every connection watched: nothing else changes.
macro_rules! on_both_drivers_watched {
    ($($name:ident)*) => {
        mod on_epoll_watched {
            $(#[test] fn $name() { super::$name(crate::shared::Kind::WatchedEpoll); })*
        }
        mod on_io_uring_watched {
            $(#[test] fn $name() { super::$name(crate::shared::Kind::WatchedUring); })*
        }
        mod on_io_uring_watched_later {
            $(#[test] fn $name() { super::$name(crate::shared::Kind::UringWatchedLater); })*
        }
    };
}
