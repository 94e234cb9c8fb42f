//! Either driver, for tests that hold of both.

#![allow(missing_docs, unreachable_pub, clippy::expect_used)]

use trueload_drive::{Clock, Epoll, Listener, Program, Settings, Uring};

/// Which driver.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Epoll,
    Uring,
}

impl Kind {
    /// Runs a program to its end, woken once at the start.
    pub fn run(self, listener: Option<Listener>, program: &mut impl Program) {
        match self {
            Kind::Epoll => {
                let settings = Settings::default();
                let driver = Epoll::new(Clock::start(), listener, &settings);
                let mut driver = driver.expect("an epoll");
                driver.waker().wake();
                driver.run(program).expect("the loop runs");
            }
            Kind::Uring => {
                let driver = Uring::new(Clock::start(), listener, &Settings::default());
                let mut driver = driver.map_err(|(error, _)| error).expect("a ring");
                driver.waker().wake();
                driver.run(program).expect("the loop runs");
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
