//! The ways to broadcast. The pools send to each client separately, through the library's queue
//! into its event loop. When the queue is full, the pool's threads wait for the event loop; the
//! event loop never waits for them.

use std::sync::mpsc;
use std::thread;

use ws::Sender;

use crate::Clients;

/// Makes the sender's receipt from the number of clients.
pub type Receipt = Box<dyn FnOnce(usize) -> String + Send>;

/// Sends a text to all clients, and then the receipt to the sender.
pub trait Broadcast {
    fn broadcast(&self, out: &Sender, text: String, receipt: Receipt) -> ws::Result<()>;
}

/// Uses the library's own broadcast.
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

/// Runs each broadcast as a job in one of the pool's threads. Several run at once, so two
/// broadcasts of one client may change their order.
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
            // A copy: this thread may wait for room in the event loop's queue. If it held the lock meanwhile, the
            // event loop could wait for the lock, and both would hang.
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

/// Divides the clients of each broadcast among the pool's threads. Broadcasts run one after the
/// other.
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

/// Sends a text to these clients. Errors are ignored, as a client may have gone in the meantime.
fn send_to(clients: &[Sender], text: &str) {
    for client in clients {
        let _ = client.send(text);
    }
}
