//! `trueload-engine`: reads a plan on stdin, writes JSON lines on stdout.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, address] if flag == "--pipe" => trueload_engine::pipe::run(address),
        _ => trueload_engine::control::run(),
    }
}
