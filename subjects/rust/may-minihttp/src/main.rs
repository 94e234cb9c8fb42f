//! HTTP server on may_minihttp, written as its examples show: a coroutine for each connection,
//! with httparse as the parser.

use std::io;
use std::time::Duration;

use may::coroutine;
use may_minihttp::{HttpServer, HttpService, Request, Response};

const PLAIN: &str = "Hello, World!";
const PERF: &str = "{\"path\":\"/perf\",\"status\":\"ok\",\"message\":\"Hello, World!\",\
                    \"numbers\":[1,2,3,5,8,13,21]}";
/// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD: &str = "X-Pad: .........................................................";
const WAIT_MS_MOST: u64 = 60_000;

#[derive(Clone)]
struct Subject;

impl HttpService for Subject {
    fn call(&mut self, request: Request, response: &mut Response) -> io::Result<()> {
        match request.path() {
            "/" => {
                response.header("Content-Type: text/plain").header(PAD).body(PLAIN);
            }
            "/perf" => response.header("Content-Type: application/json").body(PERF),
            path => match path.strip_prefix("/wait/") {
                Some(text) => wait(text, response),
                None => {
                    response.status_code(404, "Not Found");
                    response.header("Content-Type: text/plain").body("not found");
                }
            },
        }
        Ok(())
    }
}

fn wait(text: &str, response: &mut Response) {
    match text.parse::<u64>() {
        Ok(ms) if ms <= WAIT_MS_MOST => {
            coroutine::sleep(Duration::from_millis(ms));
            response.header("Content-Type: text/plain").body("ok");
        }
        _ => {
            response.status_code(400, "Bad Request");
            response.header("Content-Type: text/plain").body("not a number of milliseconds");
        }
    }
}

/// Returns the value that follows a flag on the command line.
fn argument(flag: &str) -> Option<String> {
    std::env::args().skip_while(|given| given != flag).nth(1)
}

fn main() -> io::Result<()> {
    let listen = argument("--listen").unwrap_or_else(|| "127.0.0.1:8080".into());
    let workers = argument("--cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(1);

    may::config().set_workers(workers);
    // trueload already pins the process to its CPUs.
    may::config().set_worker_pin(false);
    let server = HttpServer(Subject).start(&listen)?;
    server.wait();
    Ok(())
}
