//! HTTP server on ntex, written as its documentation shows: subject HOST:PORT CPUS.

use std::io;

use ntex::SharedCfg;
use ntex::http::header::SERVER;
use ntex::http::{HttpServiceConfig, KeepAlive};
use ntex::time::Seconds;
use ntex::web::{App, HttpResponse, HttpServer, get};
use serde::Serialize;

/// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD: &str = "......................................................";

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[get("/")]
async fn plain() -> HttpResponse {
    HttpResponse::Ok()
        .header(SERVER, "ntex")
        .header("x-pad", PAD)
        .content_type("text/plain")
        .body("Hello, World!")
}

#[get("/json")]
async fn json() -> HttpResponse {
    HttpResponse::Ok().header(SERVER, "ntex").json(&Message { message: "Hello, World!" })
}

#[ntex::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [at, cpus] = arguments.as_slice() else {
        return Err(io::Error::other("subject HOST:PORT CPUS"));
    };

    // A connection ends when the client says so.
    let http = HttpServiceConfig::new()
        .set_keepalive(KeepAlive::Timeout(Seconds(3600)))
        .set_client_timeout(Seconds::ZERO);
    HttpServer::new(async || App::new().service((plain, json)))
        .workers(cpus.parse().map_err(io::Error::other)?)
        .backlog(4096)
        .shutdown_timeout(Seconds::ZERO)
        .config(SharedCfg::new("subject").add(http))
        .bind(at)?
        .run()
        .await
}
