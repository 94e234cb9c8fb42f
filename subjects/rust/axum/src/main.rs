//! HTTP server on axum, written as its documentation shows: subject HOST:PORT CPUS.

use std::error::Error;
use std::net::SocketAddr;

use axum::http::HeaderName;
use axum::http::header::{CONTENT_TYPE, SERVER};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};

/// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD: (HeaderName, &str) =
    (HeaderName::from_static("x-pad"), "......................................................");

const NAME: (HeaderName, &str) = (SERVER, "axum");
const TEXT: (HeaderName, &str) = (CONTENT_TYPE, "text/plain");

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

async fn plain() -> impl IntoResponse {
    ([NAME, TEXT, PAD], "Hello, World!")
}

async fn json() -> impl IntoResponse {
    ([NAME], Json(Message { message: "Hello, World!" }))
}

async fn serve(at: SocketAddr) -> Result<(), Box<dyn Error>> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    // An error means that the client is already gone, and is ignored.
    let listener = socket.listen(4096)?.tap_io(|stream| drop(stream.set_nodelay(true)));

    let app = Router::new().route("/", get(plain)).route("/json", get(json));
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = axum::serve(listener, app) => Ok(ended?),
        _ = terminate.recv() => Ok(()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [at, cpus] = arguments.as_slice() else {
        return Err("subject HOST:PORT CPUS".into());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cpus.parse()?)
        .enable_all()
        .build()?;
    runtime.block_on(serve(at.parse()?))
}
