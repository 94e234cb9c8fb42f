//! `trueload-engine`: reads a plan on stdin, writes JSON lines on stdout.

use std::process::ExitCode;

fn main() -> ExitCode {
    trueload_engine::control::run()
}
