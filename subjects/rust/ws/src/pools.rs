//! The ways to broadcast. The pools send to each client by itself, through the library's queue into its event loop; that loop
//! never waits for them, because they wait for it when the queue is full.

use std::sync::mpsc;
use std::thread;

use ws::Sender;

use crate::Clients;

/// Makes the sender's receipt of the number of clients.
pub type Receipt = Box<dyn FnOnce(usize) -> String + Send>;

/// Sends a text to all clients, and then a receipt to the one that asked for it.
pub trait Broadcast {
    fn broadcast(&self, out: &Sender, text: String, receipt: Receipt) -> ws::Result<()>;
}

/// By the library's own broadcast.
pub struct ByLibrary {
    clients: Clients,
}

impl ByLibrary {
    pub fn new(clients: Clients) -> Self {
        Self { clients }
    }
}

impl Broadcast for ByLibrary {
    fn broadcast(&self, out: &Sender, text: String, receipt: Receipt) -> ws::Result<()> {
        let count = self.clients.read().expect("no thread panics").len();
        out.broadcast(text)?;
        out.send(receipt(count))
    }
}

/// Each broadcast is a job of one of the pool's threads: several run at once, so that two of one client may change places.
pub struct ThreadPool {
    clients: Clients,
    pool: threadpool::ThreadPool,
}

impl ThreadPool {
    pub fn new(clients: Clients, threads: usize) -> Self {
        Self { clients, pool: threadpool::ThreadPool::new(threads) }
    }
}

impl Broadcast for ThreadPool {
    fn broadcast(&self, out: &Sender, text: String, receipt: Receipt) -> ws::Result<()> {
        let (out, clients) = (out.clone(), self.clients.clone());
        self.pool.execute(move || {
            // A copy: the event loop must never wait for the lock while this waits for room in its queue.
            let clients = clients.read().expect("no thread panics").clone();
            send_to(&clients, &text);
            let _ = out.send(receipt(clients.len()));
        });
        Ok(())
    }
}

struct Letter {
    out: Sender,
    text: String,
    receipt: Receipt,
}

/// The clients of each broadcast are divided among the pool's threads; one broadcast comes after the other.
pub struct ScopedPool {
    letters: mpsc::Sender<Letter>,
}

impl ScopedPool {
    pub fn new(clients: Clients, threads: u32) -> Self {
        let (letters, inbox) = mpsc::channel();
        thread::spawn(move || deliver(&inbox, &clients, threads));
        Self { letters }
    }
}

impl Broadcast for ScopedPool {
    fn broadcast(&self, out: &Sender, text: String, receipt: Receipt) -> ws::Result<()> {
        let letter = Letter { out: out.clone(), text, receipt };
        self.letters.send(letter).expect("the thread ends with the program");
        Ok(())
    }
}

fn deliver(inbox: &mpsc::Receiver<Letter>, clients: &Clients, threads: u32) {
    let mut pool = scoped_threadpool::Pool::new(threads);
    for Letter { out, text, receipt } in inbox {
        let clients = clients.read().expect("no thread panics").clone();
        let share = clients.len().div_ceil(threads as usize).max(1);
        pool.scoped(|scope| {
            for some in clients.chunks(share) {
                scope.execute(|| send_to(some, &text));
            }
        });
        let _ = out.send(receipt(clients.len()));
    }
}

/// A client that has gone in the meantime is no failure.
fn send_to(clients: &[Sender], text: &str) {
    for client in clients {
        let _ = client.send(text);
    }
}
