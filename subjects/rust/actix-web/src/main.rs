//! HTTP server on actix-web, used in the ordinary way: its router, its extractors, its own
//! response writer.

use std::time::Duration;

use actix_web::http::header;
use actix_web::http::header::ContentType;
use actix_web::rt::signal::unix::{SignalKind, signal};
use actix_web::rt::{spawn, time::sleep};
use actix_web::{App, HttpResponse, HttpServer, Responder, get, web};

const PERF: &str =
    r#"{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}"#;

/// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD: &str = ".................................................";

const SERVER: (header::HeaderName, &str) = (header::SERVER, "actix-web");
const TEXT: (header::HeaderName, &str) = (header::CONTENT_TYPE, "text/plain");
const WAIT_MS_MAX: u64 = 60_000;

#[get("/")]
async fn plain() -> impl Responder {
    HttpResponse::Ok()
        .insert_header(SERVER)
        .insert_header(TEXT)
        .insert_header(("x-pad", PAD))
        .body("Hello, World!")
}

#[get("/perf")]
async fn perf() -> impl Responder {
    HttpResponse::Ok().insert_header(SERVER).insert_header(ContentType::json()).body(PERF)
}

#[get("/wait/{ms}")]
async fn wait(ms: web::Path<u64>) -> impl Responder {
    if *ms > WAIT_MS_MAX {
        return HttpResponse::BadRequest().finish();
    }
    sleep(Duration::from_millis(*ms)).await;
    HttpResponse::Ok().insert_header(SERVER).insert_header(TEXT).body("ok")
}

/// Returns the value that follows a flag on the command line.
fn argument(flag: &str) -> Option<String> {
    std::env::args().skip_while(|given| given != flag).nth(1)
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let listen = argument("--listen").unwrap_or_else(|| "127.0.0.1:8080".into());
    let workers = argument("--cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(1);

    let server = HttpServer::new(|| App::new().service(plain).service(perf).service(wait))
        .workers(workers)
        .backlog(4096)
        .keep_alive(Duration::from_secs(3600))
        .client_request_timeout(Duration::ZERO)
        .disable_signals()
        .bind(listen)?
        .run();

    // The server's own handler of SIGTERM checks only once a second whether all connections have
    // ended.
    let handle = server.handle();
    let mut terminate = signal(SignalKind::terminate())?;
    spawn(async move {
        terminate.recv().await;
        handle.stop(false).await;
    });
    server.await
}
