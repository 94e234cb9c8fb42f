//! WebSocket echo and broadcast on the crate ws: one event loop. A broadcast uses the library's
//! own broadcast, or is handed to a pool of threads.

mod envelope;
mod pools;

use std::env;
use std::rc::Rc;
use std::sync::{Arc, RwLock};

use ws::{Handler, Message, Request, Response, Sender, Settings};

use envelope::{Asked, Kind, Said};
use pools::{Broadcast, ByLibrary, ScopedPool, ThreadPool};

const PATH: &str = "/ws";
/// Chosen to fit the usual limit of open files.
const CONNECTIONS_MAX: usize = 20_000;

/// The senders of all clients.
pub type Clients = Arc<RwLock<Vec<Sender>>>;

/// One client.
struct Client {
    out: Sender,
    clients: Clients,
    how: Rc<dyn Broadcast>,
}

impl Client {
    fn answer(&self, text: &str) -> ws::Result<()> {
        let Ok(Asked { kind, payload }) = serde_json::from_str(text) else {
            return self.out.close(ws::CloseCode::Invalid);
        };
        match kind {
            Kind::Echo => self.out.send(Said { kind, payload, listener_count: None }.text()),
            Kind::Broadcast => {
                let text = Said { kind, payload, listener_count: None }.text();
                let payload = payload.to_owned();
                let result = move |count| {
                    let kind = Kind::BroadcastResult;
                    Said { kind, payload: &payload, listener_count: Some(count) }.text()
                };
                self.how.broadcast(&self.out, text, Box::new(result))
            }
            Kind::BroadcastResult => Ok(()),
        }
    }
}

impl Handler for Client {
    fn on_request(&mut self, request: &Request) -> ws::Result<Response> {
        match request.resource() {
            PATH => Response::from_request(request),
            _ => Ok(Response::new(404, "Not Found", Vec::new())),
        }
    }

    fn on_open(&mut self, _: ws::Handshake) -> ws::Result<()> {
        self.clients.write().expect("no thread panics").push(self.out.clone());
        Ok(())
    }

    fn on_message(&mut self, message: Message) -> ws::Result<()> {
        self.answer(message.as_text()?)
    }
}

/// Removes the client, however its connection ended.
impl Drop for Client {
    fn drop(&mut self) {
        let mut clients = self.clients.write().expect("no thread panics");
        if let Some(place) = clients.iter().position(|each| *each == self.out) {
            clients.swap_remove(place);
        }
    }
}

/// Returns the value that follows a flag on the command line.
fn argument(flag: &str) -> Option<String> {
    env::args().skip_while(|given| given != flag).nth(1)
}

fn main() -> ws::Result<()> {
    let address = argument("--listen").unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let threads = argument("--cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(1);

    let clients = Clients::default();
    let how: Rc<dyn Broadcast> = match argument("--pool").as_deref() {
        Some("threads") => Rc::new(ThreadPool::new(clients.clone(), threads)),
        Some("scoped") => Rc::new(ScopedPool::new(clients.clone(), threads as u32)),
        _ => Rc::new(ByLibrary::new(clients.clone())),
    };
    let settings =
        Settings { max_connections: CONNECTIONS_MAX, tcp_nodelay: true, ..Settings::default() };
    let factory = |out| Client { out, clients: clients.clone(), how: how.clone() };
    ws::Builder::new().with_settings(settings).build(factory)?.listen(address)?;
    Ok(())
}
