//! WebSocket echo and broadcast on tokio-tungstenite, structured like its own example. Each
//! client has a task, which reads the client's messages and sends it what other tasks have put
//! into its channel.

mod envelope;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_channel::mpsc::{UnboundedSender, unbounded};
use futures_util::{StreamExt, TryStreamExt, future, pin_mut};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use envelope::{Asked, Kind, Said};

const PATH: &str = "/ws";
const BACKLOG: u32 = 4096;
/// The pause after a failed accept, mostly because no descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// The default of 128 KiB per direction and connection is too much for many connections.
const BUFFER_BYTES: usize = 4 * 1024;
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

type Clients = Arc<Mutex<HashMap<SocketAddr, UnboundedSender<Message>>>>;

fn message(said: &Said) -> Message {
    Message::text(said.text())
}

/// Sends a message to a client. An error is ignored: the client's task has ended, and will remove it from the map.
fn send(to: &UnboundedSender<Message>, message: Message) {
    let _ = to.unbounded_send(message);
}

fn answer(
    asked: &Message,
    sender: &UnboundedSender<Message>,
    clients: &Clients,
) -> Result<(), Error> {
    let Message::Text(text) = asked else { return Ok(()) };
    let Ok(Asked { kind, payload }) = serde_json::from_str(text) else {
        return Err(Error::ConnectionClosed);
    };
    match kind {
        Kind::Echo => send(sender, message(&Said { kind, payload, listener_count: None })),
        Kind::Broadcast => {
            // Clones of one message share its bytes.
            let text = message(&Said { kind, payload, listener_count: None });
            let clients = clients.lock().expect("no task panics");
            clients.values().for_each(|client| send(client, text.clone()));
            let (kind, listener_count) = (Kind::BroadcastResult, Some(clients.len()));
            send(sender, message(&Said { kind, payload, listener_count }));
        }
        Kind::BroadcastResult => {}
    }
    Ok(())
}

#[expect(clippy::result_large_err, reason = "the library's type")]
fn route(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    if request.uri().path() == PATH {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(None);
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    Err(refusal)
}

async fn talk(io: TcpStream, address: SocketAddr, clients: Clients) -> Result<(), Error> {
    io.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX));
    let stream = tokio_tungstenite::accept_hdr_async_with_config(io, route, Some(config)).await?;
    let (sender, inbox) = unbounded();
    clients.lock().expect("no task panics").insert(address, sender.clone());

    let (outgoing, incoming) = stream.split();
    let reading =
        incoming.try_for_each(|message| future::ready(answer(&message, &sender, &clients)));
    let writing = inbox.map(Ok).forward(outgoing);
    pin_mut!(reading, writing);
    future::select(reading, writing).await;

    clients.lock().expect("no task panics").remove(&address);
    Ok(())
}

async fn accept(listener: TcpListener) {
    let clients = Clients::default();
    loop {
        match listener.accept().await {
            Ok((io, address)) => drop(tokio::spawn(talk(io, address, clients.clone()))),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Returns the value that follows a flag on the command line.
fn argument(flag: &str) -> Option<String> {
    std::env::args().skip_while(|given| given != flag).nth(1)
}

fn main() -> io::Result<()> {
    let address = argument("--listen").and_then(|text| text.parse().ok());
    let threads = argument("--cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(1);

    // With one thread, a work-stealing runtime has no advantage.
    let mut builder =
        if threads > 1 { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    let runtime = builder.worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(address.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))))?;
        let mut terminate = signal(SignalKind::terminate())?;
        let accepting = tokio::spawn(accept(listener));
        terminate.recv().await;
        accepting.abort();
        Ok(())
    })
}
